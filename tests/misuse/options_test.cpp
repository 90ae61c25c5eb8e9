// Options: unknown keys, values that are not allowed, files with errors, environment variables.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "misuse/refused.hpp"

using namespace gemini_test;

namespace {

// A variable of the environment, for the time of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// A file of this rank.
std::string file_with(const std::string& text) {
  const std::string path = "options_" + std::to_string(rank_of()) + ".txt";
  std::ofstream(path) << text;
  return path;
}

std::string get(gemini_options_t opts, const char* key) {
  char value[64] = "";
  GEMINI_CHECK(gemini_options_get(opts, key, value, sizeof value));
  return value;
}

}  // namespace

TEST(Options, RefuseNullPointersByName) {
  const Options opts;
  char value[8] = "";
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_create(nullptr), "opts is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_set(nullptr, "lr", "1"), "opts is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_set(opts.get(), nullptr, "1"), "key is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_set(opts.get(), "lr", nullptr), "value is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_load(opts.get(), nullptr), "path is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_get(opts.get(), "lr", nullptr, 8), "value is NULL");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_get(nullptr, "lr", value, 8), "opts is NULL");
  EXPECT_EQ(GEMINI_SUCCESS, gemini_options_destroy(nullptr));
  gemini_options_t none = nullptr;
  EXPECT_EQ(GEMINI_SUCCESS, gemini_options_destroy(&none));
}

TEST(Options, GiveTheNearestNamesForAnUnknownKey) {
  const Options opts;
  char value[8] = "";
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_set(opts.get(), "chunk_elem", "1"), "\"chunk_elem\"",
          "did you mean chunk_elems");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_set(opts.get(), "LR", "1"), "\"LR\"", "lr");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_get(opts.get(), "optimiser", value, 8), "optimizer");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_set(opts.get(), "", "1"), "\"\"");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_set(opts.get(), "user.", "1"), "\"user.\"");
}

TEST(Options, ListWhatIsAllowedForAWrongValue) {
  const Options opts;
  struct Wrong {
    const char *key, *value, *allowed;
  };
  for (const Wrong& wrong : {
           Wrong{"optimizer", "adamx", "adamw, adam, sgd, lion, lamb, custom, none"},
           Wrong{"backend", "gpu", "host, cuda, auto"},
           Wrong{"nesterov", "true", "on, off"},
           Wrong{"lr", "-1", "a number from 0"},
           Wrong{"lr", "nan", "a number from 0"},
           Wrong{"lr", "1e-3x", "a number from 0"},
           Wrong{"accumulate", "0", "an integer from 1"},
           Wrong{"accumulate", "1.5", "an integer from 1"},
           Wrong{"device_memory", "8 gigs", "auto, or a size in B, KB, MB"},
           Wrong{"device_memory", "-1", "auto, or a size in B, KB, MB"},
           Wrong{"loss_scale", "0", "auto, off"},
           Wrong{"collectives", "delayed:1", "delayed:<latency_us>,<gbit_per_s>"},
           Wrong{"shard_group", "0", "world, node"},
       }) {
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_set(opts.get(), wrong.key, wrong.value), wrong.key,
            std::string("\"") + wrong.value + "\"", wrong.allowed);
  }
  EXPECT_EQ("1e-3", get(opts.get(), "lr"));  // nothing was set
  EXPECT_EQ("1", get(opts.get(), "accumulate"));
}

TEST(Options, TellTheNeedWhenTheBufferIsTooSmall) {
  const Options opts({{"user.note", "twelve bytes"}});
  char value[16] = "untouched";
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_get(opts.get(), "user.note", value, 12), "capacity is 12",
          "13 bytes");
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_get(opts.get(), "user.note", value, -1), "capacity is -1");
  EXPECT_STREQ("untouched", value);
  EXPECT_EQ(GEMINI_SUCCESS, gemini_options_get(opts.get(), "user.note", value, 13));
  EXPECT_STREQ("twelve bytes", value);
  REFUSED(GEMINI_ERR_NOT_FOUND, gemini_options_get(opts.get(), "user.other", value, 13), "\"user.other\"");
}

