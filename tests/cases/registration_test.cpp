// Registration and commit: what ranks must agree on, sizes, shapes and first values.
#include "observe.hpp"

using namespace gemini_test;

namespace {

// The context still takes registrations, and is built once ranks agree.
void expect_usable(Context& ctx) {
  int64_t chunks = -1;
  ALL_RANKS_OK(gemini_stat(ctx, GEMINI_STAT_CHUNKS, &chunks));
  EXPECT_ALL(MPI_COMM_WORLD, chunks == 0);
}

}  // namespace

TEST(Commit, NamesTheFirstParameterThatRanksRegisteredDifferently) {
  if (ranks_of() == 1) GTEST_SKIP();
  const bool odd = rank_of() == ranks_of() - 1;
  Context ctx{{"timeout_s", "60"}};
  ctx.add_constant("same", GEMINI_F32, {8}, 1.0);
  ctx.add_constant(odd ? "b" : "a", GEMINI_F32, {8}, odd ? 2.0 : 1.0);
  ALL_RANKS_STATUS(GEMINI_ERR_MISMATCH, gemini_commit(ctx));
  EXPECT_SAID("\"a\"");
  EXPECT_SAID("\"b\"");
  EXPECT_SAID(("rank " + std::to_string(ranks_of() - 1)).c_str());
  EXPECT_FALSE(said("\"same\"")) << gemini_last_error_message();
  expect_usable(ctx);
  ALL_RANKS_STATUS(GEMINI_ERR_MISMATCH, gemini_commit(ctx));  // and the same again
}

TEST(Commit, RefusesRanksWithDifferentShapesDtypesFlagsInitialisersOrOptions) {
  if (ranks_of() == 1) GTEST_SKIP();
  const bool odd = rank_of() == 1;
  struct Difference {
    const char* named;
    std::function<void(Context&)> add;
  };
  const Difference differences[] = {
      {"shape (2, 4)",
       [&](Context& c) {
         c.add_constant("w", GEMINI_F32, odd ? std::vector<int64_t>{8} : std::vector<int64_t>{2, 4}, 0);
       }},
      {"dtype", [&](Context& c) { c.add_constant("w", odd ? GEMINI_F64 : GEMINI_F32, {8}, 0); }},
      {"frozen", [&](Context& c) { c.add_constant("w", GEMINI_F32, {8}, 0, odd ? GEMINI_PARAM_FROZEN : 0); }},
      {"seed 7",
       [&](Context& c) {
         GEMINI_CHECK(
             gemini_param_init_fill(c.add("w", GEMINI_F32, {8}), GEMINI_INIT_NORMAL, 0, 1, odd ? 7 : 8));
       }},
      {"lr_scale 0.5",
       [&](Context& c) {
         GEMINI_CHECK(
             gemini_param_set_option(c.add_constant("w", GEMINI_F32, {8}, 0), "lr_scale", odd ? "0.5" : "1"));
       }},
      {"alias \"head\"",
       [&](Context& c) {
         gemini_param_t w = c.add_constant("w", GEMINI_F32, {8}, 0);
         if (odd) GEMINI_CHECK(gemini_param_alias(c, "head", w));
       }},
      {"\"extra\"",
       [&](Context& c) {
         c.add_constant("w", GEMINI_F32, {8}, 0);
         if (odd) c.add_constant("extra", GEMINI_F32, {8}, 0);
       }},
  };
  for (const Difference& difference : differences) {
    Context ctx{{"timeout_s", "60"}};
    difference.add(ctx);
    ALL_RANKS_STATUS(GEMINI_ERR_MISMATCH, gemini_commit(ctx)) << difference.named;
    EXPECT_SAID(difference.named);
    expect_usable(ctx);
  }
}

TEST(Commit, WorksOnceTheDifferenceIsGone) {
  Context ctx{{"timeout_s", "60"}};
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {8}, rank_of());
  if (ranks_of() > 1) {
    ALL_RANKS_STATUS(GEMINI_ERR_MISMATCH, gemini_commit(ctx));
  }
  ALL_RANKS_OK(gemini_param_init_fill(w, GEMINI_INIT_CONSTANT, 3, 0, 0));  // replaces the first one
  ALL_RANKS_OK(gemini_commit(ctx));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 3.0));
}

