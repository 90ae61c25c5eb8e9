#include "training/settings.hpp"

#include "base/error.hpp"

namespace gemini {
namespace {

UpdateKind kind_of(const std::string& optimizer) {
  if (optimizer == "custom") return UpdateKind::custom;
  if (optimizer == "none") return UpdateKind::none;
  return UpdateKind::builtin;
}

kernels::Optimizer optimizer_of(const std::string& name) {
  if (name == "adam") return kernels::Optimizer::adam;
  if (name == "sgd") return kernels::Optimizer::sgd;
  if (name == "lion") return kernels::Optimizer::lion;
  if (name == "lamb") return kernels::Optimizer::lamb;
  return kernels::Optimizer::adamw;
}

}  // namespace

StepSettings::StepSettings(const Options& options)
    : kind(kind_of(options.text("optimizer"))),
      optimizer(optimizer_of(options.text("optimizer"))),
      hyper{options.real("lr"),      options.real("beta1"),        options.real("beta2"),
            options.real("eps"),     options.real("weight_decay"), options.real("momentum"),
            options.flag("nesterov")},
      states(0),
      accumulate(options.integer("accumulate")),
      max_grad_norm(options.real("max_grad_norm")),
      infinity_norm(options.text("grad_norm") == "inf"),
      skip_nonfinite(options.flag("skip_nonfinite")),
      scale_rules{options.real("min_scale"),          options.real("max_scale"),
                  options.real("growth_factor"),      options.real("backoff_factor"),
                  options.integer("growth_interval"), options.integer("hysteresis")} {
  if (scale_rules.minimum > scale_rules.maximum)
    fail(GEMINI_ERR_ARGUMENT, "min_scale = {} is above max_scale = {}", scale_rules.minimum,
         scale_rules.maximum);
  if (kind == UpdateKind::builtin) states = kernels::state_count(optimizer, hyper.momentum);
  if (kind == UpdateKind::custom) states = static_cast<int>(options.integer("custom_states"));
}

LossScale make_loss_scale(const Options& options, bool any_f16) {
  const std::string& choice = options.text("loss_scale");
  if (choice == "off" || (choice == "auto" && !any_f16)) return LossScale::fixed(1.0);
  if (choice == "auto")
    return LossScale::dynamic(options.real("initial_scale"), options.integer("hysteresis"));
  return LossScale::fixed(options.real("loss_scale"));
}

}  // namespace gemini
