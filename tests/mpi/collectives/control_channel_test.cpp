// Who waits where: notices, what a timeout makes of them, and that none is left at a normal end.
#include "collectives/control_channel.hpp"

#include <memory>
#include <thread>

#include "collectives/basic_operations.hpp"
#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using test::outcome_of;
using test::world_rank;
using test::world_size;

class Never final : public Operation {
 public:
  bool poll() override { return false; }
};

bool anything_left(MPI_Comm comm) {
  int waiting = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &waiting, MPI_STATUS_IGNORE);
  return waiting != 0;
}

// Hears, in `here`, until the peers' places make all of them present or patience ends.
bool hears_all(ControlChannel& channel, const WaitingPlace& here, std::int64_t operation) {
  for (int i = 0; i < 60000 && !channel.missing(operation).empty(); ++i) {
    channel.hear(here);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return channel.missing(operation).empty();
}

void end(ControlChannel& channel) {
  std::vector<std::int64_t> sent = channel.close();
  MPI_Allreduce(MPI_IN_PLACE, sent.data(), world_size(), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  while (!channel.drained(sent[static_cast<std::size_t>(world_rank())])) {
  }
  EXPECT_FALSE(anything_left(channel.comm()));
  MPI_Barrier(MPI_COMM_WORLD);
  channel.free_communicator();
}

TEST(ControlChannel, OneRankThatTellsMakesAllWhoWaitAnswer) {
  ControlChannel channel{Communicator(MPI_COMM_WORLD)};
  const WaitingPlace here{7, "a test"};
  if (world_size() > 1) {
    EXPECT_FALSE(channel.missing(7).empty());
  }
  if (world_rank() == 0) channel.tell_waiting(here);
  if (world_rank() == 0) {
    EXPECT_TRUE(hears_all(channel, here, 7));
    EXPECT_EQ(channel.missing(8).empty(), world_size() == 1);
    EXPECT_EQ(channel.waiting_elsewhere("a test"), "");
    EXPECT_EQ(channel.waiting_elsewhere("b").empty(), world_size() == 1);
  } else {
    while (channel.missing(7).find(" 0") != std::string::npos) channel.hear(here);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  end(channel);
}

TEST(ControlChannel, TellsAPlaceOnce) {
  ControlChannel channel{Communicator(MPI_COMM_WORLD)};
  for (int i = 0; i < 10; ++i) channel.tell_waiting({3, "a test"});
  channel.tell_waiting({2, "a test"});
  const std::vector<std::int64_t> sent = channel.close();
  for (int peer = 0; peer < world_size(); ++peer)
    EXPECT_EQ(sent[static_cast<std::size_t>(peer)], peer == world_rank() ? 0 : 1);
  end(channel);
}

TEST(Timeout, NamesTheRanksThatStayedAwayAndNoOthers) {
  for (int away = 1; away < world_size(); ++away) {  // the last `away` ranks
    test::Queue queue(2);
    if (world_rank() < world_size() - away) {
      const auto outcome = outcome_of([&] { queue.run(std::make_unique<Never>(), "gathering chunk 3"); });
      std::string who = away > 1 ? "ranks " : "rank ";
      for (int rank = world_size() - away; rank < world_size(); ++rank)
        who += std::to_string(rank) + (rank + 1 < world_size() ? ", " : "");
      EXPECT_EQ(outcome.status, GEMINI_ERR_TIMEOUT);
      EXPECT_TRUE(outcome.says("gathering chunk 3: " + who + " did not arrive")) << outcome.words;
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST(Timeout, BlamesNobodyWhereAllWaitButSaysForWhat) {
  test::Queue queue(4);
  const char* what = world_rank() == 0 ? "gathering" : "reducing";
  const auto outcome = outcome_of([&] { queue.run(std::make_unique<Never>(), what); });
  EXPECT_EQ(outcome.status, GEMINI_ERR_TIMEOUT);
  EXPECT_FALSE(outcome.says("did not arrive")) << outcome.words;
  if (world_size() > 1) {
    EXPECT_TRUE(outcome.says(world_rank() == 0 ? "rank 1 for reducing" : "rank 0 for gathering"))
        << outcome.words;
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// A rank that is late makes the others tell each other; then the queue ends clean.
TEST(Settle, TakesInWhatLongWaitsHaveSaid) {
  Communicator comm(MPI_COMM_WORLD);
  test::Queue queue(60);
  if (world_rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  auto words = std::make_shared<Words>(1, 1);
  queue.run(std::make_unique<AllReduceWords>(comm.get(), MPI_SUM, words), "a test");
  EXPECT_EQ(words->front(), world_size());
  queue.settle();
  EXPECT_EQ(queue.in_flight(), 0);
  comm.free();
}

}  // namespace
}  // namespace gemini
