// Registration: parameters by name and number, before anything of their size exists.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "chunks/layout.hpp"
#include "training/parameter.hpp"

namespace gemini {

class Registry {
 public:
  Parameter& add(gemini_context_t handle, std::string_view name, DType dtype, std::vector<std::int64_t> shape,
                 std::int32_t flags);
  void add_alias(std::string_view name, Parameter& parameter);
  [[nodiscard]] Parameter& find(std::string_view name);
  [[nodiscard]] Parameter& at(std::int64_t index);
  [[nodiscard]] bool owns(const Parameter& p) const {
    return !parameters_.empty() && p.handle == parameters_.front().handle;
  }

  [[nodiscard]] std::deque<Parameter>& all() { return parameters_; }
  [[nodiscard]] const std::deque<Parameter>& all() const { return parameters_; }
  [[nodiscard]] Parameter& operator[](int index) { return parameters_[static_cast<std::size_t>(index)]; }

  // Everything that must be equal over ranks, one line per parameter, then per alias; and a digest of it.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::uint64_t digest() const;
  // Of names, types, shapes and flags alone: what does not change from run to run.
  [[nodiscard]] std::uint64_t model_digest() const;
  [[nodiscard]] std::vector<TensorSpec> tensors() const;
  [[nodiscard]] bool trains_f16() const;

 private:
  void claim(std::string_view name, int index);
  template <class Visit>
  void for_each_line(Visit&& visit) const;

  std::deque<Parameter> parameters_;  // handles are their addresses
  std::map<std::string, int, std::less<>> by_name_;
  std::vector<std::pair<std::string, int>> aliases_;
};

// The value of a key of gemini_param_set_option, checked; throws GEMINI_ERR_ARGUMENT.
struct ParamOption {
  enum class Key { lr_scale, weight_decay, frozen, grad_dtype } key;
  double number;  // frozen: 1 or 0; grad_dtype: 1 for f32, 0 for same
};
ParamOption parse_param_option(std::string_view key, std::string_view value);
// Sets it on a parameter that has no place yet, or a number on any.
void apply_param_option(Parameter& parameter, const ParamOption& option);

}  // namespace gemini
