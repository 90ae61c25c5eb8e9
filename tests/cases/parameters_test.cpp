// Parameters that are unused, frozen, tied, empty, odd in size or of several dtypes.
#include "observe.hpp"

using namespace gemini_test;

namespace {

struct Traffic {
  explicit Traffic(const Context& ctx)
      : gathers(ctx.stat(GEMINI_STAT_GATHERS)), reduces(ctx.stat(GEMINI_STAT_REDUCES)) {}
  bool operator==(const Traffic& other) const { return gathers == other.gathers && reduces == other.reduces; }
  int64_t gathers, reduces;
};

const ElementFn kOne = [](int64_t) { return 1.0; };
const ElementFn kTwo = [](int64_t) { return 2.0; };

// F16 has a master copy and moments of F32.
class Parameter : public testing::TestWithParam<gemini_dtype_t> {
 protected:
  static KeyValues settings(const KeyValues& more = {}) {
    KeyValues all = adam_with({{"loss_scale", "off"}});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(DoubleAndHalf, Parameter, testing::Values(GEMINI_F64, GEMINI_F16));

}  // namespace

TEST_P(Parameter, UnusedIsLeftAloneAndCountsItsOwnSteps) {
  Context ctx(MPI_COMM_WORLD, settings());
  gemini_param_t a = ctx.add_constant("a", GetParam(), {8}, 1.0);
  gemini_param_t b = ctx.add_constant("b", GetParam(), {8}, 1.0);
  ctx.commit();
  ASSERT_EQ(1, ctx.stat(GEMINI_STAT_CHUNKS));
  train(ctx, a, 1.0);
  gemini_step_info_t first = ctx.step();
  EXPECT_EQ(1, first.params_updated);
  EXPECT_NEAR(std::sqrt(8.0), first.grad_norm, 1e-14);
  EXPECT_EQ(1, ctx.stat(GEMINI_STAT_REDUCES));
  EXPECT_TRUE(first_moments(ctx, a, 1.0));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.9, 1e-7));
  const Seen untouched = see(ctx, b);
  EXPECT_TRUE(all_are(untouched.master, 1.0) && all_are(untouched.state1, 0) && all_are(untouched.state2, 0));

  ctx.op(GEMINI_FORWARD, {a, b});
  ctx.op(GEMINI_BACKWARD, {a, b}, [&] {
    for (gemini_param_t p : {a, b}) write_grad(p, kOne);
  });
  EXPECT_EQ(2, ctx.step().params_updated);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.8, 1e-7));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(b), 0.9, 1e-7));  // its own first step
  EXPECT_TRUE(first_moments(ctx, b, 1.0));
}

// Every rank owns a part of what one rank alone, the first or the last, has written.
TEST_P(Parameter, WithAGradientOfOneRankAloneHasItAveragedWithZeros) {
  const int64_t n = GetParam() == GEMINI_F64 ? 16 : 64;
  const auto slope = [n](int64_t i) { return i < n / 2 ? 2.0 : 6.0; };
  for (const int writer : {0, ranks_of() - 1}) {
    Context ctx(MPI_COMM_WORLD, settings({{"chunk_elems", std::to_string(n)}}));
    gemini_param_t a = ctx.add_constant("a", GetParam(), {n}, 1.0);
    ctx.commit();
    ctx.op(GEMINI_FORWARD, {a});
    ctx.op(GEMINI_BACKWARD, {a}, [&] {
      if (rank_of() == writer) write_grad(a, slope);
    });
    EXPECT_EQ(1, ctx.step().params_updated);
    const Seen seen = see(ctx, a);
    EXPECT_EQ(ranks_of() > 1 ? 2 : 1, seen.pieces_with_state1);
    for (int64_t i = 0; i < n; ++i) {
      const double mean = slope(i) / ranks_of();
      EXPECT_NEAR(0.1 * mean, seen.state1[static_cast<std::size_t>(i)], 1e-7) << "element " << i;
      EXPECT_NEAR(0.001 * mean * mean, seen.state2[static_cast<std::size_t>(i)], 1e-8) << "element " << i;
    }
    EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.9, 1e-7));
  }
}

