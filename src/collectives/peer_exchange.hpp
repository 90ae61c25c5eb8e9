// One message to each of some peers and one from each, all under way at once.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/mpi.hpp"

namespace gemini {

class PeerExchange {
 public:
  // peers: ranks of comm, this rank at position `me`. It sends itself nothing.
  PeerExchange(MPI_Comm comm, std::vector<int> peers, int me)
      : comm_(comm), peers_(std::move(peers)), me_(static_cast<std::size_t>(me)) {}

  // At most count elements: sent[i], NULL for an empty message, to peer i and received[i] from it.
  void post(MPI_Datatype type, int count, const std::vector<const std::byte*>& sent,
            const std::vector<std::byte*>& received);
  // True once all have arrived.
  bool test();
  // After that: peer i sent an empty message.
  [[nodiscard]] bool empty_from(std::size_t peer) const;

  [[nodiscard]] std::size_t peers() const { return peers_.size(); }
  [[nodiscard]] std::size_t me() const { return me_; }

 private:
  MPI_Comm comm_;
  std::vector<int> peers_;
  std::size_t me_;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  std::vector<MPI_Request> requests_;  // first what is received, then what is sent
  std::vector<MPI_Status> statuses_;
};

}  // namespace gemini