TEST(OptionsFile, SetsWhatItSaysAndKeepsUserKeys) {
  const Options opts({{"lr", "5"}, {"beta1", "0.5"}});
  const std::string path =
      file_with("# a comment\n\n lr = 0.25 # here too\r\nuser.epochs=12\noptimizer =  sgd");
  ASSERT_EQ(GEMINI_SUCCESS, gemini_options_load(opts.get(), path.c_str())) << gemini_last_error_message();
  EXPECT_EQ("0.25", get(opts.get(), "lr"));
  EXPECT_EQ("12", get(opts.get(), "user.epochs"));
  EXPECT_EQ("sgd", get(opts.get(), "optimizer"));
  EXPECT_EQ("0.5", get(opts.get(), "beta1"));
}

TEST(OptionsFile, MayBeginWithAByteOrderMark) {
  const Options opts;
  const std::string path = file_with("\xEF\xBB\xBFlr = 0.25\n");
  ASSERT_EQ(GEMINI_SUCCESS, gemini_options_load(opts.get(), path.c_str())) << gemini_last_error_message();
  EXPECT_EQ("0.25", get(opts.get(), "lr"));
}

TEST(OptionsFile, WithAnErrorChangesNothingAndNamesTheLine) {
  const Options opts({{"lr", "5"}});
  struct Wrong {
    const char *text, *words;
  };
  for (const Wrong& wrong : {Wrong{"lr = 1\n\nlr : 2\n", ":3: expected \"key = value\""},
                             Wrong{"lr = 1\noptimiser = sgd\n", ":2: there is no option \"optimiser\""},
                             Wrong{"lr = 1\n# fine\n\nbeta1 = 7\n", ":4: option beta1 = \"7\""}}) {
    const std::string path = file_with(wrong.text);
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_options_load(opts.get(), path.c_str()), path + wrong.words);
    EXPECT_EQ("5", get(opts.get(), "lr"));
  }
  REFUSED(GEMINI_ERR_NOT_FOUND, gemini_options_load(opts.get(), "no/such/file"), "no/such/file");
  REFUSED(GEMINI_ERR_IO, gemini_options_load(opts.get(), "/"), "/");
}

TEST(Environment, OverridesTheProgramAndIsCopiedAtCreate) {
  const Variable lr("GEMINI_LR", "0.125");
  const Context ctx({{"lr", "5"}, {"beta1", "0.5"}, {"user.lr", "7"}});
  EXPECT_EQ("0.125", ctx.option("lr"));
  EXPECT_EQ("0.5", ctx.option("beta1"));
  EXPECT_EQ("7", ctx.option("user.lr"));
}

TEST(Environment, WithABadValueIsNamedByTheVariable) {
  gemini_context_t ctx = nullptr;
  {
    const Variable lr("GEMINI_LR", "fast");
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_create(MPI_COMM_WORLD, nullptr, &ctx), "GEMINI_LR", "\"fast\"",
            "a number from 0");
    EXPECT_EQ(nullptr, ctx);
  }
  const Variable collectives("GEMINI_COLLECTIVES", "nccl");
  REFUSED(GEMINI_ERR_UNSUPPORTED, gemini_create(MPI_COMM_WORLD, nullptr, &ctx), "collectives = nccl");
  EXPECT_EQ(nullptr, ctx);
}

TEST(Environment, DoesNotOverrideABackendThatTheProgramChose) {
  const Variable backend("GEMINI_BACKEND", "cuda");
  {
    const Context ctx({{"backend", "host"}});
    EXPECT_EQ("host", ctx.option("backend"));
  }
  gemini_context_t ctx = nullptr;
  REFUSED(GEMINI_ERR_UNSUPPORTED, gemini_create(MPI_COMM_WORLD, nullptr, &ctx), "backend = cuda");
}

