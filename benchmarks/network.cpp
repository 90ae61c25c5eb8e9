#include "network.hpp"

#include <cstring>
#include <thread>

namespace gemini_bench {
namespace {

constexpr std::int64_t kElems = 16384;
constexpr std::int64_t kBytes = kElems * 4;

Settings with_link(Settings settings, const Link& link) {
  settings.emplace_back("collectives", link.option());
  settings.emplace_back("chunk_elems", std::to_string(kElems));
  settings.emplace_back("optimizer", "sgd");
  return settings;
}

}  // namespace

Seconds Link::time() const {
  return Seconds(1e-6 * latency_us + 8.0 * kBytes / 2 / (1e9 * gbit_per_s));
}

std::string Link::option() const {
  return "delayed:" + std::to_string(latency_us) + "," + std::to_string(gbit_per_s);
}

void compute(Clock::duration each) {
  for (int i = 0; i < kOperations; ++i) std::this_thread::sleep_for(each);
}

void meet() {
  MPI_Barrier(MPI_COMM_WORLD);
}

double slowest_s(Clock::time_point start, Clock::time_point end) {
  double time = Seconds(end - start).count();
  MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return time;
}

Network::Network(Settings settings, const Link& link)
    : ctx_(with_link(std::move(settings), link)),
      params_(ctx_.add(kOperations, kElems)),
      compute_(std::chrono::duration_cast<Clock::duration>(link.time())) {
  check(gemini_commit(ctx_));
}

void Network::operate(gemini_param_t param, bool writes_gradient) {
  check(gemini_pre_op(ctx_, &param, 1));
  if (writes_gradient) {
    void* gradient = nullptr;
    std::int32_t accumulate = 0;
    check(gemini_param_grad(param, &gradient, &accumulate));
    std::memset(gradient, 0, kBytes);
  }
  std::this_thread::sleep_for(compute_);
  check(gemini_post_op(ctx_, &param, 1));
}

Network::Times Network::iterate() {
  meet();
  const Clock::time_point start = Clock::now();
  for (gemini_param_t param : params_) operate(param, false);
  const Clock::time_point turn = Clock::now();
  check(gemini_set_phase(ctx_, GEMINI_BACKWARD));
  for (auto param = params_.rbegin(); param != params_.rend(); ++param) operate(*param, true);
  check(gemini_step(ctx_, nullptr));
  const Clock::time_point end = Clock::now();
  return {slowest_s(start, turn), slowest_s(start, end)};
}

}  // namespace gemini_bench
