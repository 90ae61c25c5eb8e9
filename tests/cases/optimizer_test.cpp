// Loss scale, norms, clipping, per-parameter settings and the formulas at odd sizes.
#include "observe.hpp"

using namespace gemini_test;

namespace {

// An F16 parameter scaled from `scale` on.
KeyValues scaled(const char* scale, const KeyValues& more) {
  KeyValues all = adam_with({{"initial_scale", scale}});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

double scale_of(const Context& ctx) {
  double scale = 0;
  GEMINI_CHECK(gemini_loss_scale(ctx, &scale));
  return scale;
}

struct State {
  std::vector<double> master, state1, state2;
  bool operator==(const State& other) const {
    return master == other.master && state1 == other.state1 && state2 == other.state2;
  }
};
State state_of(const Context& ctx, gemini_param_t param) {
  const Seen seen = see(ctx, param);
  return {seen.master, seen.state1, seen.state2};
}

}  // namespace

TEST(Overflow, OnOneRankSkipsTheStepOnAllAndHalvesTheScale) {
  Context ctx(MPI_COMM_WORLD, scaled("1024", {{"hysteresis", "1"}}));
  gemini_param_t a = ctx.add_constant("a", GEMINI_F16, {4}, 1.0);
  ctx.commit();
  const State before = state_of(ctx, a);
  const int last = ranks_of() - 1;
  train(ctx, a, [&](int64_t i) { return rank_of() == last && i == 3 ? INFINITY : 1024.0; });
  const gemini_step_info_t skipped = ctx.step();
  EXPECT_SAME(MPI_COMM_WORLD, skipped.skipped);
  EXPECT_EQ(1, skipped.skipped);
  EXPECT_EQ(0, skipped.step);
  EXPECT_EQ(0, skipped.params_updated);
  EXPECT_EQ(1024.0, skipped.loss_scale);
  EXPECT_EQ(512.0, scale_of(ctx));
  EXPECT_EQ(1, ctx.stat(GEMINI_STAT_SKIPPED_STEPS));
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_STEPS));
  EXPECT_TRUE(before == state_of(ctx, a));

  train(ctx, a, 512.0);
  const gemini_step_info_t clean = ctx.step();
  EXPECT_EQ(0, clean.skipped);
  EXPECT_EQ(1, clean.step);
  EXPECT_EQ(2.0, clean.grad_norm);
  EXPECT_TRUE(first_moments(ctx, a, 1.0));  // t = 1
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.9, 1e-7));
}

TEST(Overflow, UsesUpTheHysteresisBeforeTheScaleFalls) {
  Context ctx(MPI_COMM_WORLD, scaled("8", {{"hysteresis", "2"}, {"growth_interval", "2"}}));
  gemini_param_t a = ctx.add_constant("a", GEMINI_F16, {4}, 1.0);
  ctx.commit();
  const auto step_with = [&](double g) {
    train(ctx, a, g);
    ctx.step();
    return scale_of(ctx);
  };
  EXPECT_EQ(8.0, step_with(INFINITY));
  EXPECT_EQ(4.0, step_with(INFINITY));
  EXPECT_EQ(4.0, step_with(4.0));
  EXPECT_EQ(8.0, step_with(4.0));       // grown: hysteresis starts anew
  EXPECT_EQ(8.0, step_with(INFINITY));  // first of two
}

TEST(Overflow, IsFoundInEveryDtypeAndLetThroughWhereAsked) {
  for (const gemini_dtype_t dtype : {GEMINI_F64, GEMINI_F32, GEMINI_BF16}) {
    Context ctx(MPI_COMM_WORLD, kAdam);
    gemini_param_t a = ctx.add_constant("a", dtype, {5}, 1.0);
    ctx.commit();
    train(ctx, a, [&](int64_t i) { return i == 4 ? NAN : 1.0; });
    EXPECT_EQ(1, ctx.step().skipped);
    EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 1.0));
  }
  Context ctx(MPI_COMM_WORLD, adam_with({{"skip_nonfinite", "off"}}));
  gemini_param_t a = ctx.add_constant("a", GEMINI_F32, {5}, 1.0);
  ctx.commit();
  train(ctx, a, NAN);
  EXPECT_EQ(0, ctx.step().skipped);
  EXPECT_TRUE(std::isnan(values(a)[0]));
}

