#include "collectives/shared_transport.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "collectives/basic_operations.hpp"
#include "collectives/shared_reduction.hpp"

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

// Done when a counter of every rank has reached a value. It takes a place in the queue even where there is
// nothing to wait for: places mean the same on all ranks.
class CounterWait final : public Operation {
 public:
  CounterWait(const SharedSegment::Counter* first, int ranks, std::uint32_t value)
      : first_(first), ranks_(ranks), value_(value) {}
  bool poll() override {
    for (; reached_ < ranks_; ++reached_) {
      const std::uint32_t counter = first_[reached_].load(std::memory_order_acquire);
      if (static_cast<std::int32_t>(counter - value_) < 0) return false;
    }
    return true;
  }

 private:
  const SharedSegment::Counter* first_;
  int ranks_;
  std::uint32_t value_;
  int reached_ = 0;  // ranks whose counter has
};

}  // namespace

bool SharedTransport::possible(const Topology& topology) {
  if (topology.group_ranks() == 1) return false;
  return std::all_of(topology.groups.begin(), topology.groups.end(), [&](const std::vector<int>& group) {
    return std::all_of(group.begin(), group.end(), [&](int rank) {
      return topology.node_of[static_cast<std::size_t>(rank)] ==
             topology.node_of[static_cast<std::size_t>(group.front())];
    });
  });
}

SharedTransport::SharedTransport(std::unique_ptr<MpiTransport> mpi, const Topology& topology)
    : TransportOver(std::move(mpi)),
      topology_(topology),
      comm_(static_cast<MpiTransport&>(real()).comm()),
      room_(topology, MpiTransport::kStagingBytes, INT_MAX) {}

std::string SharedTransport::share(Agreement& agreement, const std::vector<SharedChunk>& chunks) {
  shards_.clear();
  gradients_.reset();
  segment_ = SharedSegment(ranks(), chunks, kSpareBuffers);
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

  const bool leads = topology_.group_index == 0;
  Words names(2 * topology_.groups.size(), -1);  // of each group's segment, and its nonce
  std::int64_t* mine = names.data() + 2 * topology_.group;
  if (leads) attempt([&] { create(mine[0], mine[1]); });
  agreement.all_reduce(MPI_MAX, names, kSharing);
  if (!leads) attempt([&] { open(mine[0], mine[1]); });
  attempt([&] { reserve(chunks); });
  const bool all_reserved = all_could();
  if (leads && mine[0] >= 0) SharedMemory::remove(name_of(mine[0]));
  if (all_reserved) attempt([&] { check_room(); });
  if (!all_reserved || !all_could()) {
    declined_ = true;
    segment_ = {};
    return refusal.empty() ? "another rank cannot" : refusal;
  }
  prepare(chunks);
  return {};
}

void SharedTransport::create(std::int64_t& number, std::int64_t& nonce) {
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

void SharedTransport::open(std::int64_t number, std::int64_t nonce) {
  if (nonce < 0) fail(GEMINI_ERR_IO, "rank 0 of the node could not make it");
  segment_.open(name_of(number));
  if (segment_.nonce() != static_cast<std::uint64_t>(nonce))
    fail(GEMINI_ERR_IO, "the ranks do not see the same shared memory");
}

void SharedTransport::reserve_range(std::int64_t offset, std::int64_t bytes) {
  if (!segment_.memory().reserve(offset, bytes))
    fail(GEMINI_ERR_OUT_OF_MEMORY, "{} has no room for {} more", kSharedMemory, text::format_bytes(bytes));
}

// Each rank what it will own, so that it lies near its processor.
void SharedTransport::reserve(const std::vector<SharedChunk>& chunks) {
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const std::int64_t bytes = chunks[c].shard_bytes;
    if (chunks[c].in_memory)
      reserve_range(segment_.chunk_at(static_cast<int>(c)) + topology_.group_index * bytes, bytes);
  }
  reserve_range(segment_.arena_at(topology_.group_index), segment_.spare_bytes());
}

