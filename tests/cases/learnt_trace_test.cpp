// The order that a run learnt, kept in a file: a later run needs no iteration to learn it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/rank_assert.hpp"
#include "support/test_context.hpp"

namespace {

using namespace gemini_test;

constexpr std::int64_t kElems = 4096;
constexpr const char* kPath = "order.json";

int rank_of() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// Rank 0 does it; nobody goes on before.
void at_root(const Body& body) {
  if (rank_of() == 0) body();
  MPI_Barrier(MPI_COMM_WORLD);
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Six parameters, each in a chunk of its own.
class Model {
 public:
  explicit Model(KeyValueList more, double start = 1.0) : ctx(MPI_COMM_WORLD, settings(more)) {
    for (int t = 0; t < 6; ++t)
      w.push_back(ctx.add_constant("w" + std::to_string(t), GEMINI_F32, {kElems}, start));
  }
  void iteration() {
    for (gemini_param_t p : w) ctx.op(GEMINI_FORWARD, {p});
    for (auto p = w.rbegin(); p != w.rend(); ++p)
      ctx.op(GEMINI_BACKWARD, {*p}, [&] { add_grad(*p, [](int64_t i) { return 1e-3 * double(i % 7); }); });
    ctx.step();
  }

  Context ctx;
  Params w;

 private:
  static KeyValues settings(KeyValueList more) {
    KeyValues all = {{"chunk_elems", std::to_string(kElems)}, {"placement", "auto"}, {"prefetch", "2"}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

class LearntTrace : public testing::Test {
 protected:
  void SetUp() override {
    at_root([] { std::remove(kPath); });
  }
  static void learn() {
    Model run({{"trace_out", kPath}});
    run.ctx.commit();
    run.iteration();
    ALL_RANKS_OK(run.ctx.destroy());
  }
};

TEST_F(LearntTrace, LetsTheFirstIterationOfALaterRunFetchAhead) {
  std::vector<std::vector<double>> first;
  {
    Model run({{"trace_out", kPath}});
    run.ctx.commit();
    run.iteration();
    EXPECT_EQ(run.ctx.stat(GEMINI_STAT_PREFETCH_HITS), 0);
    for (gemini_param_t p : run.w) first.push_back(values(p));
  }
  Model run({{"trace_in", kPath}});
  run.ctx.commit();
  run.iteration();
  EXPECT_GT(run.ctx.stat(GEMINI_STAT_PREFETCH_HITS), 0);
  EXPECT_EQ(run.ctx.stat(GEMINI_STAT_ORDER_CHANGES), 0);
  for (std::size_t t = 0; t < first.size(); ++t) EXPECT_EQ(values(run.w[t]), first[t]);
}

TEST_F(LearntTrace, FromAnotherOrderIsLeftAtTheFirstOperationThatDiffers) {
  learn();
  Model run({{"trace_in", kPath}});
  run.ctx.commit();
  std::swap(run.w[2], run.w[4]);
  run.iteration();
  EXPECT_EQ(run.ctx.stat(GEMINI_STAT_ORDER_CHANGES), 1);
}

TEST_F(LearntTrace, IsOfUseWithOtherValues) {
  learn();
  Model run({{"trace_in", kPath}, {"lr", "0.5"}}, 3.0);
  run.ctx.commit();
}

TEST_F(LearntTrace, IsWrittenFromWhatWasReadIfNothingElseWasLearnt) {
  learn();
  const std::string path = "again.json";
  {
    Model run({{"trace_in", kPath}, {"trace_out", path}});
    run.ctx.commit();
  }
  at_root([&] { EXPECT_EQ(text_of(path), text_of(kPath)); });
}

TEST_F(LearntTrace, IsNotWrittenWhereNothingWasLearnt) {
  {
    Model run({{"trace_out", kPath}});
    run.ctx.commit();
    run.ctx.op(GEMINI_FORWARD, {run.w[0]});
  }
  { const Context uncommitted{{"trace_out", kPath}}; }
  at_root([] { EXPECT_FALSE(std::ifstream(kPath).good()); });
}

TEST_F(LearntTrace, ThatIsNotThereIsNotFoundOnAllRanksAndTheContextIsAsBefore) {
  learn();
  at_root([] { std::rename(kPath, "elsewhere.json"); });
  Model run({{"trace_in", kPath}});
  ALL_RANKS_STATUS(GEMINI_ERR_NOT_FOUND, gemini_commit(run.ctx));
  EXPECT_NE(std::string(gemini_last_error_message()).find(kPath), std::string::npos);
  at_root([] { std::rename("elsewhere.json", kPath); });
  ALL_RANKS_OK(gemini_commit(run.ctx));
  run.iteration();
}

TEST_F(LearntTrace, ThatIsDamagedIsRefusedByAllRanks) {
  learn();
  at_root([] { std::ofstream(kPath, std::ios::in | std::ios::ate).seekp(200) << '#'; });
  Model run({{"trace_in", kPath}});
  ALL_RANKS_STATUS(GEMINI_ERR_IO, gemini_commit(run.ctx));
  Model directory({{"trace_in", "."}});
  ALL_RANKS_STATUS(GEMINI_ERR_IO, gemini_commit(directory.ctx));
}

TEST_F(LearntTrace, OfAnotherModelIsRefusedByAllRanks) {
  learn();
  Model more({{"trace_in", kPath}});
  more.ctx.add_constant("more", GEMINI_F32, {1}, 0.0);
  ALL_RANKS_STATUS(GEMINI_ERR_MISMATCH, gemini_commit(more.ctx));
  Model other({{"trace_in", kPath}, {"chunk_elems", std::to_string(2 * kElems)}});
  ALL_RANKS_STATUS(GEMINI_ERR_MISMATCH, gemini_commit(other.ctx));
}

TEST_F(LearntTrace, OfAnotherNumberOfShardRanksIsRefusedByAllRanks) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks == 1) GTEST_SKIP();
  learn();
  Model run({{"trace_in", kPath}, {"shard_group", "1"}});
  ALL_RANKS_STATUS(GEMINI_ERR_MISMATCH, gemini_commit(run.ctx));
  EXPECT_NE(std::string(gemini_last_error_message()).find("shard ranks"), std::string::npos);
}

TEST_F(LearntTrace, ThatCannotBeWrittenIsToldByCreate) {
  const Options options({{"trace_out", "no/such/folder/order.json"}});
  gemini_context_t ctx = nullptr;
  const gemini_status_t status = gemini_create(MPI_COMM_WORLD, options.get(), &ctx);
  EXPECT_EQ(status, rank_of() == 0 ? GEMINI_ERR_IO : GEMINI_ERR_REMOTE);
  EXPECT_NE(std::string(gemini_last_error_message()).find("no/such/folder/order.json"), std::string::npos);
  EXPECT_EQ(ctx, nullptr);
}

TEST_F(LearntTrace, ThatCannotBeWrittenAnyMoreIsToldByDestroy) {
  const std::string folder = std::string(kPath) + ".folder";
  const auto all_then_rank_0 = [](auto&& act) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_of() == 0) act();
    MPI_Barrier(MPI_COMM_WORLD);
  };
  all_then_rank_0([&] { std::filesystem::create_directory(folder); });
  Model run({{"trace_out", folder + "/order.json"}});
  all_then_rank_0([&] { EXPECT_TRUE(std::filesystem::remove(folder)) << "nothing is left in it"; });
  run.ctx.commit();
  run.iteration();
  const gemini_status_t status = run.ctx.destroy();
  EXPECT_EQ(status, rank_of() == 0 ? GEMINI_ERR_IO : GEMINI_ERR_REMOTE);
  EXPECT_NE(std::string(gemini_last_error_message()).find(folder + "/order.json"), std::string::npos);
  EXPECT_EQ(run.ctx.get(), nullptr);
}

// Two parameters that share a chunk.
struct Pair {
  explicit Pair(const std::string& trace_option) : ctx{{trace_option, kPath}, {"placement", "auto"}} {
    for (const char* name : {"a", "b"}) w.push_back(ctx.add_constant(name, GEMINI_F32, {8}, 1.0));
    ctx.commit();
  }
  Context ctx;
  Params w;
};

TEST_F(LearntTrace, MayHaveLeasesThatBeginTogetherAndEndApart) {
  for (const char* option : {"trace_out", "trace_in"}) {
    Pair run(option);
    run.ctx.phase(GEMINI_FORWARD);
    run.ctx.pre(run.w);
    run.ctx.post({run.w[0]});
    run.ctx.post({run.w[1]});
    run.ctx.op(GEMINI_BACKWARD, run.w);
    run.ctx.step();
    EXPECT_EQ(run.ctx.stat(GEMINI_STAT_ORDER_CHANGES), 0);
    ALL_RANKS_OK(run.ctx.destroy());
  }
}

TEST_F(LearntTrace, IsNotWrittenWhereInferenceOutlastsALease) {
  Pair run("trace_out");
  run.ctx.op(GEMINI_FORWARD, run.w);
  run.ctx.phase(GEMINI_BACKWARD);
  run.ctx.pre({run.w[1]});
  run.ctx.phase(GEMINI_INFERENCE);
  run.ctx.pre({run.w[0]});
  run.ctx.post({run.w[1]});
  run.ctx.post({run.w[0]});
  run.ctx.step();
  EXPECT_EQ(run.ctx.destroy(), rank_of() == 0 ? GEMINI_ERR_UNSUPPORTED : GEMINI_ERR_REMOTE);
  at_root([] { EXPECT_FALSE(std::ifstream(kPath).good()); });
}

TEST_F(LearntTrace, KeepsAnOrderWhoseGradientsAreDeclaredReadyOrKeptLocally) {
  Model run({{"trace_out", kPath}, {"accumulate_mode", "local"}, {"accumulate", "2"}});
  run.ctx.commit();
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch)
    for (const gemini_phase_t phase : {GEMINI_FORWARD, GEMINI_BACKWARD})
      for (gemini_param_t p : run.w)
        run.ctx.op(phase, {p}, [&] {
          if (phase == GEMINI_FORWARD) return;
          add_grad(p, [](int64_t) { return 1.0; });
          GEMINI_CHECK(gemini_grad_ready(p));
        });
  run.ctx.step();
  ALL_RANKS_OK(run.ctx.destroy());
  at_root([] { EXPECT_TRUE(std::ifstream(kPath).good()); });
}

}  // namespace