TEST(Unscaling, UsesTheScaleTheGradientsWereMadeWith) {
  Context ctx(MPI_COMM_WORLD, scaled("4", {{"growth_interval", "1"}}));
  gemini_param_t a = ctx.add_constant("a", GEMINI_F16, {1}, 1.0);
  ctx.commit();
  train(ctx, a, scale_of(ctx));
  gemini_step_info_t first = ctx.step();
  EXPECT_EQ(1.0, first.grad_norm);
  EXPECT_EQ(4.0, first.loss_scale);
  EXPECT_TRUE(first_moments(ctx, a, 1.0));
  EXPECT_EQ(8.0, scale_of(ctx));
  train(ctx, a, 8.0);
  gemini_step_info_t second = ctx.step();
  EXPECT_EQ(1.0, second.grad_norm);
  EXPECT_EQ(8.0, second.loss_scale);
  const Seen seen = see(ctx, a);
  EXPECT_TRUE(all_are(seen.state1, 0.19, 1e-7));
  EXPECT_TRUE(all_are(seen.state2, 0.001 + 0.999 * 0.001, 1e-9));
}

TEST(Clipping, UsesTheNormOverAllRanks) {
  const auto g = [](int64_t i) { return i == 0 ? 3.0 : i == 8 ? 4.0 : 0.0; };  // on two ranks
  struct Norm {
    const char* kind;
    double reported;
  };
  for (const Norm& norm : {Norm{"2", 5.0}, Norm{"inf", 4.0}}) {
    Context ctx(MPI_COMM_WORLD,
                adam_with({{"max_grad_norm", "1"}, {"grad_norm", norm.kind}, {"chunk_elems", "16"}}));
    gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {16}, 1.0);
    ctx.commit();
    train(ctx, a, g);
    const gemini_step_info_t info = ctx.step();
    EXPECT_ALL(MPI_COMM_WORLD, info.grad_norm == norm.reported);
    const Seen seen = see(ctx, a);
    EXPECT_EQ(ranks_of() > 1 ? 2 : 1, seen.pieces_with_state1);
    for (std::size_t i = 0; i < 16; ++i) {
      const double clipped = g(static_cast<int64_t>(i)) / (norm.reported + 1e-6);
      EXPECT_NEAR(0.1 * clipped, seen.state1[i], 1e-15);
      EXPECT_NEAR(0.001 * clipped * clipped, seen.state2[i], 1e-17);
    }
    EXPECT_NEAR(norm.reported == 5 ? 0.06 : 0.075, seen.state1[0], 1e-7);
    EXPECT_NEAR(norm.reported == 5 ? 0.08 : 0.1, seen.state1[8], 1e-7);
  }
}

TEST(Clipping, WorksWhereSquaresOverflow) {
  Context ctx(MPI_COMM_WORLD, {{"optimizer", "sgd"}, {"lr", "1"}, {"max_grad_norm", "1"}});
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {4}, 1.0);
  ctx.commit();
  train(ctx, a, 1e200);
  const gemini_step_info_t info = ctx.step();
  EXPECT_EQ(0, info.skipped);
  EXPECT_DOUBLE_EQ(2e200, info.grad_norm);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.5, 1e-15));
}

