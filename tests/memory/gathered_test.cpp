// During an operation a rank holds the chunks that are leased, and no others.
#include "support/rank_assert.hpp"
#include "support/test_context.hpp"

namespace {

using gemini_test::add_grad;
using gemini_test::Context;
using gemini_test::Params;

// Each parameter fills a chunk.
class Gathered : public testing::Test {
 protected:
  static constexpr std::int64_t kElems = 4096;

  void build(int32_t flags_of_last = 0) {
    for (int t = 0; t < 6; ++t)
      w_.push_back(
          ctx_.add_constant("w" + std::to_string(t), GEMINI_F32, {kElems}, 1.0, t == 5 ? flags_of_last : 0));
    ctx_.commit();
    chunk_ = ctx_.stat(GEMINI_STAT_CHUNK_ELEMS) * 4;
    EXPECT_EQ(ctx_.stat(GEMINI_STAT_CHUNKS), 6);
  }
  void expect_gathered(std::int64_t chunks) {
    EXPECT_EQ(ctx_.stat(GEMINI_STAT_GATHERED_BYTES), chunks * chunk_);
  }

  Context ctx_{{"chunk_elems", std::to_string(kElems)}, {"optimizer", "sgd"}, {"placement", "static"}};
  Params w_;
  std::int64_t chunk_ = 0;
};

TEST_F(Gathered, FollowsNestedLeases) {
  build();
  expect_gathered(0);
  ctx_.pre({w_[0], w_[1]});
  expect_gathered(2);
  ctx_.pre({w_[1], w_[2]});
  expect_gathered(3);
  ctx_.post({w_[0], w_[1]});
  expect_gathered(2);
  ctx_.post({w_[2]});
  expect_gathered(1);
  ctx_.post({w_[1]});
  expect_gathered(0);
  EXPECT_EQ(ctx_.stat(GEMINI_STAT_GATHERED_PEAK_BYTES), 3 * chunk_);
}

TEST_F(Gathered, IsThatOfOneOperationOverAWholeIteration) {
  build();
  for (int step = 0; step < 2; ++step) {
    for (gemini_param_t w : w_) ctx_.op(GEMINI_FORWARD, {w}, [&] { expect_gathered(1); });
    ctx_.op(GEMINI_INFERENCE, {w_[3]}, [&] { expect_gathered(1); });
    for (gemini_param_t w : w_)
      ctx_.op(GEMINI_BACKWARD, {w}, [&] {
        add_grad(w, [](int64_t) { return 1.0; });
        expect_gathered(1);
      });
    ctx_.step();
    expect_gathered(0);
  }
  EXPECT_EQ(ctx_.stat(GEMINI_STAT_GATHERED_PEAK_BYTES), chunk_);
}

TEST_F(Gathered, CountsResidentChunksAlways) {
  build(GEMINI_PARAM_RESIDENT);
  expect_gathered(1);
  ctx_.op(GEMINI_FORWARD, {w_[5]}, [&] { expect_gathered(1); });
  ctx_.op(GEMINI_FORWARD, {w_[0]}, [&] { expect_gathered(2); });
  expect_gathered(1);
}

TEST_F(Gathered, IsZeroAfterADiscard) {
  build();
  ctx_.op(GEMINI_FORWARD, {w_[0]});
  ctx_.op(GEMINI_BACKWARD, {w_[0], w_[4]}, [&] { add_grad(w_[0], [](int64_t) { return 1.0; }); });
  GEMINI_CHECK(gemini_discard(ctx_));
  expect_gathered(0);
}

}  // namespace
