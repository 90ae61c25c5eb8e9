// How contexts end: destroyed twice, left by a rank, waited for in vain, stopped by a callback.
#include <chrono>

#include "misuse/refused.hpp"

using namespace gemini_test;

namespace {

const KeyValues kPatient = {{"optimizer", "sgd"}, {"lr", "0.5"}, {"timeout_s", "60"}};
const KeyValues kShort = {{"optimizer", "sgd"}, {"lr", "0.5"}, {"timeout_s", "1"}};

// Where gemini_pre_op waits for peers in any case.
KeyValues over_mpi(KeyValues settings) {
  settings.emplace_back("collectives", "mpi");
  return settings;
}

// The context is over: everything is refused with the first words, and destroy is local.
void expect_over(Context& ctx, gemini_param_t w, const char* words) {
  int64_t value = 0;
  REFUSED(GEMINI_ERR_STATE, gemini_pre_op(ctx, &w, 1), "can only be destroyed", words);
  REFUSED(GEMINI_ERR_STATE, gemini_step(ctx, nullptr), "can only be destroyed", words);
  REFUSED(GEMINI_ERR_STATE, gemini_stat(ctx, GEMINI_STAT_LEASES, &value), "can only be destroyed");
  gemini_param_info_t info = GEMINI_PARAM_INFO_INIT;
  REFUSED(GEMINI_ERR_STATE, gemini_param_info(w, &info), "can only be destroyed");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(GEMINI_SUCCESS, ctx.destroy()) << gemini_last_error_message();
  EXPECT_EQ(nullptr, ctx.get());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(800));
}

}  // namespace

TEST(Destroy, AcceptsNullAndADestroyedHandle) {
  EXPECT_EQ(GEMINI_SUCCESS, gemini_destroy(nullptr));
  gemini_context_t ctx = nullptr;
  EXPECT_EQ(GEMINI_SUCCESS, gemini_destroy(&ctx));
  ALL_RANKS_OK(gemini_create(MPI_COMM_WORLD, nullptr, &ctx));
  ALL_RANKS_OK(gemini_destroy(&ctx));
  EXPECT_EQ(nullptr, ctx);
  EXPECT_EQ(GEMINI_SUCCESS, gemini_destroy(&ctx));
}

TEST(Destroy, IsAllowedAtAnyMoment) {
  Context ctx(MPI_COMM_WORLD, kPatient);
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {6}, 1.0);
  gemini_param_t r = ctx.add_constant("r", GEMINI_F64, {6}, 1.0, GEMINI_PARAM_RESIDENT);
  ctx.commit();
  ctx.op(GEMINI_FORWARD, {w, r});
  ctx.phase(GEMINI_BACKWARD);
  ctx.pre({w, r});
  add_grad(w, [](int64_t) { return 1.0; });
  ALL_RANKS_OK(ctx.destroy());
}

