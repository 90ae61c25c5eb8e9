#include "kernels/convert.hpp"

#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"

namespace gemini::kernels {
namespace {

template <class From, class To>
struct Convert {
  const From* x;
  To* y;
  KOKKOS_FORCEINLINE_FUNCTION To* output() const { return y; }
  KOKKOS_FORCEINLINE_FUNCTION To value(std::int64_t i) const { return convert_to<To>(x[i]); }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(x);
  }
};

}  // namespace

void convert(DType from, const void* x, DType to, void* y, std::int64_t count) {
  with_floating(from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    with_floating(to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      for_each_output(count, Convert<From, To>{static_cast<const From*>(x), static_cast<To*>(y)});
    });
  });
}

}  // namespace gemini::kernels
