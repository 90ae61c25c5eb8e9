#include "collectives/step_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "collectives/basic_operations.hpp"

namespace gemini {
namespace {

// The message: lengths of the three sections, then the sections. It is one element of one datatype, so that
// MPI cannot cut it, and a user-defined operation combines it.
constexpr std::size_t kHeader = 3;

void combine(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  const auto words = static_cast<std::size_t>(bytes) / sizeof(std::int64_t);
  for (int element = 0; element < *count; ++element) {
    const auto* from = static_cast<const std::int64_t*>(in) + static_cast<std::size_t>(element) * words;
    auto* to = static_cast<std::int64_t*>(inout) + static_cast<std::size_t>(element) * words;
    const auto maxima_end = kHeader + static_cast<std::size_t>(from[0]);
    const auto sums_end = maxima_end + static_cast<std::size_t>(from[1]);
    for (std::size_t i = kHeader; i < maxima_end; ++i) to[i] = std::max(to[i], from[i]);
    for (std::size_t i = maxima_end; i < sums_end; ++i) to[i] += from[i];
    for (std::size_t i = sums_end; i < words; ++i) to[i] |= from[i];
  }
}

class ReduceSections final : public SingleRequest {
 public:
  ReduceSections(MPI_Comm comm, std::shared_ptr<Words> message)
      : comm_(comm),
        message_(std::move(message)),
        type_(MPI_INT64_T, static_cast<int>(message_->size()),
              static_cast<std::int64_t>(message_->size()) * 8) {
    check_mpi(MPI_Op_create(combine, 1, &op_), "MPI_Op_create");
  }
  ~ReduceSections() override { MPI_Op_free(&op_); }

 private:
  void post(MPI_Request* request) override {
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, message_->data(), 1, type_.get(), op_, comm_, request),
              "MPI_Iallreduce");
  }
  MPI_Comm comm_;
  std::shared_ptr<Words> message_;
  Datatype type_;
  MPI_Op op_ = MPI_OP_NULL;
};

}  // namespace

void StepExchange::run(CommQueue& queue, MPI_Comm comm, int ranks) {
  if (ranks == 1) return;
  auto message = std::make_shared<Words>();
  for (const auto* section : {&maxima, &sums, &unions})
    message->push_back(static_cast<std::int64_t>(section->size()));
  for (const auto* section : {&maxima, &sums, &unions})
    message->insert(message->end(), section->begin(), section->end());
  queue.run(std::make_unique<ReduceSections>(comm, message), "the exchange of gemini_step");
  auto at = message->begin() + kHeader;
  for (auto* section : {&maxima, &sums, &unions}) {
    std::copy_n(at, section->size(), section->begin());
    at += static_cast<std::ptrdiff_t>(section->size());
  }
}

}  // namespace gemini
