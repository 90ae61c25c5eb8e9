// What gemini_trace_write tells of a model whose parameters have a chunk each.
#pragma once

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "observe.hpp"

namespace gemini_test {

using Json = nlohmann::json;

constexpr const char* kTimeline = "timeline.json";

// Chunk i belongs to parameter "w<i>".
class Model {
 public:
  explicit Model(const KeyValues& more, int count = 5, std::int64_t elems = 4096)
      : ctx(MPI_COMM_WORLD, settings(more, elems)) {
    for (int t = 0; t < count; ++t)
      w.push_back(ctx.add_constant("w" + std::to_string(t), GEMINI_F32, {elems}, 1.0));
    ctx.commit();
  }
  // body: what each operation does beside its gradients.
  void forward(const Body& body = [] {}) {
    for (gemini_param_t p : w) ctx.op(GEMINI_FORWARD, {p}, body);
  }
  void backward(
      const Body& body = [] {}, bool recomputes = false) {
    for (auto p = w.rbegin(); p != w.rend(); ++p) {
      if (recomputes) ctx.op(GEMINI_RECOMPUTE, {*p}, body);
      ctx.op(GEMINI_BACKWARD, {*p}, [&] {
        add_grad(*p, [](int64_t) { return 1e-3; });
        body();
      });
    }
    ctx.step();
  }
  void iteration(const Body& body = [] {}) {
    forward(body);
    backward(body);
  }
  // Of all ranks, on every rank.
  Json written() {
    GEMINI_CHECK(gemini_trace_write(ctx, kTimeline));
    std::ostringstream text;
    text << std::ifstream(kTimeline).rdbuf();
    MPI_Barrier(MPI_COMM_WORLD);
    return Json::parse(text.str()).at("traceEvents");
  }

  Context ctx;
  Params w;

 private:
  static KeyValues settings(const KeyValues& more, std::int64_t elems) {
    KeyValues all = {
        {"trace", "on"}, {"chunk_elems", std::to_string(elems)}, {"placement", "auto"}, {"timeout_s", "60"}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

// Of one rank, in the order in which they ended.
inline std::vector<Json> events_of(const Json& all, int rank, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& event : all)
    if (event.at("pid") == rank && event.value("cat", "") == kind) found.push_back(event);
  return found;
}

inline double begin_of(const Json& event) {
  return event.at("ts").get<double>();
}
inline double end_of(const Json& event) {
  return begin_of(event) + event.at("dur").get<double>();
}

// What a rank gave the link to carry, in that order: kind and chunk.
inline std::vector<std::pair<std::string, int>> carried_by(const Json& all, int rank) {
  std::vector<Json> events = events_of(all, rank, "gathers");
  for (Json& reduction : events_of(all, rank, "reductions")) events.push_back(std::move(reduction));
  std::sort(events.begin(), events.end(),
            [](const Json& a, const Json& b) { return begin_of(a) < begin_of(b); });
  std::vector<std::pair<std::string, int>> carried;
  for (const Json& event : events)
    carried.emplace_back(event.at("cat").get<std::string>(), event.at("args").at("chunk").get<int>());
  return carried;
}

}  // namespace gemini_test
