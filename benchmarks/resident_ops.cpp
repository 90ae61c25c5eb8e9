// What gemini_pre_op and gemini_post_op cost where the chunk is gathered already, in models of more and more
// parameters: nothing may grow with the model.
#include <benchmark/benchmark.h>

#include <chrono>
#include <map>

#include "context.hpp"
#include "table.hpp"

namespace gemini_bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSmallest = 10;
constexpr int kLargest = 100000;
constexpr int kOperations = 1000;  // measured in an iteration, on the same few parameters in every model
constexpr double kMostGrowth = 1.5;

// `count` parameters, all of them RESIDENT, or all of them kept by placement = auto, since there is room.
class Model {
 public:
  Model(int count, std::int32_t flags) : ctx_({{"placement", "auto"}, {"optimizer", "sgd"}}) {
    params_ = ctx_.add(count, 16, flags);
    check(gemini_commit(ctx_));
    for (int i = 0; i < 3; ++i) iterate();  // the order is learnt
  }

  // Seconds that an operation takes, pre_op and post_op.
  double iterate() {
    for (int i = 0; i < kSmallest; ++i) operate(i);  // gathers what a step made outdated
    while (in_flight() > 0) check(gemini_progress(ctx_));
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kOperations; ++i) operate(i % kSmallest);
    const std::chrono::duration<double> taken = Clock::now() - start;
    check(gemini_set_phase(ctx_, GEMINI_BACKWARD));
    operate(0);
    check(gemini_step(ctx_, nullptr));
    return taken.count() / kOperations;
  }

 private:
  void operate(int param) {
    gemini_param_t* leased = &params_[static_cast<std::size_t>(param)];
    check(gemini_pre_op(ctx_, leased, 1));
    check(gemini_post_op(ctx_, leased, 1));
  }

  [[nodiscard]] std::int64_t in_flight() const {
    std::int64_t works = 0;
    check(gemini_stat(ctx_, GEMINI_STAT_IN_FLIGHT, &works));
    return works;
  }

  Context ctx_;
  Params params_;
};

void operation(benchmark::State& state, std::int32_t flags) {
  Model model(static_cast<int>(state.range(0)), flags);
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(model.iterate());
}

// Fixed counts, since all ranks take part in a step.
void settings(benchmark::internal::Benchmark* of) {
  of->Arg(kSmallest)->Arg(1000)->Arg(kLargest)->UseManualTime()->Iterations(10)->Repetitions(5);
}
BENCHMARK_CAPTURE(operation, RESIDENT, GEMINI_PARAM_RESIDENT)->Apply(settings);
BENCHMARK_CAPTURE(operation, kept, 0)->Apply(settings);

// Medians into the table.
class Medians final : public benchmark::BenchmarkReporter {
 public:
  explicit Medians(Table& table) : table_(table) {}

  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.aggregate_name != "median") continue;
      const std::string& name = run.run_name.function_name;
      const int params = std::stoi(run.run_name.args);
      const double ns = run.GetAdjustedRealTime();
      table_.row(name + ", " + run.run_name.args + " parameters", ns, "ns");
      if (params == kSmallest) smallest_[name] = ns;
      if (params == kLargest)
        table_.at_most(kMostGrowth, name + ": largest model over smallest", ns / smallest_[name], "times");
    }
  }

 private:
  Table& table_;
  std::map<std::string, double> smallest_;
};

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  using namespace gemini_bench;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  benchmark::Initialize(&argc, argv);
  Table table(rank_of_world() == 0);
  Medians medians(table);
  benchmark::RunSpecifiedBenchmarks(&medians);
  MPI_Finalize();
  return table.missed() ? 1 : 0;
}
