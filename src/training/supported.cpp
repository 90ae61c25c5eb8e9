#include "training/supported.hpp"

#include "base/error.hpp"

namespace gemini {
namespace {

void allow(const Options& options, std::string_view key, std::initializer_list<std::string_view> values,
           const char* missing) {
  const std::string& value = options.text(key);
  for (const auto& allowed : values)
    if (value == allowed) return;
  fail(GEMINI_ERR_UNSUPPORTED, "option {} = {}: {}; this version has {}", key, value, missing,
       fmt::join(values, ", "));
}

void allow_number(const Options& options, std::string_view key, double value, const char* missing) {
  if (options.real(key) != value)
    fail(GEMINI_ERR_UNSUPPORTED, "option {} = {}: {}; this version has {}", key, options.text(key), missing,
         value);
}

void refuse_text(const Options& options, std::string_view key, const char* missing) {
  if (!options.text(key).empty())
    fail(GEMINI_ERR_UNSUPPORTED, "option {} = {}: {}", key, options.text(key), missing);
}

}  // namespace

void check_supported(const Options& options) {
  allow(options, "backend", {"host", "auto"}, "this build has no CUDA");
  allow(options, "device", {"auto", "current"}, "this build has no devices");
  if (!parse_link_delay(options.text("collectives")))
    allow(options, "collectives", {"auto", "mpi"}, "that transport is not in this version");
  allow(options, "placement", {"auto", "static"}, "planned placement is not in this version");
  allow_number(options, "shard_param_frac", 1,
               "parameters that stay gathered are marked GEMINI_PARAM_RESIDENT");
  allow_number(options, "offload_optim_frac", 0, "moving state to a second tier is not in this version");
  allow_number(options, "offload_param_frac", 0, "moving shards to a second tier is not in this version");
  refuse_text(options, "spill_dir", "files as a third tier are not in this version");
  allow(options, "prefetch", {"auto", "0"}, "prefetching is not in this version");
  allow(options, "accumulate_mode", {"reduce"}, "keeping whole gradients is not in this version");
  refuse_text(options, "trace_in", "traces are not in this version");
  refuse_text(options, "trace_out", "traces are not in this version");
  allow(options, "trace", {"off"}, "traces are not in this version");
}

}  // namespace gemini
