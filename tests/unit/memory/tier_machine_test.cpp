// What a tier does when the machine gives less than the budget allows.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <optional>

#include "base/error.hpp"
#include "file_test_support.hpp"
#include "memory/tier.hpp"

namespace gemini {
namespace {

// No more address space than the process has now and a little
class AddressSpace {
 public:
  explicit AddressSpace(std::int64_t more) {
    long long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    limit_.emplace(RLIMIT_AS, static_cast<rlim_t>(pages * kPage + more));
  }

 private:
  std::optional<test::Limit> limit_;
};

gemini_status_t status_of(const std::function<void()>& call, std::string& words) {
  try {
    call();
  } catch (const Error& error) {
    words = error.what();
    return error.status();
  }
  return GEMINI_SUCCESS;
}

TEST(Tier, ARefusalOfTheMachineIsNotOneOfTheBudget) {
  constexpr std::int64_t kSize = std::int64_t{1} << 30;
  Tier tier("device_memory", 2 * kSize);
  std::string words;
  const AddressSpace little(kSize / 4);
  EXPECT_EQ(status_of([&] { tier.take_slot(kSize, "the chunks"); }, words), GEMINI_ERR_DEVICE);
  for (const char* part : {"the chunks", "1 GiB", "the machine does not give", "device_memory allows"})
    EXPECT_NE(words.find(part), std::string::npos) << part << " in: " << words;
  EXPECT_EQ(status_of([&] { tier.allocate(kSize, "the shards"); }, words), GEMINI_ERR_OUT_OF_MEMORY);
  EXPECT_NE(words.find("the machine does not give"), std::string::npos) << words;
  EXPECT_EQ(status_of([&] { tier.take_slot(3 * kSize, "the chunks"); }, words), GEMINI_ERR_OUT_OF_MEMORY);
  EXPECT_EQ(words.find("machine"), std::string::npos) << words;
  EXPECT_EQ(tier.in_use(), 0);
  EXPECT_EQ(tier.held(), 0);
}

TEST(Tier, IdleSlotsMakeRoomOnTheMachineToo) {
  constexpr std::int64_t kSize = std::int64_t{1} << 26;
  Tier tier("device_memory", -1);
  const AddressSpace little(kSize + kSize / 2);
  tier.give_slot(tier.take_slot(kSize, "a test"), kSize);
  EXPECT_NO_THROW(tier.allocate(kSize + kPage, "a test"));
}

}  // namespace
}  // namespace gemini
