// The same bits at every level of instructions, in whole vectors and in what is left at the ends.
#include "levels.hpp"

#include <functional>
#include <set>

#include "kernels/float8.hpp"
#include "kernels/kernels.hpp"
#include "pieces.hpp"

namespace gemini::test {
namespace {

TEST(Levels, EachCanBeForced) {
  std::set<std::string> levels;
  for_all_levels([&] { levels.insert(kernels::instruction_level()); });
  EXPECT_EQ(levels.size(), hwy::SupportedAndGeneratedTargets().size());
  EXPECT_EQ(levels.count("baseline"), 1U);
}

// kernel(output, false) at every level gives the bits of kernel(output, true), the reference.
void compare(const Guarded& start, const std::function<void(Guarded&, bool)>& kernel) {
  Guarded expected = start;
  kernel(expected, true);
  for_all_levels([&] {
    Guarded got = start;
    kernel(got, false);
    EXPECT_TRUE(same(got, expected));
  });
}

Guarded filled(DType type, std::int64_t count, std::int64_t offset, bool any, unsigned seed) {
  Guarded x(type, count, offset);
  return any ? x.any_bits(seed) : x.random(seed);
}

TEST(Levels, InPlace) {
  for_all_shapes([](DType type, std::int64_t n, std::int64_t offset) {
    for (const bool any : {false, true}) {
      const Guarded x = filled(type, n, offset, any, 17);
      compare(x, [&](Guarded& y, bool reference) {
        (reference ? reference::fill : kernels::fill)(type, y.data(), n, 1.0 / 3.0);
      });
      compare(x, [&](Guarded& y, bool reference) {
        (reference ? reference::scale : kernels::scale)(type, y.data(), n, 0.1);
      });
      compare(x, [&](Guarded& y, bool reference) {
        (reference ? reference::divide : kernels::divide)(type, y.data(), n, 3.0);
      });
    }
  });
}

TEST(Levels, OntoASum) {
  for_all_shapes([](DType type, std::int64_t n, std::int64_t offset) {
    for (const bool any : {false, true}) {
      const Guarded x = filled(type, n, offset, any, 5);
      const Guarded sum = filled(wide(type), n, 3 - offset, any, 6);
      compare(sum, [&](Guarded& y, bool reference) {
        (reference ? reference::add : kernels::add)(type, x.data(), y.data(), n);
      });
      compare(sum, [&](Guarded& y, bool reference) {
        (reference ? reference::axpy : kernels::axpy)(type, 0.3, x.data(), y.data(), n);
      });
      const Guarded wide_x = filled(wide(type), n, offset, any, 5);
      compare(sum, [&](Guarded& y, bool reference) {
        (reference ? reference::add_quotient : kernels::add_quotient)(wide(type), wide_x.data(), 3.0,
                                                                      y.data(), n);
      });
    }
  });
}

TEST(Levels, Conversions) {
  for (const DType to : kFloating) {
    for_all_shapes([&](DType from, std::int64_t n, std::int64_t offset) {
      for (const bool any : {false, true}) {
        const Guarded x = filled(from, n, offset, any, 8);
        compare(Guarded(to, n, 3 - offset), [&](Guarded& y, bool reference) {
          (reference ? reference::convert : kernels::convert)(from, x.data(), to, y.data(), n);
        });
      }
    });
  }
}

TEST(Levels, Contributions) {
  for_all_shapes([](DType type, std::int64_t n, std::int64_t offset) {
    const Guarded a = filled(type, n, offset, false, 1), b = filled(type, n, 3 - offset, false, 2),
                  c = filled(type, n, 1, true, 3);
    Guarded negative_zeros(type, n, offset);
    reference::fill(type, negative_zeros.data(), n, -0.0);
    const void* const z = negative_zeros.data();
    const std::vector<std::vector<const void*>> sets = {{a.data()},
                                                        {nullptr},
                                                        {z},
                                                        {z, nullptr},
                                                        {nullptr, a.data()},
                                                        {a.data(), b.data(), c.data()},
                                                        {z, z},
                                                        {z, z, z, b.data(), nullptr, a.data()}};
    for (const auto& set : sets) {
      const auto ranks = static_cast<int>(set.size());
      const Guarded sum = filled(wide(type), n, 3 - offset, false, 4);
      compare(sum, [&](Guarded& y, bool reference) {
        (reference ? reference::sum_contributions : kernels::sum_contributions)(type, set.data(), ranks,
                                                                                y.data(), n);
      });
      for (const bool first : {false, true}) {
        compare(sum, [&](Guarded& y, bool reference) {
          (reference ? reference::add_contributions : kernels::add_contributions)(type, set.data(), ranks,
                                                                                  3.0, first, y.data(), n);
        });
      }
    }
  });
}

TEST(Levels, Float8) {
  for_all_shapes([](DType type, std::int64_t n, std::int64_t offset) {
    const Guarded x = filled(type, n, offset, false, 9);
    const auto bytes = static_cast<std::size_t>(kernels::encoded_bytes(n));
    std::vector<float> expected(bytes / 4 + 1), got(bytes / 4 + 1);
    reference::encode_float8(type, x.data(), n, expected.data());
    for_all_levels([&] {
      kernels::encode_float8(type, x.data(), n, got.data());
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), bytes), 0);
    });
    compare(Guarded(type, n, 3 - offset), [&](Guarded& y, bool reference) {
      (reference ? reference::decode_float8 : kernels::decode_float8)(expected.data(), n, type, y.data());
    });
  });
}

