// Runs functors over an index range. The one place that knows the execution space.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

#include "kernels/dispatch.hpp"
#include "kernels/elements.hpp"

namespace gemini::kernels {

using Space = Kokkos::DefaultHostExecutionSpace;
using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;

// Calls block(begin, end) for pieces of at most `size` indices and returns when all are done. Results are to
// be joined by operations that do not depend on order (Kokkos::atomic_*): unlike Kokkos' reductions that is
// safe from several host threads.
template <class Block>
struct BlockRunner {
  Block block;
  std::int64_t count, size;
  RunBlock<Block> run_block;

  void operator()(std::int64_t index) const {
    const std::int64_t begin = index * size;
    const std::int64_t rest = count - begin;
    run_block(block, begin, begin + (rest < size ? rest : size));
  }
};

// See run_inline_on_this_thread.
inline thread_local bool runs_inline = false;

template <class Block>
void for_blocks(std::int64_t count, std::int64_t size, const Block& block) {
  if (count <= 0) return;
  const BlockRunner<Block> run{block, count, size, best_for_this_processor<Block>()};
  const std::int64_t blocks = (count - 1) / size + 1;
  if (runs_inline) {
    for (std::int64_t index = 0; index < blocks; ++index) run(index);
    return;
  }
  Kokkos::parallel_for(Range(0, blocks), run);
  Space().fence();
}

constexpr std::int64_t kElementBlock = 8192;

// functor(i) for i in [0, count), in any order; functor.arrays(visit) shows each array that it reads or
// writes.
template <class Functor>
void for_each(std::int64_t count, const Functor& functor) {
  for_blocks(count, kElementBlock, ElementBlock<Functor>{functor});
}

// functor.output()[i] = functor.value(i) for i in [0, count), in any order; functor.arrays(visit) shows the
// other arrays.
template <class Functor>
void for_each_output(std::int64_t count, const Functor& functor) {
  const bool streams = count * std::int64_t{sizeof *functor.output()} >= streamed_from_bytes;
  for_blocks(count, kElementBlock, OutputBlock<Functor>{functor, streams});
}

}  // namespace gemini::kernels
