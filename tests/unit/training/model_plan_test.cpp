// What commit decides from options, registration and budgets alone.
#include "training/model_plan.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "chunks/shard_windows.hpp"

using namespace gemini;

namespace {

constexpr std::int64_t kElems = 2048;  // of a tensor and a chunk; F32: two pages

class ModelPlanTest : public testing::Test {
 protected:
  ModelPlanTest() {
    options.set("chunk_elems", std::to_string(kElems));
    options.set("optimizer", "adam");
  }
  Parameter& add(const std::string& name, std::int32_t flags = 0, DType dtype = DType::f32) {
    return registry.add(nullptr, name, dtype, {kElems}, flags);
  }
  // Parameter, gradient sum, two states: eight pages each.
  void add_four() {
    for (const char* name : {"a", "b", "c", "d"}) add(name);
  }
  [[nodiscard]] ModelPlan plan() const { return make_model_plan(options, registry, limits); }
  [[nodiscard]] std::string refusal() const {
    try {
      static_cast<void>(plan());
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), GEMINI_ERR_OUT_OF_MEMORY);
      return error.what();
    }
    return "";
  }
  static std::int64_t pages_in(const ModelPlan& plan, Place place) {
    std::int64_t bytes = 0;
    for (const RestingItem& item : plan.items)
      if (item.home == place) bytes += item.bytes;
    return bytes / kPage;
  }

  Options options;
  Registry registry;
  ModelLimits limits;
};

TEST_F(ModelPlanTest, ListsWhatEachChunkKeeps) {
  add("trained");
  add("frozen", GEMINI_PARAM_FROZEN);
  add("half", 0, DType::bf16);
  const ModelPlan made = plan();
  ASSERT_EQ(made.layout.chunks.size(), 3U);
  int of_chunk[3] = {};
  for (const RestingItem& item : made.items) ++of_chunk[item.chunk];
  EXPECT_EQ(of_chunk[0], 4) << "no master of F32";
  EXPECT_EQ(of_chunk[1], 1);
  EXPECT_EQ(of_chunk[2], 5);
  EXPECT_EQ(made.fixed_bytes, 0);
  EXPECT_EQ(made.window_elems, 0);
}

TEST_F(ModelPlanTest, DividesByTheRanksThatShareACopy) {
  add_four();
  limits.shard_ranks = 2;
  EXPECT_EQ(plan().items.front().bytes, kPage);
}

// A copy, a gradient, and all that rests.
TEST_F(ModelPlanTest, KeepsResidentChunksInComputeMemory) {
  add("resident", GEMINI_PARAM_RESIDENT);
  EXPECT_EQ(plan().fixed_bytes, (2 + 2 + 4 * 2) * kPage);
  EXPECT_TRUE(plan().items.empty());
  limits.needs_slot = false;
  EXPECT_EQ(plan().fixed_bytes, (2 + 4 * 2) * kPage);
  limits.compute_bytes = plan().fixed_bytes;
  EXPECT_EQ(refusal(), "");
  limits.compute_bytes -= 1;
  EXPECT_NE(refusal(), "");
}

TEST_F(ModelPlanTest, LeavesComputeMemoryToOperationsWhereThereIsRoomBelow) {
  add_four();
  limits.compute_bytes = 100 * kPage;
  limits.host_bytes = -1;
  options.set("warmup_model_fraction", "0.1");
  const ModelPlan made = plan();
  EXPECT_EQ(pages_in(made, Place::compute), 10);
  EXPECT_EQ(pages_in(made, Place::host), 22);
  EXPECT_EQ(made.home(0, Item::param), Place::compute) << "parameters come first";
  EXPECT_EQ(made.home(3, Item::state2), Place::host);
}

TEST_F(ModelPlanTest, AdaptsRatherThanFails) {
  add_four();
  limits.compute_bytes = 100 * kPage;
  limits.host_bytes = 4 * kPage;
  options.set("warmup_model_fraction", "0.1");
  EXPECT_EQ(pages_in(plan(), Place::compute), 28);
}

TEST_F(ModelPlanTest, FitsToTheByteAndNamesWhatIsMissing) {
  add_four();
  for (const char* placement : {"static", "auto", "planned"}) {
    options.set("placement", placement);
    limits.compute_bytes = 24 * kPage;
    limits.host_bytes = 8 * kPage;
    EXPECT_EQ(refusal(), "") << placement;
    limits.host_bytes -= 1;
    const std::string words = refusal();
    EXPECT_NE(words.find("131072 bytes"), std::string::npos) << words;
    EXPECT_NE(words.find("spill_dir"), std::string::npos) << words;
    EXPECT_NE(words.find("8192 bytes"), std::string::npos) << "what is missing: " << words;
  }
}

TEST_F(ModelPlanTest, PutsWhatIsToldOffTheDeviceBelow) {
  add_four();
  options.set("placement", "static");
  limits.host_bytes = -1;
  for (const auto& [share, pages] : {std::pair{"0", 0}, std::pair{"0.5", 12}, std::pair{"1", 24}}) {
    options.set("offload_optim_frac", share);
    EXPECT_EQ(pages_in(plan(), Place::host), pages) << share;
    EXPECT_EQ(plan().home(3, Item::param), Place::compute);
  }
  limits.host_bytes = 0;
  EXPECT_NE(refusal().find("offload_optim_frac"), std::string::npos) << refusal();
  limits.host_bytes = -1;
  options.set("offload_param_frac", "0.5");
  EXPECT_EQ(plan().home(1, Item::param), Place::compute);
  EXPECT_EQ(plan().home(2, Item::param), Place::host) << "last chunks first";
}

TEST_F(ModelPlanTest, SpillsWhatHostMemoryDoesNotTake) {
  add_four();
  limits.files = true;
  limits.compute_bytes = 0;
  const std::int64_t staging = Staging::bytes_for(Staging::kMinElems);
  limits.host_bytes = staging + 5 * kPage;
  const ModelPlan made = plan();
  EXPECT_EQ(made.window_elems, Staging::kMinElems);
  EXPECT_EQ(pages_in(made, Place::host), 4) << "whole items of two pages";
  EXPECT_EQ(pages_in(made, Place::file), 28);
  EXPECT_GE(made.spill_bytes, 28 * kPage) << "and room for gradients";
  limits.host_bytes = staging - 1;
  EXPECT_NE(refusal().find("staging"), std::string::npos);
}

TEST_F(ModelPlanTest, KeepsWholeGradientsWhereTheyFit) {
  add_four();
  options.set("accumulate_mode", "local");
  limits.host_bytes = 8 * kPage;
  EXPECT_EQ(plan().kept, Place::host);
  EXPECT_EQ(plan().kept_bytes, 8 * kPage);
  EXPECT_EQ(plan().fixed_bytes, 0);
  limits.host_bytes -= 1;
  EXPECT_EQ(plan().kept, Place::compute);
  EXPECT_EQ(plan().fixed_bytes, 8 * kPage);
  limits.compute_bytes = 32 * kPage;
  EXPECT_NE(refusal().find("accumulate_mode = local"), std::string::npos);
}

}  // namespace
