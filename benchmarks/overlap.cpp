// How much of the communication compute hides: hidden = 1 - (T - Tcompute) / Tcommunication, for a network
// whose every operation computes as long as its communication takes.
#include <cstdlib>
#include <deque>
#include <optional>

#include "network.hpp"
#include "statistics.hpp"

namespace gemini_bench {
namespace {

// An operation of some 5 ms: long beside what this machine's clock and scheduler make uncertain.
constexpr Link kLink{1000, 0.066};
constexpr int kWarmUp = 3;  // the order is learnt, then planned from

struct Variant {
  const char* name;
  Settings settings;
  std::optional<double> goal;
};

// The last hides nothing: all of its communication is measured.
const std::vector<Variant> kVariants = {
    {"planned", {{"placement", "planned"}}, 0.95},
    {"auto", {{"placement", "auto"}}, 0.90},
    {"auto, depth 4", {{"prefetch", "4"}}, {}},
    {"auto, depth 2", {{"prefetch", "2"}}, {}},
    {"auto, depth 1", {{"prefetch", "1"}}, {}},
    {"auto, depth 0", {{"prefetch", "0"}}, {}},
    {"nothing ahead", {{"prefetch", "0"}, {"async_reduce", "off"}}, {}},
};

// How long a BACKWARD operation communicates depends on whether its copy could be kept.
struct Scenario {
  const char* name;
  Settings settings;
  int backward_communications;  // of an operation
};

const std::vector<Scenario> kScenarios = {
    {"copies kept", {}, 1},
    {"little memory", {{"device_memory", "2900KiB"}}, 2},  // shards take 2 MiB, a copy 64 KiB
};

// Of one variant in one part of the iteration, by round.
struct Samples {
  std::vector<double> compute_ms, total_ms, link_ms, exposed_ms, hidden;

  // Each round's own waits are subtracted, so that what slows the machine slows both.
  void add(const Part& compute, const Part& part) {
    const double exposed_s = part.time_s - compute.time_s;
    const double link_s = static_cast<double>(part.communications) * kLink.time().count();
    compute_ms.push_back(1e3 * compute.time_s);
    total_ms.push_back(1e3 * part.time_s);
    link_ms.push_back(1e3 * link_s);
    exposed_ms.push_back(1e3 * exposed_s);
    hidden.push_back(1 - exposed_s / link_s);
  }
};

void print(Table& table, const std::string& what, const std::vector<Samples>& samples) {
  table.row(what + ": compute", median(samples.front().compute_ms), "ms");
  table.row(what + ": communication as measured", median(samples.back().exposed_ms), "ms");
  for (std::size_t v = 0; v < kVariants.size(); ++v) {
    const std::string name = what + ", " + kVariants[v].name;
    const double hidden = median(samples[v].hidden);
    if (!kVariants[v].goal) {
      table.row(name + ": hidden", hidden, "of 1");
      continue;
    }
    table.row(name + ": total", median(samples[v].total_ms), "ms");
    table.row(name + ": communication", median(samples[v].link_ms), "ms");
    print_quartiles(table, name + ": hidden", samples[v].hidden, "of 1");
    table.at_least(*kVariants[v].goal, name + ": hidden", hidden, "of 1");
  }
}

void run(Table& table, const Scenario& scenario, int rounds) {
  const auto each = std::chrono::duration_cast<Clock::duration>(kLink.time());
  const Compute compute{each, scenario.backward_communications * each};
  std::deque<Network> networks;
  for (const Variant& variant : kVariants) {
    Settings settings = scenario.settings;
    settings.insert(settings.end(), variant.settings.begin(), variant.settings.end());
    networks.emplace_back(std::move(settings), kLink, compute);
    for (int i = 0; i < kWarmUp; ++i) networks.back().iterate();
  }
  std::vector<Samples> forward(kVariants.size()), whole(kVariants.size());
  for (int round = 0; round < rounds; ++round) {
    const Iteration alone = compute_alone(compute);
    for (std::size_t v = 0; v < kVariants.size(); ++v) {
      const Iteration done = networks[v].iterate();
      forward[v].add(alone.forward, done.forward);
      whole[v].add(alone.whole, done.whole);
    }
  }
  print(table, std::string(scenario.name) + ", FORWARD", forward);
  print(table, std::string(scenario.name) + ", iteration", whole);
}

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  using namespace gemini_bench;
  const bool any_thread = init_mpi(argc, argv);
  const int rounds = argc == 3 && std::string(argv[1]) == "--rounds" ? std::atoi(argv[2]) : kPairs;
  if (ranks_of_world() != 2 || !any_thread || rounds < 1 || (argc != 1 && argc != 3))
    return refuse("mpiexec -n 2 overlap [--rounds N]; needs MPI_THREAD_MULTIPLE");
  pin_rank();
  Table table(rank_of_world() == 0);
  for (const Scenario& scenario : kScenarios) run(table, scenario, rounds);
  MPI_Finalize();
  return 0;
}
