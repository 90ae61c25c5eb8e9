#include "base/timeline_text.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

namespace gemini {
namespace {

using Track = TimelineEvent::Track;

// Tracks are shown by their number; lanes of operations come first.
constexpr int kFirstAfterLanes = 1 << 16;

int number_of(const TimelineEvent& event) {
  return event.track == Track::operations ? event.lane : kFirstAfterLanes + static_cast<int>(event.track);
}

const char* name_of(Track track) {
  constexpr const char* kNames[] = {"operations", "library", "gathers", "reductions", "moves", "memory"};
  return kNames[static_cast<int>(track)];
}

std::string quoted(const std::string& words) {
  return nlohmann::json(words).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

double us(std::int64_t ns) {
  return 1e-3 * static_cast<double>(ns);
}

class Writer {
 public:
  Writer(const Timeline& timeline, int rank) : timeline_(timeline), rank_(rank) {
    for (const std::string& label : timeline.labels()) labels_.push_back(quoted(label));
  }

  std::string write() {
    const Timeline::Recorded recorded = timeline_.recorded();
    describe("process_name", 0, "name", fmt::format("\"rank {}\"", rank_));
    describe("process_sort_index", 0, "sort_index", std::to_string(rank_));
    describe("process_labels", 0, "labels", fmt::format("\"{} older events dropped\"", recorded.dropped));
    for (const TimelineEvent& event : recorded.events) write(event);
    return std::move(text_);
  }

 private:
  // All about a process or a track has this form.
  void describe(const char* what, int track, const char* key, const std::string& value) {
    begin_line();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"{}":{}}}}})", what, rank_, track,
                   key, value);
  }

  void write(const TimelineEvent& event) {
    if (event.track == Track::memory) return write_memory(event);
    const int track = number_of(event);
    if (described_.insert(track).second) {
      describe("thread_name", track, "name", fmt::format("\"{}\"", name_of(event.track)));
      describe("thread_sort_index", track, "sort_index", std::to_string(track));
    }
    begin_line();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{)",
                   name_of(event.track), title(event), rank_, track, us(event.begin_ns),
                   us(event.end_ns - event.begin_ns));
    write_arguments(event);
    text_ += "}}";
  }

  [[nodiscard]] std::string title(const TimelineEvent& event) const {
    switch (event.track) {
      case Track::operations: return labels_[static_cast<std::size_t>(event.label)];
      case Track::library: return fmt::format("\"{}\"", event.what);
      default: return fmt::format("\"{} {}\"", event.what, event.chunk);
    }
  }

  void write_arguments(const TimelineEvent& event) {
    auto out = std::back_inserter(text_);
    if (event.track == Track::operations) fmt::format_to(out, R"("phase":"{}")", event.what);
    if (event.chunk < 0) return;
    fmt::format_to(out, R"("chunk":{},"bytes":{})", event.chunk, event.bytes);
    if (event.track == Track::gathers) fmt::format_to(out, R"(,"prefetched":{})", event.ahead);
    if (event.from != nullptr) fmt::format_to(out, R"(,"from":"{}","to":"{}")", event.from, event.to);
  }

  void write_memory(const TimelineEvent& event) {
    begin_line();
    fmt::format_to(
        std::back_inserter(text_),
        R"({{"ph":"C","cat":"memory","name":"{}","pid":{},"tid":0,"ts":{:.3f},"args":{{"bytes":{}}}}})",
        event.what, rank_, us(event.begin_ns), event.bytes);
  }

  void begin_line() {
    if (!text_.empty()) text_ += ",\n";
  }

  const Timeline& timeline_;
  int rank_;
  std::vector<std::string> labels_;  // in quotes
  std::set<int> described_;
  std::string text_;
};

}  // namespace

std::string text_of(const Timeline& timeline, int rank) {
  return Writer(timeline, rank).write();
}

}  // namespace gemini
