#include "collectives/delayed_transport.hpp"

#include <utility>

#include "collectives/transport_over.hpp"

namespace gemini {
namespace {

class Delayed final : public Operation {
 public:
  Delayed(std::unique_ptr<Operation> real, Clock::duration delay) : real_(std::move(real)), delay_(delay) {}

  bool poll() override {
    if (due_ == Clock::time_point{}) due_ = Clock::now() + delay_;
    arrived_ = arrived_ || real_->poll();
    return arrived_ && Clock::now() >= due_;
  }
  [[nodiscard]] Clock::time_point idle_until() const override {
    return arrived_ ? due_ : Clock::time_point{};
  }

 private:
  std::unique_ptr<Operation> real_;
  Clock::duration delay_;
  Clock::time_point due_{};
  bool arrived_ = false;
};

class DelayedTransport final : public TransportOver {
 public:
  DelayedTransport(std::unique_ptr<Transport> real, LinkDelay delay)
      : TransportOver(std::move(real)), delay_(delay) {}

  [[nodiscard]] const char* name() const override { return "delayed"; }
  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override {
    const std::int64_t before = sent();
    return delayed(TransportOver::acquire(chunk, slot), before);
  }
  std::unique_ptr<Operation> reduce(const GradientReduction& reduction) override {
    const std::int64_t before = sent();
    return delayed(TransportOver::reduce(reduction), before);
  }

 private:
  [[nodiscard]] std::int64_t sent() const { return wire().gather_bytes + wire().reduce_bytes; }

  // The real transport has counted what the operation will send.
  [[nodiscard]] std::unique_ptr<Operation> delayed(std::unique_ptr<Operation> operation,
                                                   std::int64_t before) const {
    if (!operation) return nullptr;
    const double bits = 8.0 * static_cast<double>(sent() - before);
    const std::chrono::duration<double, std::nano> time(1e3 * delay_.latency_us + bits / delay_.gbit_per_s);
    return std::make_unique<Delayed>(std::move(operation), std::chrono::duration_cast<Clock::duration>(time));
  }

  LinkDelay delay_;
};

}  // namespace

std::unique_ptr<Transport> make_delayed_transport(std::unique_ptr<Transport> real, LinkDelay delay) {
  return std::make_unique<DelayedTransport>(std::move(real), delay);
}

}  // namespace gemini
