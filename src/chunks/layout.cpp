#include "chunks/layout.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace gemini {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

using GroupKey = std::tuple<DType, DType, bool, bool>;

// Tensors of one group, in order, into chunks of at most `capacity`.
class Packer {
 public:
  Packer(const std::vector<TensorSpec>& tensors, const std::vector<int>& members, std::int64_t align)
      : tensors_(tensors), members_(members), align_(align) {}

  // place(tensor, opens, used): tensor goes into the chunk at hand, or opens the next. A tensor larger than
  // the capacity is given to oversize(tensor).
  template <class Place, class Oversize>
  void pack(std::int64_t capacity, Place&& place, Oversize&& oversize) const {
    std::int64_t used = capacity;  // no chunk is open yet
    for (const int tensor : members_) {
      const std::int64_t elems = padded(tensor);
      if (elems > capacity) {
        oversize(tensor);
        continue;
      }
      const bool opens = used + elems > capacity;
      used = opens ? elems : used + elems;
      place(tensor, opens, used);
    }
  }

  // Elements that chunks of this capacity would occupy.
  [[nodiscard]] std::int64_t occupied(std::int64_t capacity, std::int64_t unit) const {
    std::int64_t chunks = 0;
    std::int64_t fill = 0;
    std::int64_t alone = 0;
    pack(
        capacity,
        [&](int, bool opens, std::int64_t used) {
          chunks += opens ? 1 : 0;
          fill = std::max(fill, used);
        },
        [&](int tensor) { alone += round_up(padded(tensor), unit); });
    return chunks * round_up(fill, unit) + alone;
  }

  [[nodiscard]] std::int64_t padded(int tensor) const {
    return round_up(tensors_[static_cast<std::size_t>(tensor)].elems, align_);
  }
  [[nodiscard]] std::int64_t total() const {
    std::int64_t sum = 0;
    for (const int tensor : members_) sum += padded(tensor);
    return sum;
  }

 private:
  const std::vector<TensorSpec>& tensors_;
  const std::vector<int>& members_;
  std::int64_t align_;
};

// The capacity of least waste in the range; the larger of two that waste the same. Small models get about
// eight chunks, so that they are not gathered whole by each operation.
std::int64_t search_capacity(const Packer& packer, const LayoutRules& rules, std::int64_t unit) {
  constexpr std::int64_t kCandidates = 64;
  const std::int64_t low = std::min(rules.search_min_elems, rules.search_max_elems);
  const std::int64_t high = std::clamp(packer.total() / 8, low, rules.search_max_elems);
  std::int64_t best = high;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t i = 0; i <= kCandidates; ++i) {
    const std::int64_t capacity = high - (high - low) / kCandidates * i;
    const std::int64_t occupied = packer.occupied(capacity, unit);
    if (occupied < least) {
      least = occupied;
      best = capacity;
    }
  }
  return best;
}

void add_chunk(Layout& layout, const std::vector<TensorSpec>& tensors, const Packer& packer,
               const std::vector<int>& members, std::int64_t elems, int ranks) {
  const TensorSpec& like = tensors[static_cast<std::size_t>(members.front())];
  std::int64_t offset = 0;
  for (const int tensor : members) {
    layout.places[static_cast<std::size_t>(tensor)] = {static_cast<int>(layout.chunks.size()), offset};
    offset += packer.padded(tensor);
    layout.padding_elems -= tensors[static_cast<std::size_t>(tensor)].elems;
  }
  layout.padding_elems += elems;
  layout.chunks.push_back(
      {like.dtype, like.grad_dtype, like.frozen, like.resident, elems, elems / ranks, members});
}

void pack_group(Layout& layout, const std::vector<TensorSpec>& tensors, const std::vector<int>& members,
                const LayoutRules& rules) {
  const std::int64_t align = std::max<std::int64_t>(
      1, rules.align_bytes / size_of(tensors[static_cast<std::size_t>(members.front())].dtype));
  const std::int64_t unit = align * rules.ranks;
  const Packer packer(tensors, members, align);
  const std::int64_t capacity =
      rules.chunk_elems > 0 ? round_up(rules.chunk_elems, align) : search_capacity(packer, rules, unit);
  std::vector<std::vector<int>> regular;
  std::vector<int> oversize;
  std::int64_t fill = 0;
  packer.pack(
      capacity,
      [&](int tensor, bool opens, std::int64_t used) {
        if (opens) regular.emplace_back();
        regular.back().push_back(tensor);
        fill = std::max(fill, used);
      },
      [&](int tensor) { oversize.push_back(tensor); });
  const std::int64_t elems = round_up(fill, unit);
  layout.chunk_elems = std::max(layout.chunk_elems, elems);
  for (const auto& chunk : regular) add_chunk(layout, tensors, packer, chunk, elems, rules.ranks);
  for (const int tensor : oversize)
    add_chunk(layout, tensors, packer, {tensor}, round_up(packer.padded(tensor), unit), rules.ranks);
}

}  // namespace

Layout make_layout(const std::vector<TensorSpec>& tensors, const LayoutRules& rules) {
  Layout layout;
  layout.places.resize(tensors.size());
  std::map<GroupKey, std::size_t> group_of;
  std::vector<std::vector<int>> groups;  // in order of their first tensor
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const TensorSpec& tensor = tensors[t];
    if (tensor.elems == 0) continue;
    const GroupKey key{tensor.dtype, tensor.grad_dtype, tensor.frozen, tensor.resident};
    const auto group = group_of.emplace(key, groups.size()).first->second;
    if (group == groups.size()) groups.emplace_back();
    groups[group].push_back(static_cast<int>(t));
  }
  for (const auto& members : groups) pack_group(layout, tensors, members, rules);
  return layout;
}

std::vector<ShardPiece> pieces_of_shard(const Layout& layout, const std::vector<TensorSpec>& tensors,
                                        int chunk, int rank) {
  const ChunkSpec& spec = layout.chunks[static_cast<std::size_t>(chunk)];
  const std::int64_t begin = rank * spec.shard_elems;
  const std::int64_t end = begin + spec.shard_elems;
  std::vector<ShardPiece> pieces;
  for (const int tensor : spec.tensors) {
    const std::int64_t offset = layout.places[static_cast<std::size_t>(tensor)].offset;
    const std::int64_t first = std::max(begin, offset);
    const std::int64_t last = std::min(end, offset + tensors[static_cast<std::size_t>(tensor)].elems);
    if (first < last) pieces.push_back({tensor, first - offset, last - first, first - begin});
  }
  return pieces;
}

}  // namespace gemini
