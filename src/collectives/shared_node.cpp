#include "collectives/shared_node.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "base/error.hpp"
#include "base/text.hpp"
#include "collectives/basic_operations.hpp"

namespace gemini {
namespace {

constexpr const char* kSharing = "sharing memory on a node";

// Buffers of the largest size that are there from the start: one being written and two being added up. More
// are taken as they are needed.
constexpr int kSpareBuffers = 3;
// So many must find room in any case, or nothing is shared.
constexpr int kLikelyBuffers = 8;

std::string name_of(std::int64_t number) {
  return fmt::format("/gemini-{:x}", number);
}

// A name is needed only until all ranks have mapped what it stands for, or given up: a rank that is killed
// later leaves nothing behind.
class Named {
 public:
  Named(const std::int64_t* number, bool here) : number_(here ? number : nullptr) {}
  ~Named() { remove(); }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

  void remove() noexcept {
    if (number_ != nullptr && *number_ >= 0) SharedMemory::remove(name_of(*number_));
    number_ = nullptr;
  }

 private:
  const std::int64_t* number_;
};

}  // namespace

std::string SharedNode::share(Agreement& agreement, const std::vector<SharedChunk>& chunks) {
  parts_.clear();
  gradients_.reset();
  segment_ = SharedSegment(ranks_, chunks, kSpareBuffers);
  std::string refusal;
  const auto attempt = [&](auto&& act) {
    if (!refusal.empty()) return;
    try {
      act();
    } catch (const Error& error) {
      refusal = error.what();
    }
  };
  const auto all_could = [&] {
    Words could = {refusal.empty() ? 1 : 0};
    agreement.all_reduce(MPI_MIN, could, kSharing);
    return could[0] == 1;
  };

  const bool leads = me_ == 0;
  Words names(2 * static_cast<std::size_t>(nodes_), -1);  // of each segment, and its nonce
  std::int64_t* mine = names.data() + 2 * node_;
  Named named(mine, leads);
  if (leads) attempt([&] { create(mine[0], mine[1]); });
  agreement.all_reduce(MPI_MAX, names, kSharing);
  if (!leads) attempt([&] { open(mine[0], mine[1]); });
  bool all_fine = all_could();
  named.remove();
  const auto unless_refused = [&](auto&& act) {
    if (all_fine) attempt(act);
    all_fine = all_fine && all_could();
  };
  unless_refused([&] { reserve(chunks); });
  unless_refused([&] { check_room(chunks); });
  if (!all_fine) {
    declined_ = true;
    segment_ = {};
    return refusal.empty() ? "another rank cannot" : refusal;
  }
  prepare(chunks);
  return {};
}

void SharedNode::create(std::int64_t& number, std::int64_t& nonce) {
  static std::atomic<std::int64_t> count{0};
  for (;; ++count) {
    const std::int64_t tried = (static_cast<std::int64_t>(getpid()) << 20) + count;
    try {
      segment_.create(name_of(tried));
    } catch (const Error& error) {
      if (error.status() == GEMINI_ERR_DUPLICATE) continue;
      throw;
    }
    number = tried;
    break;
  }
  reserve_range(0, segment_.control_bytes());
  nonce = static_cast<std::int64_t>(std::random_device{}() >> 1);
  segment_.nonce() = static_cast<std::uint64_t>(nonce);
}

void SharedNode::open(std::int64_t number, std::int64_t nonce) {
  if (nonce < 0) fail(GEMINI_ERR_IO, "rank 0 of the node could not make it");
  segment_.open(name_of(number));
  if (segment_.nonce() != static_cast<std::uint64_t>(nonce))
    fail(GEMINI_ERR_IO, "the ranks do not see the same shared memory");
}

void SharedNode::reserve_range(std::int64_t offset, std::int64_t bytes) {
  if (!segment_.memory().reserve(offset, bytes))
    fail(GEMINI_ERR_OUT_OF_MEMORY, "{} has no room for {} more", kSharedMemory, text::format_bytes(bytes));
}

// Each rank what it will own, so that it lies near its processor.
void SharedNode::reserve(const std::vector<SharedChunk>& chunks) {
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const std::int64_t bytes = chunks[c].bytes / ranks_;
    if (chunks[c].in_memory) reserve_range(segment_.chunk_at(static_cast<int>(c)) + me_ * bytes, bytes);
  }
  reserve_range(segment_.arena_at(me_), segment_.spare_bytes());
}

// For what is taken later: copies, shards that come up from lower tiers, and gradients.
void SharedNode::check_room(const std::vector<SharedChunk>& chunks) const {
  const std::int64_t free = free_shared_memory();
  const std::int64_t buffers =
      std::min(segment_.arena_bytes(), segment_.spare_bytes() / kSpareBuffers * kLikelyBuffers);
  std::int64_t needed = ranks_ * (buffers - segment_.spare_bytes());
  for (const SharedChunk& chunk : chunks)
    if (!chunk.in_memory) needed += chunk.bytes;
  if (free >= 0 && needed > free)
    fail(GEMINI_ERR_OUT_OF_MEMORY, "{} has {} left, chunks and gradients may need {}", kSharedMemory,
         text::format_bytes(free), text::format_bytes(needed));
}

void SharedNode::prepare(const std::vector<SharedChunk>& chunks) {
  const SharedMemory& memory = segment_.memory();
  memory.populate(0, segment_.control_bytes());
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const std::int64_t at = segment_.chunk_at(static_cast<int>(c));
    const std::int64_t bytes = chunks[c].bytes / ranks_;
    parts_.emplace_back(memory, at + me_ * bytes, bytes, shows_ == Shows::part ? at + me_ * bytes : at,
                        &segment_.left(static_cast<int>(c), 0), ranks_);
    if (chunks[c].in_memory) memory.populate(at, chunks[c].bytes);
  }
  for (int rank = 0; rank < ranks_; ++rank) memory.populate(segment_.arena_at(rank), segment_.spare_bytes());
  gradients_.emplace(memory, segment_.arena_at(me_), segment_.arena_bytes());
  handed_ = 0;
}

std::uint32_t SharedNode::hand_over(const std::byte* gradient) {
  SharedSegment::Mail& mail = segment_.mail(me_);
  ++handed_;
  const std::int64_t at = gradient == nullptr ? -1 : gradient - segment_.memory().data();
  mail.at[handed_ % SharedSegment::Mail::kSlots].store(at, std::memory_order_relaxed);
  mail.handed.store(handed_, std::memory_order_release);
  return handed_;
}

}  // namespace gemini
