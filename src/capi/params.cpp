// Registration.
#include "base/fingerprint.hpp"
#include "capi/guard.hpp"
#include "training/initialise.hpp"

using namespace gemini;

namespace {

constexpr std::int32_t kMaxDims = 32;

std::vector<std::int64_t> checked_shape(std::int32_t ndim, const std::int64_t* shape) {
  if (ndim < 0 || ndim > kMaxDims)
    fail(GEMINI_ERR_ARGUMENT, "ndim is {}: allowed are 0 to {}", ndim, kMaxDims);
  if (ndim > 0) require_argument(shape, "shape");
  for (std::int32_t d = 0; d < ndim; ++d)
    if (shape[d] < 0) fail(GEMINI_ERR_ARGUMENT, "shape[{}] is {}, must be >= 0", d, shape[d]);
  return ndim == 0 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>(shape, shape + ndim);
}

// body returns the initialiser.
template <class Body>
gemini_status_t initialise(const char* function, gemini_param_t param, Body&& body) {
  return with_param(function, param, [&](Context& context, Parameter& p) {
    context.check_not_committed("an initialiser is set");
    set_initialiser(p, body(context, p));
  });
}

std::int32_t flags_of(const Parameter& p) {
  return (p.frozen ? GEMINI_PARAM_FROZEN : 0) | (p.resident ? GEMINI_PARAM_RESIDENT : 0) |
         (p.ignored ? GEMINI_PARAM_IGNORED : 0);
}

}  // namespace

gemini_status_t gemini_param_register(gemini_context_t ctx, const char* name, gemini_dtype_t dtype,
                                      int32_t ndim, const int64_t* shape, int32_t flags,
                                      gemini_param_t* param) {
  if (param != nullptr) *param = nullptr;
  return with_context("gemini_param_register", ctx, [&](Context& context) {
    require_argument(param, "param");
    require_argument(name, "name");
    context.check_not_committed("a parameter is registered");
    const DType type = checked_dtype(dtype, "dtype");
    *param = &context.registry().add(ctx, name, type, checked_shape(ndim, shape), flags);
  });
}

gemini_status_t gemini_param_alias(gemini_context_t ctx, const char* name, gemini_param_t param) {
  return with_context("gemini_param_alias", ctx, [&](Context& context) {
    require_argument(name, "name");
    require_argument(param, "param");
    context.check_not_committed("an alias is given");
    if (!context.registry().owns(*param))
      fail(GEMINI_ERR_ARGUMENT, "param \"{}\" belongs to another context", param->name);
    context.registry().add_alias(name, *param);
  });
}

gemini_status_t gemini_param_set_option(gemini_param_t param, const char* key, const char* value) {
  const bool agreed = param != nullptr && param->handle->context->committed();
  const auto set = [&](Context& context, Parameter& p) { context.set_param_option(p, key, value); };
  return with_param("gemini_param_set_option", param, set, agreed ? NoMemory::ends : NoMemory::refuses);
}

gemini_status_t gemini_param_attach(gemini_param_t param, void* data) {
  return with_param("gemini_param_attach", param, [&](Context&, Parameter& p) {
    if (!p.ignored) fail(GEMINI_ERR_ARGUMENT, "parameter \"{}\" is not GEMINI_PARAM_IGNORED", p.name);
    if (p.elems > 0) require_argument(data, "data");
    if (!p.leases.empty()) fail(GEMINI_ERR_STATE, "parameter \"{}\" is leased; gemini_post_op first", p.name);
    p.attached = data;
  });
}

gemini_status_t gemini_param_init_fill(gemini_param_t param, gemini_init_t kind, double a, double b,
                                       uint64_t seed) {
  return initialise("gemini_param_init_fill", param, [&](Context&, Parameter&) {
    Initialiser fill;
    fill.kind = Initialiser::Kind::fill;
    fill.rule = kind;
    fill.a = a;
    fill.b = b;
    fill.seed = seed;
    return fill;
  });
}

gemini_status_t gemini_param_init_data(gemini_param_t param, const void* host_values) {
  return initialise("gemini_param_init_data", param, [&](Context& context, Parameter& p) {
    Initialiser data;
    data.kind = Initialiser::Kind::data;
    const bool counts = context.ranks().topology().rank == 0;
    if (p.elems == 0 || (!counts && host_values == nullptr)) return data;
    require_argument(host_values, "host_values");
    const std::int64_t bytes = p.elems * size_of(p.dtype);
    if (context.option_in_force("check") == "values") data.fingerprint = fingerprint(host_values, bytes);
    const auto* first = static_cast<const std::byte*>(host_values);
    if (counts) data.data.assign(first, first + bytes);
    return data;
  });
}

gemini_status_t gemini_param_init_function(gemini_param_t param, gemini_init_fn fn, void* user) {
  return initialise("gemini_param_init_function", param, [&](Context&, Parameter&) {
    if (fn == nullptr) fail(GEMINI_ERR_ARGUMENT, "fn is NULL");
    Initialiser function;
    function.kind = Initialiser::Kind::function;
    function.function = fn;
    function.user = user;
    return function;
  });
}

gemini_status_t gemini_commit(gemini_context_t ctx) {
  return with_all_ranks("gemini_commit", ctx, [](Context& context) { context.commit(); });
}

gemini_status_t gemini_param_find(gemini_context_t ctx, const char* name, gemini_param_t* param) {
  if (param != nullptr) *param = nullptr;
  return with_context("gemini_param_find", ctx, [&](Context& context) {
    require_argument(param, "param");
    require_argument(name, "name");
    *param = &context.registry().find(name);
  });
}

gemini_status_t gemini_param_at(gemini_context_t ctx, int64_t index, gemini_param_t* param) {
  if (param != nullptr) *param = nullptr;
  return with_context("gemini_param_at", ctx, [&](Context& context) {
    require_argument(param, "param");
    *param = &context.registry().at(index);
  });
}

gemini_status_t gemini_param_info(gemini_param_t param, gemini_param_info_t* info) {
  return with_param("gemini_param_info", param, [&](Context&, Parameter& p) {
    require_argument(info, "info");
    gemini_param_info_t filled = GEMINI_PARAM_INFO_INIT;
    filled.name = p.name.c_str();
    filled.dtype = static_cast<gemini_dtype_t>(p.dtype);
    filled.ndim = static_cast<int32_t>(p.shape.size());
    filled.shape = p.shape.data();
    filled.flags = flags_of(p);
    filled.elems = p.elems;
    copy_info(filled, info);
  });
}
