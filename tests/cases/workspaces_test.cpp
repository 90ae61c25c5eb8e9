// The caller's workspaces beside shards that move.
#include "cases/observe.hpp"

using namespace gemini_test;

namespace {

constexpr int64_t kKiB = 1024;

KeyValues with(const KeyValues& more) {
  KeyValues all = {{"optimizer", "sgd"},
                   {"lr", "1"},
                   {"chunk_elems", "4096"},
                   {"timeout_s", "60"},
                   {"host_memory", "4MiB"}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Params add_small(Context& ctx, int count) {
  Params all;
  for (int i = 0; i < count; ++i)
    all.push_back(ctx.add_constant("small" + std::to_string(i), GEMINI_F32, {4096}, 0.0));
  return all;
}

void operate(Context& ctx, const Params& all) {
  for (gemini_param_t p : all) ctx.op(GEMINI_FORWARD, {p});
  for (auto p = all.rbegin(); p != all.rend(); ++p)
    ctx.op(GEMINI_BACKWARD, {*p}, [&] { (void)gemini_grad(*p); });
}

}  // namespace

// placement = static decides nothing from what was seen: a workspace that was not there before is welcome.
TEST(Workspace, OfAStaticPlacementAsksTheBudgetAlone) {
  Context ctx(MPI_COMM_WORLD, with({{"placement", "static"}, {"device_memory", "4MiB"}}));
  const Params all = add_small(ctx, 4);
  ctx.commit();
  for (int iteration = 0; iteration < 2; ++iteration) {
    operate(ctx, all);
    ALL_RANKS_OK(gemini_step(ctx, nullptr));
  }
  ctx.op(GEMINI_FORWARD, {all[0]}, [&] {
    void* workspace = nullptr;
    EXPECT_EQ(GEMINI_SUCCESS, gemini_workspace_alloc(ctx, 2048 * kKiB, &workspace))
        << gemini_last_error_message();
    EXPECT_EQ(GEMINI_SUCCESS, gemini_workspace_free(ctx, workspace));
  });
}

// A large chunk is to come up where small ones lie: these must have gone down before, since a workspace of
// one rank takes what would else be room for both.
TEST(Workspace, OfOneRankIsNotInTheWayOfShardsThatTradePlaces) {
  if (ranks_of() != 2) GTEST_SKIP() << "sizes are for two ranks";
  for (const char* placement : {"auto", "planned"}) {
    Context ctx(MPI_COMM_WORLD, with({{"placement", placement},
                                      {"device_memory", "1420KiB"},
                                      {"warmup_model_fraction", "0.631"},
                                      {"device_memory_fraction", "1"}}));
    Params all = {ctx.add_constant("large", GEMINI_F64, {32768}, 0.0)};
    for (gemini_param_t small : add_small(ctx, 81)) all.push_back(small);
    ctx.commit();
    void* workspace = nullptr;
    for (int iteration = 0; iteration < 3; ++iteration) {
      operate(ctx, all);
      if (iteration == 0 && rank_of() == 0) {
        EXPECT_EQ(GEMINI_SUCCESS, gemini_workspace_alloc(ctx, 480 * kKiB, &workspace));
      }
      ALL_RANKS_OK(gemini_step(ctx, nullptr));
      EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), 1420 * kKiB);
      EXPECT_EQ(GEMINI_SUCCESS, gemini_workspace_free(ctx, workspace));
      workspace = nullptr;
    }
  }
}

// Programs try much and make do with less.
TEST(Workspace, ThatCanNeverBeHadMovesNothing) {
  Context ctx(MPI_COMM_WORLD, with({{"placement", "auto"}, {"device_memory", "2MiB"}}));
  const Params all = add_small(ctx, 8);
  ctx.commit();
  for (int iteration = 0; iteration < 5; ++iteration) {
    if (iteration == 2) GEMINI_CHECK(gemini_stat_reset(ctx));
    operate(ctx, all);
    void* workspace = nullptr;
    EXPECT_EQ(GEMINI_ERR_OUT_OF_MEMORY, gemini_workspace_alloc(ctx, int64_t{1} << 40, &workspace));
    EXPECT_EQ(nullptr, workspace);
    ctx.step();
  }
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_MOVED_BYTES));
}

TEST(MemoryNote, OfAnyNumberIsTaken) {
  Context ctx(MPI_COMM_WORLD, with({{"placement", "auto"}, {"device_memory", "2MiB"}}));
  const Params all = add_small(ctx, 2);
  ctx.commit();
  for (int iteration = 0; iteration < 3; ++iteration) {
    GEMINI_CHECK(gemini_memory_note(ctx, INT64_MAX));
    void* workspace = nullptr;
    (void)gemini_workspace_alloc(ctx, kKiB, &workspace);
    operate(ctx, all);
    GEMINI_CHECK(gemini_workspace_free(ctx, workspace));
    ctx.step();
  }
  EXPECT_EQ(GEMINI_SUCCESS, gemini_memory_note(ctx, 0));
}
