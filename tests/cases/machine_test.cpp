// A machine that gives one rank less than its budgets allow.
#include <sys/resource.h>

#include <fstream>

#include "observe.hpp"

using namespace gemini_test;

namespace {

// No more address space than the process has now and a little.
class AddressSpace {
 public:
  explicit AddressSpace(int64_t more_bytes) {
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

constexpr int64_t kElems = int64_t{1} << 24;  // of a chunk; F32: 64 MiB
constexpr int64_t kLittle = 8 << 20;

// Calls under the limit, on the odd rank alone.
template <class Call>
gemini_status_t call_with_little_memory(const Call& call) {
  if (!odd_one()) return call();
  const AddressSpace little(kLittle);
  return call();
}

KeyValues settings() {
  return {{"optimizer", "none"},
          {"chunk_elems", std::to_string(kElems)},
          {"timeout_s", "60"},
          {"placement", "static"}};
}

}  // namespace

TEST(Machine, ThatRefusesTheModelOnOneRankRefusesItOnAllAndMayBeAskedAgain) {
  Context ctx(MPI_COMM_WORLD, settings());
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {kElems}, 1.0);
  const gemini_status_t status = call_with_little_memory([&] { return gemini_commit(ctx); });
  EXPECT_EQ(odd_one() ? GEMINI_ERR_OUT_OF_MEMORY : GEMINI_ERR_REMOTE, status) << gemini_last_error_message();
  EXPECT_SAID("the machine does not give");
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
  const gemini_status_t status = call_with_little_memory([&] { return gemini_pre_op(ctx, &w, 1); });
  EXPECT_EQ(odd_one() ? GEMINI_ERR_DEVICE : GEMINI_ERR_REMOTE_FATAL, status) << gemini_last_error_message();
  EXPECT_SAID("the machine does not give");
  EXPECT_EQ(GEMINI_ERR_STATE, gemini_pre_op(ctx, &w, 1));
  MPI_Barrier(MPI_COMM_WORLD);
}
