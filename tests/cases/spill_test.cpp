// The third tier: files that are this context's own, large chunks through small buffers, and a full disk.
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "observe.hpp"
#include "support/spill_directory.hpp"

using namespace gemini_test;

namespace {

KeyValues spilling(const SpillDirectory& directory, const char* device_memory) {
  return adam_with({{"spill_dir", directory.path()},
                    {"device_memory", device_memory},
                    {"host_memory", "256KiB"},
                    {"warmup_model_fraction", "0"}});
}

// Of this process: writes beyond it fail as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

void expect_no_files(const SpillDirectory& directory) {
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(0, directory.files());
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

// Of 5 MiB each, through buffers of a few pages; another context with other numbers does the same beside.
TEST(Spill, KeepsLargeChunksOfSeveralContextsApart) {
  constexpr int64_t kElems = 5 << 18;
  const SpillDirectory directory;
  {
    Context one(MPI_COMM_WORLD, spilling(directory, "16MiB"));
    Context other(MPI_COMM_WORLD, spilling(directory, "16MiB"));
    const auto first = [](int64_t i) { return static_cast<double>(i % 1001); };
    gemini_param_t a = one.add_function("w", GEMINI_F32, {kElems}, first);
    gemini_param_t b = other.add_function("w", GEMINI_F32, {kElems}, [&](int64_t i) { return -first(i); });
    one.commit();
    other.commit();
    EXPECT_GE(one.stat(GEMINI_STAT_FILE_BYTES), 4 * kElems * 4 / ranks_of());
    EXPECT_LE(one.stat(GEMINI_STAT_HOST_PEAK_BYTES), 256 << 10);
    EXPECT_EQ(2 * ranks_of(), directory.files());
    for (int step = 0; step < 2; ++step) {
      train(one, a, [](int64_t i) { return i % 2 == 0 ? 1.0 : 2.0; });
      train(other, b, -1.0);
      one.step();
      other.step();
    }
    const Seen of_one = see(one, a);
    const Seen of_other = see(other, b);
    bool as_expected = true;
    for (std::size_t i = 0; i < of_one.master.size(); ++i) {
      const double was = first(static_cast<int64_t>(i));
      as_expected = as_expected && std::fabs(of_one.master[i] - (was - 0.2)) < 1e-4 &&
                    std::fabs(of_other.master[i] - (-was + 0.2)) < 1e-4 &&
                    std::fabs(of_one.state1[i] - (i % 2 == 0 ? 0.19 : 0.38)) < 1e-6 &&
                    std::fabs(of_other.state1[i] + 0.19) < 1e-6;
    }
    EXPECT_ALL(MPI_COMM_WORLD, as_expected);
  }
  expect_no_files(directory);
}

// Decisions rest on whether there is a third tier.
TEST(Spill, IsATierOnAllRanksOrOnNone) {
  if (ranks_of() == 1) GTEST_SKIP() << "takes two";
  const SpillDirectory directory;
  const Options options(odd_one() ? KeyValues{} : KeyValues{{"spill_dir", directory.path()}});
  gemini_context_t ctx = nullptr;
  ALL_RANKS_STATUS(GEMINI_ERR_MISMATCH, gemini_create(MPI_COMM_WORLD, options.get(), &ctx));
  EXPECT_SAID("spill_dir");
  EXPECT_EQ(nullptr, ctx);
  expect_no_files(directory);
}

// Where MPI has not finished what it was asked for, the context's memory stays; its file need not.
TEST(Spill, LeavesNoFileWhereAContextEndsUnderWay) {
  const SpillDirectory directory;
  Context ctx(MPI_COMM_WORLD, spilling(directory, "1MiB"));
  gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {1 << 17}, 1.0);
  ctx.commit();
  if (odd_one()) {
    EXPECT_EQ(GEMINI_SUCCESS, gemini_abort(ctx, "a test"));
  } else {
    EXPECT_EQ(GEMINI_ERR_REMOTE_FATAL, gemini_pre_op(ctx, &w, 1));
  }
  EXPECT_EQ(GEMINI_SUCCESS, ctx.destroy());
  expect_no_files(directory);
}

TEST(Spill, RemovesWhatAKilledRunLeftBehind) {
  const SpillDirectory directory;
  {
    const Context ctx(MPI_COMM_WORLD, spilling(directory, "1MiB"));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_of() == 0) {
      for (const auto& file : std::filesystem::directory_iterator(directory.path())) {
        std::string left_over = file.path();  // the same name, of a process that is no more
        const auto number = left_over.rfind('-');
        left_over.insert(number, "0000");
        std::ofstream(left_over) << "stale";
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(2 * ranks_of(), directory.files());
    MPI_Barrier(MPI_COMM_WORLD);
    const Context next(MPI_COMM_WORLD, spilling(directory, "1MiB"));
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(2 * ranks_of(), directory.files()) << "the first one's and the next one's";
    MPI_Barrier(MPI_COMM_WORLD);
  }
  expect_no_files(directory);
}

// One rank's disk is full: all ranks say so, and the same context works once there is room.
TEST(Spill, OfAFullDiskIsAnErrorOnAllRanksAndLosesNothing) {
  const SpillDirectory directory;
  {
    Context ctx(MPI_COMM_WORLD, spilling(directory, "2MiB"));
    gemini_param_t w = ctx.add_constant("w", GEMINI_F32, {1 << 17}, 1.0);
    const bool full = rank_of() == ranks_of() - 1;
    {
      const FileSizeLimit limit(full ? 64 << 10 : RLIM_INFINITY);
      const gemini_status_t status = gemini_commit(ctx);
      EXPECT_EQ(full ? GEMINI_ERR_IO : GEMINI_ERR_REMOTE, status) << gemini_last_error_message();
      EXPECT_SAID(directory.path().c_str());
      EXPECT_EQ(0, ctx.stat(GEMINI_STAT_FILE_BYTES)) << "ranks that had room give it back";
    }
    ALL_RANKS_OK(gemini_commit(ctx));
    train(ctx, w, 1.0);
    ctx.step();
    EXPECT_ALL(MPI_COMM_WORLD, all_are(values(w), 0.9, 1e-6));
  }
  expect_no_files(directory);
}
