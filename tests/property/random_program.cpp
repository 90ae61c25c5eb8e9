#include "random_program.hpp"

#include <algorithm>
#include <stdexcept>

namespace property {

// Up to four parameters, some of them perhaps twice, perhaps none.
Which RandomProgram::draw_list() {
  Which which(draw(5));
  for (int& p : which) p = draw_param();
  return which;
}

Which RandomProgram::draw_leased() {
  Which which;
  for (std::size_t p = 0; p < model_.params().size(); ++p)
    if (!model_.params()[p].leases.empty() && draw(2) == 0) which.push_back(static_cast<int>(p));
  return which;
}

void RandomProgram::lease_something(gemini_phase_t phase) {
  (void)model_.pre(phase, draw_list());
}

// Not always what one pre_op named.
void RandomProgram::post_something() {
  model_.post(draw_leased());
}

void RandomProgram::post_all(bool backward_only) {
  for (std::size_t p = 0; p < model_.params().size(); ++p) {
    auto& leases = model_.params()[p].leases;
    const auto ends = [&] {
      return backward_only ? std::find(leases.begin(), leases.end(), GEMINI_BACKWARD) != leases.end()
                           : !leases.empty();
    };
    while (ends()) model_.post({static_cast<int>(p)});
  }
}

void RandomProgram::inference_pass() {
  for (std::uint64_t i = draw(6); i > 0; --i) {
    const Which which = draw_list();
    if (model_.pre(GEMINI_INFERENCE, which)) model_.post(which);
  }
}

void RandomProgram::act_locally(gemini_phase_t phase) {
  const int p = draw_param();
  const auto mask = static_cast<unsigned>(draw(16));
  const ModelParam& param = model_.params()[static_cast<std::size_t>(p)];
  // A parameter without elements lies nowhere and is as local.
  if (param.resident() && param.leases.empty()) model_.local_operation(phase, p, mask);
}

void RandomProgram::act_forward() {
  switch (draw(6)) {
    case 0:
    case 1:
    case 2: return lease_something(GEMINI_FORWARD);
    case 3: return inference_pass();
    case 4: return act_locally(GEMINI_FORWARD);
    default: return post_something();
  }
}

void RandomProgram::act_backward() {
  const int p = draw_param();
  const ModelParam& param = model_.params()[static_cast<std::size_t>(p)];
  switch (draw(12)) {
    case 0:
    case 1:
    case 2: return lease_something(GEMINI_BACKWARD);
    case 3: return lease_something(GEMINI_RECOMPUTE);
    case 4: return inference_pass();
    case 5: return act_locally(GEMINI_BACKWARD);
    case 6:
      if (param.trained() && param.in_backward && !param.resident()) model_.declare_ready(p);
      return;
    case 7:
      if (!model_.has_leases()) model_.check_gradient(p);
      return;
    case 8: return post_something();
    default:
      if (param.may_ask()) model_.ask(p);
      return;
  }
}

void RandomProgram::micro_batch() {
  if (!model_.pre(GEMINI_FORWARD, {})) {  // leases left little room to end the one before
    post_all(false);
    if (!model_.pre(GEMINI_FORWARD, {})) throw std::runtime_error("no room although nothing is leased");
  }
  for (std::uint64_t i = draw(10); i > 0; --i) act_forward();
  (void)model_.pre(GEMINI_BACKWARD, {});
  for (std::uint64_t i = draw(40); i > 0; --i) act_backward();
  post_all(true);
}

void RandomProgram::iteration() {
  for (int i = 0; i < accumulate_; ++i) micro_batch();
  post_all(false);
  if (draw(3) == 0) model_.check_values();
  if (draw(8) == 0)
    model_.discard();
  else
    model_.step();
  model_.check_quiet_stats();
}

}  // namespace property
