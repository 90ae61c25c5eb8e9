// Budgets that do not suffice, workspaces given back wrongly.
#include "misuse/refused.hpp"

using namespace gemini_test;

namespace {

constexpr int64_t kElems = 12288;  // of a chunk; F32: 48 KiB, whole pages on 1 to 4 ranks
constexpr int64_t kChunkBytes = kElems * 4;

KeyValues with_budget(int64_t bytes) {
  KeyValues all = {{"optimizer", "none"},
                   {"chunk_elems", std::to_string(kElems)},
                   {"timeout_s", "60"},
                   {"host_memory", "0"}};
  if (bytes > 0) all.emplace_back("device_memory", std::to_string(bytes));
  return all;
}
Params four_chunks(Context& ctx) {
  Params all;
  for (const char* name : {"a", "b", "c", "d"})
    all.push_back(ctx.add_constant(name, GEMINI_F32, {kElems}, 1.0));
  ctx.commit();
  return all;
}
// What a rank holds between steps.
int64_t base_bytes() {
  Context ctx(MPI_COMM_WORLD, with_budget(0));
  four_chunks(ctx);
  return ctx.stat(GEMINI_STAT_DEVICE_BYTES);
}

}  // namespace

TEST(Commit, ThatDoesNotFitSaysWhatIsNeededAndAllocatesNothing) {
  const int64_t little = 64 << 10;
  Context ctx(MPI_COMM_WORLD, with_budget(rank_of() == 0 ? little : little * 1000));  // the least counts
  ctx.add_constant("big", GEMINI_F32, {int64_t{1} << 20}, 1.0);
  REFUSED(GEMINI_ERR_OUT_OF_MEMORY, gemini_commit(ctx), "need", "device_memory", std::to_string(little),
          "raise");
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_DEVICE_BYTES));
  REFUSED(GEMINI_ERR_OUT_OF_MEMORY, gemini_commit(ctx), "need");
  gemini_param_t found = nullptr;
  EXPECT_EQ(GEMINI_SUCCESS, gemini_param_find(ctx, "big", &found));
}

TEST(PreOp, ThatDoesNotFitIsRefusedOnAllRanksAndMovesNothing) {
  const int64_t budget = base_bytes() + kChunkBytes * 3 / 2;
  Context ctx(MPI_COMM_WORLD, with_budget(budget));
  const Params all = four_chunks(ctx);
  const int64_t held = ctx.stat(GEMINI_STAT_DEVICE_BYTES);
  const bool in_place = reads_in_place(ctx);
  if (in_place) {  // the gradients of two chunks do not fit
    ctx.op(GEMINI_FORWARD, all);
    ctx.phase(GEMINI_BACKWARD);
  }
  const gemini_param_t two[2] = {all[0], all[1]};
  const int64_t gathers = ctx.stat(GEMINI_STAT_GATHERS);
  ALL_RANKS_STATUS(GEMINI_ERR_OUT_OF_MEMORY, gemini_pre_op(ctx, two, 2));
  REFUSED(GEMINI_ERR_OUT_OF_MEMORY, gemini_pre_op(ctx, two, 2), "need 96 KiB", "device_memory", "raise",
          "smaller operations");
  EXPECT_EQ(gathers, ctx.stat(GEMINI_STAT_GATHERS));
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_LEASES));
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_GATHERED_BYTES));
  EXPECT_EQ(held, ctx.stat(GEMINI_STAT_DEVICE_BYTES));
  ctx.op(in_place ? GEMINI_BACKWARD : GEMINI_INFERENCE, {all[0]}, [&] {  // smaller operations work
    EXPECT_EQ(1.0F, data<float>(all[0])[kElems - 1]);
    EXPECT_EQ(GEMINI_ERR_OUT_OF_MEMORY, gemini_pre_op(ctx, &all[1], 1));  // nor does a nested one fit
  });
  EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), budget);
}

TEST(PreOp, ThatDoesNotFitDropsNoGradientsThatWereKept) {
  Context ctx(MPI_COMM_WORLD, with_budget(base_bytes() + kChunkBytes * 2));
  const Params all = four_chunks(ctx);
  if (reads_in_place(ctx)) GTEST_SKIP() << "every FORWARD fits";
  train(ctx, all[0], 3.0);
  ctx.step();
  REFUSED(GEMINI_ERR_OUT_OF_MEMORY, gemini_pre_op(ctx, all.data(), 4), "device_memory");
  EXPECT_TRUE(all_are(see(ctx, all[0]).grad, 3.0));
  ctx.op(GEMINI_FORWARD, {all[0]});
  EXPECT_EQ(0, see(ctx, all[0]).pieces_with_grad);
}

TEST(Budget, IsNeverExceededByATrainingThatFits) {
  const int64_t budget = base_bytes() + kChunkBytes * 2;
  Context ctx(MPI_COMM_WORLD, with_budget(budget));
  const Params all = four_chunks(ctx);
  for (int step = 1; step <= 3; ++step) {
    for (gemini_param_t p : all) ctx.op(GEMINI_FORWARD, {p});
    for (auto p = all.rbegin(); p != all.rend(); ++p)
      ctx.op(GEMINI_BACKWARD, {*p}, [&] { add_grad(*p, [](int64_t) { return 1.0; }); });
    EXPECT_EQ(step, ctx.step().step);
  }
  EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), budget);
}

