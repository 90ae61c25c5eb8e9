// All communication of a context passes through one queue, in one order, on every rank.
//
// The operation at the head is the only one posted. It is driven by whoever waits, and, where MPI allows any
// thread, by a worker in the background; every wait also watches for a peer's last words and the clock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "collectives/control_channel.hpp"
#include "collectives/mpi.hpp"
#include "memory/host_stream.hpp"

namespace gemini {

using Clock = std::chrono::steady_clock;

class Operation {
 public:
  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  virtual ~Operation() = default;
  // The first call posts it; true once it is complete. Never blocks.
  virtual bool poll() = 0;
  // poll() need not be called before this time: whoever waits may sleep.
  [[nodiscard]] virtual Clock::time_point idle_until() const { return {}; }
};

// A place in the queue; 0 is always complete.
using Ticket = std::int64_t;

class CommQueue {
 public:
  // control: carries what ranks say beside the queue. timeout_s 0: wait for ever. background: drive from a
  // worker too.
  CommQueue(Communicator control, double timeout_s, bool background);
  ~CommQueue();
  CommQueue(const CommQueue&) = delete;
  CommQueue& operator=(const CommQueue&) = delete;

  Ticket submit(std::unique_ptr<Operation> operation);
  // The same for work that nobody is about to wait for.
  Ticket submit_background(std::unique_ptr<Operation> operation);
  [[nodiscard]] bool done(Ticket ticket) const noexcept { return completed_.load() >= ticket; }
  // what: the words for a peer that does not come, "gathering chunk 3".
  void wait(Ticket ticket, const char* what);
  // Until done() says so: for what peers do beside the queue.
  void wait_until(const std::function<bool()>& done, const char* what);
  void run(std::unique_ptr<Operation> operation, const char* what) {
    wait(submit(std::move(operation)), what);
  }
  void wait_all() { wait(submitted_.load(), "finishing what is under way"); }
  void progress();
  // The same for what is under way alone; nothing if nothing is.
  void drive() {
    if (in_flight() > 0) drive_once();
  }

  [[nodiscard]] std::int64_t in_flight() const noexcept { return submitted_.load() - completed_.load(); }
  [[nodiscard]] std::int64_t stall_ns() const noexcept { return stall_ns_; }
  void reset_stall() noexcept { stall_ns_ = 0; }

  // Last words to all peers; sends and does not wait.
  void tell_peers(const std::string& why) noexcept { channel_.tell_last_words(why); }
  // Takes in what is still on its way; all ranks call, having agreed to end, and submit nothing after.
  void settle();
  // Ends driving. true: operations are still posted, and their memory must stay until the process ends.
  bool abandon() noexcept;
  void free_communicator() noexcept { channel_.free_communicator(); }

 private:
  void watch_finalize();
  static int on_finalize(MPI_Comm comm, int keyval, void* queue, void* extra);
  void stop_worker() noexcept;

  void drive_once();
  void advance();                                   // with mutex_ held
  [[nodiscard]] Clock::duration idle_time() const;  // with mutex_ held; 0: poll again
  void hear(const char* what);                      // with mutex_ held; what: of the wait, NULL outside one
  void tell_waiting(const char* what);
  [[noreturn]] void time_out(const char* what);
  void drive_in_background(Ticket ticket) noexcept;

  ControlChannel channel_;
  double timeout_s_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Operation>> operations_;
  std::exception_ptr failure_;
  std::atomic<std::int64_t> submitted_{0};
  std::atomic<std::int64_t> completed_{0};
  std::atomic<bool> abandoned_{false};
  std::int64_t stall_ns_ = 0;
  int finalize_key_ = MPI_KEYVAL_INVALID;
  std::unique_ptr<HostStream> worker_;  // last: ends before what it uses
};

}  // namespace gemini
