// check = order and check = values: calls and contents that differ over ranks, and how they are named.
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "misuse/refused.hpp"

using namespace gemini_test;

namespace {

class Order : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ctx = std::make_unique<Context>(MPI_COMM_WORLD, KeyValues{{"optimizer", "sgd"},
                                                              {"lr", "0.5"},
                                                              {"timeout_s", "60"},
                                                              {"check", GetParam()},
                                                              {"accumulate", "2"},
                                                              {"chunk_elems", "64"}});
    a = ctx->add_constant("A", GEMINI_F64, {64}, 1.0);
    b = ctx->add_constant("B", GEMINI_F64, {64}, 2.0);
    r = ctx->add_constant("R", GEMINI_F64, {6}, 3.0, GEMINI_PARAM_RESIDENT);
    ctx->commit();
  }
  // Nothing of it is said where ranks do the same.
  bool alone() const { return ranks_of() == 1; }

  std::unique_ptr<Context> ctx;
  gemini_param_t a = nullptr, b = nullptr, r = nullptr;
};

gemini_status_t operate(gemini_context_t ctx, gemini_param_t param) {
  const gemini_status_t status = gemini_pre_op(ctx, &param, 1);
  return status == GEMINI_SUCCESS ? gemini_post_op(ctx, &param, 1) : status;
}

}  // namespace

TEST_P(Order, SaysNothingWhereRanksDoTheSame) {
  for (int step = 0; step < 2; ++step) {
    for (int batch = 0; batch < 2; ++batch) {
      ctx->micro_batch({a, b, r}, [](int64_t) { return 1.0; });
      ctx->op(GEMINI_INFERENCE, {b});
    }
    ctx->step();
  }
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), -1.0));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(b), 0.0));
  ALL_RANKS_OK(ctx->destroy());
}

TEST_P(Order, LongStretchesWithoutDataAreFine) {
  ctx->pre({a});
  for (int i = 0; i < 500; ++i) ctx->op(GEMINI_FORWARD, {a});
  ctx->post({a});
  ALL_RANKS_OK(ctx->destroy());
}

TEST_P(Order, OfTwoParametersOfTheSameShape) {
  if (alone()) return;
  gemini_param_t mine = odd_one() ? b : a;
  REFUSED(GEMINI_ERR_ORDER, gemini_pre_op(*ctx, &mine, 1), "rank 0: gemini_pre_op(\"A\")",
          its_name() + ": gemini_pre_op(\"B\")");
  REFUSED(GEMINI_ERR_STATE, gemini_step(*ctx, nullptr), "can only be destroyed", "gemini_pre_op(\"B\")");
}

TEST_P(Order, OfAStepAndAnOperation) {
  if (alone()) return;
  train(*ctx, a, 1.0);
  train(*ctx, a, 1.0);
  if (odd_one()) {
    ctx->phase(GEMINI_INFERENCE);
    REFUSED(GEMINI_ERR_ORDER, gemini_pre_op(*ctx, &a, 1), "rank 0: gemini_step",
            its_name() + ": gemini_pre_op(\"A\") in GEMINI_INFERENCE");
  } else {
    REFUSED(GEMINI_ERR_ORDER, gemini_step(*ctx, nullptr), "rank 0: gemini_step",
            its_name() + ": gemini_pre_op(\"A\")");
  }
}

TEST_P(Order, OfAnAgreedCallThatOneRankDoesNotMake) {
  if (alone()) return;
  const auto words = [] { return its_name() + ": gemini_report"; };
  if (odd_one()) {
    REFUSED(GEMINI_ERR_ORDER, gemini_report(*ctx, "never.txt"), "rank 0: gemini_pre_op(\"B\")", words());
    EXPECT_FALSE(std::filesystem::exists("never.txt"));
  } else {
    REFUSED(GEMINI_ERR_ORDER, gemini_pre_op(*ctx, &b, 1), "rank 0: gemini_pre_op(\"B\")", words());
  }
}

// One rank has samples for two iterations, its peers for three.
TEST_P(Order, OfARankThatLeavesTheLoopEarly) {
  if (alone()) return;
  for (int step = 0; step < 2; ++step) {
    for (int batch = 0; batch < 2; ++batch) ctx->micro_batch({a, b}, [](int64_t) { return 0.5; });
    ctx->step();
  }
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.0) && all_are(values(b), 1.0));
  if (odd_one()) {
    EXPECT_EQ(GEMINI_ERR_ORDER, ctx->destroy());
    EXPECT_EQ(nullptr, ctx->get());
  } else {
    EXPECT_EQ(GEMINI_ERR_ORDER, gemini_pre_op(*ctx, &a, 1));
  }
  EXPECT_SAID("rank 0: gemini_pre_op(\"A\")");
  EXPECT_SAID((its_name() + ": gemini_destroy").c_str());
}