TEST(Abort, ReachesPeersInTheirPresentAndNextWaitWithItsWords) {
  for (const bool peers_wait_already : {true, false}) {
    Context ctx(MPI_COMM_WORLD, over_mpi(kPatient));
    gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {6}, 1.0);
    ctx.commit();
    const std::string who = "rank " + std::to_string(ranks_of() - 1);
    if (!peers_wait_already) MPI_Barrier(MPI_COMM_WORLD);
    if (odd_one()) {
      REFUSED(GEMINI_ERR_ARGUMENT, gemini_abort(ctx, nullptr), "why is NULL");
      EXPECT_EQ(GEMINI_SUCCESS, gemini_abort(ctx, "no more data on disk 7"));
    }
    if (!peers_wait_already) MPI_Barrier(MPI_COMM_WORLD);
    if (!odd_one()) {
      REFUSED(GEMINI_ERR_REMOTE_FATAL, gemini_pre_op(ctx, &w, 1), who, "no more data on disk 7");
    }
    expect_over(ctx, w, "no more data on disk 7");
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST(Abort, PassesOnTheWordsOfTheLastFailure) {
  Context ctx(MPI_COMM_WORLD, kPatient);
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {6}, 1.0);
  ctx.commit();
  if (odd_one()) {
    REFUSED(GEMINI_ERR_ARGUMENT, gemini_set_lr(ctx, -3), "lr is -3");
    EXPECT_EQ(GEMINI_SUCCESS, gemini_abort(ctx, gemini_last_error_message()));
  } else {
    REFUSED(GEMINI_ERR_REMOTE_FATAL, gemini_discard(ctx), "lr is -3");
  }
  expect_over(ctx, w, "lr is -3");
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Abort, IsHeardInAgreedCallsToo) {
  Context ctx(MPI_COMM_WORLD, kPatient);
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {6}, 1.0);
  ctx.commit();
  train(ctx, w, 1.0);
  if (odd_one()) {
    EXPECT_EQ(GEMINI_SUCCESS, gemini_abort(ctx, "enough"));
  } else {
    REFUSED(GEMINI_ERR_REMOTE_FATAL, gemini_step(ctx, nullptr), "enough");
  }
  expect_over(ctx, w, "enough");
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Timeout, EndsTheWaitForARankThatDoesNotCome) {
  if (ranks_of() == 1) GTEST_SKIP() << "takes two";
  for (const bool in_step : {true, false}) {
    Context ctx(MPI_COMM_WORLD, in_step ? kShort : over_mpi(kShort));
    gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {6}, 1.0);
    ctx.commit();
    train(ctx, w, 1.0);
    if (!in_step) ctx.phase(GEMINI_INFERENCE);
    const auto start = std::chrono::steady_clock::now();
    if (odd_one()) MPI_Barrier(MPI_COMM_WORLD);
    const auto come = [&] { return in_step ? gemini_step(ctx, nullptr) : gemini_pre_op(ctx, &w, 1); };
    const gemini_status_t status = come();
    const std::string words = gemini_last_error_message();
    if (!odd_one()) MPI_Barrier(MPI_COMM_WORLD);
    if (odd_one()) {  // what peers sent before they left may still arrive; the next wait ends
      EXPECT_LT(status < 0 ? status : gemini_step(ctx, nullptr), 0) << words;
    } else {
      EXPECT_EQ(GEMINI_ERR_TIMEOUT, status) << words;
      EXPECT_NE(std::string::npos, words.find(in_step ? "gemini_step: " : "gemini_pre_op: ")) << words;
      EXPECT_NE(std::string::npos, words.find("timeout_s = 1")) << words;
      const std::string who = "rank " + std::to_string(ranks_of() - 1) + " did not arrive";
      EXPECT_NE(std::string::npos, words.find(": " + who)) << words << ": exactly that one";
    }
    EXPECT_GT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(900));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
    expect_over(ctx, w, "");
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST(Timeout, EndsTheWaitOfCreate) {
  if (ranks_of() == 1) GTEST_SKIP() << "takes two";
  MPI_Comm comm = MPI_COMM_NULL;  // is left in disorder
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const Options opts(kShort);
  gemini_context_t ctx = nullptr;
  if (!odd_one()) {
    REFUSED(GEMINI_ERR_TIMEOUT, gemini_create(comm, opts.get(), &ctx), "timeout_s = 1");
    EXPECT_EQ(nullptr, ctx);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Create, IsRefusedEverywhereIfOneRankHasNoPlaceForTheHandle) {
  gemini_context_t ctx = nullptr;
  const gemini_status_t status = gemini_create(MPI_COMM_WORLD, nullptr, odd_one() ? nullptr : &ctx);
  EXPECT_EQ(odd_one() ? GEMINI_ERR_ARGUMENT : GEMINI_ERR_REMOTE, status);
  EXPECT_NE(std::string::npos, std::string(gemini_last_error_message()).find("ctx is NULL"));
  EXPECT_EQ(nullptr, ctx);
}

// One rank has samples for two iterations, its peers for three.
TEST(Timeout, EndsARankThatLeavesTheLoopEarlyAndItsPeers) {
  if (ranks_of() == 1) GTEST_SKIP() << "takes two";
  Context ctx(MPI_COMM_WORLD, over_mpi(kShort));
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {6}, 1.0);
  ctx.commit();
  for (int iteration = 0; iteration < 2; ++iteration) {
    train(ctx, w, 1.0);
    ctx.step();
  }
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 0.0));
  if (odd_one()) {
    const gemini_status_t status = ctx.destroy();
    EXPECT_EQ(GEMINI_ERR_TIMEOUT, status) << gemini_last_error_message();
    EXPECT_EQ(nullptr, ctx.get());
  } else {
    REFUSED(GEMINI_ERR_TIMEOUT, gemini_pre_op(ctx, &w, 1), "timeout_s = 1");
    expect_over(ctx, w, "timeout_s");
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

namespace {

int refuse_where_told(void* user, int64_t, int64_t, void*) {
  return *static_cast<int*>(user);
}
int visit_where_told(void* user, gemini_param_t, int64_t, int64_t, void*, const void*, void*, void*) {
  return *static_cast<int*>(user);
}

}  // namespace

TEST(Callback, OfAnInitialiserThatFailsOnOneRankEndsAll) {
  Context ctx(MPI_COMM_WORLD, kPatient);
  int code = odd_one() ? 42 : 0;
  gemini_param_t w = ctx.add("broken", GEMINI_F64, {64});
  ALL_RANKS_OK(gemini_param_init_function(w, refuse_where_told, &code));
  REFUSED(odd_one() ? GEMINI_ERR_CALLBACK : GEMINI_ERR_REMOTE_FATAL, gemini_commit(ctx), "\"broken\"", "42");
  expect_over(ctx, w, "42");
}

TEST(Callback, OfAVisitThatFailsOnOneRankEndsAll) {
  Context ctx(MPI_COMM_WORLD, kPatient);
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {64}, 1.0);
  ctx.commit();
  int code = odd_one() ? -3 : 0;
  REFUSED(odd_one() ? GEMINI_ERR_CALLBACK : GEMINI_ERR_REMOTE_FATAL,
          gemini_shard_visit(ctx, visit_where_told, &code), "\"w\"", "-3");
  expect_over(ctx, w, "-3");
}

TEST(Callback, OfAnUpdateThatFailsOnOneRankEndsAll) {
  Context ctx(MPI_COMM_WORLD, {{"optimizer", "custom"}, {"timeout_s", "60"}});
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {64}, 1.0);
  ctx.commit();
  int code = odd_one() ? 9 : 0;
  ALL_RANKS_OK(gemini_set_update(ctx, visit_where_told, &code));
  train(ctx, w, 1.0);
  REFUSED(odd_one() ? GEMINI_ERR_CALLBACK : GEMINI_ERR_REMOTE_FATAL, gemini_step(ctx, nullptr), "\"w\"", "9");
  expect_over(ctx, w, "9");
}
