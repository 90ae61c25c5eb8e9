// A machine that gives one rank less than its budgets allow.
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "observe.hpp"

using namespace gemini_test;

namespace {

// No more address space than the process has now and a little.
class AddressSpace {
 public:
  explicit AddressSpace(int64_t more_bytes) {
    malloc_trim(0);  // nor what it has and does not use
    long long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(pages * 4096 + more_bytes);
    setrlimit(RLIMIT_AS, &now);
  }
  ~AddressSpace() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

 private:
  rlimit before_{};
};

// Every large vector asks the machine, whichever thread makes it: none finds room that the heap of a thread
// has reserved. Before any thread begins.
const bool kLargeVectorsAskTheMachine =
    mallopt(M_ARENA_MAX, 1) == 1 && mallopt(M_MMAP_THRESHOLD, 256 << 10) == 1;

// Sanitizers end the program where operator new would throw.
bool vectors_may_throw() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return kLargeVectorsAskTheMachine;
#endif
}

constexpr int64_t kElems = int64_t{1} << 24;  // of a chunk; F32: 64 MiB
constexpr int64_t kMiB = 1 << 20;

// Calls under the limit, on the odd rank alone.
template <class Call>
gemini_status_t call_with_little_memory(int64_t more_bytes, const Call& call) {
  if (!odd_one()) return call();
  const AddressSpace little(more_bytes);
  return call();
}

KeyValues settings(const KeyValues& more = {}) {
  KeyValues all = {{"optimizer", "none"},
                   {"chunk_elems", std::to_string(kElems)},
                   {"timeout_s", "60"},
                   {"placement", "static"},
                   {"collectives", "mpi"}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The odd rank says that it failed under way, its peers learn so long before they would lose patience, and
// nothing is left to do but to destroy.
template <class Call>
void expect_end_of_all(Context& ctx, int64_t more_bytes, const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  const gemini_status_t status = call_with_little_memory(more_bytes, call);
  EXPECT_EQ(odd_one() ? GEMINI_ERR_DEVICE : GEMINI_ERR_REMOTE_FATAL, status) << gemini_last_error_message();
  EXPECT_SAID("the machine does not give");
  if (!odd_one()) {
    EXPECT_SAID(its_name().c_str());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(GEMINI_ERR_STATE, gemini_set_phase(ctx, GEMINI_FORWARD));
  EXPECT_EQ(GEMINI_SUCCESS, ctx.destroy());
  EXPECT_EQ(nullptr, ctx.get());
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

TEST(Machine, ThatRefusesTheModelOnOneRankRefusesItOnAllAndMayBeAskedAgain) {
  Context ctx(MPI_COMM_WORLD, settings());
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {kElems}, 1.0);
  const gemini_status_t status = call_with_little_memory(8 * kMiB, [&] { return gemini_commit(ctx); });
  EXPECT_EQ(odd_one() ? GEMINI_ERR_OUT_OF_MEMORY : GEMINI_ERR_REMOTE, status) << gemini_last_error_message();
  EXPECT_SAID("the machine does not give");
  if (!odd_one()) {
    EXPECT_SAID(its_name().c_str());
  }
  EXPECT_EQ(0, ctx.stat(GEMINI_STAT_DEVICE_BYTES));
  ALL_RANKS_OK(gemini_commit(ctx));
  ctx.op(GEMINI_FORWARD, {w}, [&] { EXPECT_EQ(1.0F, data<float>(w)[kElems - 1]); });
}

// Peers have begun to gather: there is no way back.
TEST(Machine, ThatRefusesAnOperationOnOneRankEndsAll) {
  if (ranks_of() == 1) GTEST_SKIP() << "alone a rank gathers nothing";
  Context ctx(MPI_COMM_WORLD, settings());
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {kElems}, 1.0);
  ctx.commit();
  expect_end_of_all(ctx, 8 * kMiB, [&] { return gemini_pre_op(ctx, &w, 1); });
}

TEST(Machine, ThatRefusesTheSecondOfTwoOperationsOnOneRankEndsAll) {
  if (ranks_of() == 1) GTEST_SKIP() << "alone a rank gathers nothing";
  Context ctx(MPI_COMM_WORLD, settings());
  gemini_param_t first = ctx.add_constant("first", GEMINI_F32, {kElems}, 1.0);
  gemini_param_t second = ctx.add_constant("second", GEMINI_F32, {kElems}, 2.0);
  ctx.commit();
  ctx.pre({first});
  expect_end_of_all(ctx, 8 * kMiB, [&] { return gemini_pre_op(ctx, &second, 1); });
}

// There is room for the values, and none for what arrives packed.
TEST(Machine, ThatRefusesTheBuffersOfAPackedGatherOnOneRankEndsAll) {
  if (!vectors_may_throw()) GTEST_SKIP();
  if (ranks_of() == 1) GTEST_SKIP() << "alone a rank gathers nothing";
  constexpr int64_t kFewer = kElems / 4;
  Context ctx(MPI_COMM_WORLD, settings({{"gather_dtype", "bf16"}, {"chunk_elems", std::to_string(kFewer)}}));
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {kFewer}, 1.0);
  ctx.commit();
  expect_end_of_all(ctx, kFewer * 4 + 2 * kMiB, [&] { return gemini_pre_op(ctx, &w, 1); });
}

TEST(Machine, ThatRefusesTheBuffersOfAReductionOnOneRankEndsAll) {
  if (!vectors_may_throw()) GTEST_SKIP();
  if (ranks_of() == 1) GTEST_SKIP() << "alone a rank reduces nothing";
  for (const char* async : {"on", "off"}) {
    Context ctx(MPI_COMM_WORLD, settings({{"async_reduce", async}}));
    gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {kElems}, 1.0);
    ctx.commit();
    ctx.op(GEMINI_FORWARD, {w});
    ctx.phase(GEMINI_BACKWARD);
    ctx.pre({w});
    EXPECT_NE(nullptr, gemini_grad(w));
    expect_end_of_all(ctx, 2 * kMiB, [&] {
      const gemini_status_t status = gemini_post_op(ctx, &w, 1);
      return status == GEMINI_SUCCESS ? gemini_step(ctx, nullptr) : status;
    });
  }
}

// Squares of these gradients overflow: the norm takes a scaled copy, when ranks are past their agreement.
TEST(Machine, ThatRefusesAStepOnOneRankEndsAll) {
  if (!vectors_may_throw()) GTEST_SKIP();
  Context ctx(MPI_COMM_WORLD, settings());
  gemini_param_t w = ctx.add_constant("w", GEMINI_F64, {kElems / 2}, 1.0);
  ctx.commit();
  ctx.op(GEMINI_FORWARD, {w});
  ctx.op(GEMINI_BACKWARD, {w}, [&] {
    double* into = gemini_test::grad<double>(w);
    std::fill(into, into + kElems / 2, 1e200);
  });
  ALL_RANKS_OK(gemini_progress(ctx));
  expect_end_of_all(ctx, 2 * kMiB, [&] { return gemini_step(ctx, nullptr); });
}