TEST_P(Order, OfHitsThatMoveNothing) {
  if (alone()) return;
  ctx->pre({a});
  gemini_param_t outer = a;
  for (int i = 0; i < (odd_one() ? 3 : 2); ++i) EXPECT_EQ(GEMINI_SUCCESS, operate(*ctx, a));
  REFUSED(GEMINI_ERR_ORDER, gemini_pre_op(*ctx, &b, 1), "rank 0: gemini_pre_op(\"B\") in GEMINI_FORWARD",
          its_name() + ": gemini_pre_op(\"A\") in GEMINI_FORWARD");
  REFUSED(GEMINI_ERR_STATE, gemini_post_op(*ctx, &outer, 1), "can only be destroyed");
}

TEST_P(Order, OfUnequalNumbersOfOperationsOnAParameter) {
  if (alone()) return;
  const auto all = [&] {
    for (int i = 0; i < (odd_one() ? 2 : 1); ++i) {
      const gemini_status_t status = operate(*ctx, a);
      if (status != GEMINI_SUCCESS) return status;
    }
    (void)gemini_set_phase(*ctx, GEMINI_BACKWARD);
    return operate(*ctx, a);
  };
  EXPECT_EQ(GEMINI_ERR_ORDER, all());
  EXPECT_SAID("rank 0: gemini_pre_op(\"A\") in GEMINI_BACKWARD");
  EXPECT_SAID((its_name() + ": gemini_pre_op(\"A\") in GEMINI_FORWARD").c_str());
}

TEST_P(Order, OfAPhase) {
  if (alone()) return;
  ctx->phase(odd_one() ? GEMINI_INFERENCE : GEMINI_FORWARD);
  REFUSED(GEMINI_ERR_ORDER, gemini_pre_op(*ctx, &a, 1), "in GEMINI_FORWARD", "in GEMINI_INFERENCE");
}

// One rank may evaluate alone what every rank holds.
TEST_P(Order, LeavesOperationsOnResidentParametersToEachRank) {
  ctx->op(GEMINI_FORWARD, {a});
  if (odd_one()) ctx->op(GEMINI_INFERENCE, {r});
  ctx->phase(GEMINI_BACKWARD);
  ctx->op(GEMINI_BACKWARD, {a}, [&] { write_grad(a, [](int64_t) { return 1.0; }); });
  if (!odd_one())
    ctx->op(GEMINI_FORWARD, {r});  // ends the micro-batch; the other rank's next one does so too
  ctx->op(GEMINI_FORWARD, {a});
  ctx->op(GEMINI_BACKWARD, {a});
  ctx->step();
  ALL_RANKS_OK(ctx->destroy());
}

INSTANTIATE_TEST_SUITE_P(Check, Order, testing::Values("order", "values"));

namespace {

KeyValues checking_values() {
  return {{"check", "values"}, {"timeout_s", "60"}};
}

}  // namespace

TEST(Values, GivenOnSeveralRanksAreEqual) {
  for (const bool resident : {false, true}) {
    Context ctx(MPI_COMM_WORLD, checking_values());
    gemini_param_t w = ctx.add("w", GEMINI_F64, {6}, resident ? GEMINI_PARAM_RESIDENT : 0);
    const double other[6] = {9, 9, 9, 9, 9, 9};
    const double mine[6] = {1, 2, 3, 4, 5, 6};
    const bool differs = ranks_of() > 1 && odd_one();
    ALL_RANKS_OK(gemini_param_init_data(w, differs ? other : mine));
    if (ranks_of() > 1) {
      REFUSED(GEMINI_ERR_MISMATCH, gemini_commit(ctx), "\"w\"");
      ALL_RANKS_OK(gemini_param_init_data(w, odd_one() ? nullptr : mine));  // a rank may give none
    }
    ALL_RANKS_OK(gemini_commit(ctx));
    EXPECT_ALL(MPI_COMM_WORLD, values(w) == std::vector<double>(mine, mine + 6));
  }
}

TEST(Values, ThatAreNotFiniteAreNamedAndMayBeMended) {
  Context ctx(MPI_COMM_WORLD, checking_values());
  double data[100] = {};
  data[97] = std::numeric_limits<double>::quiet_NaN();
  gemini_param_t w = ctx.add("w", GEMINI_F64, {100});
  gemini_param_t v = ctx.add("v", GEMINI_F64, {100});
  ALL_RANKS_OK(gemini_param_init_data(v, data + 0));
  GEMINI_CHECK(gemini_param_init_fill(w, GEMINI_INIT_CONSTANT, 1, 0, 0));
  REFUSED(GEMINI_ERR_MISMATCH, gemini_commit(ctx), "\"v\"", "not finite");
  data[97] = 5;
  ALL_RANKS_OK(gemini_param_init_data(v, data + 0));
  ALL_RANKS_OK(gemini_commit(ctx));
  EXPECT_EQ(5, values(v)[97]);
}
