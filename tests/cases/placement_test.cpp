// Placement as users meet it: numbers, gathers and memory whatever is kept, fetched ahead or moved.
#include <algorithm>
#include <functional>

#include "observe.hpp"

using namespace gemini_test;

namespace {

constexpr int64_t kElems = 12288;  // of a chunk; F32: 48 KiB, whole pages on 1 to 4 ranks
constexpr int64_t kChunk = kElems * 4;
const ElementFn kOne = [](int64_t) { return 1.0; };

KeyValues with(const KeyValues& more) {
  KeyValues all = {{"optimizer", "sgd"},
                   {"lr", "1"},
                   {"timeout_s", "60"},
                   {"chunk_elems", std::to_string(kElems)},
                   {"collectives", "mpi"}};  // where chunks are copied, copies are what is placed
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Params add_chunks(Context& ctx, int count, gemini_dtype_t dtype = GEMINI_F32) {
  Params all;
  for (int i = 0; i < count; ++i)
    all.push_back(ctx.add_constant("w" + std::to_string(i), dtype, {kElems}, 1.0));
  ctx.commit();
  return all;
}

std::vector<std::vector<double>> values_of(const Params& all) {
  std::vector<std::vector<double>> numbers;
  for (gemini_param_t p : all) numbers.push_back(values(p));
  return numbers;
}

void forward(Context& ctx, const Params& all, gemini_phase_t phase = GEMINI_FORWARD) {
  for (gemini_param_t p : all) ctx.op(phase, {p});
}
// In reverse; param i has gradient fn(i).
void backward(Context& ctx, const Params& all, const ElementFn& fn) {
  for (auto i = static_cast<int64_t>(all.size()) - 1; i >= 0; --i) {
    gemini_param_t p = all[static_cast<std::size_t>(i)];
    ctx.op(GEMINI_BACKWARD, {p}, [&] { write_grad(p, [&](int64_t) { return fn(i); }); });
  }
}

// What ranks must have in common for collectives to match.
void expect_alike(const Context& ctx) {
  for (const gemini_stat_t which : {GEMINI_STAT_GATHERS, GEMINI_STAT_REDUCES, GEMINI_STAT_PREFETCH_HITS,
                                    GEMINI_STAT_PREFETCH_MISSES, GEMINI_STAT_MOVED_BYTES})
    EXPECT_SAME(MPI_COMM_WORLD, ctx.stat(which)) << "statistic " << which;
}

class Placement : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Placement, testing::Values("static", "auto", "planned"));

}  // namespace

// Passes before the first iteration, between two, before each: neither numbers nor the learnt order, nor what
// is fetched ahead by it, know of them.
TEST_P(Placement, LearnsNothingFromInference) {
  struct Outcome {
    std::vector<std::vector<double>> numbers;
    std::vector<int64_t> traffic;
    bool operator==(const Outcome& other) const {
      return numbers == other.numbers && traffic == other.traffic;
    }
  };
  const auto run = [](const std::vector<int>& passes_before) {
    Context ctx(MPI_COMM_WORLD, with({{"placement", GetParam()}, {"prefetch", "2"}}));
    const Params all = add_chunks(ctx, 3);
    Outcome outcome;
    for (int step = 0; step < 4; ++step) {
      if (std::count(passes_before.begin(), passes_before.end(), step) > 0)
        forward(ctx, all, GEMINI_INFERENCE);
      EXPECT_EQ(0, ctx.stat(GEMINI_STAT_GATHERED_BYTES));
      GEMINI_CHECK(gemini_stat_reset(ctx));
      forward(ctx, all);
      backward(ctx, all, [](int64_t i) { return 0.1 * static_cast<double>(i + rank_of() + 1); });
      ctx.step();
      EXPECT_EQ(0, ctx.stat(GEMINI_STAT_ORDER_CHANGES));
      for (const gemini_stat_t which :
           {GEMINI_STAT_GATHERS, GEMINI_STAT_PREFETCH_HITS, GEMINI_STAT_PREFETCH_MISSES})
        outcome.traffic.push_back(ctx.stat(which));
    }
    EXPECT_TRUE(all_ranks_status(GEMINI_ERR_STATE, gemini_step(ctx, nullptr)))
        << "no training since the last";
    for (gemini_param_t p : all) outcome.numbers.push_back(values(p));
    return outcome;
  };
  const Outcome without = run({});
  for (const std::vector<int>& passes : {std::vector<int>{0}, {2}, {0, 1, 2, 3}})
    EXPECT_ALL(MPI_COMM_WORLD, run(passes) == without) << passes.size() << " passes, first " << passes[0];
}

