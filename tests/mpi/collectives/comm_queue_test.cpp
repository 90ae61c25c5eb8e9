// The queue: one order, one operation at a time, waits that end.
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using std::chrono::milliseconds;
using test::outcome_of;
using test::Queue;
using test::world_rank;
using test::world_size;
using Clock = std::chrono::steady_clock;

// Completes at its `polls`-th poll; writes its name down at the first and at the last.
class Counted final : public Operation {
 public:
  Counted(std::vector<int>& log, int name, int polls) : log_(log), name_(name), left_(polls) {}
  bool poll() override {
    if (!begun_) log_.push_back(name_);
    begun_ = true;
    if (--left_ > 0) return false;
    log_.push_back(-name_);
    return true;
  }

 private:
  std::vector<int>& log_;
  int name_;
  int left_;
  bool begun_ = false;
};

class Never final : public Operation {
 public:
  bool poll() override { return false; }
};

class Failing final : public Operation {
 public:
  bool poll() override { fail(GEMINI_ERR_MPI, "it broke"); }
};

// Its buffers are more than the machine gives.
class Starving final : public Operation {
 public:
  bool poll() override { throw std::bad_alloc(); }
};

TEST(CommQueue, OneOperationAtATimeInTheOrderOfSubmission) {
  std::vector<int> log;
  Queue queue(60, false);
  queue.submit(std::make_unique<Counted>(log, 1, 5));
  queue.submit_background(std::make_unique<Counted>(log, 2, 1));
  const Ticket last = queue.submit(std::make_unique<Counted>(log, 3, 3));
  EXPECT_EQ(queue.in_flight(), 3);
  queue.wait(last, "a test");
  EXPECT_EQ(log, (std::vector<int>{1, -1, 2, -2, 3, -3}));
  EXPECT_EQ(queue.in_flight(), 0);
}

TEST(CommQueue, WaitingForOneLeavesTheLaterOnes) {
  std::vector<int> log;
  Queue queue(60, false);
  const Ticket first = queue.submit(std::make_unique<Counted>(log, 1, 2));
  const Ticket second = queue.submit(std::make_unique<Never>());
  queue.wait(first, "a test");
  queue.wait(first, "a test");
  queue.wait(0, "a test");
  EXPECT_TRUE(queue.done(first));
  EXPECT_TRUE(queue.done(0));
  EXPECT_FALSE(queue.done(second));
}

TEST(CommQueue, WithoutAThreadOnlyCallsDrive) {
  std::vector<int> log;
  Queue queue(60, false);
  const Ticket ticket = queue.submit_background(std::make_unique<Counted>(log, 1, 2));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_TRUE(log.empty());
  queue.progress();
  EXPECT_FALSE(queue.done(ticket));
  queue.progress();
  EXPECT_TRUE(queue.done(ticket));
}

