// A transport over another one; passes everything on.
#pragma once

#include <memory>
#include <utility>

#include "collectives/transport.hpp"

namespace gemini {

class TransportOver : public Transport {
 public:
  explicit TransportOver(std::unique_ptr<Transport> real) : real_(std::move(real)) {}

  [[nodiscard]] const char* name() const override { return real_->name(); }
  [[nodiscard]] int ranks() const override { return real_->ranks(); }
  [[nodiscard]] bool needs_slot() const override { return real_->needs_slot(); }
  std::unique_ptr<Operation> acquire(const ShardedChunk& chunk, std::byte* slot) override {
    return real_->acquire(chunk, slot);
  }
  [[nodiscard]] std::byte* view(const ShardedChunk& chunk, std::byte* slot) const override {
    return real_->view(chunk, slot);
  }
  std::unique_ptr<Operation> reduce(const GradientReduction& reduction) override {
    return real_->reduce(reduction);
  }
  PageSource& shard_pages(int chunk) override { return real_->shard_pages(chunk); }
  PageSource& gradient_pages() override { return real_->gradient_pages(); }
  [[nodiscard]] int ranks_per_slot() const override { return real_->ranks_per_slot(); }
  PageSource& open_slot(int chunk) override { return real_->open_slot(chunk); }
  PageSource& close_slot(int chunk) override { return real_->close_slot(chunk); }
  std::unique_ptr<Operation> clear_slot(int chunk) override { return real_->clear_slot(chunk); }
  void publish(int chunk) override { real_->publish(chunk); }
  void leave(int chunk) override { real_->leave(chunk); }
  std::unique_ptr<Operation> vacate(int chunk) override { return real_->vacate(chunk); }
  [[nodiscard]] const WireCounters& wire() const override { return real_->wire(); }
  void reset_wire() override { real_->reset_wire(); }

 protected:
  [[nodiscard]] Transport& real() const { return *real_; }

 private:
  std::unique_ptr<Transport> real_;
};

}  // namespace gemini