// Gathers ahead and reductions behind, hundreds of times: one order on all ranks, whatever the timing.
TEST(Queue, NeverLocksUpWithGathersAheadAndReductionsBehind) {
  struct Run {
    int64_t elems;
    int iterations;
  };
  for (const Run& run : {Run{3072, 500}, Run{1 << 18, 20}}) {  // 12 KiB and 1 MiB
    Context ctx(MPI_COMM_WORLD, {{"optimizer", "sgd"},
                                 {"lr", "1"},
                                 {"timeout_s", "60"},
                                 {"chunk_elems", std::to_string(run.elems)},
                                 {"prefetch", "4"},
                                 {"device_memory", std::to_string(16 * run.elems * 4)}});
    Params all;
    for (int i = 0; i < 16; ++i)
      all.push_back(ctx.add_constant("w" + std::to_string(i), GEMINI_F32, {run.elems}, 1.0));
    ctx.commit();
    for (int step = 0; step < run.iterations; ++step) {
      forward(ctx, all);
      for (int i = 15; i >= 0; --i) {
        gemini_param_t p = all[static_cast<std::size_t>(i)];
        ctx.op(GEMINI_BACKWARD, {p}, [&] {
          auto* into = gemini_test::grad<float>(p);
          std::fill(into, into + run.elems, static_cast<float>(i));
        });
      }
      ctx.step();
    }
    expect_alike(ctx);
    if (ranks_of() > 1) {
      EXPECT_GT(ctx.stat(GEMINI_STAT_PREFETCH_HITS), 0);
    }
    for (int i = 0; i < 16; ++i)
      EXPECT_ALL(MPI_COMM_WORLD, all_are(values(all[static_cast<std::size_t>(i)]), 1.0 - run.iterations * i));
  }
}

// Each rank says what it has; the least decides for all.
TEST_P(Placement, IsDecidedAlikeWhereBudgetsDiffer) {
  const auto run = [](const KeyValues& more) {
    Context ctx(MPI_COMM_WORLD, with(more));
    const Params all = add_chunks(ctx, 6);
    for (int step = 0; step < 3; ++step) {
      forward(ctx, all);
      backward(ctx, all, [](int64_t i) { return 0.1 * static_cast<double>(i + rank_of() + 1); });
      ctx.step();
    }
    expect_alike(ctx);
    EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), std::stoll(ctx.option("device_memory")));
    return values_of(all);
  };
  const int64_t mine = rank_of() == 0 ? 2 * kChunk : 8 * kChunk;
  const auto tight = run({{"placement", GetParam()},
                          {"offload_param_frac", "1"},
                          {"offload_optim_frac", "1"},
                          {"device_memory", std::to_string(mine)}});
  EXPECT_ALL(MPI_COMM_WORLD, tight == run({{"placement", "static"}}));
}

// Backward repeats each forward before it.
TEST_P(Placement, GathersAtMostTwiceWhereBackwardRecomputes) {
  Context ctx(MPI_COMM_WORLD, with({{"placement", GetParam()}, {"prefetch", "1"}}));
  const Params all = add_chunks(ctx, 3);
  for (int step = 0; step < 4; ++step) {
    forward(ctx, all);
    GEMINI_CHECK(gemini_stat_reset(ctx));
    for (auto p = all.rbegin(); p != all.rend(); ++p) {
      ctx.op(GEMINI_RECOMPUTE, {*p});
      ctx.op(GEMINI_BACKWARD, {*p}, [&] { write_grad(*p, kOne); });
    }
    EXPECT_LE(ctx.stat(GEMINI_STAT_GATHERS), 6);
    EXPECT_EQ(3, ctx.stat(GEMINI_STAT_REDUCES));
    ctx.step();
    EXPECT_EQ(0, ctx.stat(GEMINI_STAT_GATHERED_BYTES));
  }
}

