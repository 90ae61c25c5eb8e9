// What does not fit is refused before anything happens, alike on all ranks.
#include "support/rank_assert.hpp"
#include "support/test_context.hpp"

namespace {

using gemini_test::add_grad;
using gemini_test::Context;

constexpr std::int64_t kSmall = 1024;    // a page of F32
constexpr std::int64_t kLarge = 102400;  // a hundred pages

int ranks() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

struct Model {
  explicit Model(const gemini_test::KeyValues& settings) : ctx(MPI_COMM_WORLD, settings) {
    small = ctx.add_constant("small", GEMINI_F32, {kSmall}, 1.0);
    large = ctx.add_constant("large", GEMINI_F32, {kLarge}, 1.0);
    ctx.commit();
  }
  Context ctx;
  gemini_param_t small = nullptr;
  gemini_param_t large = nullptr;
};

gemini_test::KeyValues settings(const std::string& accumulate) {
  return {{"chunk_elems", std::to_string(kSmall)},
          {"host_memory", "0"},
          {"optimizer", "sgd"},
          {"accumulate", accumulate},
          {"lr", "1"},
          {"reduce_op", "sum"}};
}

// A budget in which the small parameter can be trained, but the large one not even gathered.
gemini_test::KeyValues tight(const std::string& accumulate) {
  const Model roomy(settings(accumulate));
  auto all = settings(accumulate);
  all.emplace_back("device_memory", std::to_string(roomy.ctx.stat(GEMINI_STAT_DEVICE_BYTES) + 8 * 4096));
  return all;
}

TEST(Budget, ARefusedForwardDoesNotEndTheMicroBatch) {
  Model model(tight("2"));
  if (ranks() == 1 || model.ctx.option("collectives") == "shared")
    GTEST_SKIP() << "gathering takes no memory";
  const auto one = [](int64_t) { return 1.0; };
  model.ctx.op(GEMINI_FORWARD, {model.small});
  model.ctx.op(GEMINI_BACKWARD, {model.small}, [&] { add_grad(model.small, one); });
  model.ctx.phase(GEMINI_FORWARD);
  ALL_RANKS_STATUS(GEMINI_ERR_OUT_OF_MEMORY, gemini_pre_op(model.ctx, &model.large, 1));
  model.ctx.op(GEMINI_BACKWARD, {model.small}, [&] { add_grad(model.small, one); });
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_step(model.ctx, nullptr)) << "this is still the first of two";
  model.ctx.micro_batch({model.small}, one);
  model.ctx.step();
  EXPECT_EQ(gemini_test::values(model.small)[5], 1.0 - 3 * ranks());
}

TEST(Budget, ARefusedBackwardOpensNoGradient) {
  Model model(tight("1"));
  model.ctx.op(GEMINI_FORWARD, {model.small});
  model.ctx.phase(GEMINI_BACKWARD);
  ALL_RANKS_STATUS(GEMINI_ERR_OUT_OF_MEMORY, gemini_pre_op(model.ctx, &model.large, 1));
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_step(model.ctx, nullptr)) << "there was no BACKWARD operation";
  EXPECT_EQ(model.ctx.stat(GEMINI_STAT_LEASES), 0);
  EXPECT_EQ(model.ctx.stat(GEMINI_STAT_GATHERED_BYTES), 0);
  model.ctx.op(GEMINI_BACKWARD, {model.small}, [&] { add_grad(model.small, [](int64_t) { return 1.0; }); });
  EXPECT_EQ(model.ctx.step().params_updated, 1);
}

// Reductions in flight hold memory: an operation that needs it waits for them.
TEST(Budget, WaitsForBuffersInFlight) {
  Context probe(MPI_COMM_WORLD, settings("1"));
  const auto build = [](Context& ctx) {
    gemini_test::Params params;
    for (int t = 0; t < 8; ++t)
      params.push_back(ctx.add_constant("t" + std::to_string(t), GEMINI_F32, {kSmall}, 1.0));
    ctx.commit();
    return params;
  };
  build(probe);
  auto all = settings("1");
  const std::int64_t chunk = (probe.stat(GEMINI_STAT_CHUNK_ELEMS) * 4 + 4095) / 4096 * 4096;
  all.emplace_back("device_memory", std::to_string(probe.stat(GEMINI_STAT_DEVICE_BYTES) + 2 * chunk));
  Context ctx(MPI_COMM_WORLD, all);  // room for one gathered chunk and one gradient
  const auto params = build(ctx);
  for (int step = 0; step < 3; ++step) {
    for (gemini_param_t param : params) ctx.op(GEMINI_FORWARD, {param});
    for (gemini_param_t param : params)
      ctx.op(GEMINI_BACKWARD, {param}, [&] { add_grad(param, [](int64_t) { return 1.0; }); });
    ctx.step();
  }
  for (gemini_param_t param : params) EXPECT_EQ(gemini_test::values(param)[7], 1.0 - 3 * ranks());
}

// Gradients that `optimizer = none` keeps after a step are no part of the next iteration.
TEST(KeptGradients, AreNotAddedToTheNextIteration) {
  Context ctx{{"optimizer", "none"}};
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {100}, 1.0);
  ctx.commit();
  ctx.micro_batch({w}, [](int64_t) { return 1.0; });
  ctx.step();
  ctx.op(GEMINI_BACKWARD, {w}, [&] { add_grad(w, [](int64_t) { return 2.0; }); });
  EXPECT_EQ(gemini_test::gradient(w)[3], 2.0);
  ctx.step();
  ctx.micro_batch({w}, [](int64_t) { return 4.0; });
  EXPECT_EQ(gemini_test::gradient(w)[3], 4.0);
}

}  // namespace
