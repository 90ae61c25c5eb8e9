// The host's stream keeps the ordering rules of a device's stream.
#include "memory/host_stream.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <vector>

namespace gemini {
namespace {

using std::chrono::milliseconds;

// A task that does not end before it is let go.
class Gate {
 public:
  void open() { open_ = true; }
  std::function<void()> task() {
    return [this] {
      while (!open_) std::this_thread::sleep_for(milliseconds(1));
    };
  }

 private:
  std::atomic<bool> open_{false};
};

TEST(HostStream, RunsTasksInOrder) {
  HostStream stream;
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) stream.enqueue([&seen, i] { seen.push_back(i); });
  stream.synchronize();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(HostStream, DoesNotMakeTheCallerWait) {
  HostStream stream;
  Gate gate;
  std::atomic<bool> ran{false};
  stream.enqueue(gate.task());
  stream.enqueue([&] { ran = true; });
  EXPECT_FALSE(ran);
  gate.open();
  stream.synchronize();
  EXPECT_TRUE(ran);
}

TEST(HostStream, CopiesInItsOrder) {
  HostStream stream;
  std::array<int, 4> from{};
  std::array<int, 4> to{};
  stream.enqueue([&] { from = {1, 2, 3, 4}; });
  stream.copy(to.data(), from.data(), sizeof from);
  stream.enqueue([&] { from = {}; });
  stream.synchronize();
  EXPECT_EQ(to, (std::array<int, 4>{1, 2, 3, 4}));
}

TEST(HostEvent, NeverRecordedIsComplete) {
  HostStream stream;
  const HostEvent event;
  EXPECT_TRUE(event.done());
  event.wait();
  stream.wait(event);
  stream.synchronize();
}

TEST(HostEvent, IsDoneWhenWhatWasEnqueuedBeforeIs) {
  HostStream stream;
  Gate gate;
  HostEvent event;
  stream.enqueue(gate.task());
  stream.record(event);
  EXPECT_FALSE(event.done());
  gate.open();
  event.wait();
  EXPECT_TRUE(event.done());
}

TEST(HostEvent, RecordedAgainStandsForTheLaterPoint) {
  HostStream stream;
  Gate gate;
  HostEvent event;
  stream.record(event);
  event.wait();
  stream.enqueue(gate.task());
  stream.record(event);
  EXPECT_FALSE(event.done());
  gate.open();
  event.wait();
  EXPECT_TRUE(event.done());
}

TEST(HostEvent, AWaitIsForThePointRecordedWhenItWasEnqueued) {
  HostStream slow;
  HostStream quick;
  Gate gate;
  HostEvent event;
  slow.record(event);
  quick.wait(event);
  slow.enqueue(gate.task());
  slow.record(event);   // later than what quick waits for
  quick.synchronize();  // would hang if the wait followed the event
  gate.open();
  slow.synchronize();
}

TEST(HostEvent, OrdersStreamsWithoutMakingTheCallerWait) {
  HostStream first;
  HostStream second;
  Gate gate;
  HostEvent event;
  std::atomic<int> value{0};
  int read = -1;
  first.enqueue(gate.task());
  first.enqueue([&] { value = 42; });
  first.record(event);
  second.wait(event);
  second.enqueue([&] { read = value; });
  gate.open();
  second.synchronize();
  EXPECT_EQ(read, 42);
}

TEST(HostEvent, OutlivesItsStream) {
  HostEvent event;
  {
    HostStream stream;
    stream.record(event);
  }
  event.wait();
  EXPECT_TRUE(event.done());
}

TEST(HostStream, TheFirstExceptionReachesSynchronizeOnce) {
  HostStream stream;
  std::atomic<bool> later{false};
  stream.enqueue([] { throw std::runtime_error("first"); });
  stream.enqueue([] { throw std::runtime_error("second"); });
  stream.enqueue([&] { later = true; });
  try {
    stream.synchronize();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_TRUE(later);
  EXPECT_NO_THROW(stream.synchronize());
}

TEST(HostStream, ItsEndRunsWhatWasEnqueued) {
  std::atomic<int> ran{0};
  {
    HostStream stream;
    for (int i = 0; i < 100; ++i) stream.enqueue([&] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
}

TEST(HostStream, ATaskMayEnqueue) {
  HostStream stream;
  std::vector<int> seen;
  HostEvent both;
  stream.enqueue([&] {
    seen.push_back(1);
    stream.enqueue([&] { seen.push_back(2); });
    stream.record(both);
  });
  stream.synchronize();
  both.wait();
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

// A program's handlers, of a batch system's warning before it kills say, run in the program's own threads.
TEST(HostStream, TakesNoSignalsAndLeavesItsMakersMask) {
  const auto blocked = [](int number) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, number) == 1;
  };
  HostStream stream;
  bool usr1 = false;
  bool term = false;
  bool segv = true;
  stream.enqueue([&] {
    usr1 = blocked(SIGUSR1);
    term = blocked(SIGTERM);
    segv = blocked(SIGSEGV);
  });
  stream.synchronize();
  EXPECT_TRUE(usr1 && term);
  EXPECT_FALSE(segv) << "faults are the thread's own";
  EXPECT_FALSE(blocked(SIGUSR1) || blocked(SIGTERM));
}

// Random work on shared cells over several streams, ordered by events so that it is free of races, must
// leave what the same work leaves when it is done in the order of the calls.
TEST(HostStream, RandomOrderedWorkEqualsSequentialWork) {
  constexpr std::size_t kStreams = 3;
  constexpr std::size_t kCells = 4;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint64_t> cells(kCells, 1);
    std::vector<std::uint64_t> model(kCells, 1);
    {
      std::array<HostEvent, kCells> last;  // of each cell
      std::array<HostStream, kStreams> streams;
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::size_t from = random() % kCells;
        const std::size_t to = random() % kCells;
        HostStream& stream = streams[random() % kStreams];
        stream.wait(last[from]);
        stream.wait(last[to]);
        stream.enqueue([&cells, from, to, i] { cells[to] = cells[to] * 31 + cells[from] + i; });
        stream.record(last[to]);
        last[from] = last[to];
        model[to] = model[to] * 31 + model[from] + i;
      }
    }
    ASSERT_EQ(cells, model) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gemini
