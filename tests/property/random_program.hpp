// Random operations: the same program on all ranks.
#pragma once

#include "integer_model.hpp"

namespace property {

class RandomProgram {
 public:
  RandomProgram(std::uint64_t seed, IntegerModel& model, int accumulate)
      : random_(seed), model_(model), accumulate_(accumulate) {}

  // From here on what a program with this seed does.
  void restart(std::uint64_t seed) { random_.seed(seed); }
  // Micro-batches, then a step or now and then a discard.
  void iteration();
  // Operations that leave no trace.
  void inference_pass();

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }
  int draw_param() { return static_cast<int>(draw(model_.params().size())); }
  Which draw_list();
  Which draw_leased();
  void lease_something(gemini_phase_t phase);
  void post_something();
  void post_all(bool backward_only);
  void act_forward();
  void act_backward();
  void act_locally(gemini_phase_t phase);
  void micro_batch();

  std::mt19937_64 random_;
  IntegerModel& model_;
  int accumulate_;
};

}  // namespace property
