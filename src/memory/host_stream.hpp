// The host's stream: a worker thread that runs tasks in order, with the ordering rules of a CUDA stream.
//
// Tasks of one stream run one after another; streams are ordered only by events. An event that was never
// recorded is complete; recording it again makes it stand for the later point.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace gemini {

class HostEvent {
 public:
  [[nodiscard]] bool done() const;
  void wait() const;

 private:
  friend class HostStream;
  struct Point {
    std::mutex mutex;
    std::condition_variable reached;
    bool done = false;
  };
  std::shared_ptr<Point> point_;  // empty: never recorded
};

class HostStream {
 public:
  HostStream();
  ~HostStream();  // runs what was enqueued, then ends
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;

  void enqueue(std::function<void()> task);
  void copy(void* to, const void* from, std::int64_t bytes);
  void record(HostEvent& event);
  // Later tasks of this stream run after the event as recorded now; the caller does not wait.
  void wait(const HostEvent& event);
  // Waits for all tasks; rethrows the first exception that one of them threw.
  void synchronize();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::exception_ptr failure_;
  bool ending_ = false;
  std::thread worker_;
};

}  // namespace gemini
