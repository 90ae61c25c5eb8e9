// Agreed calls where ranks differ: in what they ask, in what they have against it, in which call they make.
#include <chrono>
#include <memory>

#include "misuse/refused.hpp"

using namespace gemini_test;

namespace {

class Agreement : public testing::Test {
 protected:
  void SetUp() override {
    if (ranks_of() == 1) GTEST_SKIP() << "takes two";
    ctx = std::make_unique<Context>(MPI_COMM_WORLD,
                                    KeyValues{{"optimizer", "sgd"}, {"lr", "0.5"}, {"timeout_s", "60"}});
    w = ctx->add_constant("w", GEMINI_F64, {6}, 1.0);
    v = ctx->add_constant("v", GEMINI_F64, {6}, 2.0);
    ctx->commit();
  }
  // A step as if nothing had been.
  void expect_usable() {
    const double before = values(w)[0];
    train(*ctx, w, 1.0);
    EXPECT_EQ(0.5, ctx->step().lr);
    EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), before - 0.5));
    EXPECT_ALL(MPI_COMM_WORLD, all_are(values(v), 2.0));
  }
  std::unique_ptr<Context> ctx;
  gemini_param_t w = nullptr, v = nullptr;
};

}  // namespace

TEST_F(Agreement, ARefusalOfOneRankIsSaidOnAllAndChangesNothing) {
  double out[6] = {9, 9, 9, 9, 9, 9};
  REFUSED(odd_one() ? GEMINI_ERR_ARGUMENT : GEMINI_ERR_REMOTE,
          gemini_param_get(w, GEMINI_F64, odd_one() ? nullptr : out, -1), "host_values is NULL",
          odd_one() ? "" : its_name());
  EXPECT_EQ(9, out[0]);
  train(*ctx, w, 1.0);
  gemini_step_info_t info = GEMINI_STEP_INFO_INIT;
  if (odd_one()) info.struct_size = -1;
  REFUSED(odd_one() ? GEMINI_ERR_ARGUMENT : GEMINI_ERR_REMOTE, gemini_step(*ctx, &info), "struct_size is -1",
          odd_one() ? "" : its_name());
  EXPECT_EQ(0, info.step);
  ALL_RANKS_OK(gemini_step(*ctx, nullptr));  // the retry works
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 0.5));
  expect_usable();
}

TEST_F(Agreement, RefusalsOfSeveralRanksKeepEachItsOwnWords) {
  const bool null_key = rank_of() % 2 == 0;
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_option(*ctx, null_key ? nullptr : "lrr", "1"),
          null_key ? "key is NULL" : "\"lrr\"");
  expect_usable();
}

TEST_F(Agreement, ADifferentLearningRateIsFoundAtStepAndMendedByTheNext) {
  ALL_RANKS_OK(gemini_set_lr(*ctx, odd_one() ? 0.125 : 0.25));
  train(*ctx, w, 1.0);
  REFUSED(GEMINI_ERR_MISMATCH, gemini_step(*ctx, nullptr), "lr = 0.125", "lr = 0.25", its_name());
  ALL_RANKS_OK(gemini_set_lr(*ctx, 0.5));
  EXPECT_EQ(1, ctx->step().step);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 0.5));
  expect_usable();
}

TEST_F(Agreement, DifferentArgumentsOfValuesAreNamed) {
  std::vector<double> out(6, 9);
  REFUSED(GEMINI_ERR_MISMATCH, gemini_param_get(odd_one() ? v : w, GEMINI_F64, out.data(), -1), "\"w\"",
          "\"v\"");
  REFUSED(GEMINI_ERR_MISMATCH, gemini_param_get(w, odd_one() ? GEMINI_F32 : GEMINI_F64, out.data(), -1),
          "dtype");
  REFUSED(GEMINI_ERR_MISMATCH, gemini_param_get(w, GEMINI_F64, out.data(), odd_one() ? 0 : 1), "root 0",
          "root 1");
  std::vector<double> other(6, odd_one() ? 3 : 4);
  REFUSED(GEMINI_ERR_MISMATCH, gemini_param_set(w, GEMINI_F64, other.data(), -1), "\"w\"", "fingerprint");
  EXPECT_EQ(9, out[0]);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 1.0));
  expect_usable();
}

TEST_F(Agreement, DifferentOptionsAreNamed) {
  REFUSED(GEMINI_ERR_MISMATCH, gemini_set_option(*ctx, "lr", odd_one() ? "1" : "2"), "lr = 1", "lr = 2");
  REFUSED(GEMINI_ERR_MISMATCH, gemini_set_option(*ctx, odd_one() ? "lr" : "momentum", "1"), "lr = 1",
          "momentum = 1");
  REFUSED(GEMINI_ERR_MISMATCH, gemini_param_set_option(odd_one() ? v : w, "lr_scale", "2"), "lr_scale = 2");
  EXPECT_EQ("0.5", ctx->option("lr"));
  gemini_context_t other = nullptr;
  const Options differing({{"chunk_elems", odd_one() ? "64" : "128"}});
  REFUSED(GEMINI_ERR_MISMATCH, gemini_create(MPI_COMM_WORLD, differing.get(), &other), "chunk_elems = 64",
          "chunk_elems = 128");
  EXPECT_EQ(nullptr, other);
  expect_usable();
}

