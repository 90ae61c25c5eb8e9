// Random transfers of extents that come and go against a model in memory.
#include <algorithm>
#include <utility>

#include "file_test_support.hpp"
#include "memory/spill_file.hpp"
#include "memory/tier.hpp"

namespace gemini::test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// An extent, what it should hold, and the memory of its transfer. Of transfers at odd places and of whole
// pages both kinds meet on the same bytes.
struct Item {
  Extent extent;
  std::vector<unsigned char> model;
  Block memory;
  Transfer transfer = 0;
  bool reads = false;
  std::int64_t at = 0, size = 0;

  Item(SpillFile& file, Tier& tier, std::int64_t bytes)
      : extent(file.allocate(bytes)),
        model(static_cast<std::size_t>(extent.bytes())),
        memory(tier.allocate(extent.bytes(), "a test")) {
    file.wait(file.write(extent, 0, memory.data(), extent.bytes()));
  }
  [[nodiscard]] unsigned char* bytes() const { return reinterpret_cast<unsigned char*>(memory.data()); }

  void begin(SpillFile& file, std::mt19937& random) {
    const auto below = [&](std::int64_t end) { return static_cast<std::int64_t>(random()) % end; };
    at = below(extent.bytes());
    size = below(extent.bytes() - at) + 1;
    if (random() % 2 != 0) {
      at = at / kPage * kPage;
      size = whole_pages(size);
    }
    reads = random() % 2 != 0;
    for (std::int64_t i = 0; i < size; ++i) {
      bytes()[i] = static_cast<unsigned char>(random());
      if (!reads) model[static_cast<std::size_t>(at + i)] = bytes()[i];
    }
    transfer = reads ? file.read(extent, at, bytes(), size) : file.write(extent, at, bytes(), size);
  }
  void end(SpillFile& file) {
    file.wait(std::exchange(transfer, 0));
    if (std::exchange(reads, false)) {
      ASSERT_TRUE(std::equal(bytes(), bytes() + size, model.begin() + at));
    }
  }
};

class SpillFileModel : public testing::TestWithParam<AsyncIo::Engine> {
 protected:
  Directory directory_;
};
INSTANTIATE_TEST_SUITE_P(Engines, SpillFileModel,
                         testing::Values(AsyncIo::Engine::best, AsyncIo::Engine::thread), engine_name);

TEST_P(SpillFileModel, RandomTransfersEqualIt) {
  SpillFile other(directory_.path(), GetParam());
  const Extent untouched = other.allocate(kMiB);
  auto sample = random_bytes(kMiB, 2);
  other.wait(other.write(untouched, 0, sample.data(), kMiB));
  for (unsigned seed = 0; seed < 4; ++seed) {
    std::mt19937 random(seed);
    Tier tier("host_memory", -1);
    SpillFile file(directory_.path(), GetParam());
    file.reserve(32 * kPage);
    std::vector<Item> items;
    for (int step = 0; step < 600; ++step) {
      if (items.empty() || (items.size() < 60 && random() % 3 == 0)) {
        items.emplace_back(file, tier, static_cast<std::int64_t>(random() % (6 * kPage)) + 1);
      }
      Item& item = items[random() % items.size()];
      ASSERT_NO_FATAL_FAILURE(item.end(file)) << "seed " << seed << " step " << step;
      item.begin(file, random);
      if (random() % 8 != 0) continue;
      ASSERT_NO_FATAL_FAILURE(items.back().end(file)) << "seed " << seed << " step " << step;
      items.pop_back();
    }
    for (Item& item : items) ASSERT_NO_FATAL_FAILURE(item.end(file)) << "seed " << seed;
  }
  auto back = random_bytes(kMiB, 3);
  other.wait(other.read(untouched, 0, back.data(), kMiB));
  EXPECT_EQ(back, sample);
}

}  // namespace
}  // namespace gemini::test
