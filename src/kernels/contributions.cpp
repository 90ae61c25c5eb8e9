// Sums over ranks: each contribution is read once, and what they are added to once.
#include "kernels/convert.hpp"
#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"

namespace gemini::kernels {
namespace {

template <class W>
struct Store {
  W* sum;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i, W total) const { sum[i] = total; }
};

template <class W>
struct StoreQuotient {
  W* sum;
  W divisor;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i, W total) const {
    sum[i] = W(0) + total / divisor;
  }
};

template <class W>
struct AddQuotient {
  W* sum;
  W divisor;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i, W total) const {
    const W quotient = total / divisor;
    sum[i] = sum[i] + quotient;
  }
};

// Rank by rank for a group of elements, whose totals stay in registers or in the nearest cache.
template <class T, class Finish>
struct SumBlock {
  using W = Wide<T>;
  const void* const* contributions;
  int ranks;
  Finish finish;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    std::int64_t first = begin;
    for (; first + kGroup <= end; first += kGroup) group(first, kGroup);
    if (first < end) group(first, end - first);
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION const T* of_rank(int rank) const {
    return static_cast<const T*>(contributions[rank]);
  }

  KOKKOS_FORCEINLINE_FUNCTION void group(std::int64_t first, std::int64_t count) const {
    alignas(kLineBytes) W total[kGroup];
    const Finish local = finish;
    Fetch{first}(local.sum);
    start(of_rank(0), first, count, total);
    for (int rank = 1; rank < ranks; ++rank) add(of_rank(rank), first, count, total);
    GEMINI_INDEPENDENT
    for (std::int64_t j = 0; j < count; ++j) local(first + j, total[j]);
  }

  KOKKOS_FORCEINLINE_FUNCTION static void start(const T* x, std::int64_t first, std::int64_t count,
                                                W* total) {
    if (x == nullptr) {
      for (std::int64_t j = 0; j < count; ++j) total[j] = W(0);
      return;
    }
    Fetch{first}(x);
    GEMINI_INDEPENDENT
    for (std::int64_t j = 0; j < count; ++j) total[j] = widen(x[first + j]);
  }

  // Zeros are added, too: they make +0 of -0.
  KOKKOS_FORCEINLINE_FUNCTION static void add(const T* x, std::int64_t first, std::int64_t count, W* total) {
    if (x == nullptr) {
      for (std::int64_t j = 0; j < count; ++j) total[j] = total[j] + W(0);
      return;
    }
    Fetch{first}(x);
    GEMINI_INDEPENDENT
    for (std::int64_t j = 0; j < count; ++j) total[j] = total[j] + widen(x[first + j]);
  }
};

template <class T, class Finish>
void add_up(const void* const* contributions, int ranks, const Finish& finish, std::int64_t count) {
  ensure(ranks >= 1, "a sum has a contribution");
  for_blocks(count, kElementBlock, SumBlock<T, Finish>{contributions, ranks, finish});
}

}  // namespace

void sum_contributions(DType type, const void* const* contributions, int ranks, void* sum,
                       std::int64_t count) {
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = Wide<T>;
    add_up<T>(contributions, ranks, Store<W>{static_cast<W*>(sum)}, count);
  });
}

void add_contributions(DType type, const void* const* contributions, int ranks, double divisor, bool first,
                       void* sum, std::int64_t count) {
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = Wide<T>;
    auto* const to = static_cast<W*>(sum);
    const auto by = static_cast<W>(divisor);
    if (first)
      add_up<T>(contributions, ranks, StoreQuotient<W>{to, by}, count);
    else
      add_up<T>(contributions, ranks, AddQuotient<W>{to, by}, count);
  });
}

}  // namespace gemini::kernels
