// gather_dtype and reduce_dtype: what travels is narrower; masters, sums and the owner's view.
#include "observe.hpp"

using namespace gemini_test;

namespace {

// Not a value of bf16 or f16; what they make of it.
constexpr double kValue = 1 + 0x1p-12;
constexpr double kRounded = 1;

double seen(Context& ctx, gemini_param_t param, int64_t element) {
  double value = 0;
  ctx.op(GEMINI_INFERENCE, {param}, [&] { value = data<double>(param)[element]; });
  return value;
}

}  // namespace

TEST(GatherDtype, IsWhatOperationsOfEveryRankSeeAndMastersKeepMore) {
  for (const char* type : {"bf16", "f16", "f8_e4m3"})
    for (const int32_t flags : {0, GEMINI_PARAM_RESIDENT, GEMINI_PARAM_FROZEN}) {
      Context ctx({{"gather_dtype", type}, {"collectives", "mpi"}, {"timeout_s", "60"}});
      gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {600}, kValue, flags);
      ctx.commit();
      const double first = seen(ctx, w, 0);
      EXPECT_SAME(MPI_COMM_WORLD, first);
      if (ranks_of() == 1) {
        EXPECT_EQ(kValue, first);  // nothing travels
      } else if (std::string(type) != "f8_e4m3") {
        EXPECT_EQ(kRounded, first);
      } else {
        EXPECT_NEAR(kValue, first, 1.0 / 16);
      }
      for (const int64_t element : {100, 300, 599}) EXPECT_EQ(first, seen(ctx, w, element));
      EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), kValue));
    }
}

TEST(GatherDtype, SendsLess) {
  std::vector<int64_t> sent;
  for (const char* type : {"same", "bf16", "f8_e4m3"}) {
    Context ctx({{"gather_dtype", type}, {"chunk_elems", "4096"}, {"collectives", "mpi"}});
    gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {4096}, 1.0);
    ctx.commit();
    GEMINI_CHECK(gemini_stat_reset(ctx));
    ctx.op(GEMINI_INFERENCE, {w});
    sent.push_back(ctx.stat(GEMINI_STAT_GATHER_WIRE_BYTES));
  }
  EXPECT_EQ(sent[0], 2 * sent[1]);
  EXPECT_LE(sent[2], sent[1]);
  if (ranks_of() > 1) {
    EXPECT_LT(sent[2], sent[1] * 3 / 5);
  }
}

TEST(ReduceDtype, RoundsWhatTravelsAndAddsWide) {
  for (const char* type : {"bf16", "f16"}) {
    Context ctx({{"reduce_dtype", type},
                 {"collectives", "mpi"},
                 {"reduce_op", "sum"},
                 {"optimizer", "sgd"},
                 {"lr", "1"}});
    gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {50}, 0.0);
    ctx.commit();
    // Every rank's own rounds to a whole number; their sums need more bits than it has.
    const auto wide = [](int64_t i) { return static_cast<double>(i % 2 == 0 ? 256 : 3); };
    train(ctx, w, [&](int64_t i) { return (rank_of() == 0 ? 1 : wide(i)) + 0x1p-20; });
    ctx.step();
    const std::vector<double> now = values(w);
    bool right = true;
    for (int64_t i = 0; i < 50; ++i) {
      const double rounded = 1 + (ranks_of() - 1) * wide(i);
      right = right && now[static_cast<std::size_t>(i)] == -(ranks_of() == 1 ? 1 + 0x1p-20 : rounded);
    }
    EXPECT_ALL(MPI_COMM_WORLD, right) << type;
  }
}
