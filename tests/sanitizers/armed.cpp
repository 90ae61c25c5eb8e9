// Commits the fault named by the first argument; with a second argument inside an MPI program.
#include <mpi.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

int* volatile memory = nullptr;
volatile int number = INT_MAX;
int shared_number = 0;

// True if the fault would be found at its line, false if only when the process ends.
bool commit(const std::string& fault) {
  memory = static_cast<int*>(std::malloc(4 * sizeof(int)));
  if (fault == "overflow") memory[4] = 1;
  if (fault == "leak") memory = nullptr;
  std::free(memory);
  if (fault == "use_after_free") memory[0] = 1;
  if (fault == "undefined") number = number + 1;
  if (fault == "race") {
    std::thread other([] { shared_number = 1; });
    shared_number = 2;
    other.join();
  }
  return fault != "leak" && fault != "race" && fault != "none";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int provided = 0;
  if (argc > 2) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (commit(argv[1])) std::puts("survived");
  if (argc > 2) MPI_Finalize();
  return 0;
}
