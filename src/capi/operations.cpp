// The operations of training.
#include "capi/guard.hpp"
#include "training/must.hpp"

using namespace gemini;

gemini_status_t gemini_set_phase(gemini_context_t ctx, gemini_phase_t phase) {
  return with_context("gemini_set_phase", ctx, [&](Context& context) {
    if (phase < GEMINI_FORWARD || phase > GEMINI_INFERENCE)
      fail(GEMINI_ERR_ARGUMENT, "phase is {}: allowed are the gemini_phase_t values 1 to 4",
           static_cast<int>(phase));
    context.trainer().micro_batches().set_phase(phase);
  });
}

gemini_status_t gemini_get_phase(gemini_context_t ctx, gemini_phase_t* phase) {
  return with_context("gemini_get_phase", ctx, [&](Context& context) {
    require_argument(phase, "phase");
    *phase = context.trainer().micro_batches().phase();
  });
}

gemini_status_t gemini_set_stream(gemini_context_t ctx, void*) {
  return with_context("gemini_set_stream", ctx, [](Context&) {});  // the host has one order: the caller's
}

gemini_status_t gemini_pre_op(gemini_context_t ctx, const gemini_param_t* params, int32_t count) {
  return with_all_ranks("gemini_pre_op", ctx,
                        [&](Context& context) { context.trainer().pre_op(params, count); });
}

gemini_status_t gemini_post_op(gemini_context_t ctx, const gemini_param_t* params, int32_t count) {
  return with_all_ranks("gemini_post_op", ctx,
                        [&](Context& context) { context.trainer().post_op(params, count); });
}

gemini_status_t gemini_param_data(gemini_param_t param, void** data) {
  return with_param("gemini_param_data", param, [&](Context& context, Parameter& p) {
    require_argument(data, "data");
    *data = context.trainer().operations().data(p);
  });
}

gemini_status_t gemini_param_grad(gemini_param_t param, void** grad, int32_t* accumulate) {
  return with_param("gemini_param_grad", param, [&](Context& context, Parameter& p) {
    require_argument(grad, "grad");
    *grad = context.trainer().operations().gradient(p, accumulate);
  });
}

gemini_status_t gemini_grad_ready(gemini_param_t param) {
  return with_param_on_all_ranks("gemini_grad_ready", param,
                                 [](Context& context, Parameter& p) { context.trainer().grad_ready(p); });
}

gemini_status_t gemini_loss_scale(gemini_context_t ctx, double* scale) {
  return with_context("gemini_loss_scale", ctx, [&](Context& context) {
    require_argument(scale, "scale");
    *scale = context.trainer().loss_scale().value();
  });
}

gemini_status_t gemini_step(gemini_context_t ctx, gemini_step_info_t* info) {
  return with_all_ranks("gemini_step", ctx, [&](Context& context) {
    context.agree(Call::step, context.step_claim(), [&] {
      if (info != nullptr) check_info(info);
      context.trainer().check_step();
    });
    gemini_step_info_t done{};
    must([&] { done = context.trainer().step(context.learning_rate()); });
    if (info != nullptr) copy_info(done, info);
  });
}

gemini_status_t gemini_discard(gemini_context_t ctx) {
  return with_all_ranks("gemini_discard", ctx, [](Context& context) {
    context.agree(Call::discard, "", [&] { context.trainer().check_quiet(); });
    context.trainer().discard();
  });
}

gemini_status_t gemini_set_lr(gemini_context_t ctx, double lr) {
  return with_context("gemini_set_lr", ctx, [&](Context& context) { context.set_learning_rate(lr); });
}

gemini_status_t gemini_progress(gemini_context_t ctx) {
  return with_context("gemini_progress", ctx, [](Context& context) { context.ranks().queue().progress(); });
}
