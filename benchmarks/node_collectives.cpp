// What ranks of one node exchange through shared memory, against what MPI's own collectives take: gradients
// added up (reduce) and chunks gathered. And what a gather costs when nobody is late.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "collectives/shared_transport.hpp"
#include "context.hpp"
#include "kernels/runtime.hpp"
#include "ranks.hpp"
#include "statistics.hpp"

namespace gemini_bench {
namespace {

#ifdef OPEN_MPI
constexpr double kLeastGain = 8;  // against Open MPI
#else
constexpr double kLeastGain = 2.5;  // against MPICH and the like
#endif
constexpr std::int64_t kGoalBytes = std::int64_t{16} << 20;

// What a context holds of the library's collectives, over all ranks.
class Collectives {
 public:
  Collectives()
      : topology_(gemini::discover_topology(gemini::Communicator(MPI_COMM_WORLD))),
        queue_(gemini::Communicator(MPI_COMM_WORLD), 60, true),
        agreement_(gemini::Communicator(MPI_COMM_WORLD), queue_) {
    gemini::kernels::start();
    gemini::cut_into_groups(topology_, "world");
    if (!gemini::SharedTransport::possible(topology_)) stop("these ranks share no memory");
  }
  ~Collectives() {
    queue_.abandon();
    agreement_.free_communicator();
    queue_.free_communicator();
  }
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  // With one chunk of such shards.
  gemini::SharedTransport& share(std::int64_t shard_bytes) {
    if (mpi_ != nullptr) mpi_->free_communicators();
    auto mpi = std::make_unique<gemini::MpiTransport>(gemini::Communicator(MPI_COMM_WORLD), topology_);
    mpi_ = mpi.get();
    transport_ = std::make_unique<gemini::SharedTransport>(std::move(mpi), topology_);
    const std::string refusal =
        transport_->share(agreement_, {{shard_bytes, shard_bytes * topology_.ranks, true, true}});
    if (!refusal.empty()) stop(refusal);
    return *transport_;
  }
  void end() {
    if (mpi_ != nullptr) mpi_->free_communicators();
    mpi_ = nullptr;
    transport_.reset();
  }
  void run(std::unique_ptr<gemini::Operation> operation) {
    if (operation) queue_.run(std::move(operation), "a benchmark");
  }

