#include "placement/trace_text.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/fingerprint.hpp"

namespace gemini {
namespace {

using Json = nlohmann::json;
using Kind = TraceEvent::Kind;

constexpr const char* kFormat = "libgemini learnt trace";
constexpr int kVersion = 1;

std::string hex(std::uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

// Over what the text says, not how it is laid out.
std::string checksum(const Json& content) {
  return hex(fingerprint(content.dump()));
}

Json json_of(const TraceOrigin& origin) {
  return {{"parameters", hex(origin.parameters)},
          {"layout", hex(origin.layout)},
          {"chunks", origin.chunks},
          {"shard_ranks", origin.shard_ranks}};
}

Json json_of(const TraceEvent& event) {
  return {{"kind", event.kind == Kind::begin ? "begin" : "end"},
          {"phase", event.phase},
          {"chunks", event.chunks},
          {"opens", event.opens},
          {"closes", event.closes},
          {"compute_ns", event.compute_ns},
          {"non_model_bytes", event.non_model_bytes}};
}

// Whole numbers of the type alone: the parser's own conversions cut off what does not fit.
template <class Int>
Int whole(const Json& value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Int>::max());
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost)
    fail(GEMINI_ERR_IO, "\"{}\" is not a number in range", value.dump());
  return value.get<Int>();
}

std::vector<int> chunks_of(const Json& list) {
  if (!list.is_array()) fail(GEMINI_ERR_IO, "chunks are no list");
  std::vector<int> chunks;
  chunks.reserve(list.size());
  for (const Json& chunk : list) chunks.push_back(whole<int>(chunk));
  return chunks;
}

TraceEvent event_of(const Json& json) {
  TraceEvent event;
  const auto kind = json.at("kind").get<std::string>();
  if (kind != "begin" && kind != "end") fail(GEMINI_ERR_IO, "an event is neither begin nor end");
  event.kind = kind == "begin" ? Kind::begin : Kind::end;
  event.phase = whole<std::uint8_t>(json.at("phase"));
  event.chunks = chunks_of(json.at("chunks"));
  event.opens = chunks_of(json.at("opens"));
  event.closes = chunks_of(json.at("closes"));
  event.compute_ns = whole<std::int64_t>(json.at("compute_ns"));
  event.non_model_bytes = whole<std::int64_t>(json.at("non_model_bytes"));
  return event;
}

void check_origin(const Json& origin, const TraceOrigin& here) {
  if (const int ranks = whole<int>(origin.at("shard_ranks")); ranks != here.shard_ranks)
    fail(GEMINI_ERR_MISMATCH, "it was learnt with {} shard ranks, here are {}", ranks, here.shard_ranks);
  if (origin.at("parameters") != hex(here.parameters))
    fail(GEMINI_ERR_MISMATCH, "it was learnt with other parameters (names, order, shapes, dtypes or flags)");
  if (origin.at("layout") != hex(here.layout) || whole<int>(origin.at("chunks")) != here.chunks)
    fail(GEMINI_ERR_MISMATCH, "it was learnt with other chunks (options chunk_elems, chunk_search_*)");
}

Trace trace_of(const Json& file, const TraceOrigin& here) {
  if (file.at("format") != kFormat) fail(GEMINI_ERR_IO, "it is not a learnt trace");
  if (const Json& version = file.at("format_version"); version != kVersion)
    fail(GEMINI_ERR_IO, "its format is {}, this library reads {}", version.dump(), kVersion);
  const Json& content = file.at("content");
  if (file.at("checksum") != checksum(content)) fail(GEMINI_ERR_IO, "its checksum is wrong");
  check_origin(content.at("origin"), here);
  std::vector<TraceEvent> events;
  for (const Json& event : content.at("events")) events.push_back(event_of(event));
  if (!Trace::well_formed(events, here.chunks)) fail(GEMINI_ERR_IO, "its events are no iteration");
  return {std::move(events), here.chunks};
}

}  // namespace

std::string text_of(const Trace& trace, const TraceOrigin& origin) {
  Json events = Json::array();
  for (const TraceEvent& event : trace.events()) events.push_back(json_of(event));
  const Json content = {{"library_version", fmt::format("{}.{}.{}", GEMINI_VERSION_MAJOR,
                                                        GEMINI_VERSION_MINOR, GEMINI_VERSION_PATCH)},
                        {"origin", json_of(origin)},
                        {"events", std::move(events)}};
  const Json file = {{"format", kFormat},
                     {"format_version", kVersion},
                     {"checksum", checksum(content)},
                     {"content", content}};
  return file.dump() + "\n";
}

Trace parse_trace(std::string_view text, const TraceOrigin& here) {
  try {
    return trace_of(Json::parse(text), here);
  } catch (const Json::exception& error) {
    fail(GEMINI_ERR_IO, "it is damaged, or not a learnt trace: {}", error.what());
  }
}

}  // namespace gemini
