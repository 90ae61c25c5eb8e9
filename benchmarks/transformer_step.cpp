// Time of a training step of a transformer: the library's, with everything sharded, over that of a program
// that keeps a replica of everything on every rank. And the memory of both.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "process_memory.hpp"
#include "ranks.hpp"
#include "replicated.hpp"
#include "sharded.hpp"
#include "statistics.hpp"

namespace gemini_bench {
namespace {

constexpr AdamW kRules{1e-4, 0.01, 1.0};
constexpr int kWarmUp = 4;  // the order is learnt, and what was learnt is used

Settings settings() {
  return {{"optimizer", "adamw"},
          {"lr", std::to_string(kRules.lr)},
          {"weight_decay", std::to_string(kRules.weight_decay)},
          {"max_grad_norm", std::to_string(kRules.max_grad_norm)}};
}

// One of each, from the same values.
struct Twins {
  Sharded sharded{settings()};
  Replicated replicated;

  Twins() : replicated(sharded.values(), sharded.stat(GEMINI_STAT_CHUNK_ELEMS), kRules) {}
};

std::optional<double> goal(int ranks, int tokens) {
  if (ranks == 2 && tokens == 64) return 0.82;
  if (ranks == 2 && tokens == 256) return 0.94;
  if (ranks == 4 && tokens == 256) return 0.90;
  return {};
}

// The bits must be the same where gradients are added in one order. Later, MPI's order rounds differently,
// and that grows.
void compare(Table& table, const std::string& what, const Twins& twins, bool same_order) {
  const std::vector<float> one = twins.sharded.values();
  const std::vector<float>& other = twins.replicated.values();
  double difference = 0, norm = 0, unequal = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double d = static_cast<double>(one[i]) - other[i];
    difference += d * d;
    norm += static_cast<double>(other[i]) * other[i];
    unequal += std::memcmp(&one[i], &other[i], sizeof(float)) != 0 ? 1 : 0;
  }
  const bool exact = (ranks_of_world() & (ranks_of_world() - 1)) == 0;  // dividing by them rounds nothing
  if (same_order && exact)
    table.at_most(0, what + ", steps that add in one order: parameters whose bits differ", largest(unequal),
                  "");
  else
    table.row(what + ", all steps: |sharded - replicated| / |replicated|",
              largest(std::sqrt(difference / norm)), "of 1");
}

void time_steps(Table& table, int tokens, int pairs) {
  const std::string what =
      std::to_string(ranks_of_world()) + " ranks, " + std::to_string(tokens) + " tokens each";
  Twins twins;
  Transformer network(tokens, rank_of_world());
  const auto sharded = [&] { return 1e3 * time_together([&] { twins.sharded.step(network); }); };
  const auto replicated = [&] { return 1e3 * time_together([&] { twins.replicated.step(network); }); };
  for (int i = 0; i < kWarmUp; ++i) {
    twins.sharded.step(network);
    twins.replicated.step(network, true);
  }
  compare(table, what, twins, true);
  sharded(), replicated();
  const std::int64_t stalled = twins.sharded.stat(GEMINI_STAT_STALL_NS);
  Pairs times;
  times.measure(pairs, sharded, replicated);
  const auto stall_ms =
      1e-6 * static_cast<double>(twins.sharded.stat(GEMINI_STAT_STALL_NS) - stalled) / pairs;

  table.row(what + ": sharded step", median(times.ones), "ms");
  table.row(what + ": of it, the library waits (mean, slowest rank)", largest(stall_ms), "ms");
  table.row(what + ": replicated step", median(times.others), "ms");
  print_quartiles(table, what + ": sharded over replicated", times.ratios, "times");
  const std::string ratio = what + ": sharded over replicated, median";
  if (const auto most = goal(ranks_of_world(), tokens))
    table.at_most(*most, ratio, median(times.ratios), "times");
  else
    table.row(ratio, median(times.ratios), "times");
  compare(table, what, twins, false);
}

// Over all ranks, per parameter. As the library counts: the peak of everything that it holds, the gathered
// parameters, gradients and idle buffers included. As the machine counts (Pss): what the process grew by.
void memory(Table& table, int tokens) {
  const std::string what = std::to_string(ranks_of_world()) + " ranks: bytes of model state on the node";
  Transformer network(tokens, rank_of_world());
  const auto pss = [] {
    MPI_Barrier(MPI_COMM_WORLD);
    const double bytes = sum_over_ranks(process_bytes("Pss:"));
    MPI_Barrier(MPI_COMM_WORLD);
    return bytes;
  };
  double elems = 0;
  for (const auto& operation : Transformer::operations())
    for (const Tensor& tensor : operation) elems += static_cast<double>(tensor.elems);
  // Once before anything is counted: buffers of BLAS and MPI stay.
  std::int64_t chunk_elems = 0;
  const auto first_values = [&] {
    Sharded trial(settings());
    trial.step(network);
    chunk_elems = trial.stat(GEMINI_STAT_CHUNK_ELEMS);
    return trial.values();
  };
  {
    auto trial = std::make_unique<Replicated>(first_values(), chunk_elems, kRules);
    trial->step(network);
  }
  double before = pss();
  {
    Replicated replicated(std::vector<float>(static_cast<std::size_t>(elems)), chunk_elems, kRules);
    for (int i = 0; i < kWarmUp; ++i) replicated.step(network);
    table.row(what + ", replicated, Pss", (pss() - before) / elems, "B/parameter");
    table.row(what + ", replicated, by design", 16.0 * ranks_of_world(), "B/parameter");
  }
  before = pss();
  Sharded sharded(settings());
  for (int i = 0; i < kWarmUp; ++i) sharded.step(network);
  const double counted = static_cast<double>(sharded.stat(GEMINI_STAT_DEVICE_PEAK_BYTES) +
                                             sharded.stat(GEMINI_STAT_HOST_PEAK_BYTES));
  table.row(what + ", sharded, Pss", (pss() - before) / elems, "B/parameter");
  table.at_most(22, what + ", sharded", sum_over_ranks(counted) / elems, "B/parameter");
  table.row("parameters", elems, "");
  table.row("chunks", static_cast<double>(sharded.stat(GEMINI_STAT_CHUNKS)), "");
}

// Where the time of sharded steps goes, for chrome://tracing or Perfetto.
void record(const char* path, int tokens) {
  Settings with_trace = settings();
  with_trace.emplace_back("trace", "on");
  Sharded sharded(with_trace);
  Transformer network(tokens, rank_of_world());
  for (int i = 0; i < 2 * kWarmUp; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    sharded.step(network);
  }
  check(gemini_trace_write(sharded.context(), path));
}

int usage() {
  if (rank_of_world() == 0)
    std::fprintf(stderr,
                 "usage: mpiexec -n N transformer_step [--pairs N] [--memory | --record FILE] TOKENS...\n    "
                 "   transformer_step --blas\n");
  return 2;
}

int run(int argc, char** argv) {
  int pairs = kPairs;
  bool counts_memory = false;
  const char* path = nullptr;
  std::vector<int> tokens;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--memory")
      counts_memory = true;
    else if (word == "--pairs" && i + 1 < argc)
      pairs = std::atoi(argv[++i]);
    else if (word == "--record" && i + 1 < argc)
      path = argv[++i];
    else
      tokens.push_back(std::atoi(argv[i]));
  }
  const bool fits =
      std::all_of(tokens.begin(), tokens.end(), [](int n) { return n > 0 && (n < 256 || n % 256 == 0); });
  if (tokens.empty() || !fits || pairs < 1) return usage();
  pin_rank();
  if (rank_of_world() == 0) std::printf("    BLAS kernels: %s\n", blas_kernels().c_str());
  Table table(rank_of_world() == 0);
  for (const int count : tokens) {
    if (path != nullptr)
      record(path, count);
    else if (counts_memory)
      memory(table, count);
    else
      time_steps(table, count, pairs);
  }
  return 0;
}

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--blas") {
    std::printf("%s\n", gemini_bench::blas_kernels().c_str());
    return 0;
  }
  gemini_bench::init_mpi(argc, argv);
  const int status = gemini_bench::run(argc, argv);
  MPI_Finalize();
  return status;
}
