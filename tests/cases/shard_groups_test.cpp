// shard_group: models sharded inside groups of ranks and replicated across train as if there were one group.
#include "observe.hpp"

using namespace gemini_test;

namespace {

const std::vector<const char*> kOptimizers = {"adamw", "adam", "sgd", "lion", "lamb", "custom"};

std::vector<std::string> cuts() {
  std::vector<std::string> sizes;
  for (int size = 1; size < ranks_of(); ++size)
    if (ranks_of() % size == 0) sizes.push_back(std::to_string(size));
  return sizes;
}

int add_gradient(void*, gemini_param_t param, int64_t, int64_t count, void* master, const void* grad,
                 void* state1, void*) {
  const bool wide = info(param).dtype == GEMINI_F64;
  for (int64_t i = 0; i < count; ++i) {
    if (wide) {
      static_cast<double*>(master)[i] -= static_cast<const double*>(grad)[i];
      static_cast<double*>(state1)[i] += 1;
    } else {
      static_cast<float*>(master)[i] -= static_cast<const float*>(grad)[i];
      static_cast<float*>(state1)[i] += 1;
    }
  }
  return 0;
}

struct Trained {
  std::vector<double> values, norms;
};

// Three steps of two micro-batches. The gradients of all ranks are whole numbers: their sum has no rounding.
Trained train_model(const std::string& optimizer, const std::string& shard_group) {
  Context ctx(MPI_COMM_WORLD, {{"optimizer", optimizer},
                               {"custom_states", optimizer == "custom" ? "1" : "0"},
                               {"shard_group", shard_group},
                               {"reduce_op", "sum"},
                               {"accumulate", "2"},
                               {"max_grad_norm", "50"},
                               {"weight_decay", "0.125"},
                               {"timeout_s", "60"}});
  const auto start = [](int64_t i) { return static_cast<double>(i % 7) - 3; };
  const Params params = {ctx.add_function("w", GEMINI_F64, {13, 3}, start),
                         ctx.add_function("v", GEMINI_F32, {50}, start),
                         ctx.add_function("r", GEMINI_F32, {5}, start, GEMINI_PARAM_RESIDENT)};
  gemini_param_t frozen = ctx.add_function("f", GEMINI_F32, {20}, start, GEMINI_PARAM_FROZEN);
  ctx.commit();
  if (optimizer == "custom") GEMINI_CHECK(gemini_set_update(ctx, add_gradient, nullptr));
  Trained trained;
  for (int step = 0; step < 3; ++step) {
    for (int batch = 0; batch < 2; ++batch) {
      ctx.op(GEMINI_FORWARD, {frozen});
      ctx.micro_batch(params,
                      [&](int64_t i) { return static_cast<double>(i % 5 + rank_of() + step + batch - 4); });
    }
    trained.norms.push_back(ctx.step().grad_norm);
  }
  for (gemini_param_t param : {params[0], params[1], params[2], frozen})
    for (const double value : values(param)) trained.values.push_back(value);
  ctx.op(GEMINI_INFERENCE, {params[1], params[2], frozen}, [&] {
    for (gemini_param_t param : {params[1], params[2], frozen})
      for (int64_t i = 0; i < elems(param); ++i) trained.values.push_back(data<float>(param)[i]);
  });
  return trained;
}

class ShardGroups : public testing::TestWithParam<const char*> {};

}  // namespace

TEST_P(ShardGroups, TrainLikeOneGroup) {
  const Trained world = train_model(GetParam(), "world");
  for (const std::string& cut : cuts()) {
    const Trained trained = train_model(GetParam(), cut);
    EXPECT_ALL(MPI_COMM_WORLD, trained.values == world.values) << "groups of " << cut;
    EXPECT_ALL(MPI_COMM_WORLD, trained.norms == world.norms) << "groups of " << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizer, ShardGroups, testing::ValuesIn(kOptimizers));

TEST(ShardGroup, IsTold) {
  for (const std::string& cut : cuts()) {
    Context ctx({{"shard_group", cut}});
    gemini_topology_t topology = GEMINI_TOPOLOGY_INIT;
    GEMINI_CHECK(gemini_topology(ctx, &topology));
    EXPECT_EQ(cut, std::to_string(topology.shard_group_ranks));
    EXPECT_EQ(ranks_of(), topology.replica_groups * topology.shard_group_ranks);
    EXPECT_EQ(cut, ctx.option("shard_group"));
  }
  Context ctx({{"shard_group", "node"}});  // of one node here
  gemini_topology_t topology = GEMINI_TOPOLOGY_INIT;
  GEMINI_CHECK(gemini_topology(ctx, &topology));
  EXPECT_EQ(topology.node_ranks, topology.shard_group_ranks);
}

TEST(ShardGroup, HoldsOneCopyEach) {
  for (const std::string& cut : cuts()) {
    Context ctx({{"shard_group", cut}, {"optimizer", "none"}});
    ctx.add_constant("w", GEMINI_F64, {4096}, 1.0);
    ctx.commit();
    EXPECT_EQ(4096 * 8 / std::stoi(cut), ctx.stat(GEMINI_STAT_PARAM_BYTES));
  }
}

TEST(ShardGroup, ReadsAndWritesValuesOfEveryCopy) {
  for (const std::string& cut : cuts())
    for (int root = -1; root < ranks_of(); ++root)
      for (const int32_t flags : {0, GEMINI_PARAM_RESIDENT}) {
        Context ctx({{"shard_group", cut}, {"timeout_s", "60"}});
        gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {37}, 1.0, flags);
        ctx.commit();
        std::vector<double> wanted(37), seen(37, -1);
        for (std::size_t i = 0; i < 37; ++i) wanted[i] = static_cast<double>(i) * 3 - 40;
        const bool gives = root < 0 || root == rank_of();
        ALL_RANKS_OK(gemini_param_set(w, GEMINI_F64, gives ? wanted.data() : nullptr, root));
        ALL_RANKS_OK(gemini_param_get(w, GEMINI_F64, gives ? seen.data() : nullptr, root));
        EXPECT_ALL(MPI_COMM_WORLD, !gives || seen == wanted);
        ctx.op(GEMINI_INFERENCE, {w}, [&] {  // this rank's copy
          EXPECT_EQ(wanted, std::vector<double>(data<double>(w), data<double>(w) + 37));
        });
      }
}

TEST(ShardGroup, AddsGradientsOverAllRanks) {
  for (const std::string& cut : cuts()) {
    Context ctx({{"shard_group", cut}, {"optimizer", "sgd"}, {"lr", "1"}});  // the mean
    gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {11}, 0.0);
    ctx.commit();
    train(ctx, w, rank_of() + 1.0);
    const double mean = (ranks_of() + 1) / 2.0;
    EXPECT_ALL(MPI_COMM_WORLD, all_are(gradient(w), mean));
    EXPECT_EQ(std::sqrt(11 * mean * mean), ctx.step().grad_norm);
    EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), -mean));
  }
}
