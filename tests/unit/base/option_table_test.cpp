// The option table against the contract, written down here once more by hand.
#include "base/option_table.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "base/options.hpp"

namespace gemini {
namespace {

using Scope = OptionScope;

struct Promise {
  const char* key;
  const char* initial;
  Scope scope;
  std::vector<std::string> allowed;  // words and examples
  std::vector<std::string> refused;
};

const std::vector<Promise>& promises() {
  static const std::vector<std::string> flag_words = {"on", "off"};
  static const std::vector<std::string> not_flags = {"", "1", "true", "ON", "maybe"};
  static const std::vector<Promise> all = {
      {"backend", "host", Scope::agreed, {"host", "cuda", "auto"}, {"gpu", ""}},
      {"device", "auto", Scope::rank, {"auto", "current", "0", "7"}, {"-1", "first", "0.5"}},
      {"collectives",
       "auto",
       Scope::agreed,
       {"auto", "mpi", "shared", "nccl", "delayed:5,100", "delayed:0,0.5", "shared:2"},
       {"delayed:", "delayed:5", "delayed:-1,1", "delayed:1,0", "delayed:0,1e-300", "delayed:1e300,1",
        "delayed:a,b", "ucx"}},
      {"shard_group", "world", Scope::agreed, {"world", "node", "4"}, {"0", "-2", "2.5", "rack"}},
      {"placement", "auto", Scope::agreed, {"static", "auto", "planned"}, {"dynamic"}},
      {"shard_param_frac", "1", Scope::agreed, {"0", "0.5", "1"}, {"1.01", "-0.1", "nan"}},
      {"offload_optim_frac", "0", Scope::agreed, {"0", "0.5", "1"}, {"1.01", "-0.1"}},
      {"offload_param_frac", "0", Scope::agreed, {"0", "0.5", "1"}, {"1.01", "-0.1"}},
      {"device_memory", "auto", Scope::rank, {"auto", "8GiB", "1000"}, {"-1", "8 giga", ""}},
      {"host_memory", "auto", Scope::rank, {"auto", "512MiB", "0"}, {"-1", "much"}},
      {"device_memory_fraction", "0.9", Scope::agreed, {"0.5", "1"}, {"1.5", "-1", "inf"}},
      {"warmup_model_fraction", "0.2", Scope::agreed, {"0.5", "1"}, {"1.5", "-1"}},
      {"spill_dir", "", Scope::rank, {"/tmp", ""}, {}},
      {"prefetch", "auto", Scope::agreed, {"auto", "0", "3"}, {"-1", "some", "1.5"}},
      {"chunk_elems", "0", Scope::agreed, {"0", "16", "1e6"}, {"-1", "1.5", "auto"}},
      {"chunk_search_min_elems", "65536", Scope::agreed, {"1"}, {"0"}},
      {"chunk_search_max_elems", "8388608", Scope::agreed, {"1", "1e9"}, {"0"}},
      {"async_reduce", "on", Scope::agreed, flag_words, not_flags},
      {"reduce_op", "mean", Scope::agreed, {"mean", "sum"}, {"max"}},
      {"gather_dtype", "same", Scope::agreed, {"same", "bf16", "f16", "f8_e4m3"}, {"f32"}},
      {"reduce_dtype", "same", Scope::agreed, {"same", "bf16", "f16"}, {"f8_e4m3"}},
      {"master_weights", "on", Scope::agreed, flag_words, not_flags},
      {"accumulate", "1", Scope::step, {"1", "16"}, {"0", "-1", "1.5"}},
      {"accumulate_mode", "reduce", Scope::agreed, {"reduce", "local"}, {"none"}},
      {"optimizer",
       "adamw",
       Scope::agreed,
       {"adamw", "adam", "sgd", "lion", "lamb", "custom", "none"},
       {"AdamW", "rmsprop"}},
      {"custom_states", "0", Scope::agreed, {"0", "1", "2"}, {"3", "-1"}},
      {"lr", "1e-3", Scope::step, {"0", "0.1"}, {"-1", "nan", "inf", ""}},
      {"beta1", "0.9", Scope::step, {"0", "0.99"}, {"-0.1", "1.1"}},
      {"beta2", "0.999", Scope::step, {"0", "0.99"}, {"-0.1", "1.1"}},
      {"eps", "1e-8", Scope::step, {"0", "1e-6"}, {"-1"}},
      {"weight_decay", "0", Scope::step, {"0", "0.01"}, {"-1"}},
      {"momentum", "0", Scope::step, {"0", "0.9"}, {"-1", "2"}},
      {"nesterov", "off", Scope::step, flag_words, not_flags},
      {"max_grad_norm", "0", Scope::step, {"0", "1"}, {"-1"}},
      {"grad_norm", "2", Scope::step, {"2", "inf"}, {"1"}},
      {"loss_scale", "auto", Scope::step, {"auto", "off", "1024"}, {"0", "-1", "on"}},
      {"initial_scale", "65536", Scope::step, {"1"}, {"0", "-1"}},
      {"min_scale", "1", Scope::step, {"0.5"}, {"0", "-1"}},
      {"max_scale", "4294967296", Scope::step, {"1"}, {"0", "-1"}},
      {"growth_factor", "2", Scope::step, {"1.5"}, {"0.5", "0"}},
      {"backoff_factor", "0.5", Scope::step, {"0.25"}, {"2", "0"}},
      {"growth_interval", "1000", Scope::step, {"1"}, {"0", "1.5"}},
      {"hysteresis", "2", Scope::step, {"1"}, {"0", "1.5"}},
      {"skip_nonfinite", "on", Scope::agreed, flag_words, not_flags},
      {"check", "off", Scope::agreed, {"off", "order", "values"}, {"on"}},
      {"timeout_s", "1800", Scope::agreed, {"0", "0.5"}, {"-1", "forever"}},
      {"deterministic", "on", Scope::agreed, flag_words, not_flags},
      {"checkpoint_verify", "on", Scope::agreed, flag_words, not_flags},
      {"checkpoint_keep", "0", Scope::agreed, {"3"}, {"-1"}},
      {"checkpoint_names_max", "4096", Scope::agreed, {"0"}, {"-1"}},
      {"trace_in", "", Scope::agreed, {"a file", ""}, {}},
      {"trace_out", "", Scope::agreed, {"a file", ""}, {}},
      {"log", "off", Scope::rank, {"off", "error", "warn", "info", "debug"}, {"on", "trace"}},
      {"trace", "off", Scope::rank, flag_words, not_flags},
  };
  return all;
}

TEST(OptionTable, HasTheContractsKeysDefaultsAndScopes) {
  ASSERT_EQ(option_table().size(), promises().size());
  for (const Promise& promise : promises()) {
    const OptionSpec* spec = find_option(promise.key);
    ASSERT_NE(spec, nullptr) << promise.key;
    EXPECT_EQ(spec->initial, promise.initial) << promise.key;
    EXPECT_EQ(spec->scope, promise.scope) << promise.key;
  }
}

TEST(OptionTable, EveryDefaultPassesItsOwnCheck) {
  for (const OptionSpec& spec : option_table())
    EXPECT_NO_THROW(check_option_value(spec, spec.initial)) << spec.key;
}

TEST(OptionTable, EveryKeyOnceAndWithHelp) {
  std::set<std::string_view> keys;
  for (const OptionSpec& spec : option_table()) {
    EXPECT_TRUE(keys.insert(spec.key).second) << spec.key;
    EXPECT_FALSE(spec.help.empty()) << spec.key;
    EXPECT_EQ(spec.help.find('\n'), std::string_view::npos) << spec.key;
    EXPECT_EQ(spec.key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos);
  }
}

TEST(OptionTable, AllowsAndRefuses) {
  for (const Promise& promise : promises()) {
    const OptionSpec& spec = *find_option(promise.key);
    for (const auto& value : promise.allowed)
      EXPECT_NO_THROW(check_option_value(spec, value)) << promise.key << " = " << value;
    for (const auto& value : promise.refused)
      EXPECT_THROW(check_option_value(spec, value), Error) << promise.key << " = " << value;
  }
}

TEST(OptionTable, ARefusalTellsWhatIsAllowed) {
  for (const OptionSpec& spec : option_table()) {
    if (spec.kind == OptionKind::text) continue;
    try {
      check_option_value(spec, "!");
      ADD_FAILURE() << spec.key << " takes anything";
    } catch (const Error& error) {
      const std::string words = error.what();
      EXPECT_EQ(error.status(), GEMINI_ERR_ARGUMENT);
      EXPECT_NE(words.find(spec.key), std::string::npos) << words;
      EXPECT_NE(words.find("\"!\""), std::string::npos) << words;
      for (const auto& keyword : spec.keywords) EXPECT_NE(words.find(keyword), std::string::npos) << words;
    }
  }
}

TEST(OptionTable, TheSearchedRangeIsNotEmpty) {
  const Options defaults;
  EXPECT_LT(defaults.integer("chunk_search_min_elems"), defaults.integer("chunk_search_max_elems"));
}

TEST(LinkDelay, IsReadFromTheValueOfCollectives) {
  const auto delay = parse_link_delay("delayed:20.5,3");
  ASSERT_TRUE(delay.has_value());
  EXPECT_EQ(delay->latency_us, 20.5);
  EXPECT_EQ(delay->gbit_per_s, 3);
  EXPECT_FALSE(parse_link_delay("mpi").has_value());
  EXPECT_FALSE(parse_link_delay("delayed:1").has_value());
}

}  // namespace
}  // namespace gemini
