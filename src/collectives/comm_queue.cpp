#include "collectives/comm_queue.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "base/error.hpp"

namespace gemini {
namespace {

constexpr int kLastWordsTag = 1;
constexpr std::size_t kLastWordsBytes = 1024;
constexpr int kPollsBetweenLooks = 64;
constexpr int kPollsBeforeYield = 256;
constexpr auto kBackgroundPause = std::chrono::microseconds(50);
constexpr Clock::duration kLongestSleep = std::chrono::milliseconds(5);

}  // namespace

CommQueue::CommQueue(Communicator control, double timeout_s, bool background)
    : control_(std::move(control)), timeout_s_(timeout_s) {
  if (!background) return;
  worker_ = std::make_unique<HostStream>();
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
  if (done(ticket)) return;
  const auto start = Clock::now();
  for (std::int64_t polls = 1;; ++polls) {
    Clock::duration idle{};
    bool looks = false;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      advance();
      if (done(ticket)) break;
      idle = idle_time();
      looks = idle > Clock::duration::zero() || polls % kPollsBetweenLooks == 0;
      if (looks) hear_last_words();
    }
    if (idle > Clock::duration::zero())
      std::this_thread::sleep_for(idle);
    else if (polls > kPollsBeforeYield)
      sched_yield();
    if (!looks || timeout_s_ == 0) continue;
    const std::chrono::duration<double> waited = Clock::now() - start;
    if (waited.count() > timeout_s_)
      fail(GEMINI_ERR_TIMEOUT, "{}: a peer did not arrive within timeout_s = {} s", what, timeout_s_);
  }
  stall_ns_ += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

void CommQueue::progress() {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  advance();
  hear_last_words();
}

void CommQueue::advance() {
  try {
    while (!operations_.empty() && operations_.front()->poll()) {
      operations_.pop_front();
      ++completed_;
    }
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

Clock::duration CommQueue::idle_time() const {
  if (operations_.empty()) return {};
  return std::clamp(operations_.front()->idle_until() - Clock::now(), Clock::duration{}, kLongestSleep);
}

void CommQueue::hear_last_words() {
  int waiting = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kLastWordsTag, control_.get(), &waiting, &status), "MPI_Iprobe");
  if (!waiting) return;
  std::array<char, kLastWordsBytes> words{};
  check_mpi(MPI_Recv(words.data(), kLastWordsBytes, MPI_CHAR, status.MPI_SOURCE, kLastWordsTag,
                     control_.get(), MPI_STATUS_IGNORE),
            "MPI_Recv");
  words.back() = '\0';
  const Error left(GEMINI_ERR_REMOTE_FATAL, fmt::format("rank {} left: {}", status.MPI_SOURCE, words.data()));
  failure_ = std::make_exception_ptr(left);
  throw left;
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

void CommQueue::tell_peers(const std::string& why) noexcept {
  // Nobody may ever receive it, so the message and its requests stay until the process ends.
  static auto* const messages = new std::deque<std::array<char, kLastWordsBytes>>;
  static std::mutex guard;
  const std::lock_guard lock(guard);
  auto& message = messages->emplace_back();
  std::strncpy(message.data(), why.c_str(), kLastWordsBytes - 1);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(control_.get(), &rank);
  MPI_Comm_size(control_.get(), &size);
  for (int peer = 0; peer < size; ++peer) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (peer != rank)
      MPI_Isend(message.data(), kLastWordsBytes, MPI_CHAR, peer, kLastWordsTag, control_.get(), &request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
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