TEST_F(Agreement, BudgetsAndLogsMayDiffer) {
  const Context other({{"device_memory", odd_one() ? "64MiB" : "65MiB"},
                       {"log", odd_one() ? "error" : "off"},
                       {"user.x", odd_one() ? "1" : "2"}});
  EXPECT_EQ(std::to_string(64 << 20), other.option("device_memory"));  // the least
}

TEST_F(Agreement, DifferentCallsEndTheContextOnAllRanksAndNameThem) {
  double out[6];
  if (odd_one()) {
    REFUSED(GEMINI_ERR_ORDER, gemini_param_get(w, GEMINI_F64, out, -1), "gemini_discard", "gemini_param_get");
  } else {
    REFUSED(GEMINI_ERR_ORDER, gemini_discard(*ctx), "gemini_discard", "gemini_param_get");
  }
  REFUSED(GEMINI_ERR_STATE, gemini_pre_op(*ctx, &w, 1), "can only be destroyed", "gemini_param_get");
  REFUSED(GEMINI_ERR_STATE, gemini_param_get(w, GEMINI_F64, out, -1), "can only be destroyed");
  ALL_RANKS_OK(ctx->destroy());
  EXPECT_EQ(nullptr, ctx->get());
}

TEST_F(Agreement, OneRankThatDestroysWhileOthersStepEndsAll) {
  train(*ctx, w, 1.0);
  if (odd_one()) {
    gemini_context_t left = *ctx;
    EXPECT_EQ(GEMINI_ERR_ORDER, ctx->destroy());
    EXPECT_SAID("gemini_destroy: ");
    EXPECT_EQ(nullptr, ctx->get());
    EXPECT_NE(nullptr, left);
  } else {
    REFUSED(GEMINI_ERR_ORDER, gemini_step(*ctx, nullptr), "gemini_step", "gemini_destroy");
  }
}

// check = off: one rank uses a parameter three times where the others do so once. Nobody compares the calls
// until ranks agree, or wait for each other in vain.
class UnequalUses : public testing::Test {
 protected:
  void SetUp() override {
    if (ranks_of() == 1) GTEST_SKIP() << "takes two";
  }
  void commit(const char* placement, const char* timeout_s) {
    ctx = std::make_unique<Context>(
        MPI_COMM_WORLD,
        KeyValues{{"placement", placement}, {"chunk_elems", "8"}, {"timeout_s", timeout_s}, {"lr", "0.5"}});
    a = ctx->add_constant("a", GEMINI_F64, {8}, 1.0);
    b = ctx->add_constant("b", GEMINI_F64, {8}, 1.0);
    ctx->commit();
  }
  // Up to the first call that does not succeed.
  gemini_status_t iteration(int uses_of_b) {
    gemini_status_t status = GEMINI_SUCCESS;
    const auto use = [&](gemini_phase_t phase, gemini_param_t p) {
      if (status == GEMINI_SUCCESS) status = gemini_set_phase(*ctx, phase);
      if (status == GEMINI_SUCCESS) status = gemini_pre_op(*ctx, &p, 1);
      if (status == GEMINI_SUCCESS && phase == GEMINI_BACKWARD) add_grad(p, [](int64_t) { return 1.0; });
      if (status == GEMINI_SUCCESS) status = gemini_post_op(*ctx, &p, 1);
    };
    use(GEMINI_FORWARD, a);
    for (int i = 0; i < uses_of_b; ++i) use(GEMINI_FORWARD, b);
    for (gemini_param_t p : {b, a}) use(GEMINI_BACKWARD, p);
    return status == GEMINI_SUCCESS ? gemini_step(*ctx, nullptr) : status;
  }
  std::unique_ptr<Context> ctx;
  gemini_param_t a = nullptr, b = nullptr;
};

TEST_F(UnequalUses, ThatGatherDifferentlyOftenEndInATimeoutOnAll) {
  for (const int learning : {0, 3}) {
    commit(learning == 0 ? "static" : "auto", "2");
    for (int step = 0; step < learning; ++step) ALL_RANKS_OK(iteration(1));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(GEMINI_ERR_TIMEOUT, iteration(odd_one() ? 3 : 1)) << gemini_last_error_message();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    EXPECT_EQ(GEMINI_SUCCESS, ctx->destroy());
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// An outer lease holds the values: nothing is gathered for the inner ones.
TEST_F(UnequalUses, ThatGatherNothingAreFoundAtTheStep) {
  for (const int learning : {0, 3}) {
    commit("auto", "60");
    for (int step = 0; step < learning; ++step) ALL_RANKS_OK(iteration(1));
    ctx->phase(GEMINI_FORWARD);
    ctx->pre({b});
    for (int i = 0; i < (odd_one() ? 3 : 1); ++i) ctx->op(GEMINI_FORWARD, {b});
    ctx->post({b});
    ctx->op(GEMINI_BACKWARD, {b}, [&] { add_grad(b, [](int64_t) { return 1.0; }); });
    REFUSED(GEMINI_ERR_MISMATCH, gemini_step(*ctx, nullptr), "operations since the last step", its_name());
    ALL_RANKS_OK(gemini_discard(*ctx));
    ALL_RANKS_OK(iteration(1));
  }
}

TEST_F(Agreement, AReportThatCannotBeWrittenIsSaidOnAllRanks) {
  REFUSED(rank_of() == 0 ? GEMINI_ERR_IO : GEMINI_ERR_REMOTE,
          gemini_report(*ctx, "no/such/folder/report.txt"), "no/such/folder/report.txt");
  expect_usable();
}
