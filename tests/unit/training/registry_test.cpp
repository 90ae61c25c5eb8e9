// Registration without a context: names, shapes, flags, options of parameters, and the text ranks compare.
#include "training/registry.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/error.hpp"

namespace gemini {
namespace {

template <class Call>
std::string refusal(gemini_status_t expected, Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), expected) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

class RegistryTest : public testing::Test {
 protected:
  Parameter& add(std::string_view name, std::vector<std::int64_t> shape = {4}, std::int32_t flags = 0,
                 DType dtype = DType::f32) {
    return registry_.add(nullptr, name, dtype, std::move(shape), flags);
  }
  Registry registry_;
};

TEST_F(RegistryTest, CountsElements) {
  EXPECT_EQ(add("scalar", {}).elems, 1);
  EXPECT_EQ(add("matrix", {3, 5}).elems, 15);
  EXPECT_EQ(add("empty", {3, 0, 5}).elems, 0);
  EXPECT_EQ(add("huge", {1 << 20, 1 << 20}).elems, std::int64_t{1} << 40);
}

TEST_F(RegistryTest, RefusesWhatHasTooManyElements) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  refusal(GEMINI_ERR_ARGUMENT, [&] { add("w", {most, most}); });
  refusal(GEMINI_ERR_ARGUMENT, [&] { add("w", {most}); });
  EXPECT_TRUE(registry_.all().empty());
  EXPECT_NO_THROW(add("w")) << "a refused name is free";
}

TEST_F(RegistryTest, RefusesLongNamesAndUnknownFlags) {
  refusal(GEMINI_ERR_ARGUMENT, [&] { add(""); });
  refusal(GEMINI_ERR_ARGUMENT, [&] { add(std::string(256, 'x')); });
  EXPECT_NO_THROW(add(std::string(255, 'x')));
  refusal(GEMINI_ERR_ARGUMENT, [&] { add("w", {2}, 8); });
}

TEST_F(RegistryTest, NamesAndAliasesAreOneSetOfNames) {
  Parameter& w = add("w");
  registry_.add_alias("tied", w);
  refusal(GEMINI_ERR_DUPLICATE, [&] { add("w"); });
  refusal(GEMINI_ERR_DUPLICATE, [&] { add("tied"); });
  refusal(GEMINI_ERR_DUPLICATE, [&] { registry_.add_alias("w", w); });
  EXPECT_EQ(&registry_.find("tied"), &w);
  EXPECT_EQ(&registry_.at(0), &w);
  EXPECT_EQ(registry_.all().size(), 1u);
}

TEST_F(RegistryTest, TellsTheNearestName) {
  add("layer1.weight");
  const auto words = refusal(GEMINI_ERR_NOT_FOUND, [&] { (void)registry_.find("layer1.wieght"); });
  EXPECT_NE(words.find("did you mean layer1.weight"), std::string::npos) << words;
  refusal(GEMINI_ERR_NOT_FOUND, [&] { (void)registry_.at(1); });
  refusal(GEMINI_ERR_ARGUMENT, [&] { (void)registry_.at(-1); });
}

TEST_F(RegistryTest, HandlesStayWhereTheyAre) {
  Parameter* first = &add("p0");
  for (int i = 1; i < 1000; ++i) add("p" + std::to_string(i));
  EXPECT_EQ(first, &registry_.at(0));
  EXPECT_EQ(registry_.at(999).index, 999);
}

TEST_F(RegistryTest, IntegersMustBeIgnored) {
  refusal(GEMINI_ERR_ARGUMENT, [&] { add("steps", {1}, 0, DType::i64); });
  EXPECT_TRUE(add("steps", {1}, GEMINI_PARAM_IGNORED, DType::i64).ignored);
}

TEST_F(RegistryTest, IgnoredParametersTakeNoRoom) {
  add("buffer", {100}, GEMINI_PARAM_IGNORED);
  add("w", {7}, GEMINI_PARAM_FROZEN | GEMINI_PARAM_RESIDENT, DType::bf16);
  const auto tensors = registry_.tensors();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].elems, 0);
  EXPECT_EQ(tensors[1].elems, 7);
  EXPECT_TRUE(tensors[1].frozen && tensors[1].resident);
  EXPECT_EQ(tensors[1].dtype, DType::bf16);
}

