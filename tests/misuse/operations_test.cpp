// The operations of training in the wrong order, with wrong arguments, at the wrong time.
#include <limits>

#include "misuse/refused.hpp"

using namespace gemini_test;

namespace {

const ElementFn kOne = [](int64_t) { return 1.0; };

}  // namespace

TEST(BeforeCommit, NothingOfTrainingIsAllowed) {
  Context ctx;
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {4}, 0);
  void* pointer = &ctx;
  float values[4] = {};
  double scale = 0;
  const char* remedy = "gemini_commit";
  REFUSED(GEMINI_ERR_STATE, gemini_pre_op(ctx, &w, 1), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_post_op(ctx, &w, 1), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_param_data(w, &pointer), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_param_grad(w, &pointer, nullptr), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_grad_ready(w), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_set_phase(ctx, GEMINI_BACKWARD), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_loss_scale(ctx, &scale), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_step(ctx, nullptr), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_discard(ctx), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_param_get(w, GEMINI_F32, values, -1), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_param_set(w, GEMINI_F32, values, -1), remedy);
  REFUSED(GEMINI_ERR_STATE, gemini_grad_get(w, GEMINI_F32, values, -1), remedy);
  EXPECT_EQ(&ctx, pointer);
  ALL_RANKS_OK(gemini_commit(ctx));  // and it still works
}

TEST(Operations, RefuseWrongLists) {
  Context ctx;
  Context other;
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {4}, 0);
  gemini_param_t theirs = other.add_constant("theirs", GEMINI_F32, {4}, 0);
  ctx.commit();
  other.commit();
  const gemini_param_t with_null[2] = {w, nullptr};
  const gemini_param_t foreign[2] = {w, theirs};
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_pre_op(nullptr, &w, 1), "ctx is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_pre_op(ctx, &w, -1), "count is -1");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_pre_op(ctx, nullptr, 1), "params is NULL with count 1");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_pre_op(ctx, with_null, 2), "params[1] is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_pre_op(ctx, foreign, 2), "params[1]", "\"theirs\"", "another context");
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_LEASES));
  ctx.pre({w});
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_post_op(ctx, foreign, 2), "params[1]", "\"theirs\"");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_post_op(ctx, with_null, 2), "params[1] is NULL");
  EXPECT_EQ(1, ctx.stat(GEMINI_STAT_LEASES));
  ctx.post({w});
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_phase(ctx, gemini_phase_t(0)), "phase is 0", "1 to 4");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_phase(ctx, gemini_phase_t(5)), "phase is 5");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_get_phase(ctx, nullptr), "phase is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_data(w, nullptr), "data is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_grad(w, nullptr, nullptr), "grad is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_lr(ctx, -1.0), "lr is -1");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_lr(ctx, NAN), "lr is nan", "finite");
}

TEST(PostOp, ReleasesNothingWhereOneOfTheListIsNotLeased) {
  Context ctx;
  gemini_param_t a = ctx.add_constant("a", GEMINI_F32, {4}, 0);
  gemini_param_t b = ctx.add_constant("b", GEMINI_F32, {4}, 0);
  ctx.commit();
  ctx.pre({a});
  const gemini_param_t both[2] = {a, b};
  REFUSED(GEMINI_ERR_STATE, gemini_post_op(ctx, both, 2), "\"b\" is not leased", "gemini_pre_op");
  EXPECT_EQ(1, ctx.stat(GEMINI_STAT_LEASES));
  EXPECT_NE(nullptr, gemini_data(a));
  ctx.post({a});
  REFUSED(GEMINI_ERR_STATE, gemini_post_op(ctx, &a, 1), "\"a\" is not leased");  // released twice
}

TEST(Gradient, NeedsABackwardLeaseOfATrainedParameter) {
  Context ctx;
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {4}, 0);
  gemini_param_t frozen = ctx.add_constant("frozen", GEMINI_F32, {4}, 0, GEMINI_PARAM_FROZEN);
  gemini_param_t mine = ctx.add("mine", GEMINI_F32, {4}, GEMINI_PARAM_IGNORED);
  ctx.commit();
  void* grad = &ctx;
  int32_t accumulate = 7;
  const Params all = {w, frozen, mine};
  REFUSED(GEMINI_ERR_STATE, gemini_param_grad(w, &grad, &accumulate), "\"w\"", "GEMINI_BACKWARD");
  ctx.op(GEMINI_FORWARD, all, [&] {
    REFUSED(GEMINI_ERR_STATE, gemini_param_grad(w, &grad, &accumulate), "\"w\"", "GEMINI_BACKWARD");
  });
  REFUSED(GEMINI_ERR_STATE, gemini_grad_ready(w), "\"w\"", "GEMINI_BACKWARD");
  ctx.op(GEMINI_BACKWARD, all, [&] {
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_grad(frozen, &grad, &accumulate), "\"frozen\"", "FROZEN");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_grad(mine, &grad, &accumulate), "\"mine\"", "IGNORED");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_grad_ready(frozen), "\"frozen\"", "FROZEN");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_grad_ready(mine), "\"mine\"", "IGNORED");
    REFUSED(GEMINI_ERR_STATE, gemini_param_data(mine, &grad), "\"mine\"", "gemini_param_attach");
    REFUSED(GEMINI_ERR_STATE, gemini_param_attach(mine, &accumulate), "\"mine\" is leased", "gemini_post_op");
    EXPECT_EQ(&ctx, grad);
    EXPECT_EQ(7, accumulate);
    add_grad(w, kOne);
    GEMINI_CHECK(gemini_grad_ready(w));
    REFUSED(GEMINI_ERR_STATE, gemini_param_grad(w, &grad, nullptr), "\"w\"", "declared ready");
  });
  EXPECT_EQ(1, ctx.step().params_updated);
}

