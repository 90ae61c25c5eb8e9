#include "training/trace_file.hpp"

#include "base/error.hpp"
#include "base/fingerprint.hpp"
#include "memory/new_file.hpp"

namespace gemini {
namespace {

std::uint64_t digest_of(const Layout& layout) {
  std::uint64_t digest = 0;
  for (const ChunkSpec& chunk : layout.chunks)
    digest = fingerprint(
        fmt::format("{} of {}: {}", chunk.shard_elems, chunk.elems, fmt::join(chunk.tensors, ", ")), digest);
  return digest;
}

// The text of rank 0's file, or what that rank has against it.
std::string text_for_all(Ranks& ranks, const std::string& path) {
  constexpr const char* kWhat = "the trace of rank 0";
  Agreement& agreement = ranks.agreement();
  std::string text;
  std::int64_t head[2] = {GEMINI_SUCCESS, 0};  // status, and bytes of the text or the words
  if (ranks.topology().rank == 0) {
    try {
      text = read_file(path);
    } catch (const Error& error) {
      head[0] = error.status();
      text = error.what();
    } catch (const std::exception& error) {
      head[0] = GEMINI_ERR_OUT_OF_MEMORY;
      text = error.what();
    }
    head[1] = static_cast<std::int64_t>(text.size());
  }
  agreement.broadcast(head, sizeof head, 0, kWhat);
  text.resize(static_cast<std::size_t>(head[1]));
  agreement.broadcast(text.data(), head[1], 0, kWhat);
  if (head[0] != GEMINI_SUCCESS) fail(static_cast<gemini_status_t>(head[0]), "trace_in: {}", text);
  return text;
}

}  // namespace

TraceOrigin origin_of(const Registry& registry, const Layout& layout, int shard_ranks) {
  return {registry.model_digest(), digest_of(layout), static_cast<int>(layout.chunks.size()), shard_ranks};
}

Trace read_trace(Ranks& ranks, const std::string& path, const TraceOrigin& here) {
  const std::string text = text_for_all(ranks, path);
  Trace trace;
  ranks.agreement().act_and_agree(Call::commit, [&] {
    try {
      trace = parse_trace(text, here);
    } catch (const Error& error) {
      fail(error.status(), "trace_in: {} is of no use here: {}", path, error.what());
    }
  });
  return trace;
}

void write_trace(const std::string& path, const Trace& trace, const TraceOrigin& origin) {
  if (!Trace::well_formed(trace.events(), origin.chunks))
    fail(GEMINI_ERR_UNSUPPORTED,
         "trace_out: an INFERENCE operation held a chunk longer than training did; such an order is not "
         "written");
  NewFile file(path);
  file.append(text_of(trace, origin));
  file.keep();
}

}  // namespace gemini
