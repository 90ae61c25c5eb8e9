// Values outside operations.
#include "base/fingerprint.hpp"
#include "capi/guard.hpp"
#include "training/must.hpp"

using namespace gemini;

namespace {

struct Request {
  Parameter& parameter;
  DType type;
  int root;
};

Request checked_request(Context& context, Parameter& p, gemini_dtype_t type, std::int32_t root) {
  const DType dtype = checked_dtype(type, "dtype");
  if (!is_floating(dtype)) fail(GEMINI_ERR_ARGUMENT, "dtype {} is not a floating type", name_of(dtype));
  if (p.ignored)
    fail(GEMINI_ERR_ARGUMENT, "parameter \"{}\" is IGNORED: its values are in the caller's own memory",
         p.name);
  const int ranks = context.ranks().topology().ranks;
  if (root < -1 || root >= ranks)
    fail(GEMINI_ERR_ARGUMENT, "root is {}: allowed are -1 to {}", root, ranks - 1);
  context.trainer().check_quiet();
  return {p, dtype, root};
}

void require_values(const Context& context, const Request& request, const void* values) {
  const bool needed = request.root == -1 || request.root == context.ranks().topology().rank;
  if (needed && request.parameter.elems > 0) require_argument(values, "host_values");
}

std::string words_of(const Parameter& p, gemini_dtype_t type, std::int32_t root) {
  return fmt::format("parameter {} (\"{}\"), dtype {}, root {}", p.index, p.name, static_cast<int>(type),
                     root);
}

gemini_status_t read(const char* function, Call call, gemini_param_t param, ValueKind kind, gemini_dtype_t as,
                     void* host_values, std::int32_t root) {
  return with_param_on_all_ranks(function, param, [&](Context& context, Parameter& p) {
    context.agree(call, words_of(p, as, root), [&] {
      require_values(context, checked_request(context, p, as, root), host_values);
      if (kind == ValueKind::gradient) context.trainer().check_gradient_held(p);
    });
    context.trainer().read(p, kind, static_cast<DType>(as), static_cast<std::byte*>(host_values), root);
  });
}

}  // namespace

gemini_status_t gemini_param_get(gemini_param_t param, gemini_dtype_t as, void* host_values, int32_t root) {
  return read("gemini_param_get", Call::param_get, param, ValueKind::master, as, host_values, root);
}

gemini_status_t gemini_grad_get(gemini_param_t param, gemini_dtype_t as, void* host_values, int32_t root) {
  return read("gemini_grad_get", Call::grad_get, param, ValueKind::gradient, as, host_values, root);
}

gemini_status_t gemini_param_set(gemini_param_t param, gemini_dtype_t from, const void* host_values,
                                 int32_t root) {
  return with_param_on_all_ranks("gemini_param_set", param, [&](Context& context, Parameter& p) {
    std::string words = words_of(p, from, root);
    if (root == -1 && host_values != nullptr && is_valid(from))
      words += fmt::format(", values with fingerprint {:016x}",
                           fingerprint(host_values, p.elems * size_of(static_cast<DType>(from))));
    context.agree(Call::param_set, words,
                  [&] { require_values(context, checked_request(context, p, from, root), host_values); });
    context.trainer().write(p, static_cast<DType>(from), static_cast<const std::byte*>(host_values), root);
  });
}

gemini_status_t gemini_shard_visit(gemini_context_t ctx, gemini_shard_fn fn, void* user) {
  return with_all_ranks("gemini_shard_visit", ctx, [&](Context& context) {
    context.agree(Call::shard_visit, "", [&] {
      if (fn == nullptr) fail(GEMINI_ERR_ARGUMENT, "fn is NULL");
      context.trainer().check_finish();
    });
    const auto visit = [&] { must([&] { context.trainer().visit_shards(fn, user); }); };
    context.ranks().agreement().act_and_agree(Call::shard_visit, visit);
    context.trainer().values_changed();
  });
}

gemini_status_t gemini_set_update(gemini_context_t ctx, gemini_shard_fn fn, void* user) {
  return with_context("gemini_set_update", ctx, [&](Context& context) {
    if (fn == nullptr) fail(GEMINI_ERR_ARGUMENT, "fn is NULL");
    context.set_update(fn, user);
  });
}
