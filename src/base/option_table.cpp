#include "base/option_table.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace gemini {
namespace {

using Kind = OptionKind;
using Scope = OptionScope;
using Words = std::vector<std::string_view>;
constexpr double kMax = 9007199254740992.0;  // 2^53
constexpr double kBelowOne = 1 - 0x1p-53;    // 1 - beta divides

const Words kFlag = {"on", "off"};

OptionSpec flag(std::string_view key, std::string_view initial, Scope scope, std::string_view help) {
  return {key, Kind::choice, initial, kFlag, 0, 0, scope, help};
}
OptionSpec choice(std::string_view key, std::string_view initial, Words words, Scope scope,
                  std::string_view help) {
  return {key, Kind::choice, initial, std::move(words), 0, 0, scope, help};
}
OptionSpec real(std::string_view key, std::string_view initial, double low, double high, Scope scope,
                std::string_view help, Words words = {}) {
  return {key, Kind::real, initial, std::move(words), low, high, scope, help};
}
OptionSpec integer(std::string_view key, std::string_view initial, double low, double high, Scope scope,
                   std::string_view help, Words words = {}) {
  return {key, Kind::integer, initial, std::move(words), low, high, scope, help};
}
OptionSpec bytes(std::string_view key, std::string_view help) {
  return {key, Kind::bytes, "auto", {"auto"}, 0, kMax, Scope::rank, help};
}
OptionSpec text_value(std::string_view key, Scope scope, std::string_view help) {
  return {key, Kind::text, "", {}, 0, 0, scope, help};
}

std::vector<OptionSpec> make_table() {
  return {
      choice("backend", "host", {"host", "cuda", "auto"}, Scope::agreed,
             "where operations compute; auto: cuda where a device is usable"),
      integer("device", "auto", 0, 1e6, Scope::rank,
              "auto: node-local rank modulo visible devices; current: the caller's; or a number",
              {"auto", "current"}),
      {"collectives",
       Kind::collectives,
       "auto",
       {"auto", "mpi", "shared", "nccl"},
       0,
       0,
       Scope::agreed,
       "how chunks travel; delayed:<latency_us>,<gbit_per_s> and shared:<ranks per node> are for tests"},
      integer("shard_group", "world", 1, kMax, Scope::agreed,
              "ranks that share one copy: world, node or a divisor of the ranks", {"world", "node"}),
      choice("placement", "auto", {"static", "auto", "planned"}, Scope::agreed,
             "how shards and gathered chunks are placed"),
      real("shard_param_frac", "1", 0, 1, Scope::agreed, "static: share of parameters released after use"),
      real("offload_optim_frac", "0", 0, 1, Scope::agreed, "static: share of optimizer state on the host"),
      real("offload_param_frac", "0", 0, 1, Scope::agreed, "static: share of parameter shards on the host"),
      bytes("device_memory",
            "budget of compute memory, never exceeded; auto: this rank's share of the machine or of its "
            "cgroup"),
      bytes("host_memory",
            "budget of the second tier, never exceeded; auto: what device_memory leaves of that share"),
      text_value("spill_dir", Scope::rank, "directory of the third tier: files beyond host_memory"),
      real("device_memory_fraction", "0.9", 0, 1, Scope::agreed,
           "share of the device that model and other data together may fill"),
      real("warmup_model_fraction", "0.2", 0, 1, Scope::agreed,
           "share for model data while nothing is known yet"),
      integer("prefetch", "auto", 0, 1e6, Scope::agreed, "chunks fetched ahead; 0: off", {"auto"}),
      integer("chunk_elems", "0", 0, kMax, Scope::agreed, "[elements] per chunk; 0: search"),
      integer("chunk_search_min_elems", "65536", 1, kMax, Scope::agreed,
              "[elements] smallest chunk searched"),
      integer("chunk_search_max_elems", "8388608", 1, kMax, Scope::agreed,
              "[elements] largest chunk searched"),
      flag("async_reduce", "on", Scope::agreed, "reduce gradients while backward runs"),
      choice("reduce_op", "mean", {"mean", "sum"}, Scope::agreed, "over ranks"),
      choice("gather_dtype", "same", {"same", "bf16", "f16", "f8_e4m3"}, Scope::agreed,
             "what travels in gathers"),
      choice("reduce_dtype", "same", {"same", "bf16", "f16"}, Scope::agreed, "what travels in reductions"),
      flag("master_weights", "on", Scope::agreed, "F32 master copy of 16-bit parameters"),
      integer("accumulate", "1", 1, 1e9, Scope::step, "micro-batches per step"),
      choice("accumulate_mode", "reduce", {"reduce", "local"}, Scope::agreed,
             "reduce each micro-batch, or keep whole gradients and reduce once"),
      choice("optimizer", "adamw", {"adamw", "adam", "sgd", "lion", "lamb", "custom", "none"}, Scope::agreed,
             "the update of step"),
      integer("custom_states", "0", 0, 2, Scope::agreed, "state arrays of optimizer = custom"),
      real("lr", "1e-3", 0, kMax, Scope::step, "learning rate"),
      real("beta1", "0.9", 0, kBelowOne, Scope::step, "Adam, AdamW, Lion, LAMB"),
      real("beta2", "0.999", 0, kBelowOne, Scope::step, "Adam, AdamW, Lion, LAMB"),
      real("eps", "1e-8", 0, kMax, Scope::step, "Adam, AdamW, LAMB"),
      real("weight_decay", "0", 0, kMax, Scope::step,
           "decoupled, except adam and sgd: added to the gradient"),
      real("momentum", "0", 0, 1, Scope::step, "SGD"),
      flag("nesterov", "off", Scope::step, "SGD"),
      real("max_grad_norm", "0", 0, kMax, Scope::step, "clip to this global norm; 0: off"),
      choice("grad_norm", "2", {"2", "inf"}, Scope::step, "which norm is reported and clipped"),
      real("loss_scale", "auto", 1e-300, kMax, Scope::step,
           "auto: dynamic if a trainable parameter is F16, else off; or a number", {"auto", "off"}),
      real("initial_scale", "65536", 1e-300, kMax, Scope::step, "dynamic loss scale at the start"),
      real("min_scale", "1", 1e-300, kMax, Scope::step, "dynamic loss scale"),
      real("max_scale", "4294967296", 1e-300, kMax, Scope::step, "dynamic loss scale"),
      real("growth_factor", "2", 1, kMax, Scope::step, "dynamic loss scale"),
      real("backoff_factor", "0.5", 1e-300, 1, Scope::step, "dynamic loss scale"),
      integer("growth_interval", "1000", 1, kMax, Scope::step, "clean steps before the scale grows"),
      integer("hysteresis", "2", 1, 1e9, Scope::step, "overflows before the scale falls"),
      flag("skip_nonfinite", "on", Scope::agreed, "skip the step where a gradient is not finite"),
      choice("check", "off", {"off", "order", "values"}, Scope::agreed,
             "order: call sequences are compared over ranks; values: also contents"),
      real("timeout_s", "1800", 0, kMax, Scope::agreed, "[s] how long to wait for a peer; 0: for ever"),
      flag("deterministic", "on", Scope::agreed, "same ranks and inputs give the same bits"),
      flag("checkpoint_verify", "on", Scope::agreed, "check checksums on read"),
      integer("checkpoint_keep", "0", 0, 1e6, Scope::agreed, "older generations kept"),
      integer("checkpoint_names_max", "4096", 0, kMax, Scope::agreed,
              "parameters shown by name if the model has at most this many"),
      text_value("trace_in", Scope::agreed, "learnt trace, read at commit"),
      text_value("trace_out", Scope::agreed, "learnt trace, written at destroy"),
      choice("log", "off", {"off", "error", "warn", "info", "debug"}, Scope::rank, "messages on stderr"),
      flag("trace", "off", Scope::rank, "record for gemini_trace_write"),
  };
}

bool number_in_range(const OptionSpec& spec, std::string_view value) {
  if (spec.kind == Kind::integer) {
    const auto number = text::parse_integer(value);
    return number && static_cast<double>(*number) >= spec.minimum &&
           static_cast<double>(*number) <= spec.maximum;
  }
  const auto number = text::parse_real(value);
  return number && *number >= spec.minimum && *number <= spec.maximum;
}

bool allowed(const OptionSpec& spec, std::string_view value) {
  if (std::find(spec.keywords.begin(), spec.keywords.end(), value) != spec.keywords.end()) return true;
  switch (spec.kind) {
    case Kind::choice: return false;
    case Kind::text: return true;
    case Kind::bytes: return text::parse_bytes(value).has_value();
    case Kind::collectives: return parse_link_delay(value) || parse_node_ranks(value);
    case Kind::real:
    case Kind::integer: return number_in_range(spec, value);
  }
  return false;
}

}  // namespace

