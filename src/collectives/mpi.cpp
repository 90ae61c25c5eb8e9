#include "collectives/mpi.hpp"

#include <sched.h>

#include <memory>
#include <string>
#include <vector>

namespace gemini {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, words, &length);
  fail(GEMINI_ERR_MPI, "{} failed: {}", call, std::string_view(words, static_cast<std::size_t>(length)));
}

namespace {

// MPI writes the handle when the last rank has come, perhaps after this rank has given up.
void keep_for_ever(std::unique_ptr<MPI_Comm> handle) {
  static auto& kept = *new std::vector<std::unique_ptr<MPI_Comm>>;
  kept.push_back(std::move(handle));
}

}  // namespace

Communicator::Communicator(MPI_Comm parent, double timeout_s) {
  auto made = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(parent, made.get(), &request), "MPI_Comm_idup");
  const double start = MPI_Wtime();
  for (int done = 0; !done;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done) break;
    sched_yield();
    if (timeout_s == 0 || MPI_Wtime() - start < timeout_s) continue;
    keep_for_ever(std::move(made));
    fail(GEMINI_ERR_TIMEOUT, "a rank of comm did not come within timeout_s = {} s", timeout_s);
  }
  comm_ = *made;
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

Communicator Communicator::split(const Communicator& parent, int color, int key) {
  Communicator part;
  check_mpi(MPI_Comm_split(parent.get(), color, key, &part.comm_), "MPI_Comm_split");
  return part;  // with parent's error handler
}

int Communicator::rank() const {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank");
  return rank;
}

int Communicator::size() const {
  int size = 0;
  check_mpi(MPI_Comm_size(comm_, &size), "MPI_Comm_size");
  return size;
}

void Communicator::free() noexcept {
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

Datatype::Datatype(MPI_Datatype element, int count, std::int64_t stride_bytes) {
  MPI_Datatype run = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_contiguous(count, element, &run), "MPI_Type_contiguous");
  const int code = MPI_Type_create_resized(run, 0, static_cast<MPI_Aint>(stride_bytes), &type_);
  MPI_Type_free(&run);
  check_mpi(code, "MPI_Type_create_resized");
  check_mpi(MPI_Type_commit(&type_), "MPI_Type_commit");
}

MPI_Datatype mpi_type(DType type) {
  switch (type) {
    case DType::f64: return MPI_DOUBLE;
    case DType::f32: return MPI_FLOAT;
    case DType::f16:
    case DType::bf16: return MPI_UINT16_T;
    case DType::i32: return MPI_INT32_T;
    case DType::i64: return MPI_INT64_T;
  }
  return MPI_DATATYPE_NULL;
}

bool mpi_is_finalised() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

bool mpi_is_running() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  return initialized != 0 && !mpi_is_finalised();
}

bool mpi_allows_any_thread() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

bool is_mpi_main_thread() {
  int main = 0;
  MPI_Is_thread_main(&main);
  return main != 0;
}

}  // namespace gemini
