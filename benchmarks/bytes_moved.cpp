// Bytes that placement moves over the fewest possible, the largest model that trains under a cap, and what
// padding wastes. Counts, not times: the same on every machine.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "byte_bound.hpp"
#include "chunks/layout.hpp"
#include "context.hpp"
#include "placement/simulate.hpp"
#include "property/placement_traces.hpp"
#include "statistics.hpp"
#include "unit/placement/models.hpp"

namespace gemini_bench {
namespace {

using gemini::ChunkFacts;
using gemini::Trace;

struct Case {
  std::vector<ChunkFacts> facts;
  Trace trace;
  gemini::PolicyRules rules;
  gemini::Rates rates;
  std::int64_t resting_bytes = 0;
};

// As tests/property/placement_property_test.cpp makes them. prefetch: -1: auto.
Case random_case(unsigned seed, int prefetch) {
  gemini::random_traces::Maker make(seed);
  gemini::random_traces::Iteration iteration = make.iteration();
  Case made;
  made.facts = std::move(iteration.facts);
  made.trace = std::move(iteration.trace);
  made.resting_bytes = make.chance(50) ? 0 : make.below(500);
  const int all = static_cast<int>(iteration.all_bytes);
  if (make.chance(90)) made.rules.budget.limit_bytes = made.resting_bytes + all / 20 + make.below(all);
  if (make.chance(50)) made.rules.budget.fraction = 0.5 + 0.1 * make.below(5);
  made.rules.prefetch = prefetch;
  if (make.chance(80)) made.rates = {0.5 * make.below(6), 10.0 * make.below(5), 0.5 * make.below(4)};
  return made;
}

// Over many cases: all bytes together, and case by case.
class Moved {
 public:
  void add(const Case& with) {
    const Fewest fewest = fewest_bytes(with.trace, with.facts, with.rules.budget, with.resting_bytes);
    const auto bound = static_cast<double>(fewest.bytes);
    const auto automatic = make_auto_policy(with.facts, with.rules);
    const auto planned = make_planned_policy(with.facts, with.rules, &with.rates);
    const double by_auto = bytes(with, *automatic), by_plan = bytes(with, *planned);
    if (by_auto < 0 || by_plan < 0) return;
    inexact_ += fewest.exact ? 0 : 1;
    bound_ += bound;
    auto_ += by_auto;
    planned_ += by_plan;
    each_auto_.push_back(by_auto / bound);
    each_planned_.push_back(by_plan / bound);
  }
  void print(Table& table, const std::string& what, bool has_goal) const {
    table.row(what + ": iterations", static_cast<double>(each_auto_.size()), "");
    table.row(what + ": of which the fewest bytes are not known exactly", inexact_, "");
    const auto row = [&](double goal, const char* policy, double moved) {
      const std::string name = what + ": bytes moved by " + policy + " over the fewest";
      has_goal ? table.at_most(goal, name, moved / bound_, "times")
               : table.row(name, moved / bound_, "times");
    };
    row(1.05, "auto", auto_);
    row(1.02, "planned", planned_);
    table.row(what + ": auto, 95 % of iterations within", quantile(each_auto_, 0.95), "times");
    table.row(what + ": planned, 95 % of iterations within", quantile(each_planned_, 0.95), "times");
  }

 private:
  // -1: the iteration does not fit.
  static double bytes(const Case& with, gemini::Policy& policy) {
    policy.learn(with.trace);
    gemini::Simulator simulator(with.facts, {with.rules.budget, with.rates, with.resting_bytes});
    const gemini::Playback played = simulator.play(with.trace, policy);
    return played.fits ? static_cast<double>(played.gathered_bytes) : -1;
  }