const std::vector<OptionSpec>& option_table() {
  static const std::vector<OptionSpec> table = make_table();
  return table;
}

const OptionSpec* find_option(std::string_view key) {
  for (const auto& spec : option_table())
    if (spec.key == key) return &spec;
  return nullptr;
}

std::string allowed_values(const OptionSpec& spec) {
  std::string words = fmt::format("{}", fmt::join(spec.keywords, ", "));
  const char* separator = spec.keywords.empty() ? "" : ", or ";
  switch (spec.kind) {
    case Kind::choice: return words;
    case Kind::text: return "any text";
    case Kind::bytes:
      return words + separator + "a size in B, KB, MB, GB, TB, KiB, MiB, GiB or TiB such as 8GiB";
    case Kind::collectives:
      return words + separator + "delayed:<latency_us>,<gbit_per_s> (0 to 1e9, 1e-6 to 1e9), shared:<ranks>";
    case Kind::integer:
      return words + separator + fmt::format("an integer from {} to {}", spec.minimum, spec.maximum);
    case Kind::real:
      return words + separator + fmt::format("a number from {} to {}", spec.minimum, spec.maximum);
  }
  return words;
}

std::optional<LinkDelay> parse_link_delay(std::string_view collectives) {
  constexpr std::string_view kPrefix = "delayed:";
  const auto comma = collectives.find(',');
  if (collectives.substr(0, kPrefix.size()) != kPrefix || comma == std::string_view::npos) return {};
  const auto latency = text::parse_real(collectives.substr(kPrefix.size(), comma - kPrefix.size()));
  const auto rate = text::parse_real(collectives.substr(comma + 1));
  const auto within = [](const std::optional<double>& number, double low, double high) {
    return number && *number >= low && *number <= high;
  };
  if (!within(latency, 0, 1e9) || !within(rate, 1e-6, 1e9)) return {};
  return LinkDelay{*latency, *rate};
}

std::optional<int> parse_node_ranks(std::string_view collectives) {
  constexpr std::string_view kPrefix = "shared:";
  if (collectives.substr(0, kPrefix.size()) != kPrefix) return {};
  const auto ranks = text::parse_integer(collectives.substr(kPrefix.size()));
  if (!ranks || *ranks < 1 || *ranks > 1 << 20) return {};
  return static_cast<int>(*ranks);
}

void check_option_value(const OptionSpec& spec, std::string_view value) {
  if (!allowed(spec, value))
    fail(GEMINI_ERR_ARGUMENT, "option {} = \"{}\": allowed are {}", spec.key, value, allowed_values(spec));
}

}  // namespace gemini
