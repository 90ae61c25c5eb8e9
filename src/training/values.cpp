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

std::shared_ptr<Staging> staging(std::int64_t count, DType type) {
  return std::make_shared<Staging>(static_cast<std::size_t>(count * size_of(type)));
}

// What this rank has to do where the run's values move from rank `from` to rank `to` (-1: all).
std::unique_ptr<Operation> move_operation(Ranks& ranks, const std::shared_ptr<Staging>& values, DType type,
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

void move(Ranks& ranks, const std::shared_ptr<Staging>& values, DType type, int from, int to) {
  ranks.queue().run(move_operation(ranks, values, type, from, to), kWhat);
}

void load_run(const Chunk& chunk, const Run& run, ValueKind kind, double factor, DType as, Staging& to) {
  if (kind == ValueKind::master) {
    kernels::convert(chunk.master_dtype(), chunk.master_data() + run.offset * size_of(chunk.master_dtype()),
                     as, to.data(), run.count);
    return;
  }
  const DType type = wide(chunk.spec.dtype);
  const std::byte* sum = chunk.grad_sum.data() + run.offset * size_of(type);
  Staging scaled(sum, sum + run.count * size_of(type));
  if (factor != 1.0) kernels::scale(type, scaled.data(), run.count, factor);
  kernels::convert(type, scaled.data(), as, to.data(), run.count);
}

}  // namespace

void read_values(Ranks& ranks, const Chunk& chunk, const Parameter& p, ValueKind kind, double factor,
                 DType as, std::byte* to, int root) {
  const int me = ranks.topology().rank;
  for_each_run(chunk, p, [&](const Run& run) {
    const int owner = ranks.owners(run.shard).front();
    auto values = staging(run.count, as);
    if (me == owner) load_run(chunk, run, kind, factor, as, *values);
    move(ranks, values, as, owner, root);
    if (root < 0 || root == me) std::copy(values->begin(), values->end(), to + run.first_elem * size_of(as));
  });
}

void write_values(Ranks& ranks, Chunk& chunk, const Parameter& p, DType type, const std::byte* from,
                  int root) {
  const int me = ranks.topology().rank;
  for_each_run(chunk, p, [&](const Run& run) {
    const std::byte* values = root < 0 || root == me ? from + run.first_elem * size_of(type) : nullptr;
    auto travelling = staging(root < 0 ? 0 : run.count, type);
    if (root == me) std::copy_n(values, run.count * size_of(type), travelling->begin());
    for (const int owner : ranks.owners(run.shard)) {
      if (root >= 0) move(ranks, travelling, type, root, owner);
      if (me == owner)
        store_values(chunk, run.offset, run.count, type, root < 0 ? values : travelling->data());
    }
  });
}

void store_values(Chunk& chunk, std::int64_t offset, std::int64_t count, DType type, const std::byte* from) {
  const DType master = chunk.master_dtype();
  std::byte* to = chunk.master_data() + offset * size_of(master);
  kernels::convert(type, from, master, to, count);
  if (chunk.master)
    kernels::convert(master, to, chunk.spec.dtype, chunk.shard.data() + offset * size_of(chunk.spec.dtype),
                     count);
}

}  // namespace gemini
