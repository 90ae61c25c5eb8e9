// A tier's budget: never exceeded, known before anything moves, and idle slots make room.
#include "memory/tier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.hpp"
#include "memory/poison.hpp"

namespace gemini {
namespace {

std::string oom(const Tier& tier, std::int64_t bytes, const char* what) {
  try {
    tier.require(bytes, what);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GEMINI_ERR_OUT_OF_MEMORY);
    return error.what();
  }
  return {};
}

TEST(Tier, CountsWholePages) {
  EXPECT_EQ(whole_pages(0), 0);
  EXPECT_EQ(whole_pages(1), kPage);
  EXPECT_EQ(whole_pages(kPage), kPage);
  EXPECT_EQ(whole_pages(kPage + 1), 2 * kPage);
  EXPECT_EQ(whole_pages(std::int64_t{1} << 40), std::int64_t{1} << 40);
}

TEST(Tier, BlocksAreZeroAlignedAndGivenBack) {
  Tier tier("device_memory", 10 * kPage);
  {
    const Block block = tier.allocate(kPage + 1, "a test");
    EXPECT_EQ(tier.held(), 2 * kPage);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 4096, 0u);
    EXPECT_TRUE(std::all_of(block.data(), block.data() + block.bytes(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
  }
  EXPECT_EQ(tier.held(), 0);
  EXPECT_EQ(tier.peak(), 2 * kPage);
  tier.reset_peak();
  EXPECT_EQ(tier.peak(), 0);
}

TEST(Tier, MovedBlocksHaveOneOwner) {
  Tier tier("device_memory", 10 * kPage);
  Block a = tier.allocate(1, "a test");
  Block b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(b);
  a = tier.allocate(1, "a test");
  b = std::move(a);
  EXPECT_EQ(tier.held(), a ? 2 * kPage : kPage);
  { const Block end = std::move(a); }
  { const Block end = std::move(b); }
  EXPECT_EQ(tier.held(), 0);
  EXPECT_FALSE(tier.allocate(0, "a test"));
}

TEST(Tier, SlotsAreReusedBySize) {
  Tier tier("device_memory", 10 * kPage);
  std::byte* first = tier.take_slot(2 * kPage, "a test");
  tier.give_slot(first, 2 * kPage);
  EXPECT_EQ(tier.held(), 2 * kPage);
  std::byte* other = tier.take_slot(kPage, "a test");
  EXPECT_EQ(tier.held(), 3 * kPage);
  std::byte* again = tier.take_slot(2 * kPage - 5, "a test");
  EXPECT_EQ(again, first);
  EXPECT_EQ(tier.held(), 3 * kPage);
  tier.give_slot(again, 2 * kPage - 5);
  tier.give_slot(other, kPage);
}

TEST(Tier, IdleSlotsMakeRoom) {
  Tier tier("device_memory", 4 * kPage);
  std::byte* slot = tier.take_slot(3 * kPage, "a test");
  EXPECT_FALSE(tier.fits(2 * kPage));
  tier.give_slot(slot, 3 * kPage);
  EXPECT_TRUE(tier.fits(4 * kPage));
  const Block block = tier.allocate(4 * kPage, "a test");
  EXPECT_EQ(tier.held(), 4 * kPage);
  EXPECT_EQ(tier.peak(), 4 * kPage);
}

TEST(Tier, OutOfMemorySaysWhatWasNeededWhatIsFreeAndWhatToRaise) {
  Tier tier("device_memory", 4 * kPage);
  const Block block = tier.allocate(3 * kPage, "a test");
  const std::string words = oom(tier, 2 * kPage, "the chunks of this operation");
  for (const char* part :
       {"the chunks of this operation", "8192 bytes", "device_memory", "16384 bytes", "4096 bytes"})
    EXPECT_NE(words.find(part), std::string::npos) << part << " in: " << words;
  EXPECT_EQ(oom(tier, kPage, "a test"), "");
  EXPECT_THROW(tier.take_slot(2 * kPage, "a test"), Error);
  EXPECT_THROW(tier.allocate(2 * kPage, "a test"), Error);
  EXPECT_EQ(tier.held(), 3 * kPage);
}

TEST(Tier, CountsWhatIsAboutToReturn) {
  Tier tier("device_memory", 4 * kPage);
  const Block block = tier.allocate(3 * kPage, "a test");
  EXPECT_NO_THROW(tier.require(3 * kPage, "a test", 2 * kPage));
  EXPECT_THROW(tier.require(4 * kPage, "a test", 2 * kPage), Error);
}

TEST(Tier, WithoutALimitOnlyTheMachineRefuses) {
  Tier tier("device_memory", -1);
  EXPECT_TRUE(tier.fits(std::int64_t{1} << 60));
  EXPECT_THROW(tier.allocate(std::int64_t{1} << 60, "a test"), Error);
  EXPECT_EQ(tier.held(), 0);
}

TEST(Tier, TellsWhatIsInUseAndWhatRoomIsLeft) {
  Tier tier("device_memory", 10 * kPage);
  EXPECT_EQ(tier.room(), 10 * kPage);
  const Block block = tier.allocate(3 * kPage, "a test");
  std::byte* slot = tier.take_slot(2 * kPage, "a test");
  tier.add_guest(kPage);
  EXPECT_EQ(tier.in_use(), 5 * kPage);
  EXPECT_EQ(tier.room(), 5 * kPage);
  tier.give_slot(slot, 2 * kPage);
  tier.remove_guest(kPage);
  EXPECT_EQ(tier.in_use(), 3 * kPage);
  EXPECT_EQ(tier.room(), 7 * kPage);
  EXPECT_GE(Tier("device_memory", -1).room(), std::int64_t{1} << 60);
}

// Random allocations against a model that knows only sums.
struct Owned {
  std::vector<Block> blocks;
  std::vector<std::pair<std::byte*, std::int64_t>> slots;

  [[nodiscard]] std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const Block& block : blocks) sum += block.bytes();
    for (const auto& slot : slots) sum += whole_pages(slot.second);
    return sum;
  }
};

void act(Tier& tier, Owned& owned, std::mt19937_64& random) {
  const auto bytes = static_cast<std::int64_t>(random() % (4 * kPage) + 1);
  const bool fits = owned.bytes() + whole_pages(bytes) <= tier.limit();
  ASSERT_EQ(tier.fits(whole_pages(bytes)), fits);
  const auto kind = random() % 4;
  try {
    if (kind == 0) owned.blocks.push_back(tier.allocate(bytes, "a test"));
    if (kind == 1) owned.slots.emplace_back(tier.take_slot(bytes, "a test"), bytes);
    if (kind <= 1) {
      ASSERT_TRUE(fits);
    }
  } catch (const Error& error) {
    ASSERT_EQ(error.status(), GEMINI_ERR_OUT_OF_MEMORY);
    ASSERT_FALSE(fits);
  }
  if (kind == 2 && !owned.blocks.empty()) {
    std::swap(owned.blocks[random() % owned.blocks.size()], owned.blocks.back());
    owned.blocks.pop_back();
  }
  if (kind == 3 && !owned.slots.empty()) {
    std::swap(owned.slots[random() % owned.slots.size()], owned.slots.back());
    tier.give_slot(owned.slots.back().first, owned.slots.back().second);
    owned.slots.pop_back();
  }
}

TEST(Tier, KeepsNoIdleSlotWhereTheCallerHoldsMemoryOfItsOwn) {
  Tier tier("device_memory", 4 * kPage);
  std::byte* slots[3];
  for (std::byte*& slot : slots) slot = tier.take_slot(kPage, "a test");
  for (std::byte* slot : {slots[0], slots[1]}) tier.give_slot(slot, kPage);
  tier.leave_room_for(kPage);
  EXPECT_EQ(tier.held(), 3 * kPage);  // there is room
  tier.leave_room_for(2 * kPage);
  EXPECT_EQ(tier.held(), kPage);
  tier.leave_room_for(4 * kPage);
  EXPECT_EQ(tier.in_use(), kPage);                    // what is in use stays
  std::byte* more = tier.take_slot(kPage, "a test");  // and nothing is refused
  tier.give_slot(more, kPage);
  EXPECT_EQ(tier.held(), kPage);  // it did not stay
  tier.leave_room_for(0);
  tier.give_slot(slots[2], kPage);
  EXPECT_EQ(tier.held(), kPage);
}

TEST(Tier, RandomSequencesStayInTheBudget) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    Tier tier("device_memory", static_cast<std::int64_t>(random() % 40) * kPage);
    Owned owned;
    std::int64_t peak = 0;
    for (int i = 0; i < 400; ++i) {
      ASSERT_NO_FATAL_FAILURE(act(tier, owned, random)) << "seed " << seed << " step " << i;
      ASSERT_LE(tier.held(), tier.limit());
      ASSERT_GE(tier.held(), owned.bytes());
      for (const auto& [slot, bytes] : owned.slots) slot[bytes - 1] = std::byte{7};
      peak = std::max(peak, tier.held());
    }
    ASSERT_GE(tier.peak(), peak);
    ASSERT_LE(tier.peak(), tier.limit());
    for (const auto& [slot, bytes] : owned.slots) tier.give_slot(slot, bytes);
  }
}

