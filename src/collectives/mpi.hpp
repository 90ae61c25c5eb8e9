// MPI handles with owners, and MPI's return codes as exceptions.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <utility>

#include "base/dtype.hpp"

namespace gemini {

void check_mpi(int code, const char* call);

// A communicator of our own: duplicated from the caller's, errors returned.
class Communicator {
 public:
  Communicator() = default;
  // Collective over parent; gives up with GEMINI_ERR_TIMEOUT if a rank does not come (timeout_s 0: never).
  explicit Communicator(MPI_Comm parent, double timeout_s = 0);
  // Of the ranks of parent that give the same color, in the order of key. Blocks: all ranks are known to
  // come.
  static Communicator split(const Communicator& parent, int color, int key);
  Communicator(Communicator&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~Communicator() = default;  // never collective by surprise: free() is called where all ranks agreed

  [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }
  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  void free() noexcept;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

class Datatype {
 public:
  // `count` elements that repeat every stride_bytes.
  Datatype(MPI_Datatype element, int count, std::int64_t stride_bytes);
  Datatype(const Datatype&) = delete;
  Datatype& operator=(const Datatype&) = delete;
  ~Datatype() { MPI_Type_free(&type_); }

  [[nodiscard]] MPI_Datatype get() const noexcept { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

// Element types, never bytes: 16-bit floats travel as their bits.
MPI_Datatype mpi_type(DType type);

bool mpi_is_finalised();
bool mpi_is_running();         // initialised and not finalised
bool mpi_allows_any_thread();  // MPI_THREAD_MULTIPLE
bool is_mpi_main_thread();

}  // namespace gemini
