// Gradients that take their time, to be written and to arrive: what uses them waits for all of it.
#include <algorithm>
#include <chrono>
#include <thread>

#include "observe.hpp"
#include "support/spill_directory.hpp"

using namespace gemini_test;

namespace {

constexpr int64_t kElems = 3072;  // of a chunk

Params add_chunks(Context& ctx, int count) {
  Params all;
  for (int i = 0; i < count; ++i)
    all.push_back(ctx.add_constant("w" + std::to_string(i), GEMINI_F32, {kElems}, 1.0));
  ctx.commit();
  return all;
}

void fill_grad(gemini_param_t param, double value) {
  auto* into = gemini_test::grad<float>(param);
  std::fill(into, into + kElems, static_cast<float>(value));
}

// Every element of every chunk: in which step it was, in which of the micro-batches.
double slope(int chunk, int step, int batch) {
  return chunk + 10 * step + 100 * batch;
}

}  // namespace

// The optimizer off the device uses gradients that have arrived, however slow the way; each step has its own,
// so that those of an earlier one would be found.
class SlowLink : public testing::TestWithParam<std::tuple<int, bool>> {};
INSTANTIATE_TEST_SUITE_P(BatchesAndFiles, SlowLink, testing::Combine(testing::Values(1, 2), testing::Bool()));

TEST_P(SlowLink, NeverLetsTheOptimizerSeeAGradientOnItsWay) {
  constexpr int kChunks = 8;
  const auto [batches, spills] = GetParam();
  const SpillDirectory directory;
  KeyValues settings = adam_with({{"collectives", "delayed:20000,10"},
                                  {"accumulate", std::to_string(batches)},
                                  {"chunk_elems", std::to_string(kElems)},
                                  {"placement", "static"},
                                  {"offload_param_frac", "1"},
                                  {"offload_optim_frac", "1"}});
  if (spills) {
    settings.emplace_back("spill_dir", directory.path());
    settings.emplace_back("host_memory", "256KiB");
  }
  Context ctx(MPI_COMM_WORLD, settings);
  const Params all = add_chunks(ctx, kChunks);
  EXPECT_EQ(spills, ctx.stat(GEMINI_STAT_FILE_BYTES) > 0);
  std::vector<double> m(kChunks);
  for (int step = 0; step < 3; ++step) {
    for (int batch = 0; batch < batches; ++batch) {
      for (gemini_param_t p : all) ctx.op(GEMINI_FORWARD, {p});
      for (int i = kChunks - 1; i >= 0; --i) {
        gemini_param_t p = all[static_cast<std::size_t>(i)];
        ctx.op(GEMINI_BACKWARD, {p}, [&] { fill_grad(p, slope(i, step, batch)); });
      }
    }
    const double norm = ctx.step().grad_norm;
    double squares = 0;
    for (int i = 0; i < kChunks; ++i) {
      double sum = 0;
      for (int batch = 0; batch < batches; ++batch) sum += slope(i, step, batch);
      squares += static_cast<double>(kElems) * sum * sum;
      double& expected = m[static_cast<std::size_t>(i)];
      expected = 0.9 * expected + 0.1 * sum;
      EXPECT_TRUE(all_are(see(ctx, all[static_cast<std::size_t>(i)]).state1, expected, 1e-4))
          << "chunk " << i << " in step " << step;
    }
    EXPECT_DOUBLE_EQ(std::sqrt(squares), norm) << "step " << step;
  }
}

// A thread of the caller writes the gradient while the library works on others; it ends before post_op.
TEST(WriterThread, HasItsGradientReducedWholeHoweverLateItWrites) {
  constexpr int kSlow = 4;  // of the repeats
  constexpr int kRepeats = 100;
  struct End {
    std::vector<double> master, state1, state2;
    bool operator==(const End& other) const {
      return master == other.master && state1 == other.state1 && state2 == other.state2;
    }
  };
  const auto run = [](const char* async) {
    Context ctx(MPI_COMM_WORLD,
                adam_with({{"async_reduce", async}, {"chunk_elems", std::to_string(kElems)}}));
    const Params both = add_chunks(ctx, 2);
    gemini_param_t a = both[0];
    gemini_param_t b = both[1];
    double m = 0;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (gemini_param_t p : both) ctx.op(GEMINI_FORWARD, {p});
      ctx.phase(GEMINI_BACKWARD);
      ctx.pre({a});
      float* grad = gemini_test::grad<float>(a);
      const double g = repeat == 0 ? 3 : repeat % 7;
      std::thread writer([grad, g, repeat] {
        if (repeat < kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::fill(grad, grad + kElems, static_cast<float>(g));
      });
      ctx.op(GEMINI_BACKWARD, {b}, [&] { fill_grad(b, 1.0); });
      writer.join();
      ctx.post({a});
      ctx.step();
      m = 0.9 * m + 0.1 * g;
      const Seen seen = see(ctx, a);
      if (repeat == 0) {
        EXPECT_TRUE(first_moments(seen, 3.0, false));
      }
      if (!all_are(seen.state1, m, 1e-5)) ADD_FAILURE() << "repeat " << repeat << ", async_reduce " << async;
    }
    const Seen end = see(ctx, a);
    return End{end.master, end.state1, end.state2};
  };
  EXPECT_ALL(MPI_COMM_WORLD, run("on") == run("off"));
}
