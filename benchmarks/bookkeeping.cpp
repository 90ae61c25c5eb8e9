// What gemini_pre_op and gemini_post_op cost where nothing moves: an operation of 4 parameters that are here
// already, in models of more and more parameters.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "context.hpp"
#include "statistics.hpp"

namespace gemini_bench {
namespace {

constexpr int kLeased = 4;  // parameters of an operation
constexpr int kFew = 1000, kMany = 1000000;
constexpr double kMostNs = 200, kMostGrowth = 1.2;
constexpr std::size_t kCacheBytes = std::size_t{16} << 20;  // more than the first two levels hold

// `count` parameters, all of them RESIDENT, or all kept by placement = auto, since there is room.
class Model {
 public:
  Model(int count, std::int32_t flags) : ctx_({{"placement", "auto"}, {"optimizer", "sgd"}}) {
    params_ = ctx_.add(count, 16, flags);
    check(gemini_commit(ctx_));
  }

  [[nodiscard]] int operations() const { return static_cast<int>(params_.size()) / kLeased; }

  // Nanoseconds per operation of an iteration of `count` operations on the first `distinct` quadruples in
  // turn; cold: with caches filled with other things before each.
  double iterate(int count, int distinct, bool cold = false) {
    for (int i = 0; i < distinct; ++i) operate(i);  // gathers what a step made outdated
    while (in_flight() > 0) check(gemini_progress(ctx_));
    Clock::duration taken{};
    if (cold) {
      for (int i = 0; i < count; ++i) {
        fill_caches();
        const Clock::time_point start = Clock::now();
        operate(i % distinct);
        taken += Clock::now() - start;
      }
    } else {
      const Clock::time_point start = Clock::now();
      for (int i = 0, at = 0; i < count; ++i, at = at + 1 == distinct ? 0 : at + 1) operate(at);
      taken = Clock::now() - start;
    }
    check(gemini_set_phase(ctx_, GEMINI_BACKWARD));
    operate(0);
    check(gemini_step(ctx_, nullptr));
    return 1e9 * Seconds(taken).count() / count;
  }

 private:
  void operate(int quadruple) {
    const gemini_param_t* leased = &params_[static_cast<std::size_t>(quadruple) * kLeased];
    check(gemini_pre_op(ctx_, leased, kLeased));
    check(gemini_post_op(ctx_, leased, kLeased));
  }

  void fill_caches() {
    if (other_.empty()) other_.resize(kCacheBytes / sizeof(std::int64_t));
    for (std::size_t i = 0; i < other_.size(); i += 8) ++other_[i];
    benchmark::ClobberMemory();
  }

  [[nodiscard]] std::int64_t in_flight() const {
    std::int64_t works = 0;
    check(gemini_stat(ctx_, GEMINI_STAT_IN_FLIGHT, &works));
    return works;
  }

  Context ctx_;
  Params params_;
  std::vector<std::int64_t> other_;
};

constexpr int kOperations = 2000;  // of an iteration, on the first quadruple
constexpr int kWarmUp = 3;         // the order is learnt

// Fixed counts, since all ranks take part in a step.
void warm(benchmark::State& state, std::int32_t flags) {
  Model model(kFew, flags);
  for (int i = 0; i < kWarmUp; ++i) model.iterate(kOperations, 1);
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(1e-9 * model.iterate(kOperations, 1));
}
BENCHMARK_CAPTURE(warm, RESIDENT, GEMINI_PARAM_RESIDENT)->UseManualTime()->Iterations(5)->Repetitions(kPairs);
BENCHMARK_CAPTURE(warm, kept, 0)->UseManualTime()->Iterations(5)->Repetitions(kPairs);

class Reporter final : public benchmark::BenchmarkReporter {
 public:
  explicit Reporter(Table& table) : table_(table) {}

  bool ReportContext(const Context&) override { return true; }
  // Of all repetitions of one.
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<double> ns;
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration) ns.push_back(run.GetAdjustedRealTime());
    if (ns.empty()) return;
    const std::string what = runs.front().run_name.function_name.substr(5) + ", " +
                             std::to_string(ranks_of_world()) + (ranks_of_world() == 1 ? " rank" : " ranks");
    print_quartiles(table_, what, ns, "ns");
    table_.at_most(kMostNs, what + ", an operation of 4 parameters", median(ns), "ns");
  }

 private:
  Table& table_;
};

// Both models live at once and take turns.
void growth(Table& table, const char* kind, std::int32_t flags, int pairs) {
  Model few(kFew, flags), many(kMany, flags);
  for (int i = 0; i < kWarmUp; ++i) few.iterate(kOperations, 1), many.iterate(kOperations, 1);
  Pairs times;
  times.measure(
      pairs, [&] { return many.iterate(kOperations, 1); }, [&] { return few.iterate(kOperations, 1); });
  const std::string what = std::string(kind) + ", the same 4 of 1000000 parameters over of 1000";
  print_quartiles(table, what, times.ratios, "times");
  table.at_most(kMostGrowth, what + ", median", median(times.ratios), "times");

  std::vector<double> cold;
  for (int i = 0; i < kWarmUp; ++i) few.iterate(20, 1, true);  // another order
  for (int i = 0; i < pairs; ++i) cold.push_back(few.iterate(20, 1, true));
  table.row(std::string(kind) + ", first two levels of cache filled with other things", median(cold), "ns");
}

void cycle(Table& table, const char* kind, std::int32_t flags, int count) {
  Model model(count, flags);
  std::vector<double> ns;
  for (int i = 0; i < kWarmUp + 5; ++i) ns.push_back(model.iterate(model.operations(), model.operations()));
  table.row(std::string(kind) + ", all of " + std::to_string(count) + " parameters in turn",
            median({ns.begin() + kWarmUp, ns.end()}), "ns");
}

// Nothing but iterations of 1000 operations, to have their instructions counted from outside.
void count_instructions(int iterations) {
  Model model(kFew, 0);
  for (int i = 0; i < kWarmUp + iterations; ++i) model.iterate(1000, 1);
}

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  using namespace gemini_bench;
  init_mpi(argc, argv);
  benchmark::Initialize(&argc, argv);
  pin_rank();
  Table table(rank_of_world() == 0);
  if (argc == 3 && std::string(argv[1]) == "--iterations") {
    count_instructions(std::atoi(argv[2]));
  } else if (argc == 2 && std::string(argv[1]) == "--large") {
    growth(table, "RESIDENT", GEMINI_PARAM_RESIDENT, kPairs);
    growth(table, "kept", 0, kPairs);
    for (const int count : {kFew, kMany}) {
      cycle(table, "RESIDENT", GEMINI_PARAM_RESIDENT, count);
      cycle(table, "kept", 0, count);
    }
  } else {
    Reporter reporter(table);
    benchmark::RunSpecifiedBenchmarks(&reporter);
  }
  MPI_Finalize();
  return 0;
}
