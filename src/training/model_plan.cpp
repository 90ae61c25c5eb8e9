#include "training/model_plan.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "chunks/shard_windows.hpp"
#include "training/settings.hpp"

namespace gemini {
namespace {

// No machine has more, and sums of it do not overflow.
constexpr std::int64_t kMost = std::int64_t{1} << 60;
constexpr std::int64_t kMostElems = std::int64_t{1} << 52;

LayoutRules layout_rules(const Options& options, int ranks) {
  LayoutRules rules;
  rules.ranks = ranks;
  rules.chunk_elems = options.integer("chunk_elems");
  rules.search_min_elems = options.integer("chunk_search_min_elems");
  rules.search_max_elems = options.integer("chunk_search_max_elems");
  return rules;
}

// Everything at rest. What belongs to RESIDENT chunks stays in compute memory.
void list_items(ModelPlan& plan, const ModelLimits& limits) {
  for (std::size_t c = 0; c < plan.layout.chunks.size(); ++c) {
    const ChunkSpec& spec = plan.layout.chunks[c];
    plan.fixed_bytes += resident_bytes(spec, limits.needs_slot, limits.ranks_per_slot);
    for (int i = 0; i < kItems; ++i) {
      const auto item = static_cast<Item>(i);
      const std::int64_t bytes = item_bytes(spec, item, plan.state);
      if (bytes == 0) continue;
      if (spec.resident)
        plan.fixed_bytes += bytes;
      else
        plan.items.push_back({static_cast<int>(c), item, bytes});
    }
  }
}

std::int64_t total_bytes(const std::vector<RestingItem>& items) {
  std::int64_t bytes = 0;
  for (const RestingItem& item : items) bytes += item.bytes;
  return bytes;
}

// Staging buffers take at most a sixteenth of host memory, and 8 MiB.
std::int64_t choose_window(std::int64_t host_bytes) {
  constexpr std::int64_t kLargest = std::int64_t{8} << 20;
  const std::int64_t share = host_bytes < 0 ? kLargest : std::min(kLargest, host_bytes / 16);
  const std::int64_t per_window = Staging::bytes_for(Staging::kMinElems);
  return std::max<std::int64_t>(1, share / per_window) * Staging::kMinElems;
}

void add_spill(ModelPlan& plan, Rooms& rooms, const ModelLimits& limits) {
  plan.window_elems = choose_window(limits.host_bytes);
  const std::int64_t staging = whole_pages(Staging::bytes_for(plan.window_elems));
  if (limits.host_bytes >= 0 && staging > limits.host_bytes)
    fail(GEMINI_ERR_OUT_OF_MEMORY,
         "spill_dir needs staging buffers of {} in host memory, but host_memory = {}; raise it",
         text::format_bytes(staging), text::format_bytes(limits.host_bytes));
  if (rooms.host_bytes >= 0) rooms.host_bytes -= staging;
  std::int64_t gradients = 0;
  for (const ChunkSpec& spec : plan.layout.chunks)
    if (!spec.frozen && !spec.resident) gradients += whole_pages(spec.elems * size_of(spec.grad_dtype));
  plan.spill_bytes = std::max<std::int64_t>(
      0, total_bytes(plan.items) + gradients - std::max<std::int64_t>(0, rooms.host_bytes));
}

// Whole gradients of accumulate_mode = local: in host memory if they fit there, else in compute memory.
void add_kept(ModelPlan& plan, Rooms& rooms) {
  for (const ChunkSpec& spec : plan.layout.chunks)
    if (!spec.frozen) plan.kept_bytes += whole_pages(spec.elems * size_of(wide(spec.dtype)));
  plan.kept = rooms.host_bytes < 0 || plan.kept_bytes <= rooms.host_bytes ? Place::host : Place::compute;
  if (plan.kept == Place::host && rooms.host_bytes >= 0) rooms.host_bytes -= plan.kept_bytes;
  if (plan.kept == Place::compute) plan.fixed_bytes += plan.kept_bytes;
}

[[noreturn]] void refuse(const ModelPlan& plan, const ModelLimits& limits, std::int64_t missing) {
  const char* kept =
      plan.kept_bytes > 0 ? " (accumulate_mode = local keeps whole gradients: reduce needs less)" : "";
  const char* offloaded =
      plan.offloads ? ", of which offload_param_frac and offload_optim_frac keep some out of device_memory"
                    : "";
  fail(GEMINI_ERR_OUT_OF_MEMORY,
       "the shards of this model need {} on each rank{}{}, {} more than device_memory = {} and host_memory = "
       "{} hold; "
       "raise them, {}or use more ranks",
       text::format_bytes(plan.fixed_bytes + total_bytes(plan.items)), kept, offloaded,
       text::format_bytes(missing), text::format_bytes(limits.compute_bytes),
       text::format_bytes(limits.host_bytes), limits.files ? "" : "set spill_dir, ");
}

}  // namespace

Place ModelPlan::home(int chunk, Item item) const {
  auto at = std::lower_bound(items.begin(), items.end(), chunk,
                             [](const RestingItem& resting, int wanted) { return resting.chunk < wanted; });
  for (; at != items.end() && at->chunk == chunk; ++at)
    if (at->item == item) return at->home;
  return Place::compute;
}

std::vector<SharedChunk> shared_chunks(const ModelPlan& plan) {
  std::vector<SharedChunk> chunks;
  for (const ChunkSpec& spec : plan.layout.chunks) {
    const auto index = static_cast<int>(chunks.size());
    chunks.push_back({spec.elems * size_of(spec.dtype), spec.elems * size_of(spec.grad_dtype), !spec.frozen,
                      plan.home(index, Item::param) == Place::compute});
  }
  return chunks;
}

std::int64_t fill_adapting(std::vector<RestingItem>& items, Rooms rooms, std::int64_t wanted,
                           std::int64_t most) {
  rooms.compute_bytes = std::clamp<std::int64_t>(wanted, 0, std::max<std::int64_t>(most, 0));
  if (fill_homes(items, rooms) == 0) return 0;
  std::int64_t low = rooms.compute_bytes;
  std::int64_t high = rooms.compute_bytes = std::max<std::int64_t>(most, 0);
  const std::int64_t missing = fill_homes(items, rooms);
  if (missing > 0) return missing;
  while (high - low > kPage) {
    rooms.compute_bytes = low + (high - low) / 2;
    (fill_homes(items, rooms) == 0 ? high : low) = rooms.compute_bytes;
  }
  rooms.compute_bytes = high;
  return fill_homes(items, rooms);
}

ModelPlan make_model_plan(const Options& options, const Registry& registry, const ModelLimits& limits) {
  ModelPlan plan;
  plan.layout = make_layout(registry.tensors(), layout_rules(options, limits.shard_ranks));
  plan.state = {options.flag("master_weights"), StepSettings(options).states};
  for (const ChunkSpec& spec : plan.layout.chunks)
    if (spec.elems > kMostElems) refuse(plan, limits, kMost);
  list_items(plan, limits);
  Rooms rooms{-1, limits.host_bytes, limits.files};
  if (limits.files) add_spill(plan, rooms, limits);
  if (options.text("accumulate_mode") == "local") add_kept(plan, rooms);

  const std::int64_t limit = limits.compute_bytes < 0 ? kMost : limits.compute_bytes;
  const std::int64_t most = limit - plan.fixed_bytes;
  if (most < 0) refuse(plan, limits, -most);
  std::int64_t missing = 0;
  if (options.text("placement") == "static") {
    rooms.compute_bytes = most;
    const OffloadShares shares{options.real("offload_param_frac"), options.real("offload_optim_frac")};
    plan.offloads = shares.param > 0 || shares.optimizer > 0;
    missing = fill_homes(plan.items, rooms, shares);
  } else {
    const auto share =
        static_cast<std::int64_t>(options.real("warmup_model_fraction") * static_cast<double>(limit));
    missing = fill_adapting(plan.items, rooms, share - plan.fixed_bytes, most);
  }
  if (missing > 0) refuse(plan, limits, missing);
  return plan;
}

}  // namespace gemini