TEST_F(RegistryTest, OnlyTrainedF16AsksForALossScale) {
  add("a", {1}, GEMINI_PARAM_FROZEN, DType::f16);
  add("b", {1}, 0, DType::bf16);
  EXPECT_FALSE(registry_.trains_f16());
  add("c", {1}, 0, DType::f16);
  EXPECT_TRUE(registry_.trains_f16());
}

// Whatever ranks must have in common shows in the text.
TEST(RegistryText, ShowsEveryDifference) {
  using Change = void (*)(Registry&, Parameter&);
  const std::vector<Change> changes = {
      [](Registry&, Parameter&) {},
      [](Registry&, Parameter& p) { p.name = "v"; },
      [](Registry&, Parameter& p) { p.dtype = DType::f64; },
      [](Registry&, Parameter& p) {
        p.shape = {4, 2};
      },
      [](Registry&, Parameter& p) { p.frozen = true; },
      [](Registry&, Parameter& p) { p.resident = true; },
      [](Registry&, Parameter& p) { p.ignored = true; },
      [](Registry&, Parameter& p) { p.lr_scale = 0.5; },
      [](Registry&, Parameter& p) { p.weight_decay = 0.0; },
      [](Registry&, Parameter& p) { p.grad_dtype = DType::f64; },
      [](Registry&, Parameter& p) { p.initialiser.kind = Initialiser::Kind::data; },
      [](Registry&, Parameter& p) { p.initialiser.kind = Initialiser::Kind::function; },
      [](Registry&, Parameter& p) { p.initialiser.kind = Initialiser::Kind::fill; },
      [](Registry&, Parameter& p) { p.initialiser.kind = Initialiser::Kind::fill, p.initialiser.seed = 1; },
      [](Registry&, Parameter& p) { p.initialiser.kind = Initialiser::Kind::fill, p.initialiser.a = 1; },
      [](Registry&, Parameter& p) { p.initialiser.kind = Initialiser::Kind::fill, p.initialiser.b = 1; },
      [](Registry& registry, Parameter& p) { registry.add_alias("tied", p); },
      [](Registry& registry, Parameter&) { registry.add(nullptr, "more", DType::f32, {1}, 0); },
  };
  std::vector<std::string> texts;
  std::set<std::uint64_t> digests;
  for (const Change change : changes) {
    Registry registry;
    change(registry, registry.add(nullptr, "w", DType::f32, {2, 4}, 0));
    for (const auto& other : texts) EXPECT_NE(other, registry.text()) << "change " << texts.size();
    texts.push_back(registry.text());
    EXPECT_TRUE(digests.insert(registry.digest()).second) << "change " << texts.size();
  }
}

TEST(ParamOptions, AreParsedAndChecked) {
  using Key = ParamOption::Key;
  EXPECT_EQ(parse_param_option("frozen", "on").number, 1.0);
  EXPECT_EQ(parse_param_option("frozen", "off").number, 0.0);
  EXPECT_EQ(parse_param_option("grad_dtype", "f32").key, Key::grad_dtype);
  EXPECT_EQ(parse_param_option("grad_dtype", "same").number, 0.0);
  EXPECT_EQ(parse_param_option("lr_scale", "0.1").number, 0.1);
  EXPECT_EQ(parse_param_option("weight_decay", "1e-2").key, Key::weight_decay);
  for (const auto& [key, value] : std::vector<std::pair<const char*, const char*>>{{"frozen", "1"},
                                                                                   {"grad_dtype", "f16"},
                                                                                   {"lr_scale", "-1"},
                                                                                   {"lr_scale", "x"},
                                                                                   {"weight_decay", "inf"}}) {
    const auto words = refusal(GEMINI_ERR_ARGUMENT, [&, k = key, v = value] { parse_param_option(k, v); });
    EXPECT_NE(words.find(value), std::string::npos) << words;
  }
  const auto words = refusal(GEMINI_ERR_ARGUMENT, [] { parse_param_option("lr", "1"); });
  EXPECT_NE(words.find("lr_scale, weight_decay, frozen, grad_dtype"), std::string::npos) << words;
}

TEST(ParamOptions, GradientsWidenOnlyWhereTheyAreNarrow) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    Parameter p;
    p.dtype = p.grad_dtype = type;
    apply_param_option(p, parse_param_option("grad_dtype", "f32"));
    EXPECT_EQ(p.grad_dtype, wide(type)) << name_of(type);
    apply_param_option(p, parse_param_option("grad_dtype", "same"));
    EXPECT_EQ(p.grad_dtype, type);
  }
}

}  // namespace
}  // namespace gemini
