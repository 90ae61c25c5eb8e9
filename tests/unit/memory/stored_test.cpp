// Data at rest: parts written and read in any tier, and moves between tiers that lose nothing.
#include "memory/stored.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "file_test_support.hpp"

namespace gemini::test {
namespace {

constexpr Place kPlaces[] = {Place::compute, Place::host, Place::file};
constexpr std::int64_t kBytes = 5 * kPage + 40;

class StoredTest : public testing::Test {
 protected:
  [[nodiscard]] std::vector<unsigned char> bytes_of(const Stored& stored) {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(stored.bytes()), 1);
    stored.load(tiers, 0, stored.bytes(), bytes.data());
    return bytes;
  }
  [[nodiscard]] std::int64_t in_use(Place place) const {
    return place == Place::file ? files.in_use() : tiers.memory(place).in_use();
  }

  Directory directory;
  Tier compute{"device_memory", 8 * kPage};
  Tier host{"host_memory", 8 * kPage};
  SpillFile files{directory.path()};
  Tiers tiers{compute, host, &files};
};

TEST_F(StoredTest, BeginsWithZerosEverywhere) {
  for (const Place place : kPlaces) {
    for (int again = 0; again < 2; ++again) {  // in a file: where something else was
      Stored stored(tiers, place, kBytes, "a test");
      EXPECT_EQ(stored.place(), place);
      EXPECT_EQ(stored.in_file(), place == Place::file);
      EXPECT_EQ(stored.data() == nullptr, place == Place::file);
      EXPECT_EQ(bytes_of(stored), std::vector<unsigned char>(kBytes));
      EXPECT_EQ(in_use(place), 6 * kPage);
      stored.store(tiers, 0, kBytes, random_bytes(kBytes, 3).data());
    }
    EXPECT_EQ(in_use(place), 0);
  }
}

TEST_F(StoredTest, HoldsWhatWasStoredThroughEveryMove) {
  std::vector<unsigned char> model(kBytes);
  std::mt19937_64 random(5);
  Stored stored(tiers, Place::compute, kBytes, "a test");
  for (int round = 0; round < 200; ++round) {
    const auto first = static_cast<std::int64_t>(random() % kBytes);
    const auto count = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(kBytes - first)) + 1;
    const auto fresh = random_bytes(count, static_cast<unsigned>(round));
    stored.store(tiers, first, count, fresh.data());
    std::copy(fresh.begin(), fresh.end(), model.begin() + first);
    const Place from = stored.place();
    const Place to = kPlaces[random() % 3];
    const std::int64_t moved = tiers.moved_bytes;
    stored.move_to(tiers, to, "a test");
    EXPECT_EQ(tiers.moved_bytes - moved, from == to ? 0 : kBytes);
    ASSERT_EQ(stored.place(), to);
    ASSERT_EQ(bytes_of(stored), model) << "round " << round;
    for (const Place place : kPlaces) ASSERT_EQ(in_use(place), place == to ? 6 * kPage : 0);
  }
}

TEST_F(StoredTest, StaysWhereItIsIfTheOtherTierIsFull) {
  const Block full = host.allocate(3 * kPage, "a test");
  Stored stored(tiers, Place::compute, kBytes, "a test");
  const auto bytes = random_bytes(kBytes, 1);
  stored.store(tiers, 0, kBytes, bytes.data());
  try {
    stored.move_to(tiers, Place::host, "the shards");
    FAIL() << "it does not fit";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), GEMINI_ERR_OUT_OF_MEMORY);
    EXPECT_NE(std::string(error.what()).find("the shards need"), std::string::npos);
  }
  EXPECT_EQ(stored.place(), Place::compute);
  EXPECT_EQ(bytes_of(stored), bytes);
  EXPECT_EQ(tiers.moved_bytes, 0);
}

TEST_F(StoredTest, OfNothingLiesNowhere) {
  Stored none(tiers, Place::file, 0, "a test");
  EXPECT_FALSE(none);
  EXPECT_FALSE(none.in_file());
  none.move_to(tiers, Place::host, "a test");
  EXPECT_EQ(host.in_use() + compute.in_use() + files.in_use(), 0);
}

}  // namespace
}  // namespace gemini::test