TEST_P(Parameter, FrozenKeepsItsBitsHasNoStateAndStartsAnewWhenUnfrozen) {
  Context ctx(MPI_COMM_WORLD, settings());
  gemini_param_t e = ctx.add("e", GetParam(), {8}, GEMINI_PARAM_FROZEN);
  GEMINI_CHECK(gemini_param_init_fill(e, GEMINI_INIT_UNIFORM, 0.5, 2, 11));
  gemini_param_t l = ctx.add_constant("l", GetParam(), {8}, 1.0);
  ctx.commit();
  const std::vector<double> before = values(e);
  const int64_t of_one = ctx.stat(GEMINI_STAT_GRAD_BYTES);
  EXPECT_EQ(2 * of_one, ctx.stat(GEMINI_STAT_OPTIMIZER_BYTES));
  EXPECT_EQ(2 * of_one, ctx.stat(GEMINI_STAT_PARAM_BYTES));  // F64: e and l; F16: both, and the master of l
  for (int step = 0; step < 3; ++step) {
    ctx.op(GEMINI_FORWARD, {e});
    ctx.op(GEMINI_FORWARD, {l});
    ctx.op(GEMINI_BACKWARD, {l}, [&] { write_grad(l, kOne); });
    ctx.op(GEMINI_BACKWARD, {e}, [&] {
      void* grad = nullptr;
      EXPECT_EQ(GEMINI_ERR_ARGUMENT, gemini_param_grad(e, &grad, nullptr));
      EXPECT_SAID("FROZEN");
    });
    EXPECT_EQ(0, ctx.stat(GEMINI_STAT_GATHERED_BYTES));
    const gemini_step_info_t info = ctx.step();
    EXPECT_EQ(1, info.params_updated);
    EXPECT_NEAR(std::sqrt(8.0), info.grad_norm, 1e-14);
    if (step == 0) {
      EXPECT_TRUE(first_moments(ctx, l, 1.0));
    }
  }
  EXPECT_ALL(MPI_COMM_WORLD, values(e) == before);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(l), 0.7, 1e-6));
  EXPECT_EQ(0, see(ctx, e).pieces_with_state1);

  ALL_RANKS_OK(gemini_param_set_option(e, "frozen", "off"));
  EXPECT_EQ(0, info(e).flags);
  EXPECT_EQ(2 * of_one, ctx.stat(GEMINI_STAT_GRAD_BYTES));
  ctx.op(GEMINI_FORWARD, {e, l});
  ctx.op(GEMINI_BACKWARD, {e, l}, [&] {
    for (gemini_param_t p : {e, l}) write_grad(p, kOne);
  });
  EXPECT_EQ(2, ctx.step().params_updated);
  const Seen seen = see(ctx, e);
  EXPECT_TRUE(first_moments(seen, 1.0, GetParam() == GEMINI_F64));  // t = 1
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(before[i] - 0.1, seen.master[i], 2e-7);
}

TEST(FrozenParameter, FrozenBetweenStepsStopsAndGoesOnWithZeroMomentsLater) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {5}, 1.0);
  gemini_param_t other = ctx.add_constant("other", GEMINI_F64, {5}, 1.0);
  ctx.commit();
  ctx.micro_batch({w, other}, [](int64_t) { return 1.0; });
  ctx.step();
  ALL_RANKS_OK(gemini_param_set_option(w, "frozen", "on"));
  ctx.op(GEMINI_FORWARD, {w, other});
  ctx.op(GEMINI_BACKWARD, {w, other}, [&] { write_grad(other, [](int64_t) { return 1.0; }); });
  EXPECT_EQ(1, ctx.step().params_updated);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 0.9, 1e-8));
  ALL_RANKS_OK(gemini_param_set_option(w, "frozen", "off"));
  train(ctx, w, 1.0);
  ctx.step();
  EXPECT_TRUE(all_are(see(ctx, w).state1, 0.1, 1e-15));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 0.8, 1e-7));
}

TEST_P(Parameter, TiedHasOneStorageAndOneState) {
  Context ctx(MPI_COMM_WORLD, settings());
  gemini_param_t emb = ctx.add_constant("emb", GetParam(), {6}, 1.0);
  ALL_RANKS_OK(gemini_param_alias(ctx, "head", emb));
  ctx.commit();
  gemini_param_t head = nullptr;
  ALL_RANKS_OK(gemini_param_find(ctx, "head", &head));
  EXPECT_EQ(emb, head);
  EXPECT_STREQ("emb", info(head).name);
  ctx.op(GEMINI_FORWARD, {emb});
  ctx.op(GEMINI_FORWARD, {head});
  ctx.op(GEMINI_BACKWARD, {head}, [&] { more_grad(head, kOne); });
  ctx.op(GEMINI_BACKWARD, {emb}, [&] { more_grad(emb, kTwo); });
  const gemini_step_info_t info = ctx.step();
  EXPECT_EQ(1, info.params_updated);
  EXPECT_NEAR(3 * std::sqrt(6.0), info.grad_norm, 1e-13);  // counted once
  EXPECT_EQ(1, ctx.stat(GEMINI_STAT_REDUCES));
  EXPECT_TRUE(first_moments(ctx, emb, 3.0));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(head), 0.9, 1e-7));
}

