// Leases: what may be read when, what operations hold, and which of them are local.
#include <functional>

#include "observe.hpp"

using namespace gemini_test;

namespace {

bool aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % 64 == 0;
}

// A debug build marks memory that was given back; AddressSanitizer alone may look at it then. One rank alone
// reads its own shard, and memory that ranks share others still read: copies are what is looked at.
const KeyValues kCopies = {{"collectives", "mpi"}};
#if defined(GEMINI_TEST_DEBUG) && !defined(__SANITIZE_ADDRESS__)
bool marks_released_memory() {
  return ranks_of() > 1;
}
#else
bool marks_released_memory() {
  return false;
}
#endif

}  // namespace

TEST(Values, AreReadableInALeaseOnly) {
  Context ctx(MPI_COMM_WORLD, kCopies);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 3.0);
  ctx.commit();
  void* data = &ctx;
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_param_data(a, &data));
  EXPECT_SAID("gemini_param_data");
  EXPECT_SAID("\"a\"");
  EXPECT_SAID("gemini_pre_op");
  EXPECT_EQ(nullptr, gemini_data(a));
  const double* kept = nullptr;
  ctx.op(GEMINI_FORWARD, {a}, [&] {
    kept = gemini_test::data<double>(a);
    EXPECT_TRUE(aligned(kept));
    EXPECT_EQ(3.0, kept[7]);
  });
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_param_data(a, &data));
  EXPECT_EQ(&ctx, data);  // outputs that are no handles are untouched
  if (marks_released_memory()) {
    EXPECT_TRUE(std::isnan(kept[0]) && std::isnan(kept[7]));
  }
}

TEST(Values, WrittenThroughThePointerAreFoundInDebugBuilds) {
#ifndef GEMINI_TEST_DEBUG
  GTEST_SKIP();
#endif
  Context ctx(MPI_COMM_WORLD, kCopies);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 3.0);
  ctx.commit();
  ctx.pre({a});
  auto* values = static_cast<double*>(gemini_data(a));
  values[5] = 4.0;
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_post_op(ctx, &a, 1));
  EXPECT_SAID("read only");
  values[5] = 3.0;  // nothing was released, so this can be put right
  ALL_RANKS_OK(gemini_post_op(ctx, &a, 1));
}

TEST(Leases, NestShareAndCountAParameterOncePerList) {
  Context ctx;
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 1.0);
  gemini_param_t b = ctx.add_constant("b", GEMINI_F64, {8}, 2.0);
  ctx.commit();
  const Params twice = {a, a};
  ctx.pre(twice);
  EXPECT_EQ(1, ctx.stat(GEMINI_STAT_LEASES));
  const double* outer = data<double>(a);
  ctx.pre({a, b});
  EXPECT_EQ(3, ctx.stat(GEMINI_STAT_LEASES));
  ctx.pre({});
  ctx.post({});
  EXPECT_EQ(outer, data<double>(a));
  ctx.post({a});  // the sets may differ
  EXPECT_EQ(outer, data<double>(a));
  EXPECT_EQ(1.0, outer[7]);
  ctx.post({b, a});
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_LEASES));
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_GATHERED_BYTES));
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_post_op(ctx, &a, 1));
  EXPECT_SAID("\"a\" is not leased");
}

// The library remembers what the last call named; calls between may name less, or fail.
TEST(Leases, EndForAllThatPostOpNamesWhateverCameBetween) {
  Context ctx;
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 3.0);
  gemini_param_t b = ctx.add_constant("b", GEMINI_F64, {8}, 4.0);
  ctx.commit();
  const std::vector<std::function<void()>> between = {
      [&] { ALL_RANKS_OK(gemini_grad_ready(a)); }, [&] { ALL_RANKS_OK(gemini_pre_op(ctx, nullptr, 0)); },
      [&] {
        const gemini_param_t wrong[] = {a, nullptr};
        EXPECT_EQ(GEMINI_ERR_ARGUMENT, gemini_pre_op(ctx, wrong, 2));
      },
      [&] {
        ctx.pre({b, b, a});
        ctx.post({b, a, a});
      }};
  for (const auto& call : between) {
    ctx.op(GEMINI_FORWARD, {a, b});
    ctx.phase(GEMINI_BACKWARD);
    ctx.pre({a, b});
    call();
    ctx.post({a, b});
    EXPECT_EQ(0, ctx.stat(GEMINI_STAT_LEASES));
    ctx.step();
  }
}

TEST(Leases, CarryThePhaseOfTheirPreOp) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 1.0);
  ctx.commit();
  void* grad = nullptr;
  ctx.op(GEMINI_FORWARD, {a}, [&] {
    GEMINI_CHECK(gemini_set_phase(ctx, GEMINI_BACKWARD));
    EXPECT_EQ(GEMINI_ERR_STATE, gemini_param_grad(a, &grad, nullptr));  // still a lease of FORWARD
    EXPECT_SAID("GEMINI_BACKWARD");
  });
  ctx.op(GEMINI_BACKWARD, {a}, [&] {
    GEMINI_CHECK(gemini_set_phase(ctx, GEMINI_RECOMPUTE));
    add_grad(a, [](int64_t) { return 1.0; });
  });
  gemini_phase_t phase = GEMINI_FORWARD;
  GEMINI_CHECK(gemini_get_phase(ctx, &phase));
  EXPECT_EQ(GEMINI_RECOMPUTE, phase);
  ctx.step();
  GEMINI_CHECK(gemini_get_phase(ctx, &phase));
  EXPECT_EQ(GEMINI_FORWARD, phase);
  EXPECT_TRUE(all_are(see(ctx, a).state1, 0.1, 1e-15));
}

