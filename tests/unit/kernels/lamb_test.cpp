#include "pieces.hpp"

namespace gemini::test {
namespace {

constexpr Hyper kHyper{1e-2, 0.9, 0.999, 1e-6, 0.01, 0.0, false};

double ratio_of(const ExactSum& weight_squares, const ExactSum& update_squares) {
  const double w = std::sqrt(weight_squares.value()), r = std::sqrt(update_squares.value());
  return w > 0.0 && r > 0.0 ? w / r : 1.0;
}

TEST(Lamb, AgreesWithTheReference) {
  for (const Types& types : kTypes) {
    for (const std::int64_t count : kSizes) {
      for (const std::int64_t offset : kOffsets) {
        Arrays a(types, 2, count, offset), b = a;
        for (std::int64_t step = 1; step <= 2; ++step) {
          ExactSum w, r, expected_w, expected_r;
          kernels::lamb_moments(kHyper, step, a.whole(0.7), w, r);
          reference::lamb_moments(kHyper, step, b.whole(0.7), expected_w, expected_r);
          EXPECT_EQ(w.value(), expected_w.value());
          EXPECT_EQ(r.value(), expected_r.value());
          expect_same(a, b);
          kernels::lamb_apply(kHyper, step, ratio_of(w, r), a.whole(0.7));
          reference::lamb_apply(kHyper, step, ratio_of(w, r), b.whole(0.7));
          expect_same(a, b);
        }
        ASSERT_FALSE(HasFailure()) << name_of(types.master) << " count " << count << " offset " << offset;
      }
    }
  }
}

TEST(Lamb, CutsDoNotMatter) {
  for (const Types& types : kTypes) {
    const std::int64_t count = 20011;
    Arrays whole(types, 2, count, 1), parts = whole;
    for (std::int64_t step = 1; step <= 3; ++step) {
      ExactSum w, r, part_w, part_r;
      kernels::lamb_moments(kHyper, step, whole.whole(), w, r);
      const auto in_parts = [&](auto run) {
        for (std::int64_t begin = 0; begin < count; begin += 1237) {
          run(parts.piece(begin, std::min<std::int64_t>(1237, count - begin)));
        }
      };
      in_parts([&](const Piece& piece) { kernels::lamb_moments(kHyper, step, piece, part_w, part_r); });
      EXPECT_EQ(w.value(), part_w.value());
      EXPECT_EQ(r.value(), part_r.value());
      kernels::lamb_apply(kHyper, step, ratio_of(w, r), whole.whole());
      in_parts([&](const Piece& piece) { kernels::lamb_apply(kHyper, step, ratio_of(w, r), piece); });
      expect_same(whole, parts);
    }
  }
}

TEST(Lamb, HandComputedNumbers) {
  // beta 0.5 and 0.75, eps 0, decay 0.1, gradients (2, -4) at t = 1: m = (1, -2), v = (1, 4); corrected
  // m = (2, -4), v = (4, 16); r = (1 + 0.3, -1 + 0.4) = (1.3, -0.6); |w|^2 = 25, |r|^2 = 1.69 + 0.36 = 2.05.
  const Hyper h{0.1, 0.5, 0.75, 0.0, 0.1, 0.0, false};
  double w[] = {3.0, 4.0}, m[] = {0.0, 0.0}, v[] = {0.0, 0.0};
  const double grad[] = {2.0, -4.0};
  const Piece piece{2, DType::f64, w, grad, 1.0, m, v, DType::f64, nullptr};
  ExactSum weight_squares, update_squares;
  kernels::lamb_moments(h, 1, piece, weight_squares, update_squares);
  EXPECT_EQ(weight_squares.value(), 25.0);
  EXPECT_NEAR(update_squares.value(), 2.05, 1e-14);
  EXPECT_EQ(w[0], 3.0);
  EXPECT_EQ(m[0], 1.0);
  EXPECT_EQ(m[1], -2.0);
  EXPECT_EQ(v[0], 1.0);
  EXPECT_EQ(v[1], 4.0);
  // ratio 2: w = (3 - 0.2 * 1.3, 4 + 0.2 * 0.6)
  kernels::lamb_apply(h, 1, 2.0, piece);
  EXPECT_NEAR(w[0], 2.74, 1e-14);
  EXPECT_NEAR(w[1], 4.12, 1e-14);
}

}  // namespace
}  // namespace gemini::test
