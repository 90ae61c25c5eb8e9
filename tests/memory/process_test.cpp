// The process's own memory: 64 MiB of F32 parameters are 256 MiB to train with AdamW; four ranks hold a
// quarter each, and not much more while they train.
#include <algorithm>
#include <fstream>
#include <string>

#include "support/rank_assert.hpp"
#include "support/test_context.hpp"

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr int kTensors = 32;
constexpr std::int64_t kElems = 524288;  // 2 MiB each

// What the process has in memory now, the largest over ranks; of pages that ranks share each has its part.
std::int64_t resident_bytes() {
  std::ifstream sums("/proc/self/smaps_rollup");
  std::int64_t kib = 0;
  for (std::string word; sums >> word;)
    if (word == "Pss:") sums >> kib;
  std::int64_t most = kib * 1024;
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

TEST(ProcessMemory, IsTheShareAndTheChunksInUse) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  gemini_test::Context ctx{{"chunk_elems", "524288"}, {"placement", "static"}};
  gemini_test::Params params;
  const std::int64_t before = resident_bytes();
  ASSERT_GT(before, kMiB);
  for (int t = 0; t < kTensors; ++t)
    params.push_back(ctx.add_constant("t" + std::to_string(t), GEMINI_F32, {kElems}, 0.5));
  EXPECT_LT(resident_bytes() - before, 4 * kMiB) << "registration allocates nothing of the model's size";
  ctx.commit();
  std::int64_t most = resident_bytes();
  for (int step = 0; step < 2; ++step) {
    for (gemini_param_t param : params) ctx.op(GEMINI_FORWARD, {param});
    for (gemini_param_t param : params)
      ctx.op(GEMINI_BACKWARD, {param}, [&] {
        auto* gradient = gemini_test::grad<float>(param);
        std::fill(gradient, gradient + kElems, 1.0F);
        if (param == params[kTensors / 2]) most = std::max(most, resident_bytes());
      });
    ctx.step();
    most = std::max(most, resident_bytes());
  }

  const std::int64_t replicated = kTensors * kElems * 16;
  const std::int64_t share = replicated / ranks;
  const std::int64_t chunk = ctx.stat(GEMINI_STAT_CHUNK_ELEMS) * 4;
  EXPECT_GT(most - before, share * 9 / 10) << "the measure sees the share itself";
  EXPECT_LT(most - before, share + 6 * chunk + 32 * kMiB);
  EXPECT_LT(most - before, replicated / 2);
}

// A context that ends in the middle of an iteration gives back what its reductions held.
TEST(ProcessMemory, EndsWithTheContext) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  std::int64_t before = 0;
  for (int round = 0; round < 8; ++round) {
    if (round == 2) before = resident_bytes();
    gemini_test::Context ctx{{"chunk_elems", "1048576"}};
    gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {2 * kElems}, 0.5);
    gemini_param_t v = ctx.add_constant("v", GEMINI_F32, {2 * kElems}, 0.5);
    ctx.commit();
    ctx.op(GEMINI_FORWARD, {w, v});
    ctx.op(GEMINI_BACKWARD, {w, v}, [&] {
      for (gemini_param_t param : {w, v}) std::fill_n(gemini_test::grad<float>(param), 2 * kElems, 1.0F);
    });
  }
  EXPECT_LT(resident_bytes() - before, 20 * kMiB);
}

}  // namespace