class EmptyParameter : public testing::TestWithParam<int> {};

TEST_P(EmptyParameter, IsOrdinaryAndMovesNothing) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  const int place = GetParam();  // 0: first, 1: between, 2: last, 3: alone
  gemini_param_t z = nullptr;
  Params full;
  for (int at = 0; at < 3; ++at) {
    if (at == place || (place == 3 && at == 0)) z = ctx.add_constant("z", GEMINI_F64, {0, 8}, 1.0);
    if (place != 3 && at < 2)
      full.push_back(ctx.add_constant(at == 0 ? "a" : "b", GEMINI_F64, {at == 0 ? 8 : 24}, 1.0));
  }
  ctx.commit();
  EXPECT_EQ(2, info(z).ndim);
  EXPECT_EQ(0, info(z).shape[0]);
  EXPECT_EQ(8, info(z).shape[1]);
  EXPECT_EQ(0, elems(z));

  const Traffic before(ctx);
  ctx.op(GEMINI_FORWARD, {z}, [&] { EXPECT_NE(nullptr, gemini_data(z)); });
  ctx.op(GEMINI_BACKWARD, {z}, [&] { EXPECT_NE(nullptr, gemini_grad(z)); });
  EXPECT_TRUE(before == Traffic(ctx));
  if (!full.empty())
    ctx.op(GEMINI_BACKWARD, full, [&] {
      for (gemini_param_t p : full) write_grad(p, [](int64_t) { return 1.0; });
    });
  EXPECT_NEAR(full.empty() ? 0 : std::sqrt(32.0), ctx.step().grad_norm, 1e-13);
  for (gemini_param_t p : full) EXPECT_ALL(MPI_COMM_WORLD, all_are(values(p), 0.9, 1e-8));
  EXPECT_TRUE(values(z).empty());
  ALL_RANKS_OK(gemini_param_set(z, GEMINI_F32, nullptr, -1));
  ALL_RANKS_OK(gemini_param_get(z, GEMINI_F64, nullptr, -1));
}

INSTANTIATE_TEST_SUITE_P(AtEveryPlace, EmptyParameter, testing::Values(0, 1, 2, 3));

TEST(OddSizes, GiveTheBitsOfOneRankAndPaddingNeverLeaks) {
  for (const int64_t n : {1, 7, 4 * 5 + 1, 49}) {  // 49: on four ranks the last owns one of its sixteen
    const auto run = [n](MPI_Comm comm) {
      Context ctx(comm,
                  {{"optimizer", "adamw"}, {"lr", "0.01"}, {"weight_decay", "0.1"}, {"chunk_elems", "16"}});
      const auto start = [](int64_t i) { return 1.0 + 0.125 * static_cast<double>(i); };
      gemini_param_t a = ctx.add_function("a", GEMINI_F32, {n}, start);
      ctx.commit();
      double norm = 0;
      for (int step = 0; step < 100; ++step) {
        train(ctx, a, [step](int64_t i) { return 0.25 * static_cast<double>((i + step) % 5) - 0.5; });
        const gemini_step_info_t done = ctx.step();
        EXPECT_EQ(0, done.skipped);
        norm += done.grad_norm;
      }
      std::vector<double> all = values(a);
      all.push_back(norm);
      return all;
    };
    EXPECT_ALL(MPI_COMM_WORLD, run(MPI_COMM_SELF) == run(MPI_COMM_WORLD));
  }
}

