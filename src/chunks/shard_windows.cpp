#include "chunks/shard_windows.hpp"

#include <algorithm>

namespace gemini {

Staging::Staging(Tier& tier, std::int64_t window_elems)
    : block_(tier.allocate(bytes_for(window_elems), "the staging buffers of spill_dir")),
      window_elems_(window_elems) {}

// Whoever leaves a pass early must not leave transfers behind that use its buffers.
ShardPass::~ShardPass() {
  for (int set = 0; set < Staging::kSets; ++set) {
    try {
      wait_for(set);
    } catch (...) {  // the reason for leaving is on its way already
    }
  }
}

bool ShardPass::touched(const Chunk& chunk, std::size_t item) const {
  return chunk.items[item] && ((reads_ | writes_) >> item & 1U) != 0;
}

void ShardPass::add(Chunk& chunk) {
  bool staged = false;
  for (std::size_t item = 0; item < kItems; ++item)
    staged = staged || (touched(chunk, item) && chunk.items[item].in_file());
  const std::int64_t elems = chunk.spec.shard_elems;
  const std::int64_t window = staged ? staging_.window_elems() : elems;
  for (std::int64_t first = 0; first < elems; first += window) {
    steps_.push_back({&chunk, first, std::min(window, elems - first), staged ? next_set_ : -1, false});
    if (staged) next_set_ = (next_set_ + 1) % Staging::kSets;
  }
}

// transfer(item index, offset in bytes, bytes) for what the step has in files.
template <class Transfer>
void ShardPass::each_staged(const Step& step, Items which, Transfer&& transfer) {
  for (std::size_t item = 0; item < kItems; ++item) {
    if ((which >> item & 1U) == 0 || !touched(*step.chunk, item) || !step.chunk->items[item].in_file())
      continue;
    const std::int64_t size = size_of(step.chunk->dtype_of(static_cast<Item>(item)));
    transfer(item, step.first * size, step.count * size);
  }
}

void ShardPass::start_reads(Step& step) {
  if (step.set < 0 || step.reading) return;
  step.reading = true;
  wait_for(step.set);  // written from there, three windows ago
  each_staged(step, reads_, [&](std::size_t item, std::int64_t offset, std::int64_t bytes) {
    in_flight_[static_cast<std::size_t>(step.set)].push_back(
        tiers_.files->read(step.chunk->items[item].extent(), offset, staging_.buffer(step.set, item), bytes));
  });
}

void ShardPass::start_writes(const Step& step) {
  if (step.set < 0) return;
  each_staged(step, writes_, [&](std::size_t item, std::int64_t offset, std::int64_t bytes) {
    in_flight_[static_cast<std::size_t>(step.set)].push_back(tiers_.files->write(
        step.chunk->items[item].extent(), offset, staging_.buffer(step.set, item), bytes));
  });
}

void ShardPass::wait_for(int set) {
  auto& transfers = in_flight_[static_cast<std::size_t>(set)];
  while (!transfers.empty()) {
    const auto transfer = transfers.back();
    transfers.pop_back();
    tiers_.files->wait(transfer);
  }
}

ShardWindow ShardPass::window_of(const Step& step) const {
  ShardWindow window{step.chunk, step.first, step.count, {}};
  for (std::size_t item = 0; item < kItems; ++item) {
    if (!touched(*step.chunk, item)) continue;
    const Stored& stored = step.chunk->items[item];
    window.at[item] =
        stored.in_file()
            ? staging_.buffer(step.set, item)
            : stored.data() + step.first * size_of(step.chunk->dtype_of(static_cast<Item>(item)));
  }
  return window;
}

bool ShardPass::next(ShardWindow& window) {
  if (done_ > 0) start_writes(steps_[done_ - 1]);
  if (done_ == steps_.size()) {
    for (int set = 0; set < Staging::kSets; ++set) wait_for(set);
    return false;
  }
  Step& step = steps_[done_];
  start_reads(step);
  if (step.set >= 0) wait_for(step.set);
  if (done_ + 1 < steps_.size()) start_reads(steps_[done_ + 1]);
  window = window_of(step);
  ++done_;
  return true;
}

}  // namespace gemini