#if defined(__SANITIZE_ADDRESS__)
TEST(Poison, NobodyMayTouchReleasedSlots) {
  Tier tier("device_memory", -1);
  std::byte* slot = tier.take_slot(kPage, "a test");
  EXPECT_FALSE(__asan_address_is_poisoned(slot));
  tier.give_slot(slot, kPage);
  EXPECT_TRUE(__asan_address_is_poisoned(slot));
  EXPECT_TRUE(__asan_address_is_poisoned(slot + kPage - 1));
  ASSERT_EQ(tier.take_slot(kPage, "a test"), slot);
  EXPECT_FALSE(__asan_address_is_poisoned(slot + kPage - 1));
  tier.give_slot(slot, kPage);
}
#else
TEST(Poison, ReleasedSlotsAreNaNInEveryType) {
  if (!kDebugMemory) GTEST_SKIP() << "release builds do not fill";
  Tier tier("device_memory", -1);
  std::byte* slot = tier.take_slot(kPage, "a test");
  std::fill_n(slot, kPage, std::byte{1});
  tier.give_slot(slot, kPage);
  EXPECT_TRUE(std::all_of(slot, slot + kPage, [](std::byte byte) { return byte == std::byte{0xFF}; }));
}
#endif

}  // namespace
}  // namespace gemini
