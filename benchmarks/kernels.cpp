// How near the kernels come to the speed of the machine's memory: each beside a loop over the same arrays
// that computes next to nothing, in pairs, one right after the other.
#include "kernels/kernels.hpp"

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "kernels/launch.hpp"
#include "kernels/optimizers.hpp"
#include "kernels/runtime.hpp"
#include "statistics.hpp"
#include "streams.hpp"

namespace gemini_bench {
namespace {

using gemini::DType;
using gemini::kernels::Hyper;
using gemini::kernels::Optimizer;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kCount = std::int64_t{1}
                                << 26;  // 256 MiB of f32: four such arrays leave no cache a chance
constexpr double kGoal = 0.95;
constexpr Hyper kHyper{1e-3, 0.9, 0.999, 1e-8, 0.01, 0.0, false};

// Large pages, so that memory is measured and not the walk through page tables.
void* allocate(std::size_t bytes) {
  void* memory = std::aligned_alloc(std::size_t{1} << 21, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return memory;
}

struct Arrays {
  float *w, *m, *v, *g;
  std::uint16_t* copy;
};

// Allocated once and never freed; all values 0, so that no number of passes leaves the range of f32.
const Arrays& arrays() {
  const auto floats = [] { return static_cast<float*>(allocate(kCount * sizeof(float))); };
  static const Arrays all{floats(), floats(), floats(), floats(),
                          static_cast<std::uint16_t*>(allocate(kCount * sizeof(std::uint16_t)))};
  return all;
}

// The bytes that the program asks for: reads and writes.
struct Work {
  std::function<void()> run;
  double bytes;
};

double bytes_per_s(const Work& work) {
  const Clock::time_point start = Clock::now();
  work.run();
  return work.bytes / std::chrono::duration<double>(Clock::now() - start).count();
}

struct Rates {
  std::vector<double> kernel, ratio;
};
std::vector<std::pair<std::string, Rates>> rates;  // by name, in the order of the table

// Which of the two comes first changes from pair to pair.
void pairs(benchmark::State& state, const std::string& what, const Work& kernel, const Work& peer) {
  bytes_per_s(kernel);
  bytes_per_s(peer);
  Rates& all = rates.emplace_back(what + " (" + gemini::kernels::instruction_level() + ")", Rates()).second;
  bool kernel_first = true;
  for ([[maybe_unused]] auto _ : state) {
    const double before = kernel_first ? 0.0 : bytes_per_s(peer);
    const double of_kernel = bytes_per_s(kernel);
    const double of_peer = kernel_first ? bytes_per_s(peer) : before;
    kernel_first = !kernel_first;
    all.kernel.push_back(of_kernel);
    all.ratio.push_back(of_kernel / of_peer);
    state.SetIterationTime(kernel.bytes / of_kernel);
  }
}

void update(Optimizer optimizer, bool with_copy) {
  const Arrays& a = arrays();
  gemini::kernels::update(
      optimizer, kHyper, 10,
      {kCount, DType::f32, a.w, a.g, 0.5, a.m, a.v, DType::bf16, with_copy ? a.copy : nullptr});
}

constexpr double kArray = 4.0 * kCount;

void adamw(benchmark::State& state) {
  const Arrays& a = arrays();
  pairs(state, "AdamW", {[] { update(Optimizer::adamw, false); }, 7 * kArray},
        {[&] { stream_w_m_v_g(a.w, a.m, a.v, a.g, kCount); }, 7 * kArray});
}

void adamw_with_copy(benchmark::State& state) {
  const Arrays& a = arrays();
  pairs(state, "AdamW with bf16 copy", {[] { update(Optimizer::adamw, true); }, 7.5 * kArray},
        {[&] { stream_w_m_v_g_copy(a.w, a.m, a.v, a.g, a.copy, kCount); }, 7.5 * kArray});
}

void sgd(benchmark::State& state) {
  const Arrays& a = arrays();
  pairs(state, "SGD", {[] { update(Optimizer::sgd, false); }, 3 * kArray},
        {[&] { stream_w_g(a.w, a.g, kCount); }, 3 * kArray});
}

void lion(benchmark::State& state) {
  const Arrays& a = arrays();
  pairs(state, "Lion", {[] { update(Optimizer::lion, false); }, 5 * kArray},
        {[&] { stream_w_m_g(a.w, a.m, a.g, kCount); }, 5 * kArray});
}

void convert(benchmark::State& state) {
  const Arrays& a = arrays();
  pairs(state, "convert f32 to bf16",
        {[&] { gemini::kernels::convert(DType::f32, a.w, DType::bf16, a.copy, kCount); }, 1.5 * kArray},
        {[&] { stream_halves(a.w, a.copy, kCount); }, 1.5 * kArray});
}

// Four ranks' gradients into the sum of one shard. Beside memcpy, which moves no more than two arrays at
// once: a look at what the machine can do, not the same work.
void contributions(benchmark::State& state) {
  const Arrays& a = arrays();
  constexpr std::int64_t kQuarter = kCount / 4;
  const void* ranks[] = {a.g, a.g + kQuarter, a.g + 2 * kQuarter, a.g + 3 * kQuarter};
  const Work copy{[&] { std::memcpy(a.m, a.g, static_cast<std::size_t>(kArray) / 2); }, kArray};
  pairs(state, "add_contributions of 4 ranks",
        {[&] { gemini::kernels::add_contributions(DType::f32, ranks, 4, 4.0, false, a.m, kQuarter); },
         6 * kArray / 4},
        copy);
}

void fill(benchmark::State& state) {
  const Arrays& a = arrays();
  pairs(state, "fill", {[&] { gemini::kernels::fill(DType::f32, a.m, kCount, 0.0); }, kArray},
        {[&] { std::memset(a.m, 0, static_cast<std::size_t>(kArray)); }, kArray});
}

// As on processors that have less
void adamw_at_lower_levels(benchmark::State& state) {
  const auto levels = hwy::SupportedAndGeneratedTargets();
  const auto index = static_cast<std::size_t>(state.range(0));
  if (index >= levels.size()) return state.SkipWithError("not on this processor");
  hwy::SetSupportedTargetsForTest(levels[index]);
  hwy::GetChosenTarget().DeInit();
  adamw(state);
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

#define GEMINI_BENCH(function) \
  BENCHMARK(function)->UseManualTime()->Iterations(kPairs)->Unit(benchmark::kMillisecond)
GEMINI_BENCH(adamw);
GEMINI_BENCH(adamw_with_copy);
GEMINI_BENCH(sgd);
GEMINI_BENCH(lion);
GEMINI_BENCH(convert);
GEMINI_BENCH(fill);
GEMINI_BENCH(contributions);
GEMINI_BENCH(adamw_at_lower_levels)->DenseRange(1, 2);

class Quiet final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

void print(Table& table) {
  const std::string adamw_in_force = std::string("AdamW (") + gemini::kernels::instruction_level() + ")";
  for (const auto& [name, all] : rates) {
    table.row(name + ": rate", median(all.kernel) / 1e9, "GB/s");
    print_quartiles(table, name + ": over copy", all.ratio, "of 1");
    const double ratio = median(all.ratio);
    if (name == adamw_in_force)
      table.at_least(kGoal, name + ": over copy", ratio, "of 1");
    else
      table.row(name + ": over copy", ratio, "of 1");
  }
}

}  // namespace
}  // namespace gemini_bench

int main(int argc, char** argv) {
  using namespace gemini_bench;
  benchmark::Initialize(&argc, argv);
  gemini::kernels::start();
  Quiet quiet;
  benchmark::RunSpecifiedBenchmarks(&quiet);
  Table table(true);
  print(table);
  Kokkos::finalize();
  return 0;
}
