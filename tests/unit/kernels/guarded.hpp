// Arrays that start at an odd place between guard bytes, filled with values of every kind, and their
// comparison.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/dtype.hpp"
#include "kernels/reference/reference.hpp"

namespace gemini::test {

constexpr DType kFloating[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
constexpr std::int64_t kSizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1023, 1025};
constexpr std::int64_t kOffsets[] = {0, 1, 3};

class Guarded {
 public:
  Guarded(DType type, std::int64_t count, std::int64_t offset)
      : type_(type),
        count_(count),
        begin_(kGuard + offset * size_of(type)),
        end_(begin_ + count * size_of(type)),
        storage_(static_cast<std::size_t>((end_ + kGuard) / 8 + 1), kPattern) {}

  [[nodiscard]] DType type() const { return type_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] void* data() { return bytes() + begin_; }
  [[nodiscard]] const void* data() const { return bytes() + begin_; }
  // Element i as the start of a piece
  [[nodiscard]] void* at(std::int64_t i) { return bytes() + begin_ + i * size_of(type_); }

  Guarded& random(unsigned seed, double width = 1.0) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal(0.0, width);
    for (std::int64_t i = 0; i < count_; ++i) reference::store(type_, data(), i, normal(engine));
    return *this;
  }

  // Every bit pattern is possible: subnormals, infinities and NaN too.
  Guarded& any_bits(unsigned seed) {
    std::mt19937_64 engine(seed);
    for (std::int64_t i = 0; i < count_; ++i) {
      const std::uint64_t bits = engine();
      std::memcpy(at(i), &bits, static_cast<std::size_t>(size_of(type_)));
    }
    return *this;
  }

  Guarded& absolute() {
    for (std::int64_t i = 0; i < count_; ++i) {
      reference::store(type_, data(), i, std::fabs(reference::load(type_, data(), i)));
    }
    return *this;
  }

  [[nodiscard]] bool guards_intact() const {
    const auto* pattern = reinterpret_cast<const unsigned char*>(&kPattern);
    const auto total = static_cast<std::int64_t>(storage_.size() * 8);
    for (std::int64_t b = 0; b < total; ++b) {
      if ((b < begin_ || b >= end_) && bytes()[b] != pattern[b % 8]) return false;
    }
    return true;
  }

 private:
  static constexpr std::int64_t kGuard = 64;
  static constexpr std::uint64_t kPattern = 0xa5c396e17b2d4f88;
  [[nodiscard]] unsigned char* bytes() { return reinterpret_cast<unsigned char*>(storage_.data()); }
  [[nodiscard]] const unsigned char* bytes() const {
    return reinterpret_cast<const unsigned char*>(storage_.data());
  }

  DType type_;
  std::int64_t count_, begin_, end_;
  std::vector<std::uint64_t> storage_;
};

// Bit-equal (signed zeros differ), any NaN being as good as another.
inline testing::AssertionResult same(const Guarded& a, const Guarded& b) {
  if (!a.guards_intact() || !b.guards_intact()) return testing::AssertionFailure() << "wrote past an end";
  const auto size = static_cast<std::size_t>(size_of(a.type()));
  for (std::int64_t i = 0; i < a.count(); ++i) {
    const auto* x = static_cast<const unsigned char*>(a.data()) + static_cast<std::size_t>(i) * size;
    const auto* y = static_cast<const unsigned char*>(b.data()) + static_cast<std::size_t>(i) * size;
    if (std::memcmp(x, y, size) == 0) continue;
    const double u = reference::load(a.type(), a.data(), i), v = reference::load(b.type(), b.data(), i);
    if (std::isnan(u) && std::isnan(v)) continue;
    return testing::AssertionFailure() << name_of(a.type()) << " element " << i << " of " << a.count() << ": "
                                       << std::hexfloat << u << " and " << v;
  }
  return testing::AssertionSuccess();
}

// run(type, count, offset) for all of them
template <class Run>
void for_all_shapes(Run run) {
  for (const DType type : kFloating) {
    for (const std::int64_t count : kSizes) {
      for (const std::int64_t offset : kOffsets) {
        SCOPED_TRACE(testing::Message() << name_of(type) << " count " << count << " offset " << offset);
        run(type, count, offset);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

}  // namespace gemini::test
