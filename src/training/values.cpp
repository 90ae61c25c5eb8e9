#include "training/values.hpp"

#include <algorithm>
#include <memory>

#include "collectives/basic_operations.hpp"
#include "kernels/kernels.hpp"

namespace gemini {
namespace {

constexpr std::int64_t kPieceElems = std::int64_t{1} << 20;
constexpr const char* kWhat = "moving values between ranks";

// A run of a parameter's elements in one shard, short enough for one message.
struct Run {
  int shard;
  std::int64_t first_elem, count, offset;  // offset: in the shard
};

template <class Visit>
void for_each_run(const Chunk& chunk, const Parameter& p, Visit&& visit) {
  const std::int64_t shard = chunk.spec.shard_elems;
  for (std::int64_t first = 0; first < p.elems;) {
    const std::int64_t at = p.offset + first;
    const std::int64_t count = std::min({p.elems - first, shard - at % shard, kPieceElems});
    visit(Run{static_cast<int>(at / shard), first, count, at % shard});
    first += count;
  }
}

std::shared_ptr<Bytes> staging(std::int64_t count, DType type) {
  return std::make_shared<Bytes>(static_cast<std::size_t>(count * size_of(type)));
}

// What this rank has to do where the run's values move from rank `from` to rank `to` (-1: all).
std::unique_ptr<Operation> move_operation(Ranks& ranks, const std::shared_ptr<Bytes>& values, DType type,
                                          int from, int to) {
  const int me = ranks.topology().rank;
  const int count = static_cast<int>(values->size()) / static_cast<int>(size_of(type));
  MPI_Comm comm = ranks.agreement().comm();
  if (to < 0 && ranks.topology().ranks > 1)
    return std::make_unique<Broadcast>(comm, mpi_type(type), values, count, from);
  if (to >= 0 && from != to && me == from)
    return std::make_unique<Message>(Message::Way::send, comm, mpi_type(type), values, count, to);
  if (to >= 0 && from != to && me == to)
    return std::make_unique<Message>(Message::Way::receive, comm, mpi_type(type), values, count, from);
  return std::make_unique<Nothing>();  // so that places in the queue mean the same on all ranks
}

void move(Ranks& ranks, const std::shared_ptr<Bytes>& values, DType type, int from, int to) {
  ranks.queue().run(move_operation(ranks, values, type, from, to), kWhat);
}

void load_run(Tiers& tiers, const Chunk& chunk, const Run& run, ValueKind kind, double factor, DType as,
              Bytes& to) {
  const Item item = kind == ValueKind::master ? chunk.master_item() : Item::grad_sum;
  const DType type = chunk.dtype_of(item);
  const std::int64_t size = size_of(type);
  Bytes values(static_cast<std::size_t>(run.count * size));
  chunk.item(item).load(tiers, run.offset * size, run.count * size, values.data());
  if (factor != 1.0) kernels::scale(type, values.data(), run.count, factor);
  kernels::convert(type, values.data(), as, to.data(), run.count);
}

}  // namespace

void read_values(Ranks& ranks, Tiers& tiers, const Chunk& chunk, const Parameter& p, ValueKind kind,
                 double factor, DType as, std::byte* to, int root) {
  const int me = ranks.topology().rank;
  for_each_run(chunk, p, [&](const Run& run) {
    const int owner = ranks.owners(run.shard).front();
    auto values = staging(run.count, as);
    if (me == owner) load_run(tiers, chunk, run, kind, kind == ValueKind::master ? 1.0 : factor, as, *values);
    move(ranks, values, as, owner, root);
    if (root < 0 || root == me) std::copy(values->begin(), values->end(), to + run.first_elem * size_of(as));
  });
}

void write_values(Ranks& ranks, Tiers& tiers, Chunk& chunk, const Parameter& p, DType type,
                  const std::byte* from, int root) {
  const int me = ranks.topology().rank;
  for_each_run(chunk, p, [&](const Run& run) {
    const std::byte* values = root < 0 || root == me ? from + run.first_elem * size_of(type) : nullptr;
    auto travelling = staging(root < 0 ? 0 : run.count, type);
    if (root == me) std::copy_n(values, run.count * size_of(type), travelling->begin());
    for (const int owner : ranks.owners(run.shard)) {
      if (root >= 0) move(ranks, travelling, type, root, owner);
      if (me == owner)
        store_values(tiers, chunk, run.offset, run.count, type, root < 0 ? values : travelling->data());
    }
  });
}

void store_values(Tiers& tiers, Chunk& chunk, std::int64_t offset, std::int64_t count, DType type,
                  const std::byte* from) {
  const auto put = [&](Item item, DType given, const std::byte* values) {
    const DType kept = chunk.dtype_of(item);
    Bytes converted(static_cast<std::size_t>(count * size_of(kept)));
    kernels::convert(given, values, kept, converted.data(), count);
    chunk.item(item).store(tiers, offset * size_of(kept), count * size_of(kept), converted.data());
    return converted;
  };
  const Bytes master = put(chunk.master_item(), type, from);
  if (chunk.has_master()) put(Item::param, chunk.master_dtype(), master.data());  // rounded once, from there
}

}  // namespace gemini
