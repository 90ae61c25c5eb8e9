// How much of the communication compute hides: hidden = 1 - (T - Tcompute) / Tcommunication, for a network
// whose every operation computes as long as its communication takes.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <optional>

#include "network.hpp"
#include "table.hpp"

namespace gemini_bench {
namespace {

// An operation of some 10 ms: long beside what this machine's clock and scheduler make uncertain.
constexpr Link kLink{1000, 0.03};
constexpr int kWarmUp = 3;  // the order is learnt, then planned from

struct Variant {
  const char* name;
  Settings settings;
  std::optional<double> goal;
};

const std::vector<Variant> kVariants = {
    {"placement=planned", {{"placement", "planned"}}, 0.95},
    {"placement=auto", {{"placement", "auto"}}, 0.90},
    {"prefetch=0, async_reduce=off", {{"prefetch", "0"}, {"async_reduce", "off"}}, {}},
};

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

// What one pass, or a whole iteration, took in each round.
struct Samples {
  std::vector<double> compute;
  std::vector<std::vector<double>> total = std::vector<std::vector<double>>(kVariants.size());

  // Of each round: its own waits are subtracted, so that what slows the machine slows both.
  [[nodiscard]] std::vector<double> exposed(std::size_t variant) const {
    std::vector<double> times;
    for (std::size_t i = 0; i < compute.size(); ++i) times.push_back(total[variant][i] - compute[i]);
    return times;
  }
};

void measure(Samples& forward, Samples& iteration, int rounds) {
  std::deque<Network> networks;
  for (const Variant& variant : kVariants) networks.emplace_back(variant.settings, kLink);
  for (Network& network : networks)
    for (int i = 0; i < kWarmUp; ++i) network.iterate();
  const auto each = std::chrono::duration_cast<Clock::duration>(kLink.time());
  for (int round = 0; round < rounds; ++round) {
    meet();
    const Clock::time_point start = Clock::now();
    compute(each);
    const Clock::time_point turn = Clock::now();
    compute(each);
    const Clock::time_point end = Clock::now();
    forward.compute.push_back(slowest_s(start, turn));
    iteration.compute.push_back(slowest_s(start, end));
    for (std::size_t v = 0; v < kVariants.size(); ++v) {
      const Network::Times times = networks[v].iterate();
      forward.total[v].push_back(times.forward_s);
      iteration.total[v].push_back(times.iteration_s);
    }
  }
}

void print(Table& table, const std::string& what, const Samples& samples, int communications) {
  const double link = communications * kLink.time().count();
  table.row(what + ": compute", 1e3 * quantile(samples.compute, 0.5), "ms");
  table.row(what + ": communication, from the link", 1e3 * link, "ms");
  table.row(what + ": communication, measured", 1e3 * quantile(samples.exposed(kVariants.size() - 1), 0.5),
            "ms");
  for (std::size_t v = 0; v < kVariants.size(); ++v) {
    const std::string name = what + ", " + kVariants[v].name;
    std::vector<double> hidden;
    for (const double exposed : samples.exposed(v)) hidden.push_back(1 - exposed / link);
    table.row(name + ": total", 1e3 * quantile(samples.total[v], 0.5), "ms");
    table.row(name + ": hidden, lower quartile", quantile(hidden, 0.25), "of 1");
    table.row(name + ": hidden, upper quartile", quantile(hidden, 0.75), "of 1");
    if (kVariants[v].goal)
      table.at_least(*kVariants[v].goal, name + ": hidden", quantile(hidden, 0.5), "of 1");
    else
      table.row(name + ": hidden", quantile(hidden, 0.5), "of 1");
  }
}

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  using namespace gemini_bench;
  int provided = 0, ranks = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int rounds = argc == 3 && std::string(argv[1]) == "--rounds" ? std::atoi(argv[2]) : 9;
  if (ranks != 2 || provided != MPI_THREAD_MULTIPLE || rounds < 1 || (argc != 1 && argc != 3)) {
    if (rank_of_world() == 0)
      std::fprintf(stderr, "usage: mpiexec -n 2 overlap [--rounds N]; needs MPI_THREAD_MULTIPLE\n");
    MPI_Finalize();
    return 2;
  }
  Table table(rank_of_world() == 0);
  Samples forward, iteration;
  measure(forward, iteration, rounds);
  print(table, "FORWARD", forward, kOperations);
  print(table, "iteration", iteration, 2 * kOperations);
  MPI_Finalize();
  return table.missed() ? 1 : 0;
}
