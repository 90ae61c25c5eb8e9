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

}  // namespace

void check_supported(const Options& options) {
  allow(options, "backend", {"host", "auto"}, "this build has no CUDA");
  allow(options, "device", {"auto", "current"}, "this build has no devices");
  const std::string& collectives = options.text("collectives");
  if (!parse_link_delay(collectives) && !parse_node_ranks(collectives))
    allow(options, "collectives", {"auto", "mpi", "shared"}, "that transport is not in this version");
  const std::int64_t least = options.integer("chunk_search_min_elems");
  const std::int64_t most = options.integer("chunk_search_max_elems");
  if (least > most)
    fail(GEMINI_ERR_ARGUMENT, "chunk_search_min_elems = {} is above chunk_search_max_elems = {}", least,
         most);
}

}  // namespace gemini
