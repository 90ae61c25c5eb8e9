// What the link between ranks carries and when, as the timeline shows it.
#include <chrono>
#include <map>
#include <random>
#include <thread>
#include <tuple>

#include "timeline.hpp"

namespace {

using namespace gemini_test;

constexpr int kCount = 5;

void sleep_us(int us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

void expect_one_order(const Json& all) {
  const auto first = carried_by(all, 0);
  EXPECT_FALSE(first.empty());
  for (int rank = 1; rank < ranks_of(); ++rank) EXPECT_EQ(first, carried_by(all, rank)) << "rank " << rank;
}

// Every rank takes another time for each operation; gathers ahead and reductions behind share the link.
TEST(Link, CarriesTheSameInOneOrderOnAllRanksWhateverTheirPace) {
  if (ranks_of() == 1) GTEST_SKIP() << "one rank sends nothing";
  Model model({{"prefetch", "4"}}, 16);
  std::mt19937 random(static_cast<unsigned>(rank_of()));
  for (int i = 0; i < 8; ++i) model.iteration([&] { sleep_us(static_cast<int>(random() % 1500)); });
  const Json all = model.written();
  expect_one_order(all);
  EXPECT_GT(model.ctx.stat(GEMINI_STAT_PREFETCH_HITS), 0);
}

TEST(Link, CarriesTheSameInOneOrderOnAllRanksWhateverTheirBudgets) {
  if (ranks_of() == 1) GTEST_SKIP() << "one rank sends nothing";
  constexpr std::int64_t kElems = 12288;  // whole pages on 1 to 4 ranks
  const std::int64_t mine = (rank_of() == 0 ? 2 : 8) * kElems * 4;
  Model model({{"device_memory", std::to_string(mine)}}, 6, kElems);
  for (int i = 0; i < 4; ++i) model.iteration();
  expect_one_order(model.written());
}

// What the link does while an operation runs is what prefetch is for. gemini_progress posts what is queued.
TEST(Link, GathersTheNextWhileAnOperationRuns) {
  if (ranks_of() == 1) GTEST_SKIP() << "one rank sends nothing";
  for (const bool ahead : {true, false}) {
    Model model({{"prefetch", ahead ? "2" : "0"}, {"collectives", "delayed:20000,100"}});
    const auto work = [&] {
      GEMINI_CHECK(gemini_progress(model.ctx));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    model.iteration(work);
    model.iteration(work);
    const Json all = model.written();
    for (int rank = 0; rank < ranks_of(); ++rank) {
      const std::vector<Json> operations = events_of(all, rank, "operations");
      const std::vector<Json> gathers = events_of(all, rank, "gathers");
      ASSERT_EQ(operations.size(), 4U * kCount);
      ASSERT_GE(gathers.size(), static_cast<std::size_t>(kCount));
      for (std::size_t next = 1; next < kCount; ++next) {  // of the second iteration's forward
        const Json& operation = operations[2 * kCount + next - 1];
        const Json& gather = gathers[gathers.size() - kCount + next];
        EXPECT_EQ(gather.at("args").at("chunk"), next);
        EXPECT_EQ(gather.at("args").at("prefetched"), ahead);
        EXPECT_EQ(begin_of(gather) < end_of(operation), ahead) << "operation " << next - 1;
      }
    }
  }
}

// And so an operation waits less for the values it needs.
TEST(Link, IsWaitedForLessWithPrefetch) {
  if (ranks_of() == 1) GTEST_SKIP() << "one rank sends nothing";
  const auto stall_of = [](const char* prefetch) {
    Model model({{"prefetch", prefetch}, {"collectives", "delayed:20000,100"}});
    const auto longer_than_a_gather = [&] {
      GEMINI_CHECK(gemini_progress(model.ctx));
      sleep_us(25000);
    };
    model.iteration();
    GEMINI_CHECK(gemini_stat_reset(model.ctx));
    model.forward(longer_than_a_gather);
    const std::int64_t stall_ns = model.ctx.stat(GEMINI_STAT_STALL_NS);
    model.backward();
    return stall_ns;
  };
  const std::int64_t without = stall_of("0");
  EXPECT_GE(without, std::int64_t{kCount} * 18'000'000);  // every gather from its beginning
  EXPECT_LT(2 * stall_of("2"), without);
}

// Backward repeats each forward before it. Of the last of some iterations, with room for all copies and with
// room for little more than an operation needs.
class Recomputation : public testing::TestWithParam<std::tuple<const char*, bool>> {};
INSTANTIATE_TEST_SUITE_P(All, Recomputation,
                         testing::Combine(testing::Values("static", "auto", "planned"), testing::Bool()));

TEST_P(Recomputation, GathersWhatItNeedsAndNothingThatIsDone) {
  if (ranks_of() == 1) GTEST_SKIP() << "one rank sends nothing";
  constexpr int kModules = 3;
  constexpr std::int64_t kElems = 12288;  // whole pages on 1 to 4 ranks
  const auto [placement, roomy] = GetParam();
  const bool keeps_copies = roomy && placement != std::string("static");
  Model model({{"placement", placement},
               {"collectives", "mpi"},
               {"prefetch", "1"},
               {"offload_param_frac", "1"},
               {"offload_optim_frac", "1"},
               {"device_memory", std::to_string((roomy ? 64 : 3) * kElems * 4)}},
              kModules, kElems);
  for (int i = 0; i < 3; ++i) {
    model.forward([] { sleep_us(1000); });
    model.backward([] { sleep_us(1000); }, true);
  }
  const Json all = model.written();
  const std::vector<Json> operations = events_of(all, rank_of(), "operations");
  ASSERT_EQ(operations.size(), 3U * 3 * kModules);
  const auto of_backward = [&](int module, int which) {  // 0: the repeated forward
    return operations[operations.size() - static_cast<std::size_t>(2 * (module + 1) - which)];
  };
  std::map<int, int> gathers;
  for (const Json& gather : events_of(all, rank_of(), "gathers")) {
    const int chunk = gather.at("args").at("chunk");
    if (begin_of(gather) >= begin_of(of_backward(kModules - 1, 0))) ++gathers[chunk];
    for (int module = 0; module < chunk; ++module) {
      EXPECT_EQ(of_backward(module, 0).at("args").at("phase"), "recompute");
      EXPECT_EQ(of_backward(module, 1).at("name"), "w" + std::to_string(module));
      EXPECT_FALSE(begin_of(gather) > begin_of(of_backward(module, 0)) &&
                   begin_of(gather) < end_of(of_backward(module, 1)))
          << "chunk " << chunk << " while only " << module << " and less are still to come";
    }
  }
  for (const auto& [chunk, count] : gathers) EXPECT_LE(count, keeps_copies ? 1 : 2) << "chunk " << chunk;
  if (!keeps_copies) {
    EXPECT_FALSE(gathers.empty());
  }
}

}  // namespace
