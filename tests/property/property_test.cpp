// Random models, random operations, random budgets: no hang, the numbers of a plain model, and ranks that
// decide alike.
#include "random_program.hpp"
#include "support/rank_assert.hpp"

namespace property {
namespace {

constexpr std::uint64_t kSeeds = 60;
constexpr int kIterations = 4;

void expect_alike(const IntegerModel& model) {
  for (const gemini_stat_t which :
       {GEMINI_STAT_GATHERS, GEMINI_STAT_REDUCES, GEMINI_STAT_STEPS, GEMINI_STAT_CHUNKS,
        GEMINI_STAT_DEVICE_PEAK_BYTES, GEMINI_STAT_GATHERED_PEAK_BYTES})
    EXPECT_SAME(MPI_COMM_WORLD, model.context().stat(which)) << "statistic " << which;
  EXPECT_SAME(MPI_COMM_WORLD, model.refused());
}

void run(std::uint64_t seed, IntegerModel& model, int accumulate) {
  RandomProgram program(seed, model, accumulate);
  for (int i = 0; i < kIterations; ++i) {
    program.inference_pass();
    program.iteration();
    model.check_quiet_stats();
  }
  program.inference_pass();
  model.check_values();
}

TEST(Property, RandomProgramsTrainTheModelOfIntegers) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Recipe recipe(seed);
    IntegerModel model(recipe, {});
    ASSERT_TRUE(model.commit());
    run(seed * 7, model, recipe.accumulate);
    EXPECT_EQ(model.refused(), 0);
    expect_alike(model);
  }
}

TEST(Property, RandomProgramsStayInSmallBudgets) {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Recipe recipe(seed);
    std::int64_t at_rest = 0;
    {
      IntegerModel model(recipe, {});
      ASSERT_TRUE(model.commit());
      at_rest = model.context().stat(GEMINI_STAT_DEVICE_BYTES);
    }
    const std::int64_t budget = at_rest + static_cast<std::int64_t>(mix(seed, 5) % 16) * 4096;
    gemini_test::KeyValues small = {{"device_memory", std::to_string(budget)}};
    if (seed % 2 == 0) small.emplace_back("host_memory", "0");  // else nothing is ever refused
    IntegerModel model(recipe, small);
    ASSERT_TRUE(model.commit());
    run(seed * 11, model, recipe.accumulate);
    EXPECT_LE(model.context().stat(GEMINI_STAT_DEVICE_PEAK_BYTES), budget);
    expect_alike(model);
    refused += model.refused();
  }
  EXPECT_GT(refused, 0) << "the budgets were never small";
}

// Contexts do not see each other, also not on ranks in another order.
TEST(Property, SeveralContextsLiveAtOnce) {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world().rank, &reversed);
  for (std::uint64_t seed = 1; seed <= kSeeds / 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Recipe one(seed * 3);
    const Recipe other(seed * 3 + 1);
    IntegerModel first(one, {});
    IntegerModel second(other, {}, reversed);
    ASSERT_TRUE(first.commit() && second.commit());
    RandomProgram on_first(seed * 13, first, one.accumulate);
    RandomProgram on_second(seed * 17, second, other.accumulate);
    for (int i = 0; i < kIterations; ++i) {
      on_first.iteration();
      on_second.iteration();
      on_second.inference_pass();
    }
    first.check_values();
    second.check_values();
  }
  MPI_Comm_free(&reversed);
}

}  // namespace
}  // namespace property
