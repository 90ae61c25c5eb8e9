// Random programs under random placement: whatever moves and wherever it lies, the numbers are the model's,
// ranks do alike, and budgets hold.
#include "random_program.hpp"
#include "settings.hpp"
#include "support/rank_assert.hpp"
#include "support/spill_directory.hpp"

namespace property {
namespace {

constexpr std::uint64_t kSeeds = 150;
constexpr int kIterations = 6;

std::int64_t bytes_at_rest(const Recipe& recipe) {
  IntegerModel roomy(recipe, {});
  if (!roomy.commit()) throw std::runtime_error("a model without limits was refused");
  return roomy.context().stat(GEMINI_STAT_DEVICE_BYTES);
}

// The same iteration again and again, so that its order is learnt and followed, and now and then another.
void train(std::uint64_t seed, IntegerModel& model, int accumulate) {
  RandomProgram program(seed, model, accumulate);
  for (int i = 0; i < kIterations; ++i) {
    const bool another = mix(seed, static_cast<std::uint64_t>(i)) % 4 == 0;
    program.restart(another ? mix(seed, 100 + static_cast<std::uint64_t>(i)) : seed);
    program.iteration();
  }
  program.inference_pass();  // may leave copies that it fetched ahead
  model.check_values();
}

void expect_alike(const IntegerModel& model, bool other_memory) {
  for (const gemini_stat_t which :
       {GEMINI_STAT_GATHERS, GEMINI_STAT_REDUCES, GEMINI_STAT_STEPS, GEMINI_STAT_GATHERED_PEAK_BYTES,
        GEMINI_STAT_PREFETCH_HITS, GEMINI_STAT_PREFETCH_MISSES, GEMINI_STAT_ORDER_CHANGES,
        GEMINI_STAT_MOVED_BYTES, GEMINI_STAT_HOST_PEAK_BYTES, GEMINI_STAT_FILE_BYTES})
    EXPECT_SAME(MPI_COMM_WORLD, model.context().stat(which)) << "statistic " << which;
  if (!other_memory) {
    EXPECT_SAME(MPI_COMM_WORLD, model.context().stat(GEMINI_STAT_DEVICE_PEAK_BYTES));
  }
  EXPECT_SAME(MPI_COMM_WORLD, model.refused());
}

void expect_within(const IntegerModel& model, const Settings& settings) {
  if (settings.device_memory >= 0) {
    EXPECT_LE(model.context().stat(GEMINI_STAT_DEVICE_PEAK_BYTES), settings.device_memory);
  }
  if (settings.host_memory >= 0) {
    EXPECT_LE(model.context().stat(GEMINI_STAT_HOST_PEAK_BYTES), settings.host_memory);
  }
}

std::string words(const Settings& settings) {
  std::string words;
  for (const auto& [key, value] : settings.options) words += " " + key + "=" + value;
  return words;
}

// False if the model does not fit.
bool run(std::uint64_t seed, const std::string& spill_dir) {
  const Recipe recipe(seed);
  const Settings settings(seed * 19, bytes_at_rest(recipe), spill_dir);
  const std::string name = "seed " + std::to_string(seed) + words(settings);
  SCOPED_TRACE(name);
  const std::int64_t other_bytes = seed % 2 == 0 ? 0 : 3 * 4096 * static_cast<std::int64_t>(seed % 5 + 1);
  try {
    IntegerModel model(recipe, settings.options, MPI_COMM_WORLD, other_bytes);
    const bool fits = model.commit();
    EXPECT_SAME(MPI_COMM_WORLD, fits);
    if (!fits) return false;
    if (settings.slow_ranks) model.pause_at_random();
    train(seed, model, recipe.accumulate);
    expect_within(model, settings);
    expect_alike(model, other_bytes > 0);
    return true;
  } catch (const std::exception& failure) {
    throw std::runtime_error(name + ": " + failure.what());
  }
}

TEST(PlacementSettings, NeverChangeNumbers) {
  const gemini_test::SpillDirectory spill;
  const char* first = std::getenv("GEMINI_TEST_SEED");  // to begin with another, by hand
  int trained = 0;
  for (std::uint64_t seed = first == nullptr ? 1 : std::stoul(first); seed <= kSeeds; ++seed) {
    trained += run(seed, spill.path()) ? 1 : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    ASSERT_EQ(spill.files(), 0);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  EXPECT_GT(trained, static_cast<int>(kSeeds) / 2) << "most budgets were too small";
}

}  // namespace
}  // namespace property
