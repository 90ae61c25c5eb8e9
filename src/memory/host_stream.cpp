#include "memory/host_stream.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstring>
#include <utility>

#include "kernels/runtime.hpp"

namespace gemini {

bool HostEvent::done() const {
  if (!point_) return true;
  const std::lock_guard lock(point_->mutex);
  return point_->done;
}

void HostEvent::wait() const {
  if (!point_) return;
  std::unique_lock lock(point_->mutex);
  point_->reached.wait(lock, [this] { return point_->done; });
}

namespace {

// Signals are for the caller's threads: a handler of theirs never runs in one of ours. Faults and profilers'
// ticks belong to the thread that they are about.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGPROF}) sigdelset(&all, own);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

HostStream::HostStream() {
  const SignalsBlocked blocked;  // a thread begins with the mask of its maker
  worker_ = std::thread([this] { run(); });
}

HostStream::~HostStream() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  worker_.join();
}

void HostStream::enqueue(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void HostStream::copy(void* to, const void* from, std::int64_t bytes) {
  enqueue([=] { std::memcpy(to, from, static_cast<std::size_t>(bytes)); });
}

void HostStream::record(HostEvent& event) {
  auto point = std::make_shared<HostEvent::Point>();
  event.point_ = point;
  enqueue([point] {
    {
      const std::lock_guard lock(point->mutex);
      point->done = true;
    }
    point->reached.notify_all();
  });
}

void HostStream::wait(const HostEvent& event) {
  enqueue([event] { event.wait(); });
}

void HostStream::synchronize() {
  HostEvent here;
  record(here);
  here.wait();
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void HostStream::run() {
  kernels::run_inline_on_this_thread();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    std::exception_ptr thrown;
    try {
      task();
    } catch (...) {
      thrown = std::current_exception();
    }
    task = nullptr;  // what it holds ends outside the lock
    lock.lock();
    if (thrown && !failure_) failure_ = thrown;
  }
}

}  // namespace gemini
