// Context: numbers for programs and a page for people.
#include <vector>

#include "base/text.hpp"
#include "training/context.hpp"

namespace gemini {
namespace {

struct StatLine {
  gemini_stat_t which;
  const char* name;
  bool bytes;
};
constexpr StatLine kReported[] = {
    {GEMINI_STAT_DEVICE_BYTES, "compute memory held", true},
    {GEMINI_STAT_DEVICE_PEAK_BYTES, "compute memory, peak", true},
    {GEMINI_STAT_HOST_BYTES, "host memory held", true},
    {GEMINI_STAT_HOST_PEAK_BYTES, "host memory, peak", true},
    {GEMINI_STAT_FILE_BYTES, "files held", true},
    {GEMINI_STAT_PARAM_BYTES, "parameter shards", true},
    {GEMINI_STAT_GRAD_BYTES, "gradient shards", true},
    {GEMINI_STAT_OPTIMIZER_BYTES, "optimizer state shards", true},
    {GEMINI_STAT_GATHERED_PEAK_BYTES, "gathered parameters, peak", true},
    {GEMINI_STAT_NON_MODEL_PEAK_BYTES, "workspaces and notes, peak", true},
    {GEMINI_STAT_GATHERS, "chunk gathers", false},
    {GEMINI_STAT_PREFETCH_HITS, "gathers asked for ahead", false},
    {GEMINI_STAT_PREFETCH_MISSES, "gathers waited for whole", false},
    {GEMINI_STAT_REDUCES, "chunk reductions", false},
    {GEMINI_STAT_MOVED_BYTES, "moved between tiers", true},
    {GEMINI_STAT_GATHER_WIRE_BYTES, "sent in gathers", true},
    {GEMINI_STAT_REDUCE_WIRE_BYTES, "sent in reductions", true},
    {GEMINI_STAT_STALL_NS, "waiting for peers [ns]", false},
};

std::int64_t of_chunks(gemini_stat_t which, const ChunkStore& store) {
  switch (which) {
    case GEMINI_STAT_GATHERED_BYTES: return store.counters().gathered_bytes;
    case GEMINI_STAT_GATHERED_PEAK_BYTES: return store.counters().gathered_peak_bytes;
    case GEMINI_STAT_PARAM_BYTES: return store.shard_bytes().param;
    case GEMINI_STAT_GRAD_BYTES: return store.shard_bytes().grad;
    case GEMINI_STAT_OPTIMIZER_BYTES: return store.shard_bytes().optimizer;
    case GEMINI_STAT_GATHERS: return store.counters().gathers;
    case GEMINI_STAT_CHUNKS: return static_cast<std::int64_t>(store.layout().chunks.size());
    case GEMINI_STAT_CHUNK_ELEMS: return store.layout().chunk_elems;
    case GEMINI_STAT_PADDING_ELEMS: return store.layout().padding_elems;
    default: return 0;
  }
}

}  // namespace

std::int64_t Context::stat(gemini_stat_t which) const {
  switch (which) {
    case GEMINI_STAT_DEVICE_BYTES: return compute_.held();
    case GEMINI_STAT_DEVICE_PEAK_BYTES: return compute_.peak();
    case GEMINI_STAT_HOST_BYTES: return host_.held();
    case GEMINI_STAT_HOST_PEAK_BYTES: return host_.peak();
    case GEMINI_STAT_FILE_BYTES: return files_ ? files_->held() : 0;
    case GEMINI_STAT_MOVED_BYTES: return tiers_.moved_bytes;
    case GEMINI_STAT_NON_MODEL_PEAK_BYTES: return non_model_.peak();
    case GEMINI_STAT_GATHER_WIRE_BYTES: return ranks_.transport().wire().gather_bytes;
    case GEMINI_STAT_REDUCE_WIRE_BYTES: return ranks_.transport().wire().reduce_bytes;
    case GEMINI_STAT_STALL_NS: return ranks_.queue().stall_ns();
    case GEMINI_STAT_IN_FLIGHT: return ranks_.queue().in_flight();
    case GEMINI_STAT_REDUCES: return trainer_ ? trainer_->gradients().reduces() : 0;
    case GEMINI_STAT_STEPS: return trainer_ ? trainer_->counted_steps() : 0;
    case GEMINI_STAT_SKIPPED_STEPS: return trainer_ ? trainer_->skipped_steps() : 0;
    case GEMINI_STAT_LEASES: return trainer_ ? trainer_->operations().leases() : 0;
    case GEMINI_STAT_PREFETCH_HITS: return trainer_ ? trainer_->residency().hits() : 0;
    case GEMINI_STAT_PREFETCH_MISSES: return trainer_ ? trainer_->residency().misses() : 0;
    case GEMINI_STAT_ORDER_CHANGES: return trainer_ ? trainer_->operations().order().changes() : 0;
    default: break;
  }
  if (which < GEMINI_STAT_DEVICE_BYTES || which > GEMINI_STAT_IN_FLIGHT)
    fail(GEMINI_ERR_ARGUMENT, "which is {}: allowed are the GEMINI_STAT_* values 1 to 27",
         static_cast<int>(which));
  return trainer_ ? of_chunks(which, trainer_->store()) : 0;
}

void Context::reset_stats() {
  compute_.reset_peak();
  host_.reset_peak();
  non_model_.reset_peak();
  ranks_.transport().reset_wire();
  ranks_.queue().reset_stall();
  if (trainer_) trainer_->reset_counters();
}

std::string Context::report() {
  std::vector<std::int64_t> highest;
  for (const StatLine& line : kReported) highest.push_back(stat(line.which));
  std::vector<std::int64_t> lowest = highest;
  ranks_.agreement().all_reduce(MPI_MAX, highest, "the report");
  ranks_.agreement().all_reduce(MPI_MIN, lowest, "the report");

  const Topology& topology = ranks_.topology();
  std::string page = fmt::format("libgemini: {} ranks on {} nodes, collectives {}\n", topology.ranks,
                                 topology.nodes.size(), ranks_.transport().name());
  page += fmt::format("{} parameters in {} chunks of up to {} elements, {} elements of padding\n",
                      registry_.all().size(), stat(GEMINI_STAT_CHUNKS), stat(GEMINI_STAT_CHUNK_ELEMS),
                      stat(GEMINI_STAT_PADDING_ELEMS));
  page += fmt::format("{} steps, {} skipped\n", stat(GEMINI_STAT_STEPS), stat(GEMINI_STAT_SKIPPED_STEPS));
  page += fmt::format("{:30} {:>32} {:>32}\n", "per rank", "lowest", "highest");
  for (std::size_t i = 0; i < highest.size(); ++i) {
    const auto show = [&](std::int64_t value) {
      return kReported[i].bytes ? text::format_bytes(value) : std::to_string(value);
    };
    page += fmt::format("{:30} {:>32} {:>32}\n", kReported[i].name, show(lowest[i]), show(highest[i]));
  }
  return page;
}

}  // namespace gemini
