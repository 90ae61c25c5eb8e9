// A directory for the files of a test, the same on all ranks: made by rank 0, removed at the end. In memory
// where the system has such a place: a busy disk can take longer than the timeouts that tests ask for.
#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "gemini.h"

namespace gemini_test {

class SpillDirectory {
 public:
  // Collective over MPI_COMM_WORLD.
  SpillDirectory() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    char name[] = "/dev/shm/gemini-test-XXXXXX";
    constexpr char on_disk[] = "/tmp/gemini-test-XXXXXX";
    if (rank_ == 0 && mkdtemp(name) == nullptr && mkdtemp(std::strcpy(name, on_disk)) == nullptr)
      name[0] = '\0';
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = name;
  }
  ~SpillDirectory() {
    std::error_code ignored;
    if (rank_ == 0) std::filesystem::remove_all(path_, ignored);
  }
  SpillDirectory(const SpillDirectory&) = delete;
  SpillDirectory& operator=(const SpillDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Of this moment: peers may still be about to remove theirs.
  [[nodiscard]] int files() const {
    int count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  int rank_ = 0;
  std::string path_;
};

}  // namespace gemini_test
