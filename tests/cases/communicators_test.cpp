// Contexts on parts of the world and side by side; the caller's own messages are left alone.
#include <memory>

#include "observe.hpp"

using namespace gemini_test;

namespace {

// One half of the world, by the parity of the rank.
class Half {
 public:
  Half() { MPI_Comm_split(MPI_COMM_WORLD, rank_of() % 2, rank_of(), &comm_); }
  ~Half() { MPI_Comm_free(&comm_); }
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;
  [[nodiscard]] MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// SGD with lr 0.5 and gradient 1, so that values are exact.
double after_steps(MPI_Comm comm, const char* name, int64_t n, int steps) {
  Context ctx(comm, {{"optimizer", "sgd"}, {"lr", "0.5"}, {"timeout_s", "60"}});
  gemini_param_t w = ctx.add_constant(name, GEMINI_F64, {n}, 100.0);
  ctx.commit();
  for (int step = 0; step < steps; ++step) {
    train(ctx, w, 1.0);
    ctx.step();
  }
  const std::vector<double> end = values(w);
  return all_are(end, end[0]) ? end[0] : -1;
}

}  // namespace

TEST(SubCommunicators, TrainDifferentModelsForDifferentlyManySteps) {
  const Half half;
  const bool odd = rank_of() % 2 == 1;
  const int steps = odd ? 40 : 20;
  const double end = after_steps(half.get(), odd ? "odd" : "even", odd ? 23 : 9, steps);
  EXPECT_ALL(MPI_COMM_WORLD, end == 100.0 - 0.5 * steps);
}

TEST(SubCommunicators, NeedNothingOfRanksThatNeverCallTheLibrary) {
  const bool outside = rank_of() >= 2;
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, outside ? MPI_UNDEFINED : 0, rank_of(), &pair);
  double end = 95.0;
  if (!outside) {
    end = after_steps(pair, "w", 7, 10);
    MPI_Comm_free(&pair);
  }
  EXPECT_ALL(MPI_COMM_WORLD, end == 95.0);
}

TEST(SubCommunicators, LeaveMessagesOfTheCallerAlone) {
  const Half half;
  const int peer = rank_of() ^ 1;  // in the other half
  const bool alone = peer >= ranks_of();
  std::vector<int> sent = {rank_of(), rank_of() + 1, rank_of() + 2};
  std::vector<int> received(3, -1);
  std::vector<MPI_Request> requests;
  if (!alone)
    for (const int tag : {0, 1, 2}) {
      const auto at = static_cast<std::size_t>(tag);
      MPI_Irecv(&received[at], 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &requests.emplace_back());
    }
  const double first = after_steps(half.get(), "w", 5, 5);
  const double world = after_steps(MPI_COMM_WORLD, "w", 5, 5);
  int waiting = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &waiting, MPI_STATUS_IGNORE);
  EXPECT_ALL(MPI_COMM_WORLD, waiting == 0 && received == std::vector<int>(3, -1));
  if (!alone)
    for (const int tag : {0, 1, 2})
      MPI_Send(&sent[static_cast<std::size_t>(tag)], 1, MPI_INT, peer, tag, MPI_COMM_WORLD);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  EXPECT_ALL(MPI_COMM_WORLD, first == 97.5 && world == 97.5);
  EXPECT_ALL(MPI_COMM_WORLD, alone || received == std::vector<int>({peer, peer + 1, peer + 2}));
}

TEST(Contexts, OnOneCommunicatorLiveSideBySide) {
  Context first(MPI_COMM_WORLD, {{"optimizer", "sgd"}, {"lr", "0.5"}});
  auto second = std::make_unique<Context>(MPI_COMM_WORLD, KeyValues{{"optimizer", "sgd"}, {"lr", "0.25"}});
  gemini_param_t a = first.add_constant("w", GEMINI_F64, {9}, 1.0);
  gemini_param_t b = second->add_constant("w", GEMINI_F64, {9}, 1.0);
  first.commit();
  second->commit();
  first.op(GEMINI_FORWARD, {a});
  train(*second, b, 1.0);
  first.op(GEMINI_BACKWARD, {a}, [&] { add_grad(a, [](int64_t) { return 1.0; }); });
  second->step();
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(b), 0.75));
  second.reset();
  first.step();
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.5));
}

TEST(Contexts, TellTheirTopology) {
  Context ctx;
  gemini_topology_t topology = GEMINI_TOPOLOGY_INIT;
  ALL_RANKS_OK(gemini_topology(ctx, &topology));
  EXPECT_EQ(rank_of(), topology.rank);
  EXPECT_EQ(ranks_of(), topology.ranks);
  EXPECT_EQ(1, topology.nodes);
  EXPECT_EQ(0, topology.node);
  EXPECT_EQ(ranks_of(), topology.node_ranks);
  EXPECT_EQ(ranks_of(), topology.shard_group_ranks);
  EXPECT_EQ(1, topology.replica_groups);
  EXPECT_EQ(-1, topology.device);
  int32_t on_device = -1;
  ALL_RANKS_OK(gemini_on_device(ctx, &on_device));
  EXPECT_EQ(0, on_device);
}

TEST(Contexts, AreMadeFromFortranHandlesToo) {
  const Half half;
  for (const MPI_Comm comm : {MPI_COMM_WORLD, half.get()}) {
    gemini_context_t ctx = nullptr;
    ALL_RANKS_OK(gemini_create_f(MPI_Comm_c2f(comm), nullptr, &ctx));
    EXPECT_NE(nullptr, ctx);
    gemini_topology_t topology = GEMINI_TOPOLOGY_INIT;
    ALL_RANKS_OK(gemini_topology(ctx, &topology));
    EXPECT_EQ(rank_of(comm), topology.rank);
    EXPECT_EQ(ranks_of(comm), topology.ranks);
    ALL_RANKS_OK(gemini_destroy(&ctx));
    EXPECT_EQ(nullptr, ctx);
  }
  gemini_context_t none = nullptr;
  ALL_RANKS_STATUS(GEMINI_ERR_ARGUMENT, gemini_create_f(MPI_Comm_c2f(MPI_COMM_NULL), nullptr, &none));
  EXPECT_SAID("MPI_COMM_NULL");
  EXPECT_EQ(nullptr, none);
}

TEST(DelayedTransport, TrainsTheSame) {
  std::vector<double> trained[2];
  for (const bool delayed : {false, true}) {
    Context ctx({{"optimizer", "sgd"}, {"lr", "0.5"}, {"collectives", delayed ? "delayed:2000,1" : "mpi"}});
    gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {50}, 1.0);
    ctx.commit();
    train(ctx, w, [](int64_t i) { return static_cast<double>(i) / 3 + rank_of(); });
    ctx.step();
    trained[delayed ? 1 : 0] = values(w);
    EXPECT_EQ(delayed ? "delayed:2000,1" : "mpi", ctx.option("collectives"));
  }
  EXPECT_ALL(MPI_COMM_WORLD, trained[0] == trained[1]);
}
