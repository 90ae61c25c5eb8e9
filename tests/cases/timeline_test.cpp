// gemini_trace_write: what ranks did and when, in one file.
#include <map>

#include "misuse/refused.hpp"
#include "timeline.hpp"

namespace {

using namespace gemini_test;

constexpr int kOperations = 5;

TEST(Timeline, ShowsOperationsWithTheirParametersAndPhase) {
  Model model({});
  model.iteration();
  const Json all = model.written();
  for (int rank = 0; rank < ranks_of(); ++rank) {
    const std::vector<Json> operations = events_of(all, rank, "operations");
    ASSERT_EQ(operations.size(), 2U * kOperations);
    for (int t = 0; t < kOperations; ++t) {
      const Json& forward = operations[static_cast<std::size_t>(t)];
      const Json& backward = operations[static_cast<std::size_t>(2 * kOperations - 1 - t)];
      EXPECT_EQ(forward.at("name"), "w" + std::to_string(t));
      EXPECT_EQ(forward.at("args").at("phase"), "forward");
      EXPECT_EQ(backward.at("name"), "w" + std::to_string(t));
      EXPECT_EQ(backward.at("args").at("phase"), "backward");
    }
    std::map<std::string, int> calls;
    for (const Json& call : events_of(all, rank, "library")) ++calls[call.at("name")];
    EXPECT_EQ(calls["commit"], 1);
    EXPECT_EQ(calls["pre_op"], 2 * kOperations);
    EXPECT_EQ(calls["post_op"], 2 * kOperations);
    EXPECT_EQ(calls["step"], 1);
  }
}

TEST(Timeline, PutsOperationsThatOverlapIntoLanesOfTheirOwn) {
  Model model({});
  const Params& w = model.w;
  model.ctx.phase(GEMINI_FORWARD);
  model.ctx.pre({w[0], w[1]});
  model.ctx.pre({w[1], w[2]});
  model.ctx.post({w[0], w[1]});
  model.ctx.post({w[1], w[2]});
  model.ctx.op(GEMINI_FORWARD, {w[3]});
  const Json all = model.written();
  const std::vector<Json> operations = events_of(all, rank_of(), "operations");
  ASSERT_EQ(operations.size(), 3U);
  EXPECT_EQ(operations[0].at("name"), "w0, w1");
  EXPECT_EQ(operations[1].at("name"), "w1, w2");
  EXPECT_GT(end_of(operations[0]), begin_of(operations[1]));
  EXPECT_LT(end_of(operations[0]), end_of(operations[1]));
  EXPECT_NE(operations[0].at("tid"), operations[1].at("tid"));
  EXPECT_EQ(operations[2].at("tid"), operations[0].at("tid"));
}

TEST(Timeline, EndsAnOperationWithTheLastOfItsLeases) {
  Model model({});
  const Params& w = model.w;
  model.ctx.phase(GEMINI_FORWARD);
  model.ctx.pre({w[0], w[1], w[2]});
  model.ctx.pre({w[0], w[1]});
  model.ctx.post({w[0]});  // leases nest
  model.ctx.post({w[1]});
  model.ctx.op(GEMINI_FORWARD, {w[3]});
  model.ctx.post({w[0], w[1], w[2]});
  const Json all = model.written();
  std::vector<std::string> ended;
  for (const Json& operation : events_of(all, rank_of(), "operations")) ended.push_back(operation.at("name"));
  EXPECT_EQ(ended, (std::vector<std::string>{"w0, w1", "w3", "w0, w1, w2"}));
}

TEST(Timeline, ShowsTheSameGathersAndReductionsOnAllRanks) {
  if (ranks_of() == 1) GTEST_SKIP() << "one rank sends nothing";
  Model model({});
  for (int i = 0; i < 3; ++i) model.iteration();
  const Json all = model.written();
  for (const std::string kind : {"gathers", "reductions"}) {
    const std::vector<Json> first = events_of(all, 0, kind);
    EXPECT_EQ(static_cast<std::int64_t>(first.size()),
              model.ctx.stat(kind == "gathers" ? GEMINI_STAT_GATHERS : GEMINI_STAT_REDUCES));
    for (int rank = 0; rank < ranks_of(); ++rank) {
      const std::vector<Json> here = events_of(all, rank, kind);
      ASSERT_EQ(here.size(), first.size()) << rank;
      for (std::size_t e = 0; e < here.size(); ++e) EXPECT_EQ(here[e].at("args"), first[e].at("args"));
      for (std::size_t e = 1; e < here.size(); ++e)
        EXPECT_LE(end_of(here[e - 1]), begin_of(here[e]) + 1e-2) << "one is under way at a time";
    }
  }
}

TEST(Timeline, ShowsMemoryAndWhatMovesBetweenTiers) {
  Model model({{"device_memory", "320KiB"}, {"host_memory", "4MiB"}});
  model.iteration();
  model.iteration();
  const Json all = model.written();
  std::int64_t moved = 0;
  for (const Json& move : events_of(all, rank_of(), "moves")) {
    EXPECT_NE(move.at("args").at("from"), move.at("args").at("to"));
    moved += move.at("args").at("bytes").get<std::int64_t>();
  }
  EXPECT_GT(moved, 0);
  EXPECT_LE(moved, model.ctx.stat(GEMINI_STAT_MOVED_BYTES));
  std::map<std::string, double> most;
  for (const Json& sample : events_of(all, rank_of(), "memory")) {
    double& of_kind = most[sample.at("name")];
    of_kind = std::max(of_kind, sample.at("args").at("bytes").get<double>());
  }
  EXPECT_EQ(most.size(), 4U);
  EXPECT_GT(most["compute memory"], 0);
  EXPECT_LE(most["compute memory"], 320 * 1024);
  EXPECT_GT(most["gathered"], 0);
}

TEST(Timeline, IsRefusedWhereNothingWasRecorded) {
  Model model({});
  Context off{{"trace", "off"}};
  REFUSED(GEMINI_ERR_STATE, gemini_trace_write(off, kTimeline), "trace = off", "trace = on");
  const Context odd{{"trace", rank_of() == 0 ? "on" : "off"}};
  const auto expected = ranks_of() == 1  ? GEMINI_SUCCESS
                        : rank_of() == 0 ? GEMINI_ERR_REMOTE
                                         : GEMINI_ERR_STATE;
  EXPECT_EQ(gemini_trace_write(odd, kTimeline), expected);
  REFUSED(GEMINI_ERR_ARGUMENT, gemini_trace_write(model.ctx, nullptr), "path is NULL");
  REFUSED(rank_of() == 0 ? GEMINI_ERR_IO : GEMINI_ERR_REMOTE,
          gemini_trace_write(model.ctx, "no/such/folder/t.json"), "no/such/folder/t.json");
  EXPECT_FALSE(model.written().empty());
}

}  // namespace