TEST(Environment, OnOneRankAloneIsADifferenceOrAnErrorOnAll) {
  if (ranks_of() == 1) GTEST_SKIP();
  gemini_context_t ctx = nullptr;
  const bool odd = rank_of() == 1;
  {
    const Variable lr(odd ? "GEMINI_LR" : "GEMINI_UNRELATED", "0.125");
    REFUSED(GEMINI_ERR_MISMATCH, gemini_create(MPI_COMM_WORLD, nullptr, &ctx), "lr = 0.001", "lr = 0.125",
            "rank 1");
    EXPECT_EQ(nullptr, ctx);
  }
  const Variable lr(odd ? "GEMINI_LR" : "GEMINI_UNRELATED", "fast");
  REFUSED(odd ? GEMINI_ERR_ARGUMENT : GEMINI_ERR_REMOTE, gemini_create(MPI_COMM_WORLD, nullptr, &ctx),
          "GEMINI_LR", odd ? "allowed" : "rank 1");
  EXPECT_EQ(nullptr, ctx);
}

TEST(ResolvedOptions, SayWhatAutoStandsFor) {
  Context ctx;
  EXPECT_EQ("host", ctx.option("backend"));
  EXPECT_EQ("auto", ctx.option("placement"));  // the policy of that name
  EXPECT_EQ("2", ctx.option("prefetch"));
  EXPECT_NE("auto", ctx.option("device_memory"));
  ctx.add_constant("w", GEMINI_F32, {100}, 0);
  ctx.commit();
  EXPECT_EQ("off", ctx.option("loss_scale"));
  EXPECT_NE("0", ctx.option("chunk_elems"));
}

TEST(ShardGroup, MustDivideTheRanks) {
  gemini_context_t ctx = nullptr;
  const Options opts({{"shard_group", "5"}});
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_create(MPI_COMM_WORLD, opts.get(), &ctx), "shard_group = 5",
          "the " + std::to_string(ranks_of()) + " ranks");
  EXPECT_EQ(nullptr, ctx);
}

TEST(SearchedChunks, HaveALeastSizeBelowTheMost) {
  gemini_context_t ctx = nullptr;
  const Options opts({{"chunk_search_min_elems", "2048"}, {"chunk_search_max_elems", "1024"}});
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_create(MPI_COMM_WORLD, opts.get(), &ctx),
          "chunk_search_min_elems = 2048", "chunk_search_max_elems = 1024");
  EXPECT_EQ(nullptr, ctx);
}

TEST(HostMemory, OfMoreThanTheMachineHasLeavesNoneForTheDevice) {
  gemini_context_t ctx = nullptr;
  const Options opts(odd_one() ? KeyValues{{"host_memory", "1000TiB"}} : KeyValues{});
  REFUSED(odd_one() ? GEMINI_ERR_ARGUMENT : GEMINI_ERR_REMOTE,
          gemini_create(MPI_COMM_WORLD, opts.get(), &ctx), "host_memory = 1000 TiB", "device_memory",
          "set both");
  EXPECT_EQ(nullptr, ctx);
}

namespace {

class Unsupported : public testing::TestWithParam<std::pair<const char*, const char*>> {};

}  // namespace

TEST_P(Unsupported, IsAnsweredInWordsWhenAskedForByName) {
  const auto [key, value] = GetParam();
  const Options opts({{key, value}});
  gemini_context_t ctx = nullptr;
  REFUSED(GEMINI_ERR_UNSUPPORTED, gemini_create(MPI_COMM_WORLD, opts.get(), &ctx),
          std::string(key) + " = " + value);
  EXPECT_EQ(nullptr, ctx);
}

INSTANTIATE_TEST_SUITE_P(Options, Unsupported,
                         testing::Values(std::pair("backend", "cuda"), std::pair("device", "0"),
                                         std::pair("collectives", "nccl")));
