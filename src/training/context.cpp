#include "training/context.hpp"

#include <cmath>
#include <new>

#include "base/text.hpp"
#include "collectives/node_transport.hpp"
#include "kernels/runtime.hpp"
#include "memory/machine_memory.hpp"
#include "memory/new_file.hpp"
#include "training/must.hpp"
#include "training/supported.hpp"
#include "training/value_check.hpp"

namespace gemini {
namespace {

// The machine's memory, shared by the ranks of the node. On the host both tiers are in it.
std::int64_t share_of_machine(const Topology& topology) {
  return machine_memory() / topology.node_ranks();
}

// What placement = static keeps out of compute memory must have a place.
bool offloads(const Options& options) {
  return options.text("placement") == "static" &&
         (options.real("offload_param_frac") > 0 || options.real("offload_optim_frac") > 0);
}

// auto: all of the share; half of it if data is told to lie in host memory; with files to spill to, host
// memory gets some of it for staging.
std::int64_t compute_budget(const Options& options, const Topology& topology) {
  const std::int64_t asked = options.bytes("device_memory");
  if (asked >= 0) return asked;
  const std::int64_t share = share_of_machine(topology);
  const std::int64_t host = options.bytes("host_memory");
  if (host >= 0) return std::max<std::int64_t>(share - host, 0);
  if (offloads(options)) return share / 2;
  return options.text("spill_dir").empty() ? share : share - share / 16;
}

// auto: what compute memory leaves of the share.
std::int64_t host_budget(const Options& options, const Topology& topology, std::int64_t compute) {
  const std::int64_t asked = options.bytes("host_memory");
  return asked >= 0 ? asked : std::max<std::int64_t>(share_of_machine(topology) - compute, 0);
}

Options with_environment(Options options, std::exception_ptr& refusal) {
  try {
    options.apply_environment();
  } catch (...) {
    if (!refusal) refusal = std::current_exception();  // said where ranks agree
  }
  return options;
}

// NULL: nothing is recorded.
std::unique_ptr<Timeline> make_timeline(bool wanted, std::exception_ptr& refusal) {
  try {
    return wanted ? std::make_unique<Timeline>() : nullptr;
  } catch (const std::bad_alloc&) {
    if (!refusal) refusal = std::make_exception_ptr(Error(GEMINI_ERR_OUT_OF_MEMORY, kNoMemory));
    return nullptr;
  }
}

}  // namespace

Context::Context(MPI_Comm parent, Options options, std::exception_ptr refusal)
    : options_(with_environment(std::move(options), refusal)),
      timeline_(make_timeline(options_.flag("trace"), refusal)),
      ranks_(parent, options_,
             [&] {
               if (refusal) std::rethrow_exception(refusal);
               kernels::start();
               check_supported(options_);
               static_cast<void>(StepSettings(options_));  // checks what belongs together
             }),
      log_(parse_log_level(options_.text("log")), ranks_.topology().rank),
      compute_("device_memory",
               ranks_.minimum(compute_budget(options_, ranks_.topology()), "agreeing on device_memory")),
      host_("host_memory", ranks_.minimum(host_budget(options_, ranks_.topology(), compute_.limit()),
                                          "agreeing on host_memory")),
      tiers_{compute_, host_},
      learning_rate_(options_.real("lr")) {
  open_files();
  compute_.set_wait([this](const std::function<bool()>& condition) {
    ranks_.queue().wait_until(condition, "ranks that still read a slot that is to go");
  });
  if (options_.bytes("device_memory") < 0) non_model_.count_process(compute_.limit());
  if (timeline_) timeline_->start();  // all ranks come from an agreement
  resolve_options();
  log_.info("{} of {} ranks, {} nodes, collectives {}", ranks_.topology().rank, ranks_.topology().ranks,
            ranks_.topology().nodes.size(), ranks_.transport().name());
}

// What this rank finds wrong once its neighbours are known.
void Context::check_machine() const {
  const std::string& trace = options_.text("trace_out");
  if (!trace.empty() && ranks_.topology().rank == 0)
    static_cast<void>(NewFile(trace));  // now rather than when all is learnt
  const std::int64_t host = options_.bytes("host_memory");
  const std::int64_t share = share_of_machine(ranks_.topology());
  if (options_.bytes("device_memory") < 0 && host >= share)
    fail(GEMINI_ERR_ARGUMENT,
         "host_memory = {} leaves nothing for device_memory = auto of the {} that a rank has here; set both",
         text::format_bytes(host), text::format_bytes(share));
}

// Directories may differ, but decisions rest on whether there is a third tier. A rank without a usable one
// refuses, and so do all.
void Context::open_files() {
  const std::string& directory = options_.text("spill_dir");
  const bool on_all = ranks_.minimum(directory.empty() ? 0 : 1, "agreeing on spill_dir") == 1;
  const bool on_none = ranks_.minimum(directory.empty() ? 1 : 0, "agreeing on spill_dir") == 1;
  if (!on_all && !on_none) {
    ranks_.free_communicators();
    fail(GEMINI_ERR_MISMATCH,
         "option spill_dir is set on some ranks and not on others (here it is \"{}\"): set it on all or on "
         "none",
         directory);
  }
  try {
    ranks_.agreement().act_and_agree(Call::create, [&] {
      check_machine();
      if (!directory.empty()) files_ = std::make_unique<SpillFile>(directory);
    });
  } catch (const Error& error) {
    if (error.status() > 0) ranks_.free_communicators();
    throw;
  }
  tiers_.files = files_.get();
}

// auto becomes what it stands for, so that gemini_get_option tells what is in force.
void Context::resolve_options() {
  options_.set("backend", "host");
  const std::string& collectives = options_.text("collectives");
  if (collectives == "shared" && ranks_.shared() == nullptr && ranks_.topology().ranks > 1)
    log_.warning(
        "these ranks cannot share memory, collectives = mpi is used: groups must lie on one node each, "
        "or be one on nodes of equally many ranks");
  const bool plays_nodes = parse_node_ranks(collectives) && ranks_.shared() != nullptr;
  if (!parse_link_delay(collectives) && !plays_nodes)
    options_.set("collectives", ranks_.topology().ranks == 1 ? "mpi" : ranks_.transport().name());
  options_.set("device_memory", std::to_string(compute_.limit()));
  options_.set("host_memory", std::to_string(host_.limit()));
}

Trainer& Context::trainer() {
  if (!trainer_) fail(GEMINI_ERR_STATE, "the context is not committed; gemini_commit first");
  return *trainer_;
}

void Context::check_not_committed(const char* what) const {
  if (trainer_) fail(GEMINI_ERR_STATE, "{} after gemini_commit", what);
}

void Context::commit() {
  const TimelineSpan span(timeline_.get(), library_call("commit"));
  ModelPlan plan;
  agree(Call::commit, {registry_.digest(), [this] { return registry_.text(); }}, [&] {
    check_not_committed("gemini_commit");
    plan = Trainer::plan(options_, ranks_, registry_, tiers_);
  });
  share_memory(plan);
  if (options_.text("check") == "values") check_same_data(ranks_, registry_);
  const TraceOrigin origin = origin_of(registry_, plan.layout, ranks_.transport().ranks());
  std::optional<Trace> order;
  if (!options_.text("trace_in").empty()) order = read_trace(ranks_, options_.text("trace_in"), origin);
  try {
    build(std::move(plan), std::move(order));
  } catch (...) {
    if (files_) files_->give_back();
    throw;
  }
  origin_ = origin;
  for (Parameter& p : registry_.all()) p.initialiser.data = {};
  log_.info("committed {} parameters in {} chunks", registry_.all().size(),
            trainer_->store().chunks().size());
}

// Building and drawing are local; what fails there fails before values travel.
void Context::build(ModelPlan plan, std::optional<Trace> order) {
  std::unique_ptr<Trainer> built;
  ranks_.agreement().act_and_agree(Call::commit, [&] {
    if (files_) files_->reserve(plan.spill_bytes);  // so that there is room whenever it is needed
    built = std::make_unique<Trainer>(options_, ranks_, registry_, std::move(plan), tiers_, non_model_);
    built->record_to(timeline_.get());
    if (order) built->adopt_order(std::move(*order));
    built->draw_initial_values();
  });
  built->spread_initial_values();
  if (options_.text("check") == "values") built->check_initial_values();
  built->set_update(custom_update_);
  trainer_ = std::move(built);
}

// Where the node has no room for shared memory, chunks travel over MPI, which asks more of compute memory.
void Context::share_memory(ModelPlan& plan) {
  NodeTransport* shared = ranks_.shared();
  if (shared == nullptr || shared->declined()) return;
  compute_.drop_idle_slots();
  const std::string refusal = shared->share(ranks_.agreement(), shared_chunks(plan));
  if (refusal.empty()) return;
  options_.set("collectives", ranks_.transport().name());
  log_.warning("nothing is shared on this node, collectives = mpi is used: {}", refusal);
  ranks_.agreement().act_and_agree(Call::commit,
                                   [&] { plan = Trainer::plan(options_, ranks_, registry_, tiers_); });
}

void Context::write_order() {
  const bool learnt = trainer_ && trainer_->operations().order().known();
  if (learnt && ranks_.topology().rank == 0)
    write_trace(options_.text("trace_out"), trainer_->operations().order().trace(), origin_);
}

void Context::end() {
  ranks_.agreement().agree(Call::destroy, "", [] {});
  std::exception_ptr unwritten;
  if (!options_.text("trace_out").empty()) {
    try {
      ranks_.agreement().act_and_agree(Call::destroy, [this] { write_order(); });
    } catch (const Error& error) {
      if (error.status() < 0) throw;  // a peer is lost
      unwritten = std::current_exception();
    }
  }
  ranks_.queue().wait_all();
  ranks_.free_communicators();
  if (unwritten) std::rethrow_exception(unwritten);
}

std::string Context::option_in_force(const std::string& key) const {
  const std::string& value = options_.text(key);
  if (key == "prefetch" && value == "auto" && options_.text("placement") != "planned")
    return options_.text("placement") == "static" ? "0" : std::to_string(kAutoDepth);
  if (!trainer_) return value;
  if (key == "loss_scale" && value == "auto" && !trainer_->loss_scale().is_dynamic()) return "off";
  if (key == "chunk_elems" && value == "0") return std::to_string(trainer_->store().layout().chunk_elems);
  return value;
}

void Context::set_option(const char* key, const char* value) {
  Options changed = options_;
  agree(Call::set_option,
        fmt::format("{} = {}", key == nullptr ? "NULL" : key, value == nullptr ? "NULL" : value), [&] {
          if (key == nullptr || value == nullptr)
            fail(GEMINI_ERR_ARGUMENT, "{} is NULL", key == nullptr ? "key" : "value");
          changed.set(key, value);
          const OptionSpec* spec = find_option(key);
          if (spec != nullptr && spec->scope != OptionScope::step)
            fail(GEMINI_ERR_STATE, "option {} is fixed at gemini_create", key);
          static_cast<void>(StepSettings(changed));
          if (trainer_) trainer_->check_change(changed);
        });
  options_ = std::move(changed);
  learning_rate_ = options_.real("lr");
  if (trainer_) must([&] { trainer_->change_settings(options_, key); });
}

void Context::set_param_option(Parameter& p, const char* key, const char* value) {
  ParamOption option{};
  const auto check = [&] {
    if (key == nullptr || value == nullptr)
      fail(GEMINI_ERR_ARGUMENT, "{} is NULL", key == nullptr ? "key" : "value");
    option = parse_param_option(key, value);
    if (p.ignored) fail(GEMINI_ERR_ARGUMENT, "parameter \"{}\" is IGNORED: it has no options", p.name);
    if (trainer_) trainer_->check_apply(p, option);
  };
  if (!trainer_) {
    check();
    apply_param_option(p, option);
    return;
  }
  agree(Call::param_set_option,
        fmt::format("parameter {}: {} = {}", p.index, key == nullptr ? "NULL" : key,
                    value == nullptr ? "NULL" : value),
        check);
  must([&] { trainer_->apply(p, option, options_); });
}

void Context::set_update(gemini_shard_fn fn, void* user) {
  if (options_.text("optimizer") != "custom")
    fail(GEMINI_ERR_STATE, "gemini_set_update is for optimizer = custom, in force is {}",
         options_.text("optimizer"));
  custom_update_ = {fn, user};
  if (trainer_) trainer_->set_update(custom_update_);
}

void* Context::allocate_workspace(std::int64_t bytes) {
  return non_model_.allocate(bytes, compute_, [&] {
    if (trainer_) trainer_->make_room_for_workspace(bytes);
  });
}

std::string Context::step_claim() {
  std::string claim = fmt::format("lr = {}", learning_rate_);
  if (trainer_) {
    const OperationOrder& order = trainer_->operations().order();
    claim += fmt::format("\noperations since the last step = {}, in the order {:016x}", order.events(),
                         order.digest());
  }
  return claim;
}

void Context::set_learning_rate(double lr) {
  if (!std::isfinite(lr) || lr < 0) fail(GEMINI_ERR_ARGUMENT, "lr is {}, must be finite and >= 0", lr);
  options_.set("lr", fmt::format("{}", lr));  // refuses what the table does
  learning_rate_ = lr;
}

}  // namespace gemini