  double inexact_ = 0, bound_ = 0, auto_ = 0, planned_ = 0;
  std::vector<double> each_auto_, each_planned_;
};

void bytes_moved(Table& table) {
  for (const int prefetch : {-1, 0}) {
    const std::string ahead = prefetch == 0 ? ", nothing ahead" : ", prefetch = auto";
    Moved random, networks;
    for (unsigned seed = 0; seed < 1500; ++seed) random.add(random_case(seed, prefetch));
    for (const gemini::models::Model& model : gemini::models::all())
      for (int slots = 1; slots <= 2 * model.chunks; ++slots) {
        Case with;
        with.facts.assign(static_cast<std::size_t>(model.chunks), {1000, 1000, 1000});
        with.trace = gemini::models::trace_of(model, 1000);
        with.rates = {1, 0, 1};
        with.rules.prefetch = prefetch;
        with.rules.budget.limit_bytes = 1000 * slots;
        networks.add(with);
      }
    networks.print(table, "networks" + ahead, prefetch == 0);
    random.print(table, "random iterations" + ahead, prefetch == 0);
  }
}

// Does a model of so many layers train under the cap, host memory and files not used?
bool trains(int layers, std::int64_t elems, std::int64_t cap) {
  Context ctx({{"device_memory", std::to_string(cap)},
               {"host_memory", "0"},
               {"collectives", "mpi"},
               {"chunk_elems", std::to_string(elems)}});
  Params params = ctx.add(layers, elems);
  const auto fits = [](gemini_status_t status) {
    if (status != GEMINI_ERR_OUT_OF_MEMORY && status != GEMINI_ERR_REMOTE) check(status);
    return status == GEMINI_SUCCESS;
  };
  if (!fits(gemini_commit(ctx))) return false;
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (gemini_param_t& param : params) {
      if (!fits(gemini_pre_op(ctx, &param, 1))) return false;
      check(gemini_post_op(ctx, &param, 1));
    }
    check(gemini_set_phase(ctx, GEMINI_BACKWARD));
    for (auto param = params.rbegin(); param != params.rend(); ++param) {
      if (!fits(gemini_pre_op(ctx, &*param, 1))) return false;
      gemini_grad(*param);
      check(gemini_post_op(ctx, &*param, 1));
    }
    check(gemini_step(ctx, nullptr));
  }
  return true;
}

// The bound: the shards of everything (16 B for each f32 parameter with AdamW) and, of the one operation that
// is under way, a gathered copy and a gradient.
void largest_model(Table& table) {
  constexpr std::int64_t kCap = std::int64_t{64} << 20, kElems = 65536;
  const std::int64_t per_layer = 16 * kElems / ranks_of_world();
  const auto bound = static_cast<int>((kCap - 2 * 4 * kElems) / per_layer);
  int fits = 1, too_large = bound + 1;
  while (too_large - fits > 1) {
    const int middle = (fits + too_large) / 2;
    (trains(middle, kElems, kCap) ? fits : too_large) = middle;
  }
  table.row("largest model under 64 MiB a rank, layers of 256 KiB", fits, "layers");
  table.row("largest model under 64 MiB a rank, over the most possible", static_cast<double>(fits) / bound,
            "of 1");
}

struct Architecture {
  std::string name;
  std::vector<gemini::TensorSpec> tensors;
};

// Of a shape such as 64x3x7x7.
gemini::TensorSpec tensor(const std::string& shape) {
  std::istringstream extents(shape);
  std::int64_t elems = 1, extent = 0;
  for (char times = 'x'; extents >> extent; extents >> times) elems *= extent;
  return {elems, gemini::DType::f32, gemini::DType::f32, false, false};
}

// benchmarks/architectures.txt says what its lines mean.
std::vector<Architecture> read_architectures(const std::string& path) {
  std::ifstream file(path);
  std::vector<Architecture> all;
  std::string line;
  std::size_t repeats = 1, first = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    if (word == "model") {
      std::getline(words >> std::ws, word);
      all.push_back({word.substr(0, word.find_last_not_of(' ') + 1), {}});
    } else if (word == "repeat") {
      words >> repeats;
      first = all.back().tensors.size();
    } else if (word == "end") {
      const std::vector<gemini::TensorSpec> block(
          all.back().tensors.begin() + static_cast<std::ptrdiff_t>(first), all.back().tensors.end());
      for (; repeats > 1; --repeats)
        all.back().tensors.insert(all.back().tensors.end(), block.begin(), block.end());
    } else {
      do all.back().tensors.push_back(tensor(word));
      while (words >> word);
    }
  }
  return all;
}

void padding(Table& table, const std::string& path) {
  const std::vector<Architecture> all = read_architectures(path);
  if (all.size() != 10) {
    std::fprintf(stderr, "%s: 10 architectures are expected, there are %zu\n", path.c_str(), all.size());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  for (const Architecture& architecture : all) {
    double elems = 0;
    for (const gemini::TensorSpec& tensor : architecture.tensors) elems += static_cast<double>(tensor.elems);
    table.row(architecture.name + ": parameters", 1e-6 * elems, "million");
    for (const int ranks : {2, 64}) {
      gemini::LayoutRules rules;
      rules.ranks = ranks;
      const gemini::Layout layout = make_layout(architecture.tensors, rules);
      table.row(architecture.name + ": padding, " + std::to_string(ranks) + " ranks, " +
                    std::to_string(layout.chunks.size()) + " chunks",
                100 * static_cast<double>(layout.padding_elems) / elems, "%");
    }
  }
}

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  using namespace gemini_bench;
  init_mpi(argc, argv);
  if (argc != 2) return refuse("mpiexec -n 2 bytes_moved architectures.txt");
  Table table(rank_of_world() == 0);
  largest_model(table);
  if (rank_of_world() == 0) {
    bytes_moved(table);
    padding(table, argv[1]);
  }
  MPI_Finalize();
  return 0;
}
