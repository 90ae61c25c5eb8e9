#include "settings.hpp"

namespace property {
namespace {

constexpr std::int64_t kPage = 4096;

}  // namespace

Settings::Settings(std::uint64_t seed, std::int64_t at_rest_bytes, const std::string& spill_dir)
    : random_(seed) {
  draw_policy();
  draw_budgets(at_rest_bytes, spill_dir);
  draw_ways();
}

void Settings::draw_policy() {
  const std::string placement = one_of({"static", "auto", "planned"});
  options.emplace_back("placement", placement);
  options.emplace_back("prefetch", one_of({"0", "1", "3", "auto"}));
  if (placement == "static") {
    for (const char* share : {"shard_param_frac", "offload_param_frac", "offload_optim_frac"})
      options.emplace_back(share, one_of({"0", "0.5", "1"}));
  } else {
    options.emplace_back("device_memory_fraction", one_of({"0.3", "0.9", "1"}));
    options.emplace_back("warmup_model_fraction", one_of({"0", "0.2", "1"}));
  }
}

// From too little to plenty: a commit that is refused is one way to answer.
void Settings::draw_budgets(std::int64_t at_rest_bytes, const std::string& spill_dir) {
  const auto pages = static_cast<std::int64_t>(draw(24)) * kPage;
  const auto share = static_cast<std::int64_t>(draw(5));
  if (draw(8) != 0) device_memory = at_rest_bytes * share / 4 + pages;
  switch (draw(4)) {
    case 0: host_memory = 0; break;
    case 1: host_memory = static_cast<std::int64_t>(draw(8)) * kPage; break;
    case 2: host_memory = at_rest_bytes / 2 + static_cast<std::int64_t>(draw(32)) * kPage; break;
    default: break;
  }
  if (!spill_dir.empty() && draw(2) == 0) {
    options.emplace_back("spill_dir", spill_dir);
    constexpr std::int64_t kStaging = 60 * kPage;
    if (host_memory >= 0) host_memory += kStaging;
  }
  if (device_memory >= 0) options.emplace_back("device_memory", std::to_string(device_memory));
  if (host_memory >= 0) options.emplace_back("host_memory", std::to_string(host_memory));
}

void Settings::draw_ways() {
  options.emplace_back("accumulate_mode", one_of({"reduce", "reduce", "local"}));
  options.emplace_back("check", one_of({"off", "off", "order"}));
  const int ranks = world().size;
  const int group = static_cast<int>(draw(static_cast<std::uint64_t>(ranks))) + 1;
  if (ranks % group == 0) options.emplace_back("shard_group", std::to_string(group));
  options.emplace_back("collectives",
                       one_of({"auto", "auto", "mpi", "mpi", "shared:2", "shared:2", "delayed:50,1"}));
  slow_ranks = draw(3) == 0;
}

}  // namespace property
