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

Network::Network(Settings settings, const Link& link, const Compute& compute)
    : ctx_(with_link(std::move(settings), link)), params_(ctx_.add(kOperations, kElems)), compute_(compute) {
  check(gemini_commit(ctx_));
}

void Network::operate(gemini_param_t param, bool backward) {
  check(gemini_pre_op(ctx_, &param, 1));
  if (backward) {
    void* gradient = nullptr;
    std::int32_t accumulate = 0;
    check(gemini_param_grad(param, &gradient, &accumulate));
    std::memset(gradient, 0, kBytes);
  }
  std::this_thread::sleep_for(backward ? compute_.backward : compute_.forward);
  check(gemini_post_op(ctx_, &param, 1));
}

std::int64_t Network::communications() const {
  std::int64_t gathers = 0, reductions = 0;
  check(gemini_stat(ctx_, GEMINI_STAT_GATHERS, &gathers));
  check(gemini_stat(ctx_, GEMINI_STAT_REDUCES, &reductions));
  return gathers + reductions;
}

Iteration Network::iterate() {
  Iteration done;
  check(gemini_stat_reset(ctx_));
  const Clock::time_point start = meet();
  for (gemini_param_t param : params_) operate(param, false);
  const Clock::time_point turn = Clock::now();
  done.forward.communications = communications();
  check(gemini_set_phase(ctx_, GEMINI_BACKWARD));
  for (auto param = params_.rbegin(); param != params_.rend(); ++param) operate(*param, true);
  check(gemini_step(ctx_, nullptr));
  const Clock::time_point end = Clock::now();
  done.whole.communications = communications();
  done.forward.time_s = slowest_s(start, turn);
  done.whole.time_s = slowest_s(start, end);
  return done;
}

Iteration compute_alone(const Compute& compute) {
  Iteration done;
  const Clock::time_point start = meet();
  for (int i = 0; i < kOperations; ++i) std::this_thread::sleep_for(compute.forward);
  const Clock::time_point turn = Clock::now();
  for (int i = 0; i < kOperations; ++i) std::this_thread::sleep_for(compute.backward);
  const Clock::time_point end = Clock::now();
  done.forward.time_s = slowest_s(start, turn);
  done.whole.time_s = slowest_s(start, end);
  return done;
}

}  // namespace gemini_bench