TEST(Norm, CountsNeitherFrozenNorPaddingAndATiedParameterOnce) {
  Context ctx(MPI_COMM_WORLD, adam_with({{"grad_norm", "2"}, {"chunk_elems", "128"}}));
  gemini_param_t tied = ctx.add_constant("tied", GEMINI_F32, {64}, 1.0);  // on two ranks
  ALL_RANKS_OK(gemini_param_alias(ctx, "again", tied));
  gemini_param_t frozen = ctx.add_constant("frozen", GEMINI_F32, {3}, 100.0, GEMINI_PARAM_FROZEN);
  gemini_param_t late = ctx.add_constant("late", GEMINI_F32, {3}, 100.0);
  ctx.commit();
  ALL_RANKS_OK(gemini_param_set_option(late, "frozen", "on"));  // its chunk has a gradient
  ctx.op(GEMINI_FORWARD, {tied, frozen, late});
  const auto g = [](int64_t i) { return i == 0 ? 3.0 : i == 48 ? -4.0 : 0.0; };
  ctx.op(GEMINI_BACKWARD, {tied, frozen, late}, [&] { write_grad(tied, g); });
  EXPECT_EQ(5.0, ctx.step().grad_norm);
  EXPECT_EQ(ranks_of() > 1 ? 2 : 1, see(ctx, tied).pieces_with_state1);
  ALL_RANKS_OK(gemini_set_option(ctx, "grad_norm", "inf"));
  train(ctx, tied, g);
  EXPECT_EQ(4.0, ctx.step().grad_norm);
}

TEST(ParameterOptions, HoldOnBothSidesOfAShardsBorder) {
  Context ctx(MPI_COMM_WORLD, {{"optimizer", "adamw"}, {"lr", "0.1"}, {"chunk_elems", "32"}});
  gemini_param_t p = ctx.add_constant("p", GEMINI_F64, {5}, 1.0);
  gemini_param_t q = ctx.add_constant("q", GEMINI_F64, {14}, 1.0);
  ALL_RANKS_OK(gemini_param_set_option(q, "lr_scale", "0.1"));
  ALL_RANKS_OK(gemini_param_set_option(q, "weight_decay", "0.5"));
  ctx.commit();
  ctx.micro_batch({p, q}, [](int64_t) { return 1.0; });
  ctx.step();
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(p), 0.9, 1e-8));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(q), 1 - 0.01 * 1.5, 1e-9));
  const Seen seen = see(ctx, q);
  EXPECT_EQ(ranks_of() > 1 ? 2 : 1, seen.pieces_with_state1) << "a border runs through it";
  EXPECT_TRUE(all_are(seen.state1, 0.1, 1e-15));  // neither decay nor rates are in the moments
  EXPECT_TRUE(all_are(see(ctx, p).state1, 0.1, 1e-15));
  ALL_RANKS_OK(gemini_param_set_option(q, "lr_scale", "0"));  // and after commit
  ctx.micro_batch({p, q}, [](int64_t) { return 1.0; });
  ctx.step();
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(p), 0.8, 1e-7));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(q), 1 - 0.01 * 1.5, 1e-9));
}

namespace {

const int64_t kOddSizes[] = {1, 7, 8, 9, 15, 16, 17, 1023, 1025};

double start(int64_t i) {
  return 1.0 + 0.001 * static_cast<double>(i % 97);
}
double slope(int64_t i, int step) {
  return 0.5 - 0.01 * static_cast<double>((i * 7 + step) % 100);
}

// Two steps of `optimizer` element by element, in double, by the formulas of the contract.
double two_steps(const std::string& optimizer, int64_t i) {
  const double lr = 0.01, b1 = 0.9, b2 = 0.999, eps = 1e-8, wd = 0.1, momentum = 0.5;
  double w = start(i), m = 0, v = 0;
  for (int t = 1; t <= 2; ++t) {
    double g = slope(i, t);
    if (optimizer == "adam" || optimizer == "sgd") g += wd * w;
    if (optimizer == "sgd") {
      m = t == 1 ? g : momentum * m + g;
      w -= lr * (g + momentum * m);  // nesterov
    } else if (optimizer == "lion") {
      const double update = b1 * m + (1 - b1) * g;
      w -= lr * (static_cast<double>((update > 0) - (update < 0)) + wd * w);
      m = b2 * m + (1 - b2) * g;
    } else {
      m = b1 * m + (1 - b1) * g;
      v = b2 * v + (1 - b2) * g * g;
      if (optimizer == "adamw") w *= 1 - lr * wd;
      w -= lr / (1 - std::pow(b1, t)) * m / (std::sqrt(v) / std::sqrt(1 - std::pow(b2, t)) + eps);
    }
  }
  return w;
}

}  // namespace

