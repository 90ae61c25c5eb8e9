#include "collectives/timed_transport.hpp"

#include <chrono>
#include <utility>

namespace gemini {
namespace {

class Timed final : public Operation {
 public:
  Timed(std::unique_ptr<Operation> real, std::int64_t bytes, TimedTransport::Sum& sum)
      : real_(std::move(real)), bytes_(bytes), sum_(sum) {}

  bool poll() override {
    if (began_ == Clock::time_point{}) began_ = Clock::now();
    if (!real_->poll()) return false;
    sum_.bytes += bytes_;
    sum_.ns += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - began_).count();
    return true;
  }
  [[nodiscard]] Clock::time_point idle_until() const override { return real_->idle_until(); }

 private:
  std::unique_ptr<Operation> real_;
  std::int64_t bytes_;
  TimedTransport::Sum& sum_;
  Clock::time_point began_{};
};

}  // namespace

std::unique_ptr<Operation> TimedTransport::acquire(const ShardedChunk& chunk, std::byte* slot) {
  auto operation = TransportOver::acquire(chunk, slot);
  if (!operation || slot == nullptr) return operation;  // nothing travels
  return std::make_unique<Timed>(std::move(operation), ranks() * chunk.shard_bytes(), gathers_);
}

std::unique_ptr<Operation> TimedTransport::reduce(const GradientReduction& reduction) {
  const std::int64_t bytes = ranks() * reduction.shard_elems * size_of(reduction.dtype);
  return std::make_unique<Timed>(TransportOver::reduce(reduction), bytes, reductions_);
}

double TimedTransport::take(Sum& sum) {
  const std::int64_t bytes = sum.bytes.exchange(0);
  const std::int64_t ns = sum.ns.exchange(0);
  return bytes == 0 ? 0.0 : static_cast<double>(ns) / static_cast<double>(bytes);
}

}  // namespace gemini
