// With W ranks each holds 1/W of parameters, gradients and optimizer state between steps.
#include "support/rank_assert.hpp"
#include "support/test_context.hpp"

namespace {

using gemini_test::Context;
using gemini_test::KeyValues;
using gemini_test::Params;

struct Shares {
  const char* optimizer;
  const char* masters;
  gemini_dtype_t dtype;
  std::int64_t param, grad, state;  // bytes per element of the whole model
};

int ranks() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

Params add_model(Context& ctx, gemini_dtype_t dtype, int32_t flags = 0) {
  Params params;
  for (int t = 0; t < 40; ++t)
    params.push_back(ctx.add_constant("t" + std::to_string(t), dtype, {101 + t % 7, 97}, 0.5, flags));
  return params;
}

std::int64_t elems_of(const Params& params) {
  std::int64_t sum = 0;
  for (gemini_param_t param : params) sum += gemini_test::elems(param);
  return sum;
}

void train(Context& ctx, const Params& params) {
  for (int step = 0; step < 2; ++step) {
    for (gemini_param_t param : params) ctx.op(GEMINI_FORWARD, {param});
    for (gemini_param_t param : params) ctx.op(GEMINI_BACKWARD, {param}, [&] { (void)gemini_grad(param); });
    ctx.step();
  }
}

// The whole with its padding, cut into equal parts; the padding is less than a chunk.
void expect_shares(const Context& ctx, const Shares& shares, std::int64_t elems) {
  const std::int64_t padding = ctx.stat(GEMINI_STAT_PADDING_ELEMS);
  EXPECT_LE(padding, ctx.stat(GEMINI_STAT_CHUNK_ELEMS));
  EXPECT_EQ(ctx.stat(GEMINI_STAT_PARAM_BYTES) * ranks(), (elems + padding) * shares.param);
  EXPECT_EQ(ctx.stat(GEMINI_STAT_GRAD_BYTES) * ranks(), (elems + padding) * shares.grad);
  EXPECT_EQ(ctx.stat(GEMINI_STAT_OPTIMIZER_BYTES) * ranks(), (elems + padding) * shares.state);
}

class MemoryShare : public testing::TestWithParam<Shares> {};

TEST_P(MemoryShare, IsOneOfTheRanks) {
  const Shares& shares = GetParam();
  Context ctx{{"optimizer", shares.optimizer}, {"master_weights", shares.masters}};
  const Params params = add_model(ctx, shares.dtype);
  ctx.commit();
  expect_shares(ctx, shares, elems_of(params));
  train(ctx, params);
  expect_shares(ctx, shares, elems_of(params));
  EXPECT_EQ(ctx.stat(GEMINI_STAT_GATHERED_BYTES), 0);
  EXPECT_GE(ctx.stat(GEMINI_STAT_DEVICE_BYTES), ctx.stat(GEMINI_STAT_PARAM_BYTES) +
                                                    ctx.stat(GEMINI_STAT_GRAD_BYTES) +
                                                    ctx.stat(GEMINI_STAT_OPTIMIZER_BYTES));
}

INSTANTIATE_TEST_SUITE_P(All, MemoryShare,
                         testing::Values(Shares{"adamw", "on", GEMINI_F32, 4, 4, 8},
                                         Shares{"adam", "on", GEMINI_F64, 8, 8, 16},
                                         Shares{"adamw", "on", GEMINI_BF16, 2 + 4, 4, 8},
                                         Shares{"adamw", "on", GEMINI_F16, 2 + 4, 4, 8},
                                         Shares{"adamw", "off", GEMINI_BF16, 2, 4, 8},
                                         Shares{"lion", "on", GEMINI_F32, 4, 4, 4},
                                         Shares{"sgd", "on", GEMINI_F32, 4, 4, 0}));

TEST(MemoryShare, FrozenModelsHaveNoGradientAndNoState) {
  Context ctx;
  const Params params = add_model(ctx, GEMINI_BF16, GEMINI_PARAM_FROZEN);
  ctx.commit();
  expect_shares(ctx, {"", "", GEMINI_BF16, 2, 0, 0}, elems_of(params));
}

TEST(MemoryShare, NothingOfTheModelsSizeExistsBeforeCommit) {
  Context ctx;
  add_model(ctx, GEMINI_F32);
  EXPECT_EQ(ctx.stat(GEMINI_STAT_DEVICE_BYTES), 0);
  EXPECT_EQ(ctx.stat(GEMINI_STAT_PARAM_BYTES), 0);
}

// A small model is not left whole on every rank.
TEST(MemoryShare, SmallModelsAreShardedToo) {
  if (ranks() == 1) return;
  Context ctx;
  ctx.add_constant("w", GEMINI_F64, {30, 30}, 1.0);
  ctx.add_constant("b", GEMINI_F64, {30}, 1.0);
  ctx.commit();
  EXPECT_LE(ctx.stat(GEMINI_STAT_PARAM_BYTES) * ranks(), 930 * 8 + (2 + ranks()) * 64);
}

}  // namespace
