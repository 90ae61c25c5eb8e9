// What ranks say to each other beside the queue: last words, and who waits where.
//
// A rank whose wait is long tells its peers once; a rank that waits answers what it hears. So at a timeout
// everyone inside the library has been heard, and who has not been is missing.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "collectives/mpi.hpp"

namespace gemini {

// Where a rank is: the number of operations it has submitted, and what it waits for.
struct WaitingPlace {
  std::int64_t submitted;
  const char* what;  // NULL: it does not wait
};

class ControlChannel {
 public:
  explicit ControlChannel(Communicator comm);
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  // Both send and do not wait. Last words are said once.
  void tell_last_words(const std::string& why) noexcept;
  void tell_waiting(const WaitingPlace& here);
  // Takes in what has come; throws a peer's last words as GEMINI_ERR_REMOTE_FATAL. Answers if this rank
  // waits.
  void hear(const WaitingPlace& here);

  // Which peers were not heard waiting for the operation or a later one: "rank 2", "" if all were.
  [[nodiscard]] std::string missing(std::int64_t operation) const;
  // Where the first of the others waits for something else than `what`: ", rank 1 for ..."; "" if none does.
  [[nodiscard]] std::string waiting_elsewhere(const char* what) const;

  // For a normal end: what has been sent to each rank so far (it is no more from here on), and whether all
  // that was sent to this rank has come and all it sent is received.
  [[nodiscard]] std::vector<std::int64_t> close();
  bool drained(std::int64_t expected);

  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_.get(); }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  void free_communicator() noexcept { comm_.free(); }

 private:
  struct Notice {
    std::int64_t submitted = 0;
    std::array<char, 120> what{};
  };
  struct Outgoing {
    Notice notice;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  static constexpr std::size_t kLastWordsBytes = 1024;
  using LastWords = std::array<char, kLastWordsBytes>;
  static std::list<LastWords>& kept_words();  // until the process ends
  void tell(int peer, const WaitingPlace& here);
  void forget_received();

  Communicator comm_;
  int rank_ = 0;
  int ranks_ = 1;
  bool closed_ = false;
  std::vector<Notice> heard_;       // the last of each peer
  std::vector<std::int64_t> told_;  // each peer: the place it knows of
  std::vector<std::int64_t> sent_;
  std::int64_t received_ = 0;
  std::list<Outgoing> outgoing_;
  std::list<LastWords> last_words_;  // one, not yet said
};

}  // namespace gemini
