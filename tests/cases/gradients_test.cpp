// Gradients: several contributions, micro-batches, precision of sums, recomputation, inference in between.
#include "observe.hpp"

using namespace gemini_test;

namespace {

const ElementFn kOne = [](int64_t) { return 1.0; };

double mean_over_ranks(const std::function<double(int)>& of_rank) {
  double sum = 0;
  for (int r = 0; r < ranks_of(); ++r) sum += of_rank(r);
  return sum / ranks_of();
}

}  // namespace

namespace {

class GradientIn : public testing::TestWithParam<gemini_dtype_t> {};
INSTANTIATE_TEST_SUITE_P(DoubleAndHalf, GradientIn, testing::Values(GEMINI_F64, GEMINI_F16));

}  // namespace

TEST_P(GradientIn, OfAParameterUsedTwiceIsTheSumAndReducedOnce) {
  Context ctx(MPI_COMM_WORLD, adam_with({{"loss_scale", "off"}}));
  gemini_param_t a = ctx.add_constant("a", GetParam(), {61}, 1.0);
  ctx.commit();
  ctx.op(GEMINI_FORWARD, {a});
  ctx.op(GEMINI_FORWARD, {a});
  ctx.op(GEMINI_BACKWARD, {a}, [&] { more_grad(a, kOne); });
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_REDUCES));
  ctx.op(GEMINI_BACKWARD, {a}, [&] { more_grad(a, [](int64_t) { return 2.0; }); });
  EXPECT_EQ(1, ctx.stat(GEMINI_STAT_REDUCES));
  ctx.step();
  EXPECT_TRUE(first_moments(ctx, a, 3.0));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.9, 1e-7));
}

TEST(Gradient, ReopenedAfterItsReductionIsReducedAgainAndAdded) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {4}, 1.0);
  ctx.commit();
  train(ctx, a, 1.0);
  EXPECT_EQ(1, ctx.stat(GEMINI_STAT_REDUCES));
  ctx.op(GEMINI_BACKWARD, {a}, [&] {
    int32_t accumulate = -1;
    void* grad = nullptr;
    GEMINI_CHECK(gemini_param_grad(a, &grad, &accumulate));
    EXPECT_EQ(0, accumulate);  // a new buffer
    for (int i = 0; i < 4; ++i) static_cast<double*>(grad)[i] = 2.0;
    GEMINI_CHECK(gemini_param_grad(a, &grad, &accumulate));
    EXPECT_EQ(1, accumulate);
  });
  EXPECT_ALL(MPI_COMM_WORLD, all_are(gradient(a), 3.0));
  ctx.step();
  EXPECT_TRUE(all_are(see(ctx, a).state1, 0.3, 1e-15));
}

TEST(Gradient, IsHeldOfWhatWasUsedWhateverSharesItsChunk) {
  for (const char* chunk_elems : {"16", "4096"}) {
    Context ctx(MPI_COMM_WORLD, {{"optimizer", "none"}, {"chunk_elems", chunk_elems}});
    gemini_param_t used = ctx.add_constant("used", GEMINI_F64, {4}, 1.0);
    gemini_param_t unused = ctx.add_constant("unused", GEMINI_F64, {4}, 1.0);
    ctx.commit();
    train(ctx, used, 1.0);
    for (const bool stepped : {false, true}) {
      if (stepped) ctx.step();
      EXPECT_ALL(MPI_COMM_WORLD, all_are(gradient(used), 1.0));
      std::vector<double> none(4);
      ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_grad_get(unused, GEMINI_F64, none.data(), -1));
      std::vector<gemini_param_t> with_gradient;
      ALL_RANKS_OK(gemini_shard_visit(
          ctx,
          [](void* seen, gemini_param_t p, int64_t, int64_t, void*, const void* grad, void*, void*) {
            if (grad != nullptr) static_cast<std::vector<gemini_param_t>*>(seen)->push_back(p);
            return 0;
          },
          &with_gradient));
      for (gemini_param_t each : with_gradient) EXPECT_EQ(used, each);
    }
  }
}

TEST(Gradient, NeverShowsThroughTheValues) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F16, {4}, 1.0);
  ctx.commit();
  ctx.op(GEMINI_FORWARD, {a});
  ctx.op(GEMINI_FORWARD, {a});
  for (int use = 0; use < 2; ++use)
    ctx.op(GEMINI_BACKWARD, {a}, [&] {
      for (int i = 0; i < 4; ++i) EXPECT_EQ(f16_bits(1.0), data<std::uint16_t>(a)[i]);
      write_grad(a, [](int64_t) { return 7.0; });
      for (int i = 0; i < 4; ++i) EXPECT_EQ(f16_bits(1.0), data<std::uint16_t>(a)[i]);
    });
  ctx.step();
}