class OptimizerAtOddSizes : public testing::TestWithParam<const char*> {};

TEST_P(OptimizerAtOddSizes, FollowsItsFormulaInEveryElementAndTouchesNoOther) {
  for (const gemini_dtype_t dtype : {GEMINI_F64, GEMINI_F32}) {
    Context ctx(MPI_COMM_WORLD, {{"optimizer", GetParam()},
                                 {"lr", "0.01"},
                                 {"weight_decay", "0.1"},
                                 {"momentum", "0.5"},
                                 {"nesterov", "on"},
                                 {"chunk_elems", "1040"}});
    Params trained;
    Params guards;
    for (const int64_t n : kOddSizes) {
      trained.push_back(ctx.add_function("w" + std::to_string(n), dtype, {n}, start));
      guards.push_back(ctx.add_constant("guard" + std::to_string(n), dtype, {3}, 7.0));
    }
    ctx.commit();
    for (int step = 1; step <= 2; ++step) {
      ctx.micro_batch(trained, [step](int64_t i) { return slope(i, step); });
      ctx.step();
    }
    for (gemini_param_t param : trained) {
      const std::vector<double> now = values(param);
      for (int64_t i = 0; i < elems(param); ++i)
        ASSERT_NEAR(two_steps(GetParam(), i), now[static_cast<std::size_t>(i)],
                    dtype == GEMINI_F64 ? 1e-14 : 4e-7)
            << info(param).name << "[" << i << "]";
    }
    for (gemini_param_t guard : guards) EXPECT_ALL(MPI_COMM_WORLD, all_are(values(guard), 7.0));
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerAtOddSizes, testing::Values("adamw", "adam", "sgd", "lion"));

TEST(Lamb, ScalesEachParameterByTheRatioOfItsNormsOverAllRanks) {
  Context ctx(MPI_COMM_WORLD, {{"optimizer", "lamb"}, {"lr", "0.1"}, {"eps", "0"}, {"chunk_elems", "16"}});
  gemini_param_t p = ctx.add_constant("p", GEMINI_F64, {9}, 2.0);
  gemini_param_t q = ctx.add_constant("q", GEMINI_F64, {25}, 0.5);
  ctx.commit();
  ctx.micro_batch({p, q}, [](int64_t) { return 3.0; });
  ctx.step();  // the update is 1 in every element: the ratio is |w| / 1
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(p), 2.0 - 0.1 * 2.0, 1e-12));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(q), 0.5 - 0.1 * 0.5, 1e-12));
}

TEST(OptimizerNone, KeepsUnscaledClippedGradientsForTheVisit) {
  Context ctx(MPI_COMM_WORLD, {{"optimizer", "none"}, {"loss_scale", "8"}, {"max_grad_norm", "1"}});
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {4}, 1.0);
  ctx.commit();
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_OPTIMIZER_BYTES));
  train(ctx, a, 8.0);
  EXPECT_EQ(2.0, ctx.step().grad_norm);
  const Seen seen = see(ctx, a);
  EXPECT_TRUE(all_are(seen.grad, 0.5, 1e-6));
  EXPECT_EQ(0, seen.pieces_with_state1);
  EXPECT_TRUE(all_are(seen.master, 1.0));
  ctx.op(GEMINI_FORWARD, {a});
  EXPECT_EQ(0, see(ctx, a).pieces_with_grad);  // the next iteration began
}
