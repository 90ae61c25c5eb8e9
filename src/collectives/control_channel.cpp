#include "collectives/control_channel.hpp"

#include <cstring>
#include <mutex>

#include "base/error.hpp"

namespace gemini {
namespace {

constexpr int kLastWordsTag = 1;
constexpr int kWaitingTag = 2;

}  // namespace

std::list<ControlChannel::LastWords>& ControlChannel::kept_words() {
  static auto* const kept = new std::list<LastWords>;
  return *kept;
}

ControlChannel::ControlChannel(Communicator comm) : comm_(std::move(comm)), last_words_(1) {
  kept_words();
  if (comm_.get() == MPI_COMM_NULL) return;
  rank_ = comm_.rank();
  ranks_ = comm_.size();
  const auto ranks = static_cast<std::size_t>(ranks_);
  heard_.resize(ranks);
  told_.resize(ranks);
  sent_.resize(ranks);
}

// Nobody may ever receive what is still on its way, so it stays until the process ends.
ControlChannel::~ControlChannel() {
  static auto* const kept = new std::list<Outgoing>;
  static std::mutex guard;
  if (mpi_is_running()) forget_received();
  const std::lock_guard lock(guard);
  kept->splice(kept->end(), outgoing_);
}

// Said once, with memory taken in time: it may be what this rank has run out of. Nobody may ever receive it.
void ControlChannel::tell_last_words(const std::string& why) noexcept {
  static std::mutex guard;
  const std::lock_guard lock(guard);
  if (last_words_.empty()) return;
  kept_words().splice(kept_words().end(), last_words_);
  LastWords& message = kept_words().back();
  std::strncpy(message.data(), why.c_str(), kLastWordsBytes - 1);
  for (int peer = 0; peer < ranks_; ++peer) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (peer != rank_)
      MPI_Isend(message.data(), kLastWordsBytes, MPI_CHAR, peer, kLastWordsTag, comm_.get(), &request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

void ControlChannel::tell_waiting(const WaitingPlace& here) {
  for (int peer = 0; peer < ranks_; ++peer) tell(peer, here);
}

void ControlChannel::tell(int peer, const WaitingPlace& here) {
  const auto p = static_cast<std::size_t>(peer);
  if (closed_ || peer == rank_ || told_[p] >= here.submitted) return;
  forget_received();
  Outgoing& message = outgoing_.emplace_back();
  message.notice.submitted = here.submitted;
  std::strncpy(message.notice.what.data(), here.what, message.notice.what.size() - 1);
  check_mpi(
      MPI_Isend(&message.notice, sizeof(Notice), MPI_BYTE, peer, kWaitingTag, comm_.get(), &message.request),
      "MPI_Isend");
  told_[p] = here.submitted;
  ++sent_[p];
}

void ControlChannel::forget_received() {
  outgoing_.remove_if([](Outgoing& message) {
    int done = 0;
    return MPI_Test(&message.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
  });
}

void ControlChannel::hear(const WaitingPlace& here) {
  if (ranks_ == 1) return;
  for (;;) {
    int waiting = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.get(), &waiting, &status), "MPI_Iprobe");
    if (!waiting) return;
    const int peer = status.MPI_SOURCE;
    if (status.MPI_TAG == kLastWordsTag) {
      std::array<char, kLastWordsBytes> words{};
      check_mpi(MPI_Recv(words.data(), kLastWordsBytes, MPI_CHAR, peer, kLastWordsTag, comm_.get(),
                         MPI_STATUS_IGNORE),
                "MPI_Recv");
      words.back() = '\0';
      fail(GEMINI_ERR_REMOTE_FATAL, "rank {} left: {}", peer, words.data());
    }
    Notice& notice = heard_[static_cast<std::size_t>(peer)];
    check_mpi(MPI_Recv(&notice, sizeof(Notice), MPI_BYTE, peer, kWaitingTag, comm_.get(), MPI_STATUS_IGNORE),
              "MPI_Recv");
    ++received_;
    if (here.what != nullptr) tell(peer, here);
  }
}

std::string ControlChannel::missing(std::int64_t operation) const {
  constexpr std::size_t kNamed = 8;
  std::vector<int> who;
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_ && heard_[static_cast<std::size_t>(peer)].submitted < operation) who.push_back(peer);
  if (who.empty()) return "";
  const std::size_t more = who.size() > kNamed ? who.size() - kNamed : 0;
  who.resize(who.size() - more);
  return fmt::format("rank{} {}{}", who.size() > 1 ? "s" : "", fmt::join(who, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string ControlChannel::waiting_elsewhere(const char* what) const {
  for (int peer = 0; peer < ranks_; ++peer) {
    const char* theirs = heard_[static_cast<std::size_t>(peer)].what.data();
    if (peer != rank_ && std::strncmp(theirs, what, sizeof(Notice::what) - 1) != 0)
      return fmt::format(", rank {} for {}", peer, theirs);
  }
  return "";
}

std::vector<std::int64_t> ControlChannel::close() {
  closed_ = true;
  return sent_;
}

bool ControlChannel::drained(std::int64_t expected) {
  hear({0, nullptr});
  forget_received();
  return received_ == expected && outgoing_.empty();
}

}  // namespace gemini