TEST(Commit, RefusesAParameterWithoutInitialiserByName) {
  Context ctx{{"timeout_s", "60"}};
  ctx.add_constant("given", GEMINI_F32, {8}, 1.0);
  gemini_param_t bare = ctx.add("forgotten", GEMINI_F32, {8});
  ctx.add("mine", GEMINI_I64, {8}, GEMINI_PARAM_IGNORED);  // needs none
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_commit(ctx));
  EXPECT_SAID("\"forgotten\"");
  EXPECT_SAID("gemini_param_init_");
  ALL_RANKS_OK(gemini_param_init_fill(bare, GEMINI_INIT_ZEROS, 0, 0, 0));
  ALL_RANKS_OK(gemini_commit(ctx));
}

TEST(Commit, EndsRegistrationOnEveryRankAndOnOneAlone) {
  Context ctx{{"timeout_s", "60"}};
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 1.0);
  ctx.commit();
  const int64_t shape = 8;
  gemini_param_t late = a;
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_param_register(ctx, "b", GEMINI_F64, 1, &shape, 0, &late));
  EXPECT_SAID("gemini_param_register");
  EXPECT_SAID("gemini_commit");
  EXPECT_ALL(MPI_COMM_WORLD, late == nullptr);
  if (rank_of() == 0) {
    EXPECT_EQ(GEMINI_ERR_STATE, gemini_param_register(ctx, "c", GEMINI_F64, 1, &shape, 0, &late));
    EXPECT_EQ(GEMINI_ERR_NOT_FOUND, gemini_param_find(ctx, "c", &late));
  }
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_param_alias(ctx, "b", a));
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_param_init_fill(a, GEMINI_INIT_ZEROS, 0, 0, 0));
  ALL_RANKS_STATUS(GEMINI_ERR_STATE, gemini_commit(ctx));
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 1.0));
  train(ctx, a, 1.0);
  EXPECT_EQ(1, ctx.step().step);
}

TEST(InitialValues, ComeFromRankZeroWhereRanksHaveTheirOwn) {
  Context ctx{{"timeout_s", "60"}, {"chunk_elems", "16"}, {"optimizer", "adam"}};
  constexpr std::size_t kA = 53, kB = 100;  // every rank owns some of each
  gemini_param_t a = ctx.add("a", GEMINI_F64, {kA});
  gemini_param_t b = ctx.add("b", GEMINI_F32, {kB});
  std::vector<double> mine(kA);
  std::vector<float> root(kB);
  for (std::size_t i = 0; i < kA; ++i) mine[i] = 1000.0 * rank_of() + static_cast<double>(i);
  for (std::size_t i = 0; i < kB; ++i) root[i] = 4.5F + static_cast<float>(i);
  ALL_RANKS_OK(gemini_param_init_data(a, mine.data()));
  ALL_RANKS_OK(gemini_param_init_data(b, rank_of() == 0 ? root.data() : nullptr));
  mine.assign(kA, -1);  // it was copied
  ctx.commit();
  const std::vector<double> of_a = values(a);
  const std::vector<double> of_b = values(b);
  for (std::size_t i = 0; i < kA; ++i) EXPECT_EQ(static_cast<double>(i), of_a[i]);
  for (std::size_t i = 0; i < kB; ++i) EXPECT_EQ(4.5 + static_cast<double>(i), of_b[i]);
  EXPECT_EQ(ranks_of(), see(ctx, a).pieces_with_state1);
  EXPECT_EQ(ranks_of(), see(ctx, b).pieces_with_state1);
}

TEST(InitialValues, DependOnNameSeedAndIndexNotOnRanksOrChunks) {
  const auto drawn = [](MPI_Comm comm, const std::string& chunk_elems, const char* name, uint64_t seed) {
    Context ctx(comm, {{"chunk_elems", chunk_elems}});
    ctx.add_constant("before", GEMINI_F64, {5}, 0);
    gemini_param_t w = ctx.add(name, GEMINI_F64, {7, 9});
    GEMINI_CHECK(gemini_param_init_fill(w, GEMINI_INIT_KAIMING_NORMAL, 1, 0, seed));
    ctx.commit();
    return values(w);
  };
  const std::vector<double> alone = drawn(MPI_COMM_SELF, "0", "w", 42);
  EXPECT_ALL(MPI_COMM_WORLD, alone == drawn(MPI_COMM_WORLD, "16", "w", 42));
  EXPECT_ALL(MPI_COMM_WORLD, alone != drawn(MPI_COMM_WORLD, "16", "w", 43));
  EXPECT_ALL(MPI_COMM_WORLD, alone != drawn(MPI_COMM_WORLD, "16", "v", 42));
}

