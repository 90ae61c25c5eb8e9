// Small collectives over a context's ranks, as operations of the queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/comm_queue.hpp"

namespace gemini {

// Where there is nothing to do, but a place in the queue to take.
class Nothing final : public Operation {
 public:
  bool poll() override { return true; }
};

// Posts one non-blocking MPI call, then tests it.
class SingleRequest : public Operation {
 public:
  bool poll() final;

 protected:
  virtual void post(MPI_Request* request) = 0;

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool posted_ = false;
};

// Operations own their buffers: after a wait that failed, MPI may still write there.
using Words = std::vector<std::int64_t>;
using Bytes = std::vector<std::byte>;

// words[i] = op over ranks of words[i], in place.
class AllReduceWords final : public SingleRequest {
 public:
  AllReduceWords(MPI_Comm comm, MPI_Op op, std::shared_ptr<Words> words)
      : comm_(comm), op_(op), words_(std::move(words)) {}

 private:
  void post(MPI_Request* request) override;
  MPI_Comm comm_;
  MPI_Op op_;
  std::shared_ptr<Words> words_;
};

// `count` elements of `type` from root to all.
class Broadcast final : public SingleRequest {
 public:
  Broadcast(MPI_Comm comm, MPI_Datatype type, std::shared_ptr<Bytes> data, int count, int root)
      : comm_(comm), type_(type), data_(std::move(data)), count_(count), root_(root) {}

 private:
  void post(MPI_Request* request) override;
  MPI_Comm comm_;
  MPI_Datatype type_;
  std::shared_ptr<Bytes> data_;
  int count_;
  int root_;
};

// One message between two ranks.
class Message final : public SingleRequest {
 public:
  enum class Way { send, receive };
  Message(Way way, MPI_Comm comm, MPI_Datatype type, std::shared_ptr<Bytes> data, int count, int peer)
      : way_(way), comm_(comm), type_(type), data_(std::move(data)), count_(count), peer_(peer) {}

 private:
  void post(MPI_Request* request) override;
  Way way_;
  MPI_Comm comm_;
  MPI_Datatype type_;
  std::shared_ptr<Bytes> data_;
  int count_;
  int peer_;
};

}  // namespace gemini