TEST(Step, IsRefusedWhileAnIterationIsNotComplete) {
  Context ctx({{"accumulate", "2"}, {"optimizer", "sgd"}, {"lr", "0.5"}});
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {4}, 1.0);
  ctx.commit();
  REFUSED(GEMINI_ERR_STATE, gemini_step(ctx, nullptr), "BACKWARD");
  ctx.op(GEMINI_FORWARD, {w});
  REFUSED(GEMINI_ERR_STATE, gemini_step(ctx, nullptr), "BACKWARD");
  ctx.op(GEMINI_BACKWARD, {w}, [&] {
    add_grad(w, kOne);
    REFUSED(GEMINI_ERR_STATE, gemini_step(ctx, nullptr), "lease", "\"w\"", "gemini_post_op");
    REFUSED(GEMINI_ERR_STATE, gemini_discard(ctx), "lease", "\"w\"");
  });
  REFUSED(GEMINI_ERR_STATE, gemini_step(ctx, nullptr), "1 of accumulate = 2");
  train(ctx, w, 1.0);
  gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
  info.struct_size = 1;
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_step(ctx, &info), "struct_size is 1");
  ctx.phase(GEMINI_FORWARD);
  REFUSED(GEMINI_ERR_STATE, gemini_pre_op(ctx, &w, 1), "micro-batch 3", "accumulate = 2", "gemini_step");
  EXPECT_EQ(1, ctx.step().step);  // no refusal changed anything
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 0.0));
}

TEST(Values, AreRefusedInsideLeasesAndWithWrongArguments) {
  Context ctx;
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {4}, 1.0);
  gemini_param_t mine = ctx.add("mine", GEMINI_F32, {4}, GEMINI_PARAM_IGNORED);
  gemini_param_t frozen = ctx.add_constant("frozen", GEMINI_F32, {4}, 1.0, GEMINI_PARAM_FROZEN);
  ctx.commit();
  float v[4] = {5, 5, 5, 5};
  const auto visit = [](void*, gemini_param_t, int64_t, int64_t, void*, const void*, void*, void*) {
    return 0;
  };
  ctx.op(GEMINI_INFERENCE, {w}, [&] {
    REFUSED(GEMINI_ERR_STATE, gemini_param_get(w, GEMINI_F32, v, -1), "lease", "\"w\"", "gemini_post_op");
    REFUSED(GEMINI_ERR_STATE, gemini_param_set(w, GEMINI_F32, v, -1), "lease");
    REFUSED(GEMINI_ERR_STATE, gemini_grad_get(w, GEMINI_F32, v, -1), "lease");
    REFUSED(GEMINI_ERR_STATE, gemini_shard_visit(ctx, visit, nullptr), "lease");
  });
  const std::string roots = "-1 to " + std::to_string(ranks_of() - 1);
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_get(w, GEMINI_F32, v, ranks_of()), "root is", roots);
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set(w, GEMINI_F32, v, -2), "root is -2", roots);
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_get(w, gemini_dtype_t(9), v, -1), "is 9", "1 to 6");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set(w, GEMINI_I32, v, -1), "i32", "floating");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_get(w, GEMINI_F32, nullptr, -1), "host_values is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set(w, GEMINI_F32, nullptr, -1), "host_values is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_get(mine, GEMINI_F32, v, -1), "\"mine\"", "IGNORED");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_param_set(mine, GEMINI_F32, v, -1), "\"mine\"", "IGNORED");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_grad_get(frozen, GEMINI_F32, v, -1), "\"frozen\"", "FROZEN");
  REFUSED(GEMINI_ERR_STATE, gemini_grad_get(w, GEMINI_F32, v, -1), "\"w\"", "gemini_step");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_shard_visit(ctx, nullptr, nullptr), "fn is NULL");
  REFUSED(GEMINI_ERR_STATE, gemini_set_update(ctx, visit, nullptr), "optimizer = custom");
  EXPECT_EQ(5.0F, v[0]);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 1.0));
}

