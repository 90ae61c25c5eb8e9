// The same training at each thread level of MPI; registered once per level.
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <thread>

#include "observe.hpp"

using namespace gemini_test;

namespace {

gemini_status_t on_another_thread(const std::function<gemini_status_t()>& call, std::string* words) {
  gemini_status_t status = GEMINI_SUCCESS;
  std::thread thread([&] {
    status = call();
    *words = gemini_last_error_message();
  });
  thread.join();
  return status;
}

// Of this process.
std::ptrdiff_t threads_now() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

bool multiple() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

}  // namespace

TEST(ThreadLevel, IsTheOneAskedFor) {
  const char* asked = std::getenv("GEMINI_TEST_THREAD_LEVEL");
  ASSERT_NE(nullptr, asked);
  EXPECT_EQ(std::string(asked) == "multiple", multiple());
}

TEST(ThreadLevel, BelowMultipleTheLibraryStartsNoThread) {
  { const Context kokkos; }  // starts what it needs for ever
  const std::ptrdiff_t before = threads_now();
  Context ctx({{"prefetch", "2"}});
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 1.0);
  ctx.commit();
  ctx.micro_batch({a}, [](int64_t) { return 1.0; });
  EXPECT_EQ(before + (multiple() ? 1 : 0), threads_now());
  ctx.step();
}

// Sums of small multiples of 1/64 are exact, so every level must give these very bits.
TEST(ThreadLevel, DoesNotChangeResults) {
  Context ctx({{"optimizer", "sgd"}, {"lr", "0.5"}, {"chunk_elems", "256"}, {"reduce_op", "sum"}});
  Params all;
  const auto start = [](int64_t i) { return static_cast<double>(i % 50); };
  for (int k = 0; k < 12; ++k)
    all.push_back(ctx.add_function("w" + std::to_string(k), GEMINI_F32, {200}, start));
  ctx.commit();
  const auto gradient = [](int64_t i) { return static_cast<double>(i % 7) / 64; };
  for (int step = 0; step < 10; ++step) {
    for (gemini_param_t p : all) ctx.op(GEMINI_FORWARD, {p});
    for (auto p = all.rbegin(); p != all.rend(); ++p)
      ctx.op(GEMINI_BACKWARD, {*p}, [&] { add_grad(*p, gradient); });
    ALL_RANKS_OK(gemini_progress(ctx));
    EXPECT_EQ(step + 1, ctx.step().step);
  }
  if (ranks_of() > 1) {
    EXPECT_GT(ctx.stat(GEMINI_STAT_PREFETCH_HITS), 0);
  }
  for (gemini_param_t p : all) {
    const std::vector<double> now = values(p);
    for (int64_t i = 0; i < 200; ++i)
      ASSERT_EQ(start(i) - 10 * 0.5 * ranks_of() * gradient(i), now[static_cast<std::size_t>(i)]);
  }
}

TEST(ThreadLevel, BelowMultipleKeepsOtherThreadsOut) {
  if (multiple()) GTEST_SKIP();
  Context ctx;
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 1.0);
  ctx.commit();
  std::string words;
  int64_t leases = 0;
  const std::function<gemini_status_t()> calls[] = {
      [&] { return gemini_pre_op(ctx, &a, 1); },
      [&] { return gemini_step(ctx, nullptr); },
      [&] { return gemini_progress(ctx); },
      [&] { return gemini_stat(ctx, GEMINI_STAT_LEASES, &leases); },
  };
  for (const auto& call : calls) {
    EXPECT_EQ(GEMINI_ERR_STATE, on_another_thread(call, &words));
    EXPECT_NE(std::string::npos, words.find("thread")) << words;
  }
  gemini_context_t other = nullptr;
  EXPECT_EQ(GEMINI_ERR_STATE,
            on_another_thread([&] { return gemini_create(MPI_COMM_SELF, nullptr, &other); }, &words));
  EXPECT_EQ(nullptr, other);
  gemini_context_t same = ctx;
  EXPECT_EQ(GEMINI_ERR_STATE, on_another_thread([&] { return gemini_destroy(&same); }, &words));
  EXPECT_NE(nullptr, same);  // nothing happened: this thread can still use it
  ctx.op(GEMINI_INFERENCE, {a}, [&] {
    double seen = 0;  // any thread may use leased memory
    const double* leased = data<double>(a);
    std::thread([&] { seen = leased[7]; }).join();
    EXPECT_EQ(1.0, seen);
  });
}

TEST(ThreadLevel, MultipleLetsAnyThreadCall) {
  if (!multiple()) GTEST_SKIP();
  Context ctx({{"optimizer", "sgd"}, {"lr", "0.5"}});
  gemini_param_t a = ctx.add_constant("a", GEMINI_F64, {8}, 1.0);
  ctx.commit();
  std::string words;
  EXPECT_EQ(GEMINI_SUCCESS, on_another_thread(
                                [&] {
                                  train(ctx, a, 1.0);
                                  return gemini_step(ctx, nullptr);
                                },
                                &words))
      << words;
  EXPECT_ALL(MPI_COMM_WORLD, all_are(values(a), 0.5));
}

TEST(Messages, BelongToTheirThread) {
  Context ctx;
  EXPECT_EQ(GEMINI_ERR_ARGUMENT, gemini_pre_op(nullptr, nullptr, 0));
  const std::string mine = gemini_last_error_message();
  std::string words = "not asked";
  on_another_thread([] { return GEMINI_SUCCESS; }, &words);
  EXPECT_EQ("", words);
  EXPECT_EQ(mine, gemini_last_error_message());
  int64_t value = 0;
  EXPECT_EQ(GEMINI_SUCCESS, gemini_stat(ctx, GEMINI_STAT_LEASES, &value));
  EXPECT_STREQ("", gemini_last_error_message());
}

// Each thread has a communicator and a context of its own.
TEST(Threads, MayMakeAndTrainContextsAtTheSameTime) {
  if (!multiple()) GTEST_SKIP() << "takes MPI_THREAD_MULTIPLE";
  constexpr int kThreads = 4;
  MPI_Comm comms[kThreads];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  bool fine[kThreads] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      gemini_context_t ctx = nullptr;
      gemini_param_t w = nullptr;
      const int64_t shape = 1000;
      bool ok = gemini_create(comms[t], nullptr, &ctx) == GEMINI_SUCCESS;
      ok = ok && gemini_param_register(ctx, "w", GEMINI_F32, 1, &shape, 0, &w) == GEMINI_SUCCESS;
      ok = ok && gemini_param_init_fill(w, GEMINI_INIT_CONSTANT, t, 0, 0) == GEMINI_SUCCESS;
      ok = ok && gemini_commit(ctx) == GEMINI_SUCCESS;
      ok = ok && gemini_set_phase(ctx, GEMINI_BACKWARD) == GEMINI_SUCCESS;
      ok = ok && gemini_pre_op(ctx, &w, 1) == GEMINI_SUCCESS && gemini_grad(w) != nullptr;
      ok = ok && static_cast<float*>(gemini_data(w))[999] == static_cast<float>(t);
      ok = ok && gemini_post_op(ctx, &w, 1) == GEMINI_SUCCESS;
      ok = ok && gemini_step(ctx, nullptr) == GEMINI_SUCCESS;
      fine[t] = ok && gemini_destroy(&ctx) == GEMINI_SUCCESS;
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) EXPECT_TRUE(fine[t]) << "thread " << t;
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}
