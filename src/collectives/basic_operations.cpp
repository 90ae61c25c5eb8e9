#include "collectives/basic_operations.hpp"

#include <climits>

#include "base/error.hpp"

namespace gemini {

bool SingleRequest::poll() {
  if (!posted_) {
    post(&request_);
    posted_ = true;
  }
  int done = 0;
  check_mpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
  return done != 0;
}

void AllReduceWords::post(MPI_Request* request) {
  ensure(words_->size() <= INT_MAX, "an agreement fits one message");
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, words_->data(), static_cast<int>(words_->size()), MPI_INT64_T, op_,
                           comm_, request),
            "MPI_Iallreduce");
}

void Broadcast::post(MPI_Request* request) {
  check_mpi(MPI_Ibcast(data_->data(), count_, type_, root_, comm_, request), "MPI_Ibcast");
}

void Message::post(MPI_Request* request) {
  constexpr int kTag = 2;
  if (way_ == Way::send)
    check_mpi(MPI_Isend(data_->data(), count_, type_, peer_, kTag, comm_, request), "MPI_Isend");
  else
    check_mpi(MPI_Irecv(data_->data(), count_, type_, peer_, kTag, comm_, request), "MPI_Irecv");
}

}  // namespace gemini
