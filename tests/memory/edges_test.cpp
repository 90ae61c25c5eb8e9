// Budgets to the page: what just fits trains, and a page less is refused alike on all ranks, in words.
#include "support/rank_assert.hpp"
#include "support/test_context.hpp"

namespace {

using gemini_test::add_grad;
using gemini_test::Context;
using gemini_test::KeyValues;
using gemini_test::Params;

constexpr std::int64_t kElems = 12288;  // of a chunk; F32: 48 KiB, whole pages on 1 to 4 ranks
constexpr std::int64_t kChunk = kElems * 4;
constexpr std::int64_t kLargest = 2 * kChunk;  // a copy and a gradient
constexpr std::int64_t kPage = 4096;

int ranks() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// Parameters, sums and moments lie on the host: compute memory is there for one operation.
class Edge : public testing::TestWithParam<const char*> {
 protected:
  static KeyValues settings(std::int64_t device_memory) {
    return {{"chunk_elems", std::to_string(kElems)},
            {"optimizer", "sgd"},
            {"momentum", "0.5"},
            {"lr", "1"},
            {"reduce_op", "sum"},
            {"timeout_s", "60"},
            {"placement", GetParam()},
            {"warmup_model_fraction", "0"},
            {"offload_param_frac", "1"},
            {"offload_optim_frac", "1"},
            {"device_memory", std::to_string(device_memory)}};
  }
  static Params add_to(Context& ctx) {
    Params params;
    for (int t = 0; t < 6; ++t)
      params.push_back(ctx.add_constant("t" + std::to_string(t), GEMINI_F32, {kElems}, 1.0));
    ctx.commit();
    return params;
  }
};

TEST_P(Edge, TheLargestOperationThatFitsIsAllThatIsNeeded) {
  Context ctx(MPI_COMM_WORLD, settings(kLargest));
  const Params params = add_to(ctx);
  for (int step = 0; step < 4; ++step) {
    for (gemini_param_t param : params) ctx.op(GEMINI_FORWARD, {param});
    for (auto param = params.rbegin(); param != params.rend(); ++param)
      ctx.op(GEMINI_BACKWARD, {*param}, [&] { add_grad(*param, [](int64_t) { return 1.0; }); });
    ctx.step();
  }
  EXPECT_LE(ctx.stat(GEMINI_STAT_DEVICE_PEAK_BYTES), kLargest);
  const double velocities = 1 + 1.5 + 1.75 + 1.875;
  for (gemini_param_t param : params) EXPECT_EQ(gemini_test::values(param)[7], 1.0 - velocities * ranks());
}

TEST_P(Edge, APageLessIsRefusedOnAllRanksWithTheBytesNeeded) {
  Context ctx(MPI_COMM_WORLD, settings(kLargest - kPage));
  const Params params = add_to(ctx);
  ctx.op(GEMINI_FORWARD, {params[0]});
  ctx.phase(GEMINI_BACKWARD);
  ALL_RANKS_STATUS(GEMINI_ERR_OUT_OF_MEMORY, gemini_pre_op(ctx, &params[0], 1));
  const std::string words = gemini_last_error_message();
  EXPECT_NE(words.find("need 96 KiB (98304 bytes)"), std::string::npos) << words;
  EXPECT_NE(words.find("device_memory = 92 KiB (94208 bytes)"), std::string::npos) << words;
  EXPECT_EQ(ctx.stat(GEMINI_STAT_LEASES), 0);
  ctx.op(GEMINI_FORWARD, {params[1]}, [&] { EXPECT_EQ(gemini_test::data<float>(params[1])[5], 1.0F); });
}

INSTANTIATE_TEST_SUITE_P(Placements, Edge, testing::Values("static", "auto", "planned"));

KeyValues whole_gradients(const std::string& device_memory) {
  return {{"optimizer", "none"},           {"accumulate", "2"}, {"accumulate_mode", "local"},
          {"chunk_elems", "12288"},        {"timeout_s", "60"}, {"host_memory", "0"},
          {"device_memory", device_memory}};
}

TEST(WholeGradients, ThatDoNotFitAreNamedWithTheWayOut) {
  const std::int64_t shards = 4 * 2 * kChunk / ranks();  // values and sums
  const std::int64_t kept = 4 * kChunk;
  const auto commit = [&](std::int64_t device_memory) {
    Context ctx(MPI_COMM_WORLD, whole_gradients(std::to_string(device_memory)));
    for (int t = 0; t < 4; ++t) ctx.add_constant("t" + std::to_string(t), GEMINI_F32, {kElems}, 1.0);
    const gemini_status_t status = gemini_commit(ctx);
    return std::pair<gemini_status_t, std::string>(status, gemini_last_error_message());
  };
  EXPECT_EQ(commit(shards + kept).first, GEMINI_SUCCESS);
  const auto [status, words] = commit(shards + kept - kPage);
  EXPECT_ALL(MPI_COMM_WORLD, status == GEMINI_ERR_OUT_OF_MEMORY);
  for (const char* part : {"accumulate_mode = local", "whole gradients", "reduce needs less", "host_memory"})
    EXPECT_NE(words.find(part), std::string::npos) << part << " in: " << words;
}

}  // namespace