TEST(Gradient, DeclaredReadyIsReducedBeforeTheCountsSaySo) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {4}, 1.0);
  ctx.commit();
  ctx.op(GEMINI_FORWARD, {a});
  ctx.op(GEMINI_FORWARD, {a});
  ctx.op(GEMINI_BACKWARD, {a}, [&] { add_grad(a, kOne); });
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_REDUCES));
  ALL_RANKS_OK(gemini_grad_ready(a));
  EXPECT_EQ(1, ctx.stat(GEMINI_STAT_REDUCES));
  ctx.step();
  EXPECT_TRUE(all_are(see(ctx, a).state1, 0.1, 1e-15));
}

namespace {

// Where and how micro-batches add up, and in what.
struct Accumulation {
  const char* name;
  KeyValues settings;
  gemini_dtype_t dtype;
};
class MicroBatches : public testing::TestWithParam<Accumulation> {};
const KeyValues kOffloaded = {
    {"placement", "static"}, {"offload_param_frac", "1"}, {"offload_optim_frac", "1"}};
INSTANTIATE_TEST_SUITE_P(
    Everywhere, MicroBatches,
    testing::Values(Accumulation{"reduced", {}, GEMINI_F64}, Accumulation{"reduced_f16", {}, GEMINI_F16},
                    Accumulation{"local", {{"accumulate_mode", "local"}}, GEMINI_F64},
                    Accumulation{"local_f16", {{"accumulate_mode", "local"}}, GEMINI_F16},
                    Accumulation{"offloaded", kOffloaded, GEMINI_F64},
                    Accumulation{"offloaded_f16", kOffloaded, GEMINI_F16}),
    [](const auto& each) { return each.param.name; });

}  // namespace

TEST_P(MicroBatches, AreSummedAndEarlyStepsRefused) {
  KeyValues settings = adam_with({{"accumulate", "3"}, {"loss_scale", "off"}, {"chunk_elems", "64"}});
  settings.insert(settings.end(), GetParam().settings.begin(), GetParam().settings.end());
  Context ctx(MPI_COMM_WORLD, settings);
  gemini_param_t a = ctx.add_constant("a", GetParam().dtype, {61}, 1.0);
  ctx.commit();
  for (const double g : {1.0, 2.0, 6.0}) {
    train(ctx, a, g);
    if (g == 6.0) break;
    ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_step(ctx, nullptr));
    EXPECT_SAID("accumulate = 3");
  }
  EXPECT_EQ(GEMINI_SUCCESS, gemini_set_phase(ctx, GEMINI_FORWARD));
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_pre_op(ctx, &a, 1));  // a fourth
  EXPECT_SAID("gemini_step");
  EXPECT_EQ(1, ctx.step().step);
  EXPECT_TRUE(first_moments(ctx, a, 9.0));

  train(ctx, a, 1.0);  // three do not divide the number of micro-batches
  ALL_RANKS_OK(gemini_discard(ctx));
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_step(ctx, nullptr));
  ALL_RANKS_OK(gemini_set_option(ctx, "accumulate", "1"));
  train(ctx, a, 1.0);
  EXPECT_EQ(2, ctx.step().step);
  EXPECT_TRUE(all_are(see(ctx, a).state1, 0.9 * 0.9 + 0.1, GetParam().dtype == GEMINI_F64 ? 1e-15 : 2e-7));
}

TEST(SixteenBitMicroBatches, AreAddedInSingle) {
  Context ctx(MPI_COMM_WORLD, adam_with({{"accumulate", "2"}}));
  gemini_param_t a = ctx.add_constant("a", GEMINI_BF16, {1}, 1.0);
  ctx.commit();
  train(ctx, a, 256.0);
  train(ctx, a, 1.0);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(gradient(a), 257.0));
  EXPECT_EQ(257.0, ctx.step().grad_norm);
  EXPECT_TRUE(all_are(see(ctx, a).state1, 25.7, 1e-5));
}

TEST(SixteenBitSums, NeitherOverflowNorUnderflowWhereTheMeanFits) {
  for (const double g : {30000.0, std::ldexp(1, -24)}) {
    Context ctx(MPI_COMM_WORLD, adam_with({{"loss_scale", "off"}}));
    gemini_param_t a = ctx.add_constant("a", GEMINI_F16, {5}, 1.0);
    ctx.commit();
    train(ctx, a, g);
    EXPECT_ALL(MPI_COMM_WORLD, all_are(gradient(a), g));
    EXPECT_EQ(0, ctx.step().skipped);
    EXPECT_TRUE(all_are(see(ctx, a).state1, 0.1 * g, 1e-7 * g));
  }
}