void SharedTransport::check_room() const {
  const std::int64_t free = free_shared_memory();
  const std::int64_t buffers =
      std::min(segment_.arena_bytes(), segment_.spare_bytes() / kSpareBuffers * kLikelyBuffers);
  const std::int64_t needed = topology_.node_ranks() * (buffers - segment_.spare_bytes());
  if (free >= 0 && needed > free)
    fail(GEMINI_ERR_OUT_OF_MEMORY, "{} has {} left, gradients may need {}", kSharedMemory,
         text::format_bytes(free), text::format_bytes(needed));
}

void SharedTransport::prepare(const std::vector<SharedChunk>& chunks) {
  const SharedMemory& memory = segment_.memory();
  const int me = topology_.group_index;
  memory.populate(0, segment_.control_bytes());
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const std::int64_t at = segment_.chunk_at(static_cast<int>(c));
    shards_.emplace_back(memory, at + me * chunks[c].shard_bytes, chunks[c].shard_bytes);
    if (chunks[c].in_memory) memory.populate(at, ranks() * chunks[c].shard_bytes);
  }
  for (int rank = 0; rank < ranks(); ++rank) memory.populate(segment_.arena_at(rank), segment_.spare_bytes());
  gradients_.emplace(memory, segment_.arena_at(me), segment_.arena_bytes());
  published_.assign(chunks.size(), 0);
  left_.assign(chunks.size(), 0);
  handed_ = 0;
}

std::unique_ptr<Operation> SharedTransport::acquire(const ShardedChunk& chunk, std::byte* slot) {
  if (slot != nullptr || !segment_) return TransportOver::acquire(chunk, slot);
  return std::make_unique<CounterWait>(&segment_.version(chunk.index, 0), ranks(),
                                       published_[static_cast<std::size_t>(chunk.index)]);
}

std::byte* SharedTransport::view(const ShardedChunk& chunk, std::byte* slot) const {
  if (slot != nullptr || !segment_) return TransportOver::view(chunk, slot);
  return segment_.memory().data() + segment_.chunk_at(chunk.index);
}

// The buffer is handed over at once; what the queue does in its turn is to add.
std::unique_ptr<Operation> SharedTransport::reduce(const GradientReduction& reduction) {
  if (!reduction.from_slot || !segment_) return TransportOver::reduce(reduction);
  SharedSegment::Mail& mail = segment_.mail(topology_.group_index);
  ++handed_;
  const std::int64_t at = reduction.gradient == nullptr ? -1 : reduction.gradient - segment_.memory().data();
  mail.at[handed_ % SharedSegment::Mail::kSlots].store(at, std::memory_order_relaxed);
  mail.handed.store(handed_, std::memory_order_release);
  wire_.reduce_bytes += reduction.shard_elems * size_of(wide(reduction.dtype)) * (topology_.replicas() - 1);
  return std::make_unique<SharedReduction>(comm_, topology_, room_, segment_, reduction, handed_);
}

PageSource& SharedTransport::shard_pages(int chunk) {
  return segment_ ? shards_[static_cast<std::size_t>(chunk)] : private_pages();
}

PageSource& SharedTransport::gradient_pages() {
  return gradients_ ? *gradients_ : private_pages();
}

void SharedTransport::publish(int chunk) {
  if (segment_)
    segment_.version(chunk, topology_.group_index)
        .store(++published_[static_cast<std::size_t>(chunk)], std::memory_order_release);
}

void SharedTransport::leave(int chunk) {
  if (segment_)
    segment_.left(chunk, topology_.group_index)
        .store(++left_[static_cast<std::size_t>(chunk)], std::memory_order_release);
}

std::unique_ptr<Operation> SharedTransport::vacate(int chunk) {
  if (!segment_) return nullptr;
  return std::make_unique<CounterWait>(&segment_.left(chunk, 0), ranks(),
                                       left_[static_cast<std::size_t>(chunk)]);
}

}  // namespace gemini
