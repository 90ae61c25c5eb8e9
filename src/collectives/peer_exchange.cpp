#include "collectives/peer_exchange.hpp"

namespace gemini {

void PeerExchange::post(MPI_Datatype type, int count, const std::vector<const std::byte*>& sent,
                        const std::vector<std::byte*>& received) {
  constexpr int kTag = 3;
  type_ = type;
  requests_.assign(2 * peers(), MPI_REQUEST_NULL);
  for (std::size_t peer = 0; peer < peers(); ++peer)
    if (peer != me_)
      check_mpi(MPI_Irecv(received[peer], count, type, peers_[peer], kTag, comm_, &requests_[peer]),
                "MPI_Irecv");
  for (std::size_t step = 1; step < peers(); ++step) {
    const std::size_t peer = (me_ + step) % peers();
    check_mpi(MPI_Isend(sent[peer], sent[peer] == nullptr ? 0 : count, type, peers_[peer], kTag, comm_,
                        &requests_[peers() + peer]),
              "MPI_Isend");
  }
}

bool PeerExchange::test() {
  int done = 0;
  statuses_.resize(requests_.size());
  check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, statuses_.data()),
            "MPI_Testall");
  return done != 0;
}

bool PeerExchange::empty_from(std::size_t peer) const {
  int count = 0;
  check_mpi(MPI_Get_count(&statuses_[peer], type_, &count), "MPI_Get_count");
  return count == 0;
}

}  // namespace gemini