TEST(Unfreezing, ThatDoesNotFitIsRefusedAndLeavesTheParameterFrozen) {
  const auto build = [](Context& ctx) {
    gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {kElems * 4}, 1.0, GEMINI_PARAM_FROZEN);
    ctx.commit();
    return w;
  };
  int64_t base = 0;
  {
    Context ctx;
    build(ctx);
    base = ctx.stat(GEMINI_STAT_DEVICE_BYTES);
  }
  Context ctx(MPI_COMM_WORLD, {{"device_memory", std::to_string(base + 4096)}, {"host_memory", "0"}});
  gemini_param_t w = build(ctx);
  REFUSED(GEMINI_ERR_OUT_OF_MEMORY, gemini_param_set_option(w, "frozen", "off"), "need", "device_memory");
  EXPECT_EQ(GEMINI_PARAM_FROZEN, info(w).flags);
  EXPECT_EQ(base, ctx.stat(GEMINI_STAT_DEVICE_BYTES));
}

TEST(Workspace, IsAlignedCountedAndWithinTheBudget) {
  Context ctx(MPI_COMM_WORLD, {{"device_memory", "1MiB"}});
  void* ptr = &ctx;
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_workspace_alloc(ctx, -1, &ptr), "size_bytes is -1");
  EXPECT_EQ(nullptr, ptr);
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_workspace_alloc(ctx, 8, nullptr), "ptr is NULL");
  ptr = &ctx;
  REFUSED(GEMINI_ERR_OUT_OF_MEMORY, gemini_workspace_alloc(ctx, 2 << 20, &ptr), "2 MiB", "device_memory");
  EXPECT_EQ(nullptr, ptr);
  ASSERT_EQ(GEMINI_SUCCESS, gemini_workspace_alloc(ctx, 512 << 10, &ptr));
  EXPECT_EQ(0U, reinterpret_cast<std::uintptr_t>(ptr) % 64);
  EXPECT_GE(ctx.stat(GEMINI_STAT_DEVICE_BYTES), 512 << 10);
  EXPECT_GE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), 512 << 10);
  EXPECT_EQ(512 << 10, ctx.stat(GEMINI_STAT_NON_MODEL_PEAK_BYTES));
  void* second = nullptr;
  REFUSED(GEMINI_ERR_OUT_OF_MEMORY, gemini_workspace_alloc(ctx, 600 << 10, &second), "600 KiB");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_workspace_free(ctx, &ctx), "ptr", "not a workspace");
  EXPECT_EQ(GEMINI_SUCCESS, gemini_workspace_free(ctx, nullptr));
  EXPECT_EQ(GEMINI_SUCCESS, gemini_workspace_free(ctx, ptr));
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_workspace_free(ctx, ptr), "not a workspace");  // twice
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_memory_note(ctx, -1), "non_model_bytes is -1");
  EXPECT_EQ(GEMINI_SUCCESS, gemini_memory_note(ctx, 3 << 20));
  EXPECT_EQ(3 << 20, ctx.stat(GEMINI_STAT_NON_MODEL_PEAK_BYTES));
}

// Workspaces differ over ranks: the rank that is short is refused before anything is sent, and calls again.
TEST(Workspace, AndModelTogetherStayWithinTheBudget) {
  const int64_t budget = 4 << 20;
  Context ctx(MPI_COMM_WORLD, {{"device_memory", std::to_string(budget)}, {"optimizer", "sgd"}});
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {200000}, 1.0);
  ctx.commit();
  const bool short_here = rank_of() == ranks_of() - 1;
  const int64_t left = budget - ctx.stat(GEMINI_STAT_DEVICE_BYTES);
  void* space = nullptr;
  ASSERT_EQ(GEMINI_SUCCESS, gemini_workspace_alloc(ctx, short_here ? left - 4096 : 64, &space));
  ctx.phase(GEMINI_BACKWARD);
  if (short_here) {
    REFUSED(GEMINI_ERR_OUT_OF_MEMORY, gemini_pre_op(ctx, &w, 1), "on this rank", "workspaces", "call again");
    EXPECT_EQ(0, ctx.stat(GEMINI_STAT_LEASES));
    EXPECT_EQ(GEMINI_SUCCESS, gemini_workspace_free(ctx, space));
  }
  ctx.pre({w});
  ctx.post({w});
  ctx.step();
  EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), budget);
  // What the library keeps for reuse makes room for a workspace.
  const int64_t kept = budget - ctx.stat(GEMINI_STAT_DEVICE_BYTES);
  void* large = nullptr;
  EXPECT_EQ(GEMINI_SUCCESS, gemini_workspace_alloc(ctx, kept + 65536, &large)) << gemini_last_error_message();
  EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), budget);
}