TEST(SixteenBitSums, AreSumsOfNumbersNotOfBits) {
  Context ctx(MPI_COMM_WORLD, adam_with({{"loss_scale", "off"}, {"reduce_op", "sum"}}));
  gemini_param_t same = ctx.add_constant("same", GEMINI_F16, {3}, 1.0);
  gemini_param_t small = ctx.add_constant("small", GEMINI_F16, {3}, 1.0);
  ctx.commit();
  ctx.op(GEMINI_FORWARD, {same, small});
  ctx.op(GEMINI_BACKWARD, {same, small}, [&] {
    write_grad(same, kOne);
    write_grad(small, [](int64_t) { return rank_of() == 0 ? 1.0 : std::ldexp(1, -11); });
  });
  EXPECT_ALL(MPI_COMM_WORLD, all_are(gradient(same), ranks_of()));
  const double exact = 1.0 + (ranks_of() - 1) * std::ldexp(1, -11);  // 1.0009765625 on three ranks
  EXPECT_ALL(MPI_COMM_WORLD, all_are(gradient(small), exact));
  ctx.step();
}

TEST(ReduceOp, DividesByTheRanksOnlyForTheMean) {
  for (const char* op : {"mean", "sum"}) {
    Context ctx(MPI_COMM_WORLD, adam_with({{"reduce_op", op}}));
    gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {7}, 1.0);
    ctx.commit();
    train(ctx, a, 1.0 + rank_of());
    const double mean = mean_over_ranks([](int r) { return 1.0 + r; });
    EXPECT_ALL(MPI_COMM_WORLD, all_are(gradient(a), op == std::string("sum") ? mean * ranks_of() : mean));
    ctx.step();
  }
}

namespace {

enum class Pass { none, recompute, inference };

// Three modules; backward repeats each forward before it where asked, inference passes come in between.
std::vector<double> three_modules(Pass extra, Context& ctx) {
  Params all;
  for (const char* name : {"a", "b", "c"})
    all.push_back(
        ctx.add_function(name, GEMINI_F32, {37}, [](int64_t i) { return 0.01 * static_cast<double>(i); }));
  ctx.commit();
  const auto inference = [&] {
    if (extra != Pass::inference) return;
    const std::int64_t before = ctx.stat(GEMINI_STAT_GATHERED_BYTES);  // what training keeps
    for (gemini_param_t p : all) ctx.op(GEMINI_INFERENCE, {p});
    EXPECT_EQ(before, ctx.stat(GEMINI_STAT_GATHERED_BYTES));
    EXPECT_EQ(0, ctx.stat(GEMINI_STAT_LEASES));
  };
  for (int step = 0; step < 3; ++step) {
    inference();
    for (gemini_param_t p : all) ctx.op(GEMINI_FORWARD, {p});
    inference();
    GEMINI_CHECK(gemini_stat_reset(ctx));
    for (auto p = all.rbegin(); p != all.rend(); ++p) {
      if (extra == Pass::recompute) ctx.op(GEMINI_RECOMPUTE, {*p});
      ctx.op(GEMINI_BACKWARD, {*p}, [&] {
        write_grad(*p, [&](int64_t i) { return 0.1 * static_cast<double>(i % 3 + step + rank_of()); });
      });
      if (p == all.rbegin()) inference();
    }
    EXPECT_EQ(0, ctx.stat(GEMINI_STAT_GATHERED_BYTES));
    EXPECT_EQ(3, ctx.stat(GEMINI_STAT_REDUCES));
    EXPECT_GE(extra == Pass::none ? 3 : 6, ctx.stat(GEMINI_STAT_GATHERS));
    EXPECT_EQ(step + 1, ctx.step().step);
  }
  inference();
  std::vector<double> end;
  for (gemini_param_t p : all)
    for (const double value : values(p)) end.push_back(value);
  return end;
}

std::vector<double> three_modules(Pass extra) {
  Context ctx(MPI_COMM_WORLD, adam_with({{"chunk_elems", "48"}}));
  return three_modules(extra, ctx);
}

}  // namespace

TEST(Recompute, CountsForNothing) {
  const std::vector<double> plain = three_modules(Pass::none);
  EXPECT_ALL(MPI_COMM_WORLD, plain == three_modules(Pass::recompute));
}

TEST(Inference, BeforeBetweenAndInsideIterationsLeavesNoTrace) {
  const std::vector<double> plain = three_modules(Pass::none);
  EXPECT_ALL(MPI_COMM_WORLD, plain == three_modules(Pass::inference));
}

TEST(Inference, AloneIsNoIteration) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 1.0);
  ctx.commit();
  ctx.op(GEMINI_INFERENCE, {a}, [&] { EXPECT_EQ(1.0, data<double>(a)[7]); });
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_step(ctx, nullptr));
  EXPECT_SAID("BACKWARD");
  ctx.op(GEMINI_FORWARD, {a});
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_step(ctx, nullptr));
  ctx.op(GEMINI_BACKWARD, {a}, [&] { add_grad(a, kOne); });
  EXPECT_EQ(1, ctx.step().step);  // t was not moved by the refusals
  EXPECT_TRUE(first_moments(ctx, a, 1.0));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.9, 1e-8));
}