// Unscaling and clipping are the same wherever the optimizer's state lies, and where that is can be seen.
TEST(OptimizerState, GivesTheSameBitsInEveryTier) {
  struct Result {
    std::vector<double> master, state1, state2;
    double norm;
    int64_t on_host;
  };
  const auto run = [](const char* share) {
    Context ctx(MPI_COMM_WORLD, adam_with({{"placement", "static"},
                                           {"offload_optim_frac", share},
                                           {"chunk_elems", std::to_string(kElems)},
                                           {"device_memory", "64MiB"},
                                           {"initial_scale", "1024"},
                                           {"max_grad_norm", "1"}}));
    const Params all = add_chunks(ctx, 4, GEMINI_F16);
    Result result{};
    for (int step = 0; step < 3; ++step) {
      forward(ctx, all);
      backward(ctx, all, [](int64_t i) { return 1024.0 * static_cast<double>(i + 1); });
      result.norm = ctx.step().grad_norm;
    }
    result.on_host = ctx.stat(GEMINI_STAT_HOST_BYTES);
    for (gemini_param_t p : all) {
      const Seen seen = see(ctx, p);
      result.master.insert(result.master.end(), seen.master.begin(), seen.master.end());
      result.state1.insert(result.state1.end(), seen.state1.begin(), seen.state1.end());
      result.state2.insert(result.state2.end(), seen.state2.begin(), seen.state2.end());
    }
    return result;
  };
  const Result none = run("0");
  EXPECT_EQ(0, none.on_host);
  EXPECT_DOUBLE_EQ(std::sqrt(30.0 * kElems), none.norm);
  int64_t before = 0;
  for (const char* share : {"0.5", "1"}) {
    const Result some = run(share);
    EXPECT_GT(some.on_host, before);
    before = some.on_host;
    EXPECT_TRUE(some.master == none.master && some.state1 == none.state1 && some.state2 == none.state2);
    EXPECT_EQ(some.norm, none.norm);
  }
}

// The caller takes half of a small budget during two operations: the first iteration too stays in it.
TEST_P(Placement, LeavesRoomForTheCallersOwnMemory) {
  const auto run = [](const KeyValues& more, int64_t own_bytes) {
    Context ctx(MPI_COMM_WORLD, with(more));
    const Params all = add_chunks(ctx, 8);
    for (int step = 0; step < 4; ++step) {
      for (std::size_t i = 0; i < all.size(); ++i)
        ctx.op(GEMINI_FORWARD, {all[i]}, [&] {
          if (own_bytes == 0 || (i != 3 && i != 5)) return;
          void* own = nullptr;
          GEMINI_CHECK(gemini_workspace_alloc(ctx, own_bytes, &own));
          GEMINI_CHECK(gemini_workspace_free(ctx, own));
        });
      backward(ctx, all, [](int64_t i) { return 0.1 * static_cast<double>(i + rank_of() + 1); });
      ctx.step();
    }
    EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), std::stoll(ctx.option("device_memory")));
    return values_of(all);
  };
  const auto tight = run({{"placement", GetParam()},
                          {"offload_param_frac", "1"},
                          {"offload_optim_frac", "1"},
                          {"device_memory", std::to_string(4 * kChunk)}},
                         2 * kChunk);
  EXPECT_ALL(MPI_COMM_WORLD, tight == run({{"placement", "static"}}, 0));
}

// A host code says what it holds beside the library: from the second iteration on that much of the budget is
// left to it while it does. (The first is how the library learns when.)
TEST_P(Placement, LeavesRoomForMemoryTheCallerSpeaksOf) {
  constexpr int64_t kBudget = 4 * kChunk;
  const auto run = [](const KeyValues& more, int64_t own_bytes) {
    Context ctx(MPI_COMM_WORLD, with(more));
    const Params all = add_chunks(ctx, 8);
    for (int step = 0; step < 4; ++step) {
      for (std::size_t i = 0; i < all.size(); ++i)
        ctx.op(GEMINI_FORWARD, {all[i]}, [&] {
          if (own_bytes == 0) return;
          const int64_t noted = i == 3 || i == 5 ? own_bytes : 0;
          GEMINI_CHECK(gemini_memory_note(ctx, noted));
          if (step > 0) {
            EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_BYTES), kBudget - noted) << "operation " << i;
          }
          GEMINI_CHECK(gemini_memory_note(ctx, 0));
        });
      backward(ctx, all, [](int64_t i) { return 0.1 * static_cast<double>(i + rank_of() + 1); });
      EXPECT_EQ(own_bytes, ctx.stat(GEMINI_STAT_NON_MODEL_PEAK_BYTES));
      ctx.step();
    }
    return values_of(all);
  };
  const auto noted = run({{"placement", GetParam()},
                          {"offload_param_frac", "1"},
                          {"offload_optim_frac", "1"},
                          {"device_memory", std::to_string(kBudget)}},
                         2 * kChunk);
  EXPECT_ALL(MPI_COMM_WORLD, noted == run({{"placement", "static"}}, 0));
}

