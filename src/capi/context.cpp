// The life of a context.
#include <deque>
#include <mutex>

#include "capi/guard.hpp"

using namespace gemini;

namespace {

void check_communicator(MPI_Comm comm) {
  if (!mpi_is_running())
    fail(GEMINI_ERR_STATE, "MPI is not initialised, or finalised already; MPI_Init first");
  if (comm == MPI_COMM_NULL) fail(GEMINI_ERR_ARGUMENT, "comm is MPI_COMM_NULL");
  int inter = 0;
  check_mpi(MPI_Comm_test_inter(comm, &inter), "MPI_Comm_test_inter");
  if (inter) fail(GEMINI_ERR_ARGUMENT, "comm is an intercommunicator; a context needs an intracommunicator");
  if (!mpi_allows_any_thread() && !is_mpi_main_thread())
    fail(GEMINI_ERR_STATE,
         "called from a thread that did not initialise MPI, which is below MPI_THREAD_MULTIPLE");
}

gemini_status_t create(const char* function, MPI_Comm comm, gemini_options_t opts,
                       gemini_context_t* ctx) noexcept {
  const auto make = [&] {
    if (ctx != nullptr) *ctx = nullptr;
    check_communicator(comm);
    std::exception_ptr refusal;  // peers are to hear of it
    if (ctx == nullptr) refusal = std::make_exception_ptr(Error(GEMINI_ERR_ARGUMENT, "ctx is NULL"));
    auto context = std::make_unique<Context>(comm, opts == nullptr ? Options{} : opts->options, refusal);
    *ctx = new gemini_context_s(std::move(context));
  };
  return guarded(function, make, NoMemory::ends);
}

// A context that ends without its peers. What MPI may still write to stays until the process ends.
void end_alone(std::unique_ptr<gemini_context_s> handle) noexcept {
  static auto* const kept = new std::deque<std::unique_ptr<gemini_context_s>>;
  static std::mutex guard;
  if (!handle->context->abandon() || !mpi_is_running()) return;
  const std::lock_guard lock(guard);
  kept->push_back(std::move(handle));
}

}  // namespace

gemini_status_t gemini_create(MPI_Comm comm, gemini_options_t opts, gemini_context_t* ctx) {
  return create("gemini_create", comm, opts, ctx);
}

gemini_status_t gemini_create_f(MPI_Fint comm, gemini_options_t opts, gemini_context_t* ctx) {
  return create("gemini_create_f", mpi_is_running() ? MPI_Comm_f2c(comm) : MPI_COMM_NULL, opts, ctx);
}

gemini_status_t gemini_destroy(gemini_context_t* ctx) {
  if (ctx == nullptr || *ctx == nullptr) return guarded("gemini_destroy", [] {});
  const bool finalised = !mpi_is_running();
  if (!finalised) {
    const gemini_status_t status = guarded("gemini_destroy", [&] { check_thread(**ctx); });
    if (status != GEMINI_SUCCESS) return status;
  }
  std::unique_ptr<gemini_context_s> handle(std::exchange(*ctx, nullptr));
  const bool alone = finalised || !handle->failure.empty();
  const auto end = [&] {
    if (finalised) fail(GEMINI_ERR_STATE, "MPI was finalised before; local memory was freed");
    if (!alone) handle->context->end();
  };
  const gemini_status_t status = guarded("gemini_destroy", end, NoMemory::ends);
  if (status < 0) end_after(*handle, status);
  end_alone(std::move(handle));
  return status;
}

gemini_status_t gemini_abort(gemini_context_t ctx, const char* why) {
  // why may be gemini_last_error_message(), which this call clears.
  const std::string words = why == nullptr ? "" : why;
  return with_context("gemini_abort", ctx, [&](Context& context) {
    require_argument(why, "why");
    context.ranks().queue().tell_peers(words);
    ctx->failure = fmt::format("gemini_abort: {}", words);
  });
}

gemini_status_t gemini_get_option(gemini_context_t ctx, const char* key, char* value, int64_t capacity) {
  return with_context("gemini_get_option", ctx, [&](Context& context) {
    require_argument(key, "key");
    copy_text(context.option_in_force(key), value, capacity);
  });
}

gemini_status_t gemini_set_option(gemini_context_t ctx, const char* key, const char* value) {
  return with_all_ranks("gemini_set_option", ctx, [&](Context& context) { context.set_option(key, value); });
}

gemini_status_t gemini_on_device(gemini_context_t ctx, int32_t* on_device) {
  return with_context("gemini_on_device", ctx, [&](Context&) {
    require_argument(on_device, "on_device");
    *on_device = 0;
  });
}

gemini_status_t gemini_topology(gemini_context_t ctx, gemini_topology_t* topology) {
  return with_context("gemini_topology", ctx, [&](Context& context) {
    require_argument(topology, "topology");
    const Topology& found = context.ranks().topology();
    gemini_topology_t filled = GEMINI_TOPOLOGY_INIT;
    filled.rank = found.rank;
    filled.ranks = found.ranks;
    filled.node = found.node();
    filled.nodes = static_cast<int32_t>(found.nodes.size());
    filled.node_ranks = found.node_ranks();
    filled.shard_group_ranks = context.ranks().transport().ranks();
    filled.replica_groups = found.ranks / filled.shard_group_ranks;
    filled.device = -1;
    copy_info(filled, topology);
  });
}
