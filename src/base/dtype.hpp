// Element types: the values of gemini_dtype_t, their sizes and names, and a way from a value to a C++ type.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/error.hpp"
#include "base/float16.hpp"

namespace gemini {

enum class DType : std::int32_t {
  f64 = GEMINI_F64,
  f32 = GEMINI_F32,
  f16 = GEMINI_F16,
  bf16 = GEMINI_BF16,
  i32 = GEMINI_I32,
  i64 = GEMINI_I64
};

constexpr std::int64_t size_of(DType type) noexcept {
  switch (type) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
  }
  return 0;
}

constexpr const char* name_of(DType type) noexcept {
  switch (type) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
  }
  return "unknown";
}

constexpr bool is_valid(std::int32_t value) noexcept {
  return value >= GEMINI_F64 && value <= GEMINI_I64;
}
constexpr bool is_floating(DType type) noexcept {
  return type != DType::i32 && type != DType::i64;
}
constexpr bool is_16bit(DType type) noexcept {
  return type == DType::f16 || type == DType::bf16;
}

// What sums, moments and master copies of a parameter of this type are kept in.
constexpr DType wide(DType type) noexcept {
  return type == DType::f64 ? DType::f64 : DType::f32;
}

template <class T>
struct TypeTag {
  using type = T;
};

// with_floating(dtype, [&](auto tag) { using T = typename decltype(tag)::type; ... });
template <class Function>
decltype(auto) with_floating(DType type, Function&& function) {
  switch (type) {
    case DType::f64: return function(TypeTag<double>{});
    case DType::f32: return function(TypeTag<float>{});
    case DType::f16: return function(TypeTag<Half>{});
    case DType::bf16: return function(TypeTag<BFloat16>{});
    default: fail(GEMINI_ERR_INTERNAL, "no arithmetic on dtype {}", name_of(type));
  }
}

}  // namespace gemini