TEST(SeveralDtypes, AreGroupedAndLoseNothing) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t p = ctx.add_constant("p", GEMINI_F16, {8}, 1.0);
  gemini_param_t n = ctx.add_function("n", GEMINI_F32, {8},
                                      [](int64_t i) { return i == 0 ? 1.0 + std::ldexp(1, -20) : 1.0; });
  gemini_param_t q = ctx.add_constant("q", GEMINI_BF16, {8}, 1.0);
  gemini_param_t i = ctx.add("i", GEMINI_I32, {2}, GEMINI_PARAM_IGNORED);
  int32_t buffer[2] = {7, 8};
  ALL_RANKS_OK(gemini_param_attach(i, buffer));
  ctx.commit();
  EXPECT_EQ(3, ctx.stat(GEMINI_STAT_CHUNKS));
  ctx.op(GEMINI_FORWARD, {p, n, q, i}, [&] {
    EXPECT_EQ(1.00000095367431640625F, data<float>(n)[0]);
    EXPECT_EQ(f16_bits(1.0), data<std::uint16_t>(p)[7]);
    EXPECT_EQ(bf16_bits(1.0), data<std::uint16_t>(q)[7]);
    EXPECT_EQ(buffer, gemini_data(i));
  });
  double scale = 0;
  ALL_RANKS_OK(gemini_loss_scale(ctx, &scale));
  EXPECT_EQ(65536.0, scale);  // an F16 parameter is trained
  ctx.op(GEMINI_BACKWARD, {p, n, q, i}, [&] {
    for (gemini_param_t param : {n, q}) write_grad(param, [scale](int64_t) { return scale; });
    write_grad(p, [scale](int64_t) { return scale / 4; });
    EXPECT_EQ(nullptr, gemini_grad(i));
  });
  EXPECT_EQ(3, ctx.step().params_updated);
  EXPECT_TRUE(all_are(see(ctx, p).state1, 0.025, 1e-8));
  EXPECT_TRUE(all_are(see(ctx, q).state1, 0.1, 1e-8));
  EXPECT_EQ(8, buffer[1]);
}

TEST(FrozenParameter, UnfrozenAloneLeavesItsNeighboursInTheChunkFrozen) {
  Context ctx(MPI_COMM_WORLD, kAdam);
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 1.0, GEMINI_PARAM_FROZEN);
  gemini_param_t b = ctx.add_constant("b", GEMINI_F64, {8}, 100.0, GEMINI_PARAM_FROZEN);
  ctx.commit();
  ASSERT_EQ(1, ctx.stat(GEMINI_STAT_CHUNKS));
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_GRAD_BYTES));
  ALL_RANKS_OK(gemini_param_set_option(a, "frozen", "off"));
  ctx.op(GEMINI_FORWARD, {a, b});
  ctx.op(GEMINI_BACKWARD, {a, b}, [&] {
    EXPECT_EQ(nullptr, gemini_grad(b));
    add_grad(a, [](int64_t) { return 1.0; });
  });
  const gemini_step_info_t info = ctx.step();
  EXPECT_EQ(1, info.params_updated);
  EXPECT_NEAR(std::sqrt(8.0), info.grad_norm, 1e-14);
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.9, 1e-8));
  const Seen seen = see(ctx, b);
  EXPECT_TRUE(all_are(seen.master, 100.0));
  EXPECT_EQ(0, seen.pieces_with_state1);
}

TEST(GradDtype, OfASixteenBitParameterMayBeSingle) {
  Context ctx(MPI_COMM_WORLD, adam_with({{"loss_scale", "off"}}));
  gemini_param_t a = ctx.add_constant("a", GEMINI_F16, {9}, 1.0);
  ALL_RANKS_OK(gemini_param_set_option(a, "grad_dtype", "f32"));
  ctx.commit();
  ctx.op(GEMINI_FORWARD, {a});
  ctx.op(GEMINI_BACKWARD, {a}, [&] {
    float* into = grad<float>(a);
    for (int i = 0; i < 9; ++i) into[i] += 1e6F;  // F16 ends at 65504
  });
  EXPECT_EQ(0, ctx.step().skipped);
  EXPECT_TRUE(all_are(see(ctx, a).state1, 1e5, 1e-2));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.9, 1e-6));
}

TEST(MasterWeights, LetSmallUpdatesAddUpWhereTheyAreKept) {
  const auto after = [](const char* master, int64_t* param_bytes) {
    Context ctx(MPI_COMM_WORLD,
                {{"optimizer", "sgd"}, {"lr", "1"}, {"loss_scale", "off"}, {"master_weights", master}});
    gemini_param_t a = ctx.add_constant("a", GEMINI_BF16, {9}, 1.0);
    ctx.commit();
    *param_bytes = ctx.stat(GEMINI_STAT_PARAM_BYTES);
    for (int step = 0; step < 8; ++step) {
      train(ctx, a, std::ldexp(1, -10));  // half of half the distance to the next value below 1
      ctx.step();
    }
    return values(a);
  };
  int64_t with = 0;
  int64_t without = 0;
  EXPECT_ALL(MPI_COMM_WORLD, all_are(after("on", &with), 1 - std::ldexp(8, -10)));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(after("off", &without), 1.0));
  EXPECT_EQ(3 * without, with);
}
