// What the tests of collectives share: parts over MPI_COMM_WORLD that end with the test, and outcomes.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "collectives/agreement.hpp"
#include "collectives/basic_operations.hpp"
#include "collectives/comm_queue.hpp"

namespace gemini::test {

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
inline int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// Status and words of what a call throws; GEMINI_SUCCESS and "" if it returns.
struct Outcome {
  gemini_status_t status = GEMINI_SUCCESS;
  std::string words;
  [[nodiscard]] bool says(const std::string& part) const { return words.find(part) != std::string::npos; }
};
inline Outcome outcome_of(const std::function<void()>& call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    return {error.status(), error.what()};
  }
}

// A queue of its own communicator. Constructed and ended by all ranks together.
class Queue : public CommQueue {
 public:
  explicit Queue(double timeout_s = 60, bool background = mpi_allows_any_thread())
      : CommQueue(Communicator(MPI_COMM_WORLD), timeout_s, background) {}
  ~Queue() {
    abandon();
    free_communicator();
  }

  // NULL: there is nothing to do.
  Ticket submit(std::unique_ptr<Operation> operation) {
    return CommQueue::submit(some(std::move(operation)));
  }
  Ticket submit_background(std::unique_ptr<Operation> operation) {
    return CommQueue::submit_background(some(std::move(operation)));
  }
  void run(std::unique_ptr<Operation> operation, const char* what) {
    CommQueue::run(some(std::move(operation)), what);
  }

 private:
  static std::unique_ptr<Operation> some(std::unique_ptr<Operation> operation) {
    return operation ? std::move(operation) : std::make_unique<Nothing>();
  }
};

}  // namespace gemini::test
