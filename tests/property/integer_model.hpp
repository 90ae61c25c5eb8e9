// A model whose numbers are small integers, so that every sum is exact, beside the library's: what a rank
// does to its context it does here too, and what other ranks contribute is known by rule.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "other_memory.hpp"
#include "support/test_context.hpp"

namespace property {

struct Ranks {
  int rank = 0, size = 1;
};
Ranks world();

std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0);

// How a run is set up; equal on all ranks.
struct Recipe {
  explicit Recipe(std::uint64_t seed);
  struct Tensor {
    std::int64_t elems;
    gemini_dtype_t dtype;
    std::int32_t flags;
  };
  std::vector<Tensor> tensors;
  int accumulate;
  double momentum;  // 0 or 1
  gemini_test::KeyValues options;
};

struct ModelParam {
  gemini_param_t handle = nullptr;
  Recipe::Tensor tensor{};
  std::vector<double> values;
  std::vector<double> gradient;          // of all ranks, since the last step
  std::vector<double> velocity{};        // of momentum
  bool asked = false;                    // by any rank, since the last step
  std::vector<gemini_phase_t> leases{};  // youngest last
  bool in_backward = false;              // leased in BACKWARD in this micro-batch
  bool ready = false;                    // declared

  [[nodiscard]] bool trained() const { return (tensor.flags & GEMINI_PARAM_FROZEN) == 0; }
  [[nodiscard]] bool resident() const { return (tensor.flags & GEMINI_PARAM_RESIDENT) != 0; }
  [[nodiscard]] bool may_ask() const;
};

using Which = std::vector<int>;  // indices, possibly twice

class IntegerModel {
 public:
  // other_bytes: the largest piece of memory that one rank takes beside the model now and then.
  IntegerModel(const Recipe& recipe, const gemini_test::KeyValues& more, MPI_Comm comm = MPI_COMM_WORLD,
               std::int64_t other_bytes = 0);
  // False where budgets refuse the model, which all ranks must be told alike.
  [[nodiscard]] bool commit();

  // From here on this rank pauses at random moments, each at others.
  void pause_at_random() { pauses_ = true; }

  // One operation's calls; pre returns false where the budget refuses, which all ranks must be told alike.
  bool pre(gemini_phase_t phase, const Which& which);
  void post(const Which& which);
  // Every rank that the rule picks adds to the gradient of p; mask: ranks that may.
  void ask(int p, unsigned mask = ~0U);
  void declare_ready(int p);
  // The same on this rank alone: RESIDENT parameters only. Ranks outside the mask do nothing.
  void local_operation(gemini_phase_t phase, int p, unsigned mask);
  void step();
  void discard();

  void check_values();  // agreed, without leases
  void check_gradient(int p);
  void check_quiet_stats();

  [[nodiscard]] std::vector<ModelParam>& params() { return params_; }
  [[nodiscard]] bool has_leases() const;
  [[nodiscard]] int refused() const { return refused_; }
  [[nodiscard]] const gemini_test::Context& context() const { return ctx_; }

 private:
  template <class Call>
  gemini_status_t agreed(Call&& call);
  void check_leased(const ModelParam& param) const;
  void maybe_pause();
  void begin_micro_batch();
  [[nodiscard]] gemini_test::Params handles(const Which& which) const;

  Ranks ranks_ = world();
  gemini_test::Context ctx_;
  OtherMemory other_;
  double momentum_;
  std::vector<ModelParam> params_;
  std::uint64_t asks_ = 0;
  std::int64_t steps_ = 0;
  bool after_backward_ = false;
  int refused_ = 0;
  bool pauses_ = false;
  std::mt19937_64 pause_;
  std::int64_t gathered_at_rest_ = 0;
};

}  // namespace property