TEST(CommQueue, AThreadDrivesInTheBackground) {
  std::vector<int> log;
  Queue queue(60, true);
  const Ticket ticket = queue.submit_background(std::make_unique<Counted>(log, 1, 50));
  for (int i = 0; i < 60000 && !queue.done(ticket); ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(queue.done(ticket));
}

// Peers are at their part of it: it is no refusal, whoever drove.
TEST(CommQueue, AnOperationWithoutMemoryHasFailed) {
  for (const bool background : {false, true}) {
    Queue queue(60, background);
    const Ticket ticket = queue.submit_background(std::make_unique<Starving>());
    for (int again = 0; again < 2; ++again) {
      const auto outcome = outcome_of([&] { queue.wait(ticket, "a test"); });
      EXPECT_EQ(outcome.status, GEMINI_ERR_DEVICE);
      EXPECT_TRUE(outcome.says("the machine does not give more memory")) << outcome.words;
    }
  }
}

TEST(CommQueue, AWaitEndsAtTheTimeout) {
  Queue queue(0.2, false);
  const Ticket ticket = queue.submit(std::make_unique<Never>());
  const auto start = Clock::now();
  const auto outcome = outcome_of([&] { queue.wait(ticket, "gathering chunk 3"); });
  const std::chrono::duration<double> waited = Clock::now() - start;
  EXPECT_EQ(outcome.status, GEMINI_ERR_TIMEOUT);
  EXPECT_TRUE(outcome.says("gathering chunk 3") && outcome.says("timeout_s = 0.2")) << outcome.words;
  EXPECT_GE(waited.count(), 0.2);
  EXPECT_LT(waited.count(), 20);
}

TEST(CommQueue, StallCountsWaiting) {
  Queue queue(0.05, false);
  const Ticket never = queue.submit(std::make_unique<Never>());
  (void)outcome_of([&] { queue.wait(never, "a test"); });
  std::vector<int> log;
  Queue other(60, false);
  EXPECT_EQ(other.stall_ns(), 0);
  other.run(std::make_unique<Counted>(log, 1, 1000), "a test");
  EXPECT_GT(other.stall_ns(), 0);
  other.reset_stall();
  EXPECT_EQ(other.stall_ns(), 0);
}

TEST(CommQueue, AFailureStays) {
  Queue queue(60, false);
  std::vector<int> log;
  const Ticket ticket = queue.submit(std::make_unique<Failing>());
  const Ticket later = queue.submit(std::make_unique<Counted>(log, 1, 1));
  EXPECT_EQ(outcome_of([&] { queue.wait(ticket, "a test"); }).status, GEMINI_ERR_MPI);
  EXPECT_EQ(outcome_of([&] { queue.wait(later, "a test"); }).status, GEMINI_ERR_MPI);
  EXPECT_EQ(outcome_of([&] { queue.progress(); }).status, GEMINI_ERR_MPI);
  EXPECT_EQ(outcome_of([&] { queue.submit(std::make_unique<Never>()); }).status, GEMINI_ERR_MPI);
  EXPECT_TRUE(log.empty()) << "nothing runs after a failure";
}

TEST(CommQueue, AFailureInTheBackgroundReachesTheNextCall) {
  Queue queue(60, true);
  const Ticket ticket = queue.submit_background(std::make_unique<Failing>());
  const auto outcome = outcome_of([&] { queue.wait(ticket, "a test"); });
  EXPECT_EQ(outcome.status, GEMINI_ERR_MPI);
  EXPECT_TRUE(outcome.says("it broke")) << outcome.words;
}

// A rank leaves; whoever waits, now or later, hears why.
void leave_and_listen(const std::string& why, const std::string& heard) {
  Queue queue(60, mpi_allows_any_thread());
  const int leaver = world_size() - 1;
  if (world_rank() == leaver) {
    queue.tell_peers(why);
  } else {
    const Ticket ticket = queue.submit_background(std::make_unique<Never>());
    const auto outcome = outcome_of([&] { queue.wait(ticket, "a test"); });
    EXPECT_EQ(outcome.status, GEMINI_ERR_REMOTE_FATAL);
    EXPECT_TRUE(outcome.says("rank " + std::to_string(leaver)) && outcome.says(heard)) << outcome.words;
    EXPECT_EQ(outcome_of([&] { queue.submit(std::make_unique<Never>()); }).status, GEMINI_ERR_REMOTE_FATAL);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(LastWords, EndAWait) {
  leave_and_listen("the disk is full", "the disk is full");
}

TEST(LastWords, MayBeLongAndAreCut) {
  leave_and_listen(std::string(5000, 'x'), std::string(1000, 'x'));
}

TEST(LastWords, ReachProgressToo) {
  Queue queue(60, false);
  if (world_rank() == 0) queue.tell_peers("enough");
  if (world_rank() != 0) {
    test::Outcome outcome;
    for (int i = 0; i < 5000 && outcome.status == 0; ++i) {
      outcome = outcome_of([&] { queue.progress(); });
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(outcome.status, GEMINI_ERR_REMOTE_FATAL);
    EXPECT_TRUE(outcome.says("rank 0 left: enough")) << outcome.words;
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace gemini
