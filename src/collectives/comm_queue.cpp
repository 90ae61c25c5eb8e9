#include "collectives/comm_queue.hpp"

#include <sched.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>

#include "base/error.hpp"
#include "collectives/basic_operations.hpp"

namespace gemini {
namespace {

constexpr int kPollsBetweenLooks = 64;
constexpr int kPollsBeforeYield = 256;
constexpr double kLongWait_s = 1;
constexpr auto kBackgroundPause = std::chrono::microseconds(50);
constexpr Clock::duration kLongestSleep = std::chrono::milliseconds(5);

}  // namespace

CommQueue::CommQueue(Communicator control, double timeout_s, bool background)
    : channel_(std::move(control)), timeout_s_(timeout_s) {
  if (!background) return;
  try {
    worker_ = std::make_unique<HostStream>();
  } catch (const std::system_error&) {  // no thread to be had: calls drive, as they do below MULTIPLE
    return;
  }
  watch_finalize();
}

// The worker must not call MPI once it ends. MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF.
void CommQueue::watch_finalize() {
  check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &finalize_key_, nullptr),
            "MPI_Comm_create_keyval");
  check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, finalize_key_, this), "MPI_Comm_set_attr");
}

int CommQueue::on_finalize(MPI_Comm, int, void* queue, void*) {
  static_cast<CommQueue*>(queue)->stop_worker();
  static_cast<CommQueue*>(queue)->finalize_key_ = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}

void CommQueue::stop_worker() noexcept {
  abandoned_ = true;
  worker_.reset();
}

CommQueue::~CommQueue() {
  abandon();
}

Ticket CommQueue::submit(std::unique_ptr<Operation> operation) {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  operations_.push_back(std::move(operation));
  return ++submitted_;
}

Ticket CommQueue::submit_background(std::unique_ptr<Operation> operation) {
  const Ticket ticket = submit(std::move(operation));
  if (worker_) worker_->enqueue([this, ticket] { drive_in_background(ticket); });
  return ticket;
}

void CommQueue::wait(Ticket ticket, const char* what) {
  if (!done(ticket)) wait_until([this, ticket] { return done(ticket); }, what);
}

void CommQueue::wait_until(const std::function<bool()>& done, const char* what) {
  const auto start = Clock::now();
  bool told = false;  // peers, that this rank waits
  for (std::int64_t polls = 1;; ++polls) {
    Clock::duration idle{};
    bool looks = false;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      advance();
      if (done()) break;
      idle = idle_time();
      looks = idle > Clock::duration::zero() || polls % kPollsBetweenLooks == 0;
      if (looks) hear(what);
    }
    if (idle > Clock::duration::zero())
      std::this_thread::sleep_for(idle);
    else if (polls > kPollsBeforeYield)
      sched_yield();
    if (!looks || timeout_s_ == 0) continue;
    const std::chrono::duration<double> waited = Clock::now() - start;
    if (!told && waited.count() > std::min(kLongWait_s, timeout_s_ / 4)) {
      tell_waiting(what);
      told = true;
    }
    if (waited.count() > timeout_s_) time_out(what);
  }
  stall_ns_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

void CommQueue::progress() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  advance();
  hear(nullptr);
}

void CommQueue::drive_once() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  advance();
}

void CommQueue::advance() {
  try {
    while (!operations_.empty() && operations_.front()->poll()) {
      operations_.pop_front();
      ++completed_;
    }
  } catch (const std::bad_alloc&) {  // peers are at their part of the operation
    failure_ = std::make_exception_ptr(Error(GEMINI_ERR_DEVICE, kNoMemory));
    std::rethrow_exception(failure_);
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

Clock::duration CommQueue::idle_time() const {
  if (operations_.empty()) return {};
  return std::clamp(operations_.front()->idle_until() - Clock::now(), Clock::duration{}, kLongestSleep);
}

void CommQueue::hear(const char* what) {
  try {
    channel_.hear({submitted_.load(), what});
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

void CommQueue::tell_waiting(const char* what) {
  const std::lock_guard lock(mutex_);
  channel_.tell_waiting({submitted_.load(), what});
}

void CommQueue::time_out(const char* what) {
  const std::lock_guard lock(mutex_);
  const std::string missing = channel_.missing(completed_.load() + 1);
  if (missing.empty())
    fail(GEMINI_ERR_TIMEOUT, "{}: not done within timeout_s = {} s, though no rank is missing{}", what,
         timeout_s_, channel_.waiting_elsewhere(what));
  fail(GEMINI_ERR_TIMEOUT, "{}: {} did not arrive within timeout_s = {} s", what, missing, timeout_s_);
}

void CommQueue::drive_in_background(Ticket ticket) noexcept {
  while (!done(ticket) && !abandoned_) {
    Clock::duration idle{};
    {
      const std::lock_guard lock(mutex_);
      if (failure_ || abandoned_) return;
      try {
        advance();
      } catch (...) {
        return;  // kept in failure_ for the next call
      }
      idle = idle_time();
    }
    if (!done(ticket)) std::this_thread::sleep_for(std::max<Clock::duration>(idle, kBackgroundPause));
  }
}

namespace {

// Complete when what peers said has been heard.
class Drain final : public Operation {
 public:
  Drain(ControlChannel& channel, std::shared_ptr<Words> sent) : channel_(channel), sent_(std::move(sent)) {}
  bool poll() override { return channel_.drained((*sent_)[static_cast<std::size_t>(channel_.rank())]); }

 private:
  ControlChannel& channel_;
  std::shared_ptr<Words> sent_;  // to each rank, by all
};

}  // namespace

void CommQueue::settle() {
  if (channel_.ranks() == 1) return;
  auto sent = std::make_shared<Words>(channel_.close());
  submit(std::make_unique<AllReduceWords>(channel_.comm(), MPI_SUM, sent));
  run(std::make_unique<Drain>(channel_, sent), "the end of the other ranks");
}

bool CommQueue::abandon() noexcept {
  stop_worker();
  if (finalize_key_ != MPI_KEYVAL_INVALID && mpi_is_running()) {
    int key = finalize_key_;
    MPI_Comm_delete_attr(MPI_COMM_SELF, key);
    MPI_Comm_free_keyval(&key);
  }
  return in_flight() != 0;
}

}  // namespace gemini
