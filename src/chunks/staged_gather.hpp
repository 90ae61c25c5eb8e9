// A gather whose shard lies in a lower tier: it is brought to its place in the slot first.
#pragma once

#include <cstring>
#include <memory>
#include <utility>

#include "collectives/comm_queue.hpp"
#include "memory/stored.hpp"

namespace gemini {

class StagedGather final : public Operation {
 public:
  // A read from a file starts at once, ahead of the operation's turn in the queue, unless the slot must be
  // clear first (NULL: it is). gather NULL: staging is all.
  StagedGather(Tiers& tiers, const Stored& shard, std::int64_t bytes, std::byte* place,
               std::unique_ptr<Operation> clear, std::unique_ptr<Operation> gather)
      : tiers_(tiers),
        shard_(shard),
        bytes_(bytes),
        place_(place),
        clear_(std::move(clear)),
        gather_(std::move(gather)) {
    if (!clear_) start_reading();
  }

  bool poll() override {
    if (clear_) {
      if (!clear_->poll()) return false;
      clear_.reset();
      start_reading();
    }
    return staged() && (!gather_ || gather_->poll());
  }

 private:
  void start_reading() {
    if (shard_.in_file()) reading_ = tiers_.files->read(shard_.extent(), 0, place_, bytes_);
  }
  bool staged() {
    if (staged_) return true;
    if (shard_.in_file()) {
      if (!tiers_.files->done(reading_)) return false;
      tiers_.files->wait(reading_);  // throws if the read failed
    } else {
      std::memcpy(place_, shard_.data(), static_cast<std::size_t>(bytes_));
    }
    return staged_ = true;
  }

  Tiers& tiers_;
  const Stored& shard_;
  std::int64_t bytes_;
  std::byte* place_;
  std::unique_ptr<Operation> clear_, gather_;
  Transfer reading_{};
  bool staged_ = false;
};

}  // namespace gemini