TEST(Operations, HoldOnlyTheChunksTheyLease) {
  Context ctx({{"chunk_elems", "64"}});
  Params all;
  for (int i = 0; i < 4; ++i) all.push_back(ctx.add_constant("w" + std::to_string(i), GEMINI_F32, {64}, i));
  ctx.commit();
  ASSERT_EQ(4, ctx.stat(GEMINI_STAT_CHUNKS));
  EXPECT_EQ(
      4 * 64 * 4 / ranks_of() + (ranks_of() == 3 ? ctx.stat(GEMINI_STAT_PARAM_BYTES) - 4 * 64 * 4 / 3 : 0),
      ctx.stat(GEMINI_STAT_PARAM_BYTES));
  int64_t one = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    ctx.op(GEMINI_INFERENCE, {all[i]}, [&] {
      EXPECT_EQ(static_cast<float>(i), data<float>(all[i])[63]);
      one = ctx.stat(GEMINI_STAT_GATHERED_BYTES);
      EXPECT_GE(one, 64 * 4);
      EXPECT_LE(one, 64 * 4 + 64 * ranks_of());
    });
  EXPECT_EQ(one, ctx.stat(GEMINI_STAT_GATHERED_PEAK_BYTES));
  EXPECT_EQ(4, ctx.stat(GEMINI_STAT_GATHERS));
}

TEST(ResidentParameter, MayBeUsedDifferentlyOftenByEachRank) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 1.0);
  gemini_param_t b = ctx.add_constant("b", GEMINI_F64, {8}, 1.0, GEMINI_PARAM_RESIDENT);
  ctx.commit();
  const int uses = 1 + rank_of();
  for (int step = 1; step <= 2; ++step) {
    ctx.op(GEMINI_FORWARD, {a});
    for (int use = 0; use < uses; ++use)
      ctx.op(GEMINI_FORWARD, {b}, [&] { EXPECT_NE(nullptr, gemini_data(b)); });
    for (int use = 0; use < uses; ++use)
      ctx.op(GEMINI_BACKWARD, {b}, [&] { add_grad(b, [](int64_t) { return 1.0; }); });
    ctx.op(GEMINI_BACKWARD, {a}, [&] { add_grad(a, [](int64_t) { return 1.0; }); });
    EXPECT_EQ(2, ctx.step().params_updated);
    EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 1 - 0.1 * step, 1e-7));
    EXPECT_ALL(MPI_COMM_WORLD, all_are(values(b), 1 - 0.1 * step, 1e-7));
    ctx.op(GEMINI_INFERENCE, {b}, [&] { EXPECT_NEAR(1 - 0.1 * step, data<double>(b)[7], 1e-7); });
  }
  const double mean_uses = (1.0 + ranks_of()) / 2;
  EXPECT_TRUE(all_are(see(ctx, b).state1, (0.1 + 0.9 * 0.1) * mean_uses, 1e-14));
}

TEST(ResidentParameter, GivesTheBitsOfAShardedOne) {
  const auto run = [](int32_t flags) {
    Context ctx(MPI_COMM_WORLD, kAdam);
    gemini_param_t w = ctx.add_function(
        "w", GEMINI_F32, {123}, [](int64_t i) { return 0.3 * static_cast<double>(i); }, flags);
    ctx.commit();
    for (int step = 0; step < 4; ++step) {
      train(ctx, w, [step](int64_t i) { return 0.1 * static_cast<double>((i + rank_of() + step) % 11); });
      ctx.step();
    }
    return values(w);
  };
  EXPECT_ALL(MPI_COMM_WORLD, run(0) == run(GEMINI_PARAM_RESIDENT));
}

TEST(RankWithoutSamples, MakesTheSameCallsAndAsksForNoGradient) {
  Context ctx(MPI_COMM_WORLD, adam_with({{"reduce_op", "sum"}}));
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {9}, 1.0);
  ctx.commit();
  const bool idle = ranks_of() > 1 && rank_of() == ranks_of() - 1;
  ctx.op(GEMINI_FORWARD, {a});
  ctx.op(GEMINI_BACKWARD, {a}, [&] {
    if (!idle) add_grad(a, [](int64_t) { return 1.0; });
  });
  EXPECT_ALL(MPI_COMM_WORLD, all_are(gradient(a), ranks_of() > 1 ? ranks_of() - 1 : 1));
  ctx.step();
}

TEST(Setting, ReplacesMasterAndComputeCopyAndKeepsMoments) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F16, {9}, 1.0);
  gemini_param_t b = ctx.add_constant("b", GEMINI_F32, {9}, 1.0, GEMINI_PARAM_RESIDENT);
  ctx.commit();
  ctx.op(GEMINI_FORWARD, {a, b});
  ctx.op(GEMINI_BACKWARD, {a, b}, [&] {
    for (gemini_param_t p : {a, b}) write_grad(p, [](int64_t) { return 2048.0; });
  });
  ctx.step();
  const std::vector<double> m = see(ctx, a).state1;
  const int root = ranks_of() - 1;
  std::vector<double> mine(9, 2.5);
  for (gemini_param_t p : {a, b})
    ALL_RANKS_OK(gemini_param_set(p, GEMINI_F64, rank_of() == root ? mine.data() : nullptr, root));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 2.5) && all_are(values(b), 2.5));
  ctx.op(GEMINI_FORWARD, {a, b}, [&] {
    EXPECT_EQ(f16_bits(2.5), data<std::uint16_t>(a)[8]);
    EXPECT_EQ(2.5F, data<float>(b)[8]);
  });
  EXPECT_TRUE(m == see(ctx, a).state1);  // a visit refreshes the compute copy: after the look at it
}