TEST(Levels, Reductions) {
  for_all_shapes([](DType type, std::int64_t n, std::int64_t offset) {
    const Guarded x = filled(type, n, offset, false, 11);
    ExactSum expected;
    reference::add_squares(type, x.data(), n, expected);
    for_all_levels([&] {
      ExactSum got;
      kernels::add_squares(type, x.data(), n, got);
      EXPECT_EQ(got.value(), expected.value());
      EXPECT_EQ(kernels::max_abs(type, x.data(), n), reference::max_abs(type, x.data(), n));
      EXPECT_TRUE(kernels::all_finite(type, x.data(), n));
    });
  });
}

class LevelsOf : public testing::TestWithParam<Case> {};

// 8209 is more than a block: vectors and lines begin at other places in the next.
TEST_P(LevelsOf, Update) {
  const Case& c = GetParam();
  const int states = kernels::state_count(c.optimizer, c.hyper.momentum);
  std::vector<std::int64_t> sizes(std::begin(kSizes), std::end(kSizes));
  sizes.push_back(8209);
  for (const Types& types : kTypes) {
    for (const std::int64_t count : sizes) {
      for (const std::int64_t offset : kOffsets) {
        SCOPED_TRACE(testing::Message() << name_of(types.master) << " copy " << name_of(types.copy)
                                        << " count " << count << " offset " << offset);
        const Arrays start(types, states, count, offset);
        Arrays expected = start;
        reference::update(c.optimizer, c.hyper, 2, expected.whole(0.7));
        for_all_levels([&] {
          Arrays got = start;
          kernels::update(c.optimizer, c.hyper, 2, got.whole(0.7));
          expect_same(got, expected);
        });
        if (HasFailure()) return;
        if (count > 2000) break;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LevelsOf, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Levels, Lamb) {
  const Hyper hyper{1e-3, 0.9, 0.999, 1e-6, 0.01, 0.0, false};
  for (const Types& types : kTypes) {
    for (const std::int64_t count : kSizes) {
      const Arrays start(types, 2, count, 1);
      Arrays expected = start;
      ExactSum w, r;
      reference::lamb_moments(hyper, 2, expected.whole(0.7), w, r);
      reference::lamb_apply(hyper, 2, 0.8, expected.whole(0.7));
      for_all_levels([&] {
        Arrays got = start;
        ExactSum got_w, got_r;
        kernels::lamb_moments(hyper, 2, got.whole(0.7), got_w, got_r);
        kernels::lamb_apply(hyper, 2, 0.8, got.whole(0.7));
        EXPECT_EQ(got_w.value(), w.value());
        EXPECT_EQ(got_r.value(), r.value());
        expect_same(got, expected);
      });
    }
  }
}

}  // namespace
}  // namespace gemini::test
