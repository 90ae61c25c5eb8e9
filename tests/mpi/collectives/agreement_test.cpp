// Agreed calls: check, agree, act.
#include "collectives/agreement.hpp"

#include <new>

#include "support/rank_assert.hpp"
#include "world.hpp"

namespace gemini {
namespace {

using test::Outcome;
using test::outcome_of;

class AgreementTest : public testing::Test {
 protected:
  ~AgreementTest() override { agreement_.free_communicator(); }

  // The ranks agree on a call; `refusal` is what this rank has against it.
  Outcome agree(Call call, const std::string& text, gemini_status_t refusal = GEMINI_SUCCESS) {
    return outcome_of([&] {
      agreement_.agree(call, text, [&] {
        if (refusal != GEMINI_SUCCESS) fail(refusal, "rank {} does not like it", rank_);
      });
    });
  }
  // After a positive outcome the next call works.
  void expect_alive() { EXPECT_ALL(MPI_COMM_WORLD, agree(Call::report, "again").status == GEMINI_SUCCESS); }

  int rank_ = test::world_rank();
  int size_ = test::world_size();
  test::Queue queue_;
  Agreement agreement_{Communicator(MPI_COMM_WORLD), queue_};
};

TEST_F(AgreementTest, ReturnsWhereAllAreFine) {
  EXPECT_EQ(agree(Call::step, "lr = 1").status, GEMINI_SUCCESS);
  EXPECT_EQ(agree(Call::step, "").status, GEMINI_SUCCESS);
}

TEST_F(AgreementTest, ARefusalIsTheOneHereAndRemoteElsewhere) {
  const int refuser = size_ - 1;
  const Outcome outcome = agree(Call::param_get, "x", rank_ == refuser ? GEMINI_ERR_STATE : GEMINI_SUCCESS);
  EXPECT_EQ(outcome.status, rank_ == refuser ? GEMINI_ERR_STATE : GEMINI_ERR_REMOTE);
  EXPECT_TRUE(outcome.says(fmt::format("rank {} does not like it", refuser))) << outcome.words;
  if (rank_ != refuser) {
    EXPECT_TRUE(outcome.says(fmt::format("rank {}: ", refuser))) << outcome.words;
  }
  expect_alive();
}

TEST_F(AgreementTest, OfSeveralRefusalsEachRankHasItsOwnAndOthersTheLowest) {
  const Outcome outcome = agree(Call::param_get, "x", rank_ > 0 ? GEMINI_ERR_ARGUMENT : GEMINI_SUCCESS);
  if (size_ == 1) return;
  EXPECT_EQ(outcome.status, rank_ > 0 ? GEMINI_ERR_ARGUMENT : GEMINI_ERR_REMOTE);
  EXPECT_TRUE(outcome.says(fmt::format("rank {} does not like it", rank_ > 0 ? rank_ : 1))) << outcome.words;
  expect_alive();
}

TEST_F(AgreementTest, EveryRankRefusing) {
  EXPECT_EQ(agree(Call::param_get, "x", GEMINI_ERR_NOT_FOUND).status, GEMINI_ERR_NOT_FOUND);
  expect_alive();
}

TEST_F(AgreementTest, AFailureIsFatalEverywhere) {
  const gemini_status_t mine = rank_ == size_ - 1 ? GEMINI_ERR_CALLBACK
                               : rank_ == 0       ? GEMINI_ERR_STATE
                                                  : GEMINI_SUCCESS;
  const Outcome outcome = agree(Call::commit, "x", mine);
  EXPECT_EQ(outcome.status, rank_ == size_ - 1 ? GEMINI_ERR_CALLBACK : GEMINI_ERR_REMOTE_FATAL);
  EXPECT_TRUE(outcome.says(fmt::format("rank {} does not like it", size_ - 1))) << outcome.words;
}

TEST_F(AgreementTest, RunningOutOfMemoryInACheckIsARefusal) {
  const Outcome outcome = outcome_of([&] {
    agreement_.agree(Call::commit, "x", [&] {
      if (rank_ == 0) throw std::bad_alloc();
    });
  });
  EXPECT_EQ(outcome.status, rank_ == 0 ? GEMINI_ERR_OUT_OF_MEMORY : GEMINI_ERR_REMOTE);
  EXPECT_TRUE(outcome.says("the machine does not give more memory")) << outcome.words;
  expect_alive();
}

// An exception of the caller's own, out of a callback.
TEST_F(AgreementTest, AnythingElseThrownIsFatalEverywhere) {
  bool thrown = false;
  Outcome outcome;
  try {
    outcome = outcome_of([&] {
      agreement_.act_and_agree(Call::shard_visit, [&] {
        if (rank_ == size_ - 1) throw 42;
      });
    });
  } catch (int) {
    thrown = true;
  }
  EXPECT_EQ(thrown, rank_ == size_ - 1);
  if (!thrown) {
    EXPECT_EQ(outcome.status, GEMINI_ERR_REMOTE_FATAL);
  }
}

TEST_F(AgreementTest, AMismatchNamesTheFirstLineThatDiffersAndTheRanks) {
  if (size_ == 1) return;
  const int other = size_ - 1;
  const std::string text = rank_ == other ? "a = 1\nb = 3\nc = 5\n" : "a = 1\nb = 2\nc = 4\n";
  const Outcome outcome = agree(Call::create, text);
  EXPECT_EQ(outcome.status, GEMINI_ERR_MISMATCH);
  EXPECT_TRUE(outcome.says("rank 0 has b = 2")) << outcome.words;
  EXPECT_TRUE(outcome.says(fmt::format("rank {} has b = 3", other))) << outcome.words;
  EXPECT_FALSE(outcome.says("c = ")) << outcome.words;
  expect_alive();
}

TEST_F(AgreementTest, AMismatchOfLengthNamesTheLineTooMany) {
  if (size_ == 1) return;
  for (const int longer : {0, size_ - 1}) {
    const Outcome outcome = agree(Call::create, rank_ == longer ? "a = 1\nb = 2\n" : "a = 1\n");
    EXPECT_EQ(outcome.status, GEMINI_ERR_MISMATCH);
    EXPECT_TRUE(outcome.says("b = 2") && outcome.says("(nothing)")) << outcome.words;
    expect_alive();
  }
}

TEST_F(AgreementTest, ARefusalGoesBeforeAMismatch) {
  const Outcome outcome =
      agree(Call::create, "rank = " + std::to_string(rank_), rank_ == 0 ? GEMINI_ERR_STATE : GEMINI_SUCCESS);
  EXPECT_EQ(outcome.status, rank_ == 0 ? GEMINI_ERR_STATE : GEMINI_ERR_REMOTE);
  expect_alive();
}

TEST_F(AgreementTest, DifferentCallsAreNamedOnAllRanks) {
  if (size_ == 1) return;
  const Outcome outcome = agree(rank_ == 0 ? Call::step : Call::param_get, "x");
  EXPECT_EQ(outcome.status, GEMINI_ERR_ORDER);
  EXPECT_TRUE(outcome.says("gemini_step") && outcome.says("gemini_param_get")) << outcome.words;
  EXPECT_TRUE(outcome.says("rank 0 called gemini_step") && outcome.says("rank 1 called gemini_param_get"));
}

TEST_F(AgreementTest, TextsMayBeLong) {
  std::string text;
  while (text.size() < (3u << 20)) text += "parameter of a long list of parameters, all alike\n";
  EXPECT_EQ(agree(Call::commit, text).status, GEMINI_SUCCESS);
  if (size_ == 1) return;
  const Outcome outcome = agree(Call::commit, text + fmt::format("last = {}\n", rank_ == size_ - 1 ? 1 : 0));
  EXPECT_EQ(outcome.status, GEMINI_ERR_MISMATCH);
  EXPECT_TRUE(outcome.says("rank 0 has last = 0") && outcome.says("has last = 1")) << outcome.words;
  expect_alive();
}

TEST_F(AgreementTest, ActsFirstWhereOnlyTheActCanTell) {
  int acted = 0;
  const Outcome outcome = outcome_of([&] {
    agreement_.act_and_agree(Call::shard_visit, [&] {
      ++acted;
      if (rank_ == size_ - 1) fail(GEMINI_ERR_CALLBACK, "returned 3");
    });
  });
  EXPECT_EQ(acted, 1);
  EXPECT_EQ(outcome.status, rank_ == size_ - 1 ? GEMINI_ERR_CALLBACK : GEMINI_ERR_REMOTE_FATAL);
  EXPECT_TRUE(outcome.says("returned 3")) << outcome.words;
}

TEST_F(AgreementTest, ReducesWords) {
  std::vector<std::int64_t> highest = {rank_, -rank_, std::int64_t{1} << 60};
  agreement_.all_reduce(MPI_MAX, highest, "a test");
  EXPECT_EQ(highest, (std::vector<std::int64_t>{size_ - 1, 0, std::int64_t{1} << 60}));
  std::vector<std::int64_t> sum = {1, rank_};
  agreement_.all_reduce(MPI_SUM, sum, "a test");
  EXPECT_EQ(sum, (std::vector<std::int64_t>{size_, size_ * (size_ - 1) / 2}));
}

TEST_F(AgreementTest, BroadcastsAnySize) {
  for (const std::size_t count : {0u, 1u, 1000u, (1u << 20), (2u << 20) + 3u}) {
    for (int root = 0; root < size_; ++root) {
      std::vector<char> bytes(count);
      if (rank_ == root)
        for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
      agreement_.broadcast(bytes.data(), static_cast<std::int64_t>(count), root, "a test");
      bool same = true;
      for (std::size_t i = 0; i < count; ++i) same = same && bytes[i] == static_cast<char>(i * 7 + i / 251);
      EXPECT_TRUE(same) << count << " bytes from " << root;
    }
  }
}

}  // namespace
}  // namespace gemini
