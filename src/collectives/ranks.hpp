// Everything by which the ranks of one context speak to each other.
#pragma once

#include <functional>
#include <memory>

#include "base/options.hpp"
#include "collectives/agreement.hpp"
#include "collectives/comm_queue.hpp"
#include "collectives/topology.hpp"
#include "collectives/transport.hpp"

namespace gemini {

class Ranks {
 public:
  // Collective over parent, which is duplicated. check throws what this rank has against the options; all
  // ranks then refuse.
  Ranks(MPI_Comm parent, const Options& options, const std::function<void()>& check);

  // Frees the communicators; collective, after all ranks agreed to end.
  void free_communicators() noexcept;
  // The smallest over ranks.
  std::int64_t minimum(std::int64_t value, const char* what);

  [[nodiscard]] const Topology& topology() const { return topology_; }
  [[nodiscard]] CommQueue& queue() { return *queue_; }
  [[nodiscard]] const CommQueue& queue() const { return *queue_; }
  [[nodiscard]] Agreement& agreement() { return *agreement_; }
  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] const Transport& transport() const { return *transport_; }

 private:
  Topology topology_;
  std::unique_ptr<CommQueue> queue_;
  std::unique_ptr<Agreement> agreement_;
  std::unique_ptr<Transport> transport_;
  std::function<void()> free_transport_;
};

}  // namespace gemini
