// A parameter: what the caller registered, where it lies, and what is happening to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "chunks/tensor_state.hpp"

namespace gemini {

// Where a parameter's first values come from.
struct Initialiser {
  enum class Kind { none, fill, data, function } kind = Kind::none;
  gemini_init_t rule{};
  double a = 0, b = 0;
  std::uint64_t seed = 0;
  std::vector<std::byte> data;               // rank 0's, in the parameter's dtype
  std::optional<std::uint64_t> fingerprint;  // of what this rank gave, where values are checked
  gemini_init_fn function = nullptr;
  void* user = nullptr;
};

}  // namespace gemini

struct gemini_param_s {
  // Registration.
  gemini_context_t handle = nullptr;  // of the context it belongs to
  int index = 0;
  std::string name;
  gemini::DType dtype{};
  gemini::DType grad_dtype{};
  std::vector<std::int64_t> shape;
  std::int64_t elems = 0;
  bool frozen = false;
  bool resident = false;
  bool ignored = false;
  double lr_scale = 1.0;
  std::optional<double> weight_decay;  // none: the context's
  gemini::Initialiser initialiser;
  void* attached = nullptr;  // IGNORED: the caller's memory

  // Place.
  int chunk = -1;  // -1: IGNORED or without elements
  std::int64_t offset = 0;

  // Leases, youngest last, by the phase they were taken in.
  std::vector<std::uint8_t> leases;
  int backward_leases = 0;
  gemini::TensorState state = gemini::TensorState::free;
  std::int64_t seen_in = 0;  // number of the operation that last named it

  // Counts of the micro-batch `counted_in`; older counts stand for zero.
  std::int64_t counted_in = 0;
  int forward_count = 0;
  int backward_count = 0;
  bool declared_ready = false;

  // Gradient.
  bool grad_written = false;      // into the open buffer
  bool grad_touched = false;      // leased in BACKWARD since the buffer opened
  bool grad_produced = false;     // on this rank since the last step
  std::int64_t grad_held_in = 0;  // the last iteration that reduced it, see Gradients::holds
  std::int64_t step_count = 0;

  [[nodiscard]] bool trained() const { return !frozen && !ignored; }
};

namespace gemini {

using Parameter = ::gemini_param_s;

}  // namespace gemini