TEST(InitialValues, OfAFunctionAreAskedForByRowMajorIndex) {
  Context ctx{{"timeout_s", "60"}, {"chunk_elems", "8"}};
  gemini_param_t w =
      ctx.add_function("w", GEMINI_F64, {3, 7}, [](int64_t i) { return 10.0 * static_cast<double>(i); });
  ctx.commit();
  const std::vector<double> now = values(w);
  for (std::size_t i = 0; i < now.size(); ++i) EXPECT_EQ(10.0 * static_cast<double>(i), now[i]);
}

TEST(Registration, TakesMoreElementsThanThirtyOneBits) {
  Context ctx;
  const int64_t elems_each = int64_t{1} << 32;
  for (const char* name : {"a", "b", "c"}) {
    gemini_param_t huge = ctx.add(name, GEMINI_F32, {1 << 16, 1 << 16});
    EXPECT_EQ(elems_each, elems(huge));
    EXPECT_EQ(1 << 16, info(huge).shape[1]);
  }
  EXPECT_ALL(MPI_COMM_WORLD, ctx.stat(GEMINI_STAT_DEVICE_BYTES) < (1 << 20));
}

TEST(Registration, RefusesSixtyFourBitOverflowOfTheElementCount) {
  Context ctx;
  const std::vector<int64_t> shape(3, int64_t{1} << 32);
  gemini_param_t huge = nullptr;
  EXPECT_EQ(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "huge", GEMINI_F32, 3, shape.data(), 0, &huge));
  EXPECT_SAID("4294967296");
}

TEST(Registration, KeepsShapesInTheOrderGiven) {
  Context ctx;
  gemini_param_t a =
      ctx.add_function("a", GEMINI_F64, {3, 2}, [](int64_t i) { return 1.0 + static_cast<double>(i); });
  gemini_param_t scalar = nullptr;
  ALL_RANKS_OK(gemini_param_register(ctx, "scalar", GEMINI_F64, 0, nullptr, 0, &scalar));
  ALL_RANKS_OK(gemini_param_init_fill(scalar, GEMINI_INIT_CONSTANT, 5, 0, 0));
  ctx.commit();
  EXPECT_EQ(2, info(a).ndim);
  EXPECT_EQ(3, info(a).shape[0]);
  EXPECT_EQ(2, info(a).shape[1]);
  EXPECT_EQ(0, info(scalar).ndim);
  EXPECT_EQ(1, elems(scalar));
  ctx.op(GEMINI_INFERENCE, {a, scalar}, [&] {
    for (int i = 0; i < 6; ++i) EXPECT_EQ(1.0 + i, data<double>(a)[i]);
    EXPECT_EQ(5.0, data<double>(scalar)[0]);
  });
  const std::vector<double> got = values(a);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(1.0 + i, got[static_cast<std::size_t>(i)]);
}

TEST(Registration, TakesIntegersAsIgnoredOnly) {
  Context ctx;
  const int64_t shape = 2;
  gemini_param_t param = nullptr;
  for (const gemini_dtype_t dtype : {GEMINI_I32, GEMINI_I64}) {
    EXPECT_EQ(GEMINI_ERR_ARGUMENT, gemini_param_register(ctx, "i", dtype, 1, &shape, 0, &param));
    EXPECT_SAID("GEMINI_PARAM_IGNORED");
    EXPECT_EQ(GEMINI_ERR_ARGUMENT,
              gemini_param_register(ctx, "i", dtype, 1, &shape, GEMINI_PARAM_FROZEN, &param));
  }
  EXPECT_EQ(GEMINI_SUCCESS,
            gemini_param_register(ctx, "i", GEMINI_I32, 1, &shape, GEMINI_PARAM_IGNORED, &param));
}