// A workspace of the size that reductions in flight hold waits for them.
TEST(Workspace, WaitsForReductionsInFlight) {
  Context ctx(MPI_COMM_WORLD,
              with({{"device_memory", std::to_string(2 * kChunk)}, {"warmup_model_fraction", "0"}}));
  const Params all = add_chunks(ctx, 2);
  forward(ctx, all);
  ctx.op(GEMINI_BACKWARD, {all[1]}, [&] { write_grad(all[1], kOne); });
  void* own = nullptr;
  ALL_RANKS_OK(gemini_workspace_alloc(ctx, 2 * kChunk, &own));
  ALL_RANKS_OK(gemini_workspace_free(ctx, own));
  ctx.op(GEMINI_BACKWARD, {all[0]}, [&] { write_grad(all[0], kOne); });
  ctx.step();
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(all[1]), 0.0));
}

// What is kept on the host takes what it needs and no more.
TEST(Offloaded, ChunksOfOddSizesTakeTheirBytesAndAPageEachAtMost) {
  constexpr int64_t kNineMiB = 9 << 20;
  Context ctx(MPI_COMM_WORLD, {{"optimizer", "none"},
                               {"timeout_s", "60"},
                               {"placement", "static"},
                               {"offload_param_frac", "1"},
                               {"chunk_elems", std::to_string(kNineMiB / 4)}});
  Params all;
  for (const char* name : {"a", "b", "c"})
    all.push_back(ctx.add_constant(name, GEMINI_F32, {kNineMiB / 4}, 1.0, GEMINI_PARAM_FROZEN));
  ctx.commit();
  EXPECT_EQ(3, ctx.stat(GEMINI_STAT_CHUNKS));
  const int64_t needed = 3 * kNineMiB / ranks_of();
  forward(ctx, all, GEMINI_INFERENCE);
  EXPECT_GE(ctx.stat(GEMINI_STAT_HOST_BYTES), needed);
  EXPECT_LE(ctx.stat(GEMINI_STAT_HOST_PEAK_BYTES), needed + 3 * int64_t{4096});
}

// However far ahead it may fetch, never more than the budget holds.
TEST_P(Placement, FetchesAheadOnlyWhatTheBudgetHolds) {
  constexpr int64_t kSmall = 3072;
  constexpr int64_t kFit = 3;  // chunks; one is leased, the others may be under way
  constexpr int64_t kBudget = kFit * kSmall * 4;
  Context ctx(MPI_COMM_WORLD, {{"optimizer", "none"},
                               {"timeout_s", "60"},
                               {"chunk_elems", std::to_string(kSmall)},
                               {"placement", GetParam()},
                               {"prefetch", "16"},
                               {"warmup_model_fraction", "0"},
                               {"device_memory_fraction", "1"},
                               {"offload_param_frac", "1"},
                               {"collectives", "mpi"},  // each rank has copies of its own
                               {"offload_optim_frac", "1"},
                               {"device_memory", std::to_string(kBudget)}});
  Params all;
  for (int i = 0; i < 64; ++i)
    all.push_back(ctx.add_constant("w" + std::to_string(i), GEMINI_F32, {kSmall}, 1.0));
  ctx.commit();
  for (int step = 0; step < 3; ++step) {
    for (gemini_param_t p : all)
      ctx.op(GEMINI_FORWARD, {p}, [&] { EXPECT_LE(ctx.stat(GEMINI_STAT_IN_FLIGHT), kFit - 1); });
    for (auto p = all.rbegin(); p != all.rend(); ++p)
      ctx.op(GEMINI_BACKWARD, {*p}, [&] {
        write_grad(*p, kOne);
        EXPECT_LE(ctx.stat(GEMINI_STAT_IN_FLIGHT), kFit - 1);
      });
    ctx.step();
  }
  EXPECT_LE(ctx.stat(GEMINI_STAT_GATHERED_PEAK_BYTES), kBudget);
  EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), kBudget);
  EXPECT_GT(ctx.stat(GEMINI_STAT_PREFETCH_HITS), 0);
  expect_alike(ctx);
  const gemini_param_t four[] = {all[0], all[1], all[2], all[3]};
  ALL_RANKS_STATUS(GEMINI_ERR_OUT_OF_MEMORY, gemini_pre_op(ctx, four, 4));
  if (ranks_of() > 1) {  // alone a rank reads some of its shards in place
    EXPECT_SAID("need 48 KiB (49152 bytes)");
  }
  ctx.op(GEMINI_INFERENCE, {all[0], all[1], all[2]});
}
