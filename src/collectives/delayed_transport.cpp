#include "collectives/delayed_transport.hpp"

#include <utility>

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

class DelayedTransport final : public Transport {
 public:
  DelayedTransport(std::unique_ptr<Transport> real, LinkDelay delay)
      : real_(std::move(real)), delay_(delay) {}

  [[nodiscard]] const char* name() const override { return "delayed"; }
  [[nodiscard]] int ranks() const override { return real_->ranks(); }
  [[nodiscard]] bool needs_slot() const override { return real_->needs_slot(); }
  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override {
    return delayed(real_->acquire(chunk, slot));
  }
  [[nodiscard]] std::byte* view(const ShardedChunk& chunk, std::byte* slot) const override {
    return real_->view(chunk, slot);
  }
  std::unique_ptr<Operation> reduce(const GradientReduction& reduction) override {
    return delayed(real_->reduce(reduction));
  }

 private:
  // The real transport counted what the operation will send.
  std::unique_ptr<Operation> delayed(std::unique_ptr<Operation> operation) {
    const WireCounters sent = real_->wire();
    real_->reset_wire();
    wire_.gather_bytes += sent.gather_bytes;
    wire_.reduce_bytes += sent.reduce_bytes;
    const double bits = 8.0 * static_cast<double>(sent.gather_bytes + sent.reduce_bytes);
    const std::chrono::duration<double, std::nano> time(1e3 * delay_.latency_us + bits / delay_.gbit_per_s);
    return std::make_unique<Delayed>(std::move(operation), std::chrono::duration_cast<Clock::duration>(time));
  }

  std::unique_ptr<Transport> real_;
  LinkDelay delay_;
};

}  // namespace

std::unique_ptr<Transport> make_delayed_transport(std::unique_ptr<Transport> real, LinkDelay delay) {
  return std::make_unique<DelayedTransport>(std::move(real), delay);
}

}  // namespace gemini
