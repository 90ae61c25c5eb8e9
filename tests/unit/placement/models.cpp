#include "unit/placement/models.hpp"

#include <map>

namespace gemini::models {

Trace trace_of(const Model& model, std::int64_t compute_ns) {
  std::map<int, std::size_t> last_backward;
  for (std::size_t i = 0; i < model.operations.size(); ++i)
    if (model.operations[i].phase == GEMINI_BACKWARD)
      for (const int chunk : model.operations[i].chunks) last_backward[chunk] = i;
  std::map<int, bool> open;
  std::vector<TraceEvent> events;
  for (std::size_t i = 0; i < model.operations.size(); ++i) {
    const Operation& operation = model.operations[i];
    TraceEvent begin, end;
    end.kind = TraceEvent::Kind::end;
    begin.phase = end.phase = static_cast<std::uint8_t>(operation.phase);
    begin.chunks = end.chunks = operation.chunks;
    begin.compute_ns = compute_ns;
    if (operation.phase == GEMINI_BACKWARD)
      for (const int chunk : operation.chunks) {
        if (!open[chunk]) begin.opens.push_back(chunk);
        open[chunk] = true;
        if (last_backward[chunk] == i) end.closes.push_back(chunk);
      }
    events.push_back(begin);
    events.push_back(end);
  }
  return Trace(events, model.chunks);
}

namespace {

void forward_and_backward(Model& model, const std::vector<std::vector<int>>& layers) {
  for (const std::vector<int>& layer : layers) model.operations.push_back({GEMINI_FORWARD, layer});
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
    model.operations.push_back({GEMINI_BACKWARD, *layer});
}

}  // namespace

Model transformer(int layers) {
  Model model{"transformer", 1 + 2 * layers, false, {}};
  std::vector<std::vector<int>> made = {{0}};
  for (int l = 0; l < layers; ++l) made.push_back({1 + 2 * l, 2 + 2 * l});
  made.push_back({0});
  forward_and_backward(model, made);
  return model;
}

Model u_net(int levels) {
  Model model{"U-Net", 3 * levels, true, {}};  // down, up, shared by both
  std::vector<std::vector<int>> made;
  for (int l = 0; l < levels; ++l) made.push_back({l, 2 * levels + l});
  for (int l = levels - 1; l >= 0; --l) made.push_back({levels + l, 2 * levels + l});
  forward_and_backward(model, made);
  return model;
}

Model tied_mlp(int layers, int weights) {
  Model model{"MLP with tied weights", weights, true, {}};
  std::vector<std::vector<int>> made;
  for (int l = 0; l < layers; ++l) made.push_back({l % weights});
  forward_and_backward(model, made);
  return model;
}

Model recomputed(int layers, int segment) {
  Model model{"recompute", layers, false, {}};
  for (int l = 0; l < layers; ++l) model.operations.push_back({GEMINI_FORWARD, {l}});
  for (int first = layers - segment; first >= 0; first -= segment) {
    for (int l = first; l < first + segment; ++l) model.operations.push_back({GEMINI_RECOMPUTE, {l}});
    for (int l = first + segment - 1; l >= first; --l) model.operations.push_back({GEMINI_BACKWARD, {l}});
  }
  return model;
}

}  // namespace gemini::models