int take_one(void*, gemini_param_t, int64_t, int64_t count, void* master, const void*, void*, void*) {
  for (int64_t i = 0; i < count; ++i) static_cast<float*>(master)[i] -= 1.0F;
  return 0;
}

TEST(CustomOptimizer, MayBeGivenItsUpdateBeforeCommit) {
  Context ctx({{"optimizer", "custom"}});
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {40}, 3.0);
  ALL_RANKS_OK(gemini_set_update(ctx, take_one, nullptr));
  ctx.commit();
  train(ctx, w, 1.0);
  ctx.step();
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 2.0));
}

TEST(CustomOptimizer, WithoutAnUpdateCannotStep) {
  Context ctx({{"optimizer", "custom"}});
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {4}, 1.0);
  ctx.commit();
  train(ctx, w, 1.0);
  REFUSED(GEMINI_ERR_STATE, gemini_step(ctx, nullptr), "gemini_set_update");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_update(ctx, nullptr, nullptr), "fn is NULL");
}

TEST(LearningRate, RefusedIsNotTaken) {
  Context ctx({{"optimizer", "sgd"}, {"lr", "0.5"}});
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {4}, 1.0);
  ctx.commit();
  for (const double wrong : {-1.0, 1e17, std::numeric_limits<double>::infinity()})
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_lr(ctx, wrong), "lr");
  train(ctx, w, 1.0);
  EXPECT_EQ(0.5, ctx.step().lr);
}

TEST(Options, ThatCannotHoldTogetherAreRefused) {
  for (const char* key : {"beta1", "beta2"}) {
    const Options opts({});
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_set(opts.get(), key, "1"), key, "from 0 to 0.99");
  }
  const Options opts({{"min_scale", "8"}, {"max_scale", "4"}});
  gemini_context_t ctx = nullptr;
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_create(MPI_COMM_WORLD, opts.get(), &ctx), "min_scale = 8",
          "max_scale = 4");
}

TEST(SetOption, IsForOptionsOfScopeStepBetweenSteps) {
  Context ctx({{"optimizer", "sgd"}, {"lr", "0.5"}});
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {4}, 1.0);
  ctx.commit();
  REFUSED(GEMINI_ERR_STATE, gemini_set_option(ctx, "chunk_elems", "64"), "chunk_elems", "gemini_create");
  REFUSED(GEMINI_ERR_STATE, gemini_set_option(ctx, "device_memory", "1GiB"), "device_memory");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_option(ctx, "momentun", "0.9"), "did you mean momentum");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_option(ctx, "momentum", "2"), "momentum = \"2\"", "0 to 1");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_option(ctx, nullptr, "2"), "key is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_option(ctx, "lr", nullptr), "value is NULL");
  ctx.op(GEMINI_INFERENCE, {w},
         [&] { REFUSED(GEMINI_ERR_STATE, gemini_set_option(ctx, "lr", "1"), "lease"); });
  train(ctx, w, 1.0);
  REFUSED(GEMINI_ERR_STATE, gemini_set_option(ctx, "lr", "1"), "micro-batch", "gemini_step");
  REFUSED(GEMINI_ERR_STATE, gemini_param_set_option(w, "lr_scale", "2"), "micro-batch");
  EXPECT_EQ("0.5", ctx.option("lr"));
  ctx.step();
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 0.5));
  ALL_RANKS_OK(gemini_set_option(ctx, "lr", "0.25"));
  train(ctx, w, 1.0);
  EXPECT_EQ(0.25, ctx.step().lr);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 0.25));
}

TEST(WhatIsNotThereYet, SaysSoOnAllRanksAndLeavesTheContextAsItWas) {
  Context ctx;
  ctx.add_constant("w", GEMINI_F32, {4}, 1.0);
  ctx.commit();
  char text[8] = "same";
  REFUSED(GEMINI_ERR_UNSUPPORTED, gemini_state_register(ctx, "epoch", text, 8, 0), "checkpoint");
  REFUSED(GEMINI_ERR_UNSUPPORTED, gemini_checkpoint_write(ctx, "c.h5", 0), "checkpoint");
  REFUSED(GEMINI_ERR_UNSUPPORTED, gemini_checkpoint_wait(ctx), "checkpoint");
  REFUSED(GEMINI_ERR_UNSUPPORTED, gemini_checkpoint_read(ctx, "c.h5", 0), "checkpoint");
  REFUSED(GEMINI_ERR_UNSUPPORTED, gemini_checkpoint_notes(ctx, text, 8), "checkpoint");
  EXPECT_STREQ("same", text);
  EXPECT_ALL(MPI_COMM_WORLD, ctx.stat(GEMINI_STAT_CHUNKS) == 1);
}
