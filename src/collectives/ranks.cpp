#include "collectives/ranks.hpp"

#include "collectives/delayed_transport.hpp"
#include "collectives/mpi_transport.hpp"
#include "collectives/nodes_transport.hpp"
#include "collectives/ordered_transport.hpp"
#include "collectives/shared_transport.hpp"
#include "collectives/timed_transport.hpp"

namespace gemini {

Ranks::Ranks(MPI_Comm parent, const Options& options, const std::function<void()>& check) {
  // Chunks, agreements and last words never meet on one communicator.
  const double timeout_s = options.real("timeout_s");
  Communicator chunks(parent, timeout_s);
  queue_ = std::make_unique<CommQueue>(Communicator(parent, timeout_s), timeout_s, mpi_allows_any_thread());
  agreement_ = std::make_unique<Agreement>(Communicator(parent, timeout_s), *queue_);
  try {
    agreement_->agree(Call::create, options.agreed_text(), check);
  } catch (const Error& error) {
    if (error.status() > 0) {  // every rank is here
      chunks.free();
      free_communicators();
    }
    throw;
  }
  topology_ = discover_topology(chunks);
  if (const auto node_ranks = parse_node_ranks(options.text("collectives")))
    topology_ = cut_into_nodes(topology_, *node_ranks);
  try {
    cut_into_groups(topology_, options.text("shard_group"));
  } catch (...) {  // on every rank the same
    chunks.free();
    free_communicators();
    throw;
  }
  if (topology_.ranks > 1) {
    transport_ = make_transport(std::move(chunks), options);
  } else {
    chunks.free();
    transport_ = make_self_transport();
  }
  if (options.text("check") != "off" && topology_.ranks > 1)
    transport_ = std::make_unique<OrderedTransport>(std::move(transport_), *agreement_);
  if (const auto delay = parse_link_delay(options.text("collectives")))
    transport_ = make_delayed_transport(std::move(transport_), *delay);
  auto timed = std::make_unique<TimedTransport>(std::move(transport_));
  timed_ = timed.get();
  transport_ = std::move(timed);
}

std::unique_ptr<Transport> Ranks::make_transport(Communicator chunks, const Options& options) {
  auto mpi =
      std::make_unique<MpiTransport>(std::move(chunks), topology_, INT_MAX,
                                     WireTypes{options.text("gather_dtype"), options.text("reduce_dtype")});
  free_transport_ = [raw = mpi.get()] { raw->free_communicators(); };
  const std::string& wanted = options.text("collectives");
  if (wanted != "auto" && wanted != "shared" && !parse_node_ranks(wanted)) return mpi;
  if (SharedTransport::possible(topology_)) {
    auto shared = std::make_unique<SharedTransport>(std::move(mpi), topology_);
    shared_ = shared.get();
    return shared;
  }
  if (NodesTransport::possible(topology_)) {
    auto shared = std::make_unique<NodesTransport>(std::move(mpi), topology_);
    shared_ = shared.get();
    free_transport_ = [raw = shared.get(), free_mpi = std::move(free_transport_)] {
      raw->free_communicator();
      free_mpi();
    };
    return shared;
  }
  return mpi;
}

void Ranks::free_communicators() noexcept {
  try {
    queue_->settle();
  } catch (...) {
    return;  // a rank died after it agreed: what MPI may still use stays
  }
  if (free_transport_) free_transport_();
  agreement_->free_communicator();
  queue_->free_communicator();
}

std::int64_t Ranks::minimum(std::int64_t value, const char* what) {
  std::vector<std::int64_t> words = {value};
  agreement_->all_reduce(MPI_MIN, words, what);
  return words[0];
}

}  // namespace gemini
