// Everything by which the ranks of one context speak to each other.
#pragma once

#include <functional>
#include <memory>

#include "base/options.hpp"
#include "collectives/agreement.hpp"
#include "collectives/comm_queue.hpp"
#include "collectives/timed_transport.hpp"
#include "collectives/topology.hpp"
#include "collectives/transport.hpp"

namespace gemini {

class NodeTransport;

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
  // The shards of this rank, of those its group has.
  [[nodiscard]] int group_index() const { return topology_.group_index; }
  // Sums over all ranks count the shards of this replica of the model, and so each shard once.
  [[nodiscard]] bool first_replica() const { return topology_.group == 0; }
  // The rank that holds shard `index` of this rank's group.
  [[nodiscard]] int owner(int index) const {
    return topology_.owners(index)[static_cast<std::size_t>(topology_.group)];
  }
  // And those that do in every group.
  [[nodiscard]] std::vector<int> owners(int index) const { return topology_.owners(index); }
  [[nodiscard]] CommQueue& queue() { return *queue_; }
  [[nodiscard]] const CommQueue& queue() const { return *queue_; }
  [[nodiscard]] Agreement& agreement() { return *agreement_; }
  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] TimedTransport& timed() { return *timed_; }
  [[nodiscard]] const Transport& transport() const { return *transport_; }
  // NULL: these ranks, or these options, share nothing.
  [[nodiscard]] NodeTransport* shared() { return shared_; }

 private:
  std::unique_ptr<Transport> make_transport(Communicator chunks, const Options& options);

  Topology topology_;
  std::unique_ptr<CommQueue> queue_;
  std::unique_ptr<Agreement> agreement_;
  std::unique_ptr<Transport> transport_;
  TimedTransport* timed_ = nullptr;  // the same
  NodeTransport* shared_ = nullptr;  // below it
  std::function<void()> free_transport_;
};

}  // namespace gemini
