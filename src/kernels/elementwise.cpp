#include "kernels/convert.hpp"
#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"

namespace gemini::kernels {
namespace {

template <class T>
struct Fill {
  T* x;
  T constant;
  KOKKOS_FORCEINLINE_FUNCTION T* output() const { return x; }
  KOKKOS_FORCEINLINE_FUNCTION T value(std::int64_t) const { return constant; }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit&) const {}
};

template <class T>
struct Scale {
  T* x;
  Wide<T> factor;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const {
    x[i] = convert_to<T>(widen(x[i]) * factor);
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(x);
  }
};

template <class T>
struct Add {
  const T* x;
  Wide<T>* sum;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const { sum[i] = sum[i] + widen(x[i]); }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(x), visit(sum);
  }
};

template <class T>
struct Axpy {
  Wide<T> a;
  const T* x;
  Wide<T>* y;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const {
    const Wide<T> product = a * widen(x[i]);
    y[i] = y[i] + product;
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(x), visit(y);
  }
};

template <class T>
struct Divide {
  T* x;
  Wide<T> divisor;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const {
    x[i] = convert_to<T>(widen(x[i]) / divisor);
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(x);
  }
};

template <class T>
struct AddQuotient {
  const T* x;
  T divisor;
  T* sum;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t i) const {
    const T quotient = x[i] / divisor;
    sum[i] = sum[i] + quotient;
  }
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void arrays(const Visit& visit) const {
    visit(x), visit(sum);
  }
};

}  // namespace

void fill(DType type, void* x, std::int64_t count, double value) {
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_output(count, Fill<T>{static_cast<T*>(x), convert_to<T>(value)});
  });
}

void scale(DType type, void* x, std::int64_t count, double factor) {
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each(count, Scale<T>{static_cast<T*>(x), static_cast<Wide<T>>(factor)});
  });
}

void add(DType type, const void* x, void* sum, std::int64_t count) {
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each(count, Add<T>{static_cast<const T*>(x), static_cast<Wide<T>*>(sum)});
  });
}

void axpy(DType type, double a, const void* x, void* y, std::int64_t count) {
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each(count, Axpy<T>{static_cast<Wide<T>>(a), static_cast<const T*>(x), static_cast<Wide<T>*>(y)});
  });
}

void divide(DType type, void* x, std::int64_t count, double divisor) {
  with_floating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each(count, Divide<T>{static_cast<T*>(x), static_cast<Wide<T>>(divisor)});
  });
}

void add_quotient(DType type, const void* x, double divisor, void* sum, std::int64_t count) {
  ensure(wide(type) == type, "add_quotient works on f64 and f32");
  if (type == DType::f64) {
    for_each(count, AddQuotient<double>{static_cast<const double*>(x), divisor, static_cast<double*>(sum)});
  } else {
    for_each(count, AddQuotient<float>{static_cast<const float*>(x), static_cast<float>(divisor),
                                       static_cast<float*>(sum)});
  }
}

}  // namespace gemini::kernels
