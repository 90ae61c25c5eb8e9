// Runs functors over an index range. The one place that knows the execution space.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

// Each index of an elementwise functor touches its own elements only: nothing is carried between them.
#if defined(__clang__)
#define GEMINI_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define GEMINI_INDEPENDENT _Pragma("GCC ivdep")
#else
#define GEMINI_INDEPENDENT
#endif

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

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t begin = index * size;
    const std::int64_t rest = count - begin;
    block(begin, begin + (rest < size ? rest : size));
  }
};

// See run_inline_on_this_thread.
inline thread_local bool runs_inline = false;

template <class Block>
void for_blocks(std::int64_t count, std::int64_t size, const Block& block) {
  if (count <= 0) return;
  const BlockRunner<Block> run{block, count, size};
  const std::int64_t blocks = (count - 1) / size + 1;
  if (runs_inline) {
    for (std::int64_t index = 0; index < blocks; ++index) run(index);
    return;
  }
  Kokkos::parallel_for(Range(0, blocks), run);
  Space().fence();
}

// A local copy of the functor lets the compiler see that stores do not change its members.
template <class Functor>
struct ElementBlock {
  Functor functor;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const Functor local = functor;
    GEMINI_INDEPENDENT
    for (std::int64_t i = begin; i < end; ++i) local(i);
  }
};

// functor(i) for i in [0, count), in any order
template <class Functor>
void for_each(std::int64_t count, const Functor& functor) {
  constexpr std::int64_t kBlock = 8192;
  for_blocks(count, kBlock, ElementBlock<Functor>{functor});
}

}  // namespace gemini::kernels