 private:
  [[noreturn]] static void stop(const std::string& why) {
    std::fprintf(stderr, "node_collectives: %s\n", why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
  }

  gemini::Topology topology_;
  gemini::CommQueue queue_;
  gemini::Agreement agreement_;
  gemini::MpiTransport* mpi_ = nullptr;
  std::unique_ptr<gemini::SharedTransport> transport_;
};

std::string text_of(std::int64_t bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

void print(Table& table, const std::string& what, const std::string& other, const Pairs& times,
           bool has_goal) {
  table.row(what + ": the library's", median(times.others), "us");
  table.row(what + ": " + other, median(times.ones), "us");
  print_quartiles(table, what + ": " + other + " over the library's", times.ratios, "times");
  const std::string name = what + ": " + other + " over the library's, median";
  if (has_goal)
    table.at_least(kLeastGain, name, median(times.ratios), "times");
  else
    table.row(name, median(times.ratios), "times");
}

// The same gradients, in the same memory, into the same sums.
void reduce(Table& table, Collectives& collectives, std::int64_t shard_bytes, int pairs) {
  const int ranks = ranks_of_world();
  gemini::SharedTransport& transport = collectives.share(shard_bytes);
  const std::int64_t elems = shard_bytes / 4;
  auto* gradient = reinterpret_cast<float*>(transport.gradient_pages().take(ranks * shard_bytes));
  std::vector<float> sum(static_cast<std::size_t>(elems));
  for (std::int64_t i = 0; i < ranks * elems; ++i)
    gradient[i] = static_cast<float>(i % 100 + rank_of_world());
  const auto by_mpi = [&] {
    return 1e6 * time_together([&] {
             MPI_Reduce_scatter_block(gradient, sum.data(), static_cast<int>(elems), MPI_FLOAT, MPI_SUM,
                                      MPI_COMM_WORLD);
           });
  };
  const auto by_library = [&] {
    return 1e6 * time_together([&] {
             collectives.run(
                 transport.reduce({elems, gemini::DType::f32, reinterpret_cast<std::byte*>(gradient),
                                   reinterpret_cast<std::byte*>(sum.data()), true, 1.0, true}));
           });
  };
  for (int i = 0; i < 3; ++i) by_mpi(), by_library();
  const std::vector<float> by_the_library = sum;
  by_mpi();
  if (sum != by_the_library) MPI_Abort(MPI_COMM_WORLD, 3);  // they do not do the same
  Pairs times;
  times.measure(pairs, by_mpi, by_library);
  print(table, "reduce, shards of " + text_of(shard_bytes), "MPI_Reduce_scatter_block", times,
        shard_bytes == kGoalBytes);
  transport.gradient_pages().give(reinterpret_cast<std::byte*>(gradient), ranks * shard_bytes);
}

// A shard that has just changed, until every rank may read all of them.
void gather(Table& table, Collectives& collectives, std::int64_t shard_bytes, int pairs) {
  gemini::SharedTransport& transport = collectives.share(shard_bytes);
  std::byte* shard = transport.shard_pages(0).take(shard_bytes);
  const gemini::ShardedChunk chunk{shard_bytes / 4, gemini::DType::f32, shard, 0};
  std::fill_n(shard, shard_bytes, std::byte{1});
  std::vector<std::byte> whole(static_cast<std::size_t>(shard_bytes * ranks_of_world()));
  const auto by_mpi = [&] {
    return 1e6 * time_together([&] {
             MPI_Allgather(shard, static_cast<int>(shard_bytes / 4), MPI_FLOAT, whole.data(),
                           static_cast<int>(shard_bytes / 4), MPI_FLOAT, MPI_COMM_WORLD);
           });
  };
  const auto by_library = [&] {
    return 1e6 * time_together([&] {
             transport.publish(0);
             collectives.run(transport.acquire(chunk, nullptr));
             transport.leave(0);
           });
  };
  for (int i = 0; i < 3; ++i) by_mpi(), by_library();
  Pairs times;
  times.measure(pairs, by_mpi, by_library);
  print(table, "gather, shards of " + text_of(shard_bytes), "MPI_Allgather", times, false);
  transport.shard_pages(0).give(shard, shard_bytes);
}

// gemini_pre_op on a chunk that is not here, once every rank's shard of it is known to be final.
void acquire(Table& table, int rounds) {
  constexpr int kChunks = 256;
  constexpr std::int64_t kElems = 16384;
  Context ctx({{"collectives", "shared"},
               {"placement", "static"},
               {"prefetch", "0"},
               {"chunk_elems", std::to_string(kElems)},
               {"optimizer", "sgd"}});
  Params params = ctx.add(kChunks, kElems);
  check(gemini_commit(ctx));
  std::vector<double> times_us;
  times_us.reserve(static_cast<std::size_t>(rounds) * kChunks);
  for (int round = -2; round < rounds; ++round) {
    meet();  // all have updated their shards, in gemini_step
    for (gemini_param_t& param : params) {
      const Clock::time_point start = Clock::now();
      check(gemini_pre_op(ctx, &param, 1));
      if (round >= 0) times_us.push_back(1e6 * Seconds(Clock::now() - start).count());
      check(gemini_post_op(ctx, &param, 1));
    }
    check(gemini_set_phase(ctx, GEMINI_BACKWARD));
    check(gemini_pre_op(ctx, params.data(), 1));
    gemini_grad(params[0]);
    check(gemini_post_op(ctx, params.data(), 1));
    check(gemini_step(ctx, nullptr));
  }
  std::int64_t gathers = 0, wire_bytes = 0;
  check(gemini_stat(ctx, GEMINI_STAT_GATHERS, &gathers));
  check(gemini_stat(ctx, GEMINI_STAT_GATHER_WIRE_BYTES, &wire_bytes));
  table.row("gathers of a context", static_cast<double>(gathers), "");
  table.at_most(0, "gathers of a context: bytes that travelled, all ranks",
                sum_over_ranks(static_cast<double>(wire_bytes)), "B");
  table.at_most(2, "gather when nobody is late (gemini_pre_op), median", largest(median(times_us)), "us");
  table.at_most(5, "gather when nobody is late (gemini_pre_op), 99 %", largest(quantile(times_us, 0.99)),
                "us");
}

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  using namespace gemini_bench;
  const bool any_thread = init_mpi(argc, argv);
  const int pairs = argc == 3 && std::string(argv[1]) == "--pairs" ? std::atoi(argv[2]) : kPairs;
  if (ranks_of_world() < 2 || !any_thread || pairs < 1 || (argc != 1 && argc != 3))
    return refuse("mpiexec -n N node_collectives [--pairs N]; needs MPI_THREAD_MULTIPLE");
  pin_rank();
  Table table(rank_of_world() == 0);
  {
    Collectives collectives;
    for (std::int64_t bytes = std::int64_t{64} << 10; bytes <= std::int64_t{64} << 20; bytes *= 4) {
      reduce(table, collectives, bytes, pairs);
      gather(table, collectives, bytes, pairs);
    }
    collectives.end();
  }
  acquire(table, pairs);
  MPI_Finalize();
  return 0;
}
