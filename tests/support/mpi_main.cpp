// The main of GoogleTest programs that run under mpiexec. Every failure is printed with its rank; after each
// test the ranks tell each other whether they failed, and the program's result is the worst of all ranks.
// GEMINI_TEST_THREAD_LEVEL: single, funneled or multiple (default), the level MPI is initialised with.
// GEMINI_TEST_PATIENCE_S: how long a rank that failed waits for its peers before it ends the program.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

std::chrono::seconds patience(20);
int rank = 0, ranks = 1;

// Runs before the usual printer (which only rank 0 keeps).
class FailurePrinter : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed()) return;
    if (rank == 0) {
      std::fprintf(stderr, "[rank 0 of %d]\n", ranks);
    } else {
      std::fprintf(stderr, "[rank %d of %d] %s:%d: Failure\n%s\n", rank, ranks,
                   part.file_name() == nullptr ? "?" : part.file_name(), part.line_number(), part.message());
    }
    std::fflush(stderr);
  }
};

// Runs before the usual printer at the end of a test, so that what it adds is part of the verdict.
class Agreement : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    const bool failed_here = test.result()->Failed();
    int mine = failed_here ? 1 : 0;
    std::vector<int> failed(static_cast<std::size_t>(ranks));
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(&mine, 1, MPI_INT, failed.data(), 1, MPI_INT, comm_, &request);
    wait(&request, failed_here, test);
    for (int r = 0; r < ranks; ++r) {
      if (r != rank && failed[static_cast<std::size_t>(r)] != 0) ADD_FAILURE() << "failed on rank " << r;
    }
  }

  // A rank that failed may have left its peers inside a call that waits for it: then end the program.
  static void wait(MPI_Request* request, bool failed_here, const testing::TestInfo& test) {
    const auto start = std::chrono::steady_clock::now();
    for (int done = 0; done == 0;) {
      MPI_Test(request, &done, MPI_STATUS_IGNORE);
      if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (done == 0 && failed_here && std::chrono::steady_clock::now() - start > patience) {
        std::fprintf(stderr, "[rank %d of %d] %s.%s failed here and a peer did not come back: abort\n", rank,
                     ranks, test.test_suite_name(), test.name());
        std::fflush(nullptr);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
  }

  MPI_Comm comm_ = duplicate();
  static MPI_Comm duplicate() {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return comm;
  }

 public:
  Agreement() = default;
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;
  ~Agreement() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Comm_free(&comm_);
  }
};

int thread_level(const std::string& name) {
  if (name == "single") return MPI_THREAD_SINGLE;
  if (name == "funneled") return MPI_THREAD_FUNNELED;
  if (name == "multiple") return MPI_THREAD_MULTIPLE;
  std::fprintf(stderr, "GEMINI_TEST_THREAD_LEVEL=%s: allowed are single, funneled, multiple\n", name.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  const char* level = std::getenv("GEMINI_TEST_THREAD_LEVEL");
  const char* seconds = std::getenv("GEMINI_TEST_PATIENCE_S");
  if (seconds != nullptr) patience = std::chrono::seconds(std::atoi(seconds));
  int provided = 0;
  MPI_Init_thread(&argc, &argv, thread_level(level == nullptr ? "multiple" : level), &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  testing::InitGoogleTest(&argc, argv);

  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  testing::TestEventListener* printer = listeners.Release(listeners.default_result_printer());
  listeners.Append(new FailurePrinter);
  if (rank == 0) {
    listeners.Append(printer);
  } else {
    delete printer;
  }
  auto* agreement = new Agreement;
  listeners.Append(agreement);

  const int mine = RUN_ALL_TESTS();
  int worst = mine;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  delete listeners.Release(agreement);  // its communicator ends before MPI does
  MPI_Finalize();
  return worst;
}
