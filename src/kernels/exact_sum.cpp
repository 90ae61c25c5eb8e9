#include "kernels/exact_sum.hpp"

#include <cmath>
#include <limits>

#include "kernels/convert.hpp"
#include "kernels/limbs.hpp"

namespace gemini {
namespace {

using namespace kernels;

// One addition changes a limb by less than 2^33; limbs added over ranks may have reached 2^62 before.
constexpr std::int64_t kAddsBeforeCarry = std::int64_t{1} << 20;

static_assert(ExactSum::kLimbs == kNonFiniteLimb + 1);

using Limbs = std::array<std::int64_t, ExactSum::kLimbs>;

void take_carries(Limbs& limbs) noexcept {
  std::int64_t carry = 0;
  for (int k = 0; k < kTopLimb; ++k) {
    const std::int64_t total = limbs[k] + carry;
    limbs[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(total) & kLimbMask);
    carry = total >> kLimbBits;
  }
  limbs[kTopLimb] += carry;
}

// Makes the number positive and normalised; returns whether it was negative.
bool take_sign(Limbs& limbs) noexcept {
  take_carries(limbs);
  if (limbs[kTopLimb] >= 0) return false;
  for (int k = 0; k <= kTopLimb; ++k) limbs[k] = -limbs[k];
  take_carries(limbs);
  return true;
}

// The top limb may hold more than 32 bits: then the sum is far above the largest double.
double rounded(const Limbs& limbs) noexcept {
  if (limbs[kTopLimb] > static_cast<std::int64_t>(kLimbMask)) return std::numeric_limits<double>::infinity();
  int high = kTopLimb;
  while (high >= 0 && limbs[high] == 0) --high;
  if (high < 0) return 0.0;
  const auto limb = [&](int k) { return k < 0 ? std::uint64_t{0} : static_cast<std::uint64_t>(limbs[k]); };
  int zeros = 0;
  while (((limb(high) << zeros) & 0x80000000u) == 0) ++zeros;
  const std::uint64_t third = limb(high - 2) << zeros;
  const std::uint64_t window = ((limb(high) << kLimbBits | limb(high - 1)) << zeros) | third >> kLimbBits;
  bool sticky = (third & kLimbMask) != 0;
  for (int k = high - 3; k >= 0 && !sticky; --k) sticky = limbs[k] != 0;

  std::uint64_t mantissa = window >> 11;
  const std::uint64_t rest = window & 0x7ffu;
  if (rest > 0x400u || (rest == 0x400u && (sticky || (mantissa & 1u) != 0))) ++mantissa;
  return std::ldexp(static_cast<double>(mantissa), kLimbBits * (high - 1) - zeros + 11 - 1074);
}

}  // namespace

void ExactSum::add(double value) noexcept {
  const std::uint64_t bits = bits_of(value);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ffu);
  if (exponent == 0x7ff) {
    ++limbs_[kNonFiniteLimb];
    return;
  }
  if (adds_ >= kAddsBeforeCarry) normalise();
  ++adds_;
  const std::uint64_t fraction = bits & 0xfffffffffffffu;
  const std::uint64_t magnitude = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
  const bool negative = (bits >> 63) != 0;
  spread(magnitude, exponent == 0 ? 0 : exponent - 1,
         [&](int limb, std::int64_t part) { limbs_[limb] += negative ? -part : part; });
}

void ExactSum::add(const ExactSum& other) noexcept {
  Limbs terms = other.limbs_;
  take_carries(terms);
  if (adds_ >= kAddsBeforeCarry) normalise();
  ++adds_;
  for (int k = 0; k < kLimbs; ++k) limbs_[k] += terms[k];
}

void ExactSum::normalise() noexcept {
  take_carries(limbs_);
  adds_ = 0;
}

double ExactSum::value() const noexcept {
  if (!finite()) return std::numeric_limits<double>::quiet_NaN();
  Limbs limbs = limbs_;
  const bool negative = take_sign(limbs);
  const double magnitude = rounded(limbs);
  return negative ? -magnitude : magnitude;
}

}  // namespace gemini
