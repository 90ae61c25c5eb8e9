#include "training/registry.hpp"

#include <algorithm>

#include "base/fingerprint.hpp"
#include "base/text.hpp"

namespace gemini {
namespace {

constexpr std::int32_t kAllFlags = GEMINI_PARAM_FROZEN | GEMINI_PARAM_RESIDENT | GEMINI_PARAM_IGNORED;

std::int64_t count_elems(std::string_view name, const std::vector<std::int64_t>& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t elems = 1;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(elems, extent, &elems) || elems > (std::int64_t{1} << 56))
      fail(GEMINI_ERR_ARGUMENT, "parameter \"{}\" of shape ({}) has too many elements", name,
           fmt::join(shape, ", "));
  return elems;
}

std::string describe(const Initialiser& init) {
  switch (init.kind) {
    case Initialiser::Kind::none: return "none";
    case Initialiser::Kind::data: return "data";
    case Initialiser::Kind::function: return "function";
    case Initialiser::Kind::fill:
      return fmt::format("fill(kind {}, a {}, b {}, seed {})", static_cast<int>(init.rule), init.a, init.b,
                         init.seed);
  }
  return "unknown";
}

std::string describe_tensor(const Parameter& p) {
  return fmt::format(
      "parameter {} \"{}\" with dtype {}, shape ({}), frozen {}, resident {}, ignored {}, grad_dtype {}",
      p.index, p.name, name_of(p.dtype), fmt::join(p.shape, ", "), p.frozen, p.resident, p.ignored,
      name_of(p.grad_dtype));
}

std::string describe(const Parameter& p) {
  return fmt::format("{}, lr_scale {}, weight_decay {}, initialiser {}", describe_tensor(p), p.lr_scale,
                     p.weight_decay ? fmt::format("{}", *p.weight_decay) : "default",
                     describe(p.initialiser));
}

}  // namespace

Parameter& Registry::add(gemini_context_t handle, std::string_view name, DType dtype,
                         std::vector<std::int64_t> shape, std::int32_t flags) {
  if ((flags & ~kAllFlags) != 0)
    fail(GEMINI_ERR_ARGUMENT, "flags {}: allowed are GEMINI_PARAM_FROZEN, _RESIDENT and _IGNORED", flags);
  const bool ignored = (flags & GEMINI_PARAM_IGNORED) != 0;
  if (!is_floating(dtype) && !ignored)
    fail(GEMINI_ERR_ARGUMENT, "parameter \"{}\" of dtype {}: integers must be GEMINI_PARAM_IGNORED", name,
         name_of(dtype));
  const std::int64_t elems = count_elems(name, shape);
  claim(name, static_cast<int>(parameters_.size()));
  Parameter& p = parameters_.emplace_back();
  p.handle = handle;
  p.index = static_cast<int>(parameters_.size()) - 1;
  p.name = name;
  p.dtype = p.grad_dtype = dtype;
  p.shape = std::move(shape);
  p.elems = elems;
  p.frozen = (flags & GEMINI_PARAM_FROZEN) != 0;
  p.resident = (flags & GEMINI_PARAM_RESIDENT) != 0;
  p.ignored = ignored;
  return p;
}

void Registry::add_alias(std::string_view name, Parameter& parameter) {
  claim(name, parameter.index);
  aliases_.emplace_back(name, parameter.index);
}

void Registry::claim(std::string_view name, int index) {
  if (name.empty() || name.size() > 255)
    fail(GEMINI_ERR_ARGUMENT, "name of {} bytes: a name has 1 to 255", name.size());
  if (!by_name_.emplace(name, index).second)
    fail(GEMINI_ERR_DUPLICATE, "a parameter named \"{}\" is registered already", name);
}

Parameter& Registry::find(std::string_view name) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return (*this)[found->second];
  std::vector<std::string_view> names;
  for (const auto& entry : by_name_) names.push_back(entry.first);
  const auto close = text::nearest(name, names);
  fail(GEMINI_ERR_NOT_FOUND, "there is no parameter \"{}\"{}{}", name, close.empty() ? "" : "; did you mean ",
       fmt::join(close, " or "));
}

Parameter& Registry::at(std::int64_t index) {
  if (index < 0) fail(GEMINI_ERR_ARGUMENT, "index is {}, must be >= 0", index);
  if (index >= static_cast<std::int64_t>(parameters_.size()))
    fail(GEMINI_ERR_NOT_FOUND, "index is {}, there are {} parameters", index, parameters_.size());
  return (*this)[static_cast<int>(index)];
}

template <class Visit>
void Registry::for_each_line(Visit&& visit) const {
  for (const Parameter& p : parameters_) visit(describe(p));
  for (const auto& [name, index] : aliases_) visit(fmt::format("alias \"{}\" of parameter {}", name, index));
}

std::string Registry::text() const {
  std::string lines;
  for_each_line([&](const std::string& line) { lines += line + "\n"; });
  return lines;
}

std::uint64_t Registry::digest() const {
  std::uint64_t digest = 0;
  for_each_line([&](const std::string& line) { digest = fingerprint(line, digest); });
  return digest;
}

std::uint64_t Registry::model_digest() const {
  std::uint64_t digest = 0;
  for (const Parameter& p : parameters_) digest = fingerprint(describe_tensor(p), digest);
  return digest;
}

std::vector<TensorSpec> Registry::tensors() const {
  std::vector<TensorSpec> specs;
  specs.reserve(parameters_.size());
  for (const Parameter& p : parameters_)
    specs.push_back({p.ignored ? 0 : p.elems, p.dtype, p.grad_dtype, p.frozen, p.resident});
  return specs;
}

bool Registry::trains_f16() const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [](const Parameter& p) { return p.trained() && p.dtype == DType::f16; });
}

ParamOption parse_param_option(std::string_view key, std::string_view value) {
  using Key = ParamOption::Key;
  const auto choose = [&](Key which, std::string_view yes, std::string_view no) -> ParamOption {
    if (value != yes && value != no)
      fail(GEMINI_ERR_ARGUMENT, "option {} = \"{}\": allowed are {}, {}", key, value, yes, no);
    return {which, value == yes ? 1.0 : 0.0};
  };
  if (key == "frozen") return choose(Key::frozen, "on", "off");
  if (key == "grad_dtype") return choose(Key::grad_dtype, "f32", "same");
  if (key != "lr_scale" && key != "weight_decay")
    fail(GEMINI_ERR_ARGUMENT,
         "there is no parameter option \"{}\"; there are lr_scale, weight_decay, frozen, grad_dtype", key);
  const auto number = text::parse_real(value);
  if (!number || *number < 0)
    fail(GEMINI_ERR_ARGUMENT, "option {} = \"{}\": allowed is a number >= 0", key, value);
  return {key == "lr_scale" ? Key::lr_scale : Key::weight_decay, *number};
}

void apply_param_option(Parameter& parameter, const ParamOption& option) {
  switch (option.key) {
    case ParamOption::Key::lr_scale: parameter.lr_scale = option.number; break;
    case ParamOption::Key::weight_decay: parameter.weight_decay = option.number; break;
    case ParamOption::Key::frozen: parameter.frozen = option.number != 0; break;
    case ParamOption::Key::grad_dtype:
      parameter.grad_dtype = option.number != 0 && is_16bit(parameter.dtype) ? DType::f32 : parameter.dtype;
      break;
  }
}

}  // namespace gemini
