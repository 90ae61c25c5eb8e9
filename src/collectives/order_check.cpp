#include "collectives/order_check.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/fingerprint.hpp"

namespace gemini {
namespace {

constexpr std::size_t kNamed = 4;

const char* name_of(OrderedCall::Kind kind) {
  switch (kind) {
    case OrderedCall::Kind::pre_op:
    case OrderedCall::Kind::micro_batch_end: return "gemini_pre_op";
    case OrderedCall::Kind::post_op: return "gemini_post_op";
    case OrderedCall::Kind::grad_ready: return "gemini_grad_ready";
  }
  return "";
}

const char* words_of_phase(int phase) {
  switch (phase) {
    case GEMINI_FORWARD: return " in GEMINI_FORWARD";
    case GEMINI_BACKWARD: return " in GEMINI_BACKWARD";
    case GEMINI_RECOMPUTE: return " in GEMINI_RECOMPUTE";
    case GEMINI_INFERENCE: return " in GEMINI_INFERENCE";
    default: return "";
  }
}

}  // namespace

void OrderCheck::note(const OrderedCall& call) {
  std::vector<std::int64_t> words = {static_cast<std::int64_t>(call.kind), call.phase};
  if (call.kind != OrderedCall::Kind::micro_batch_end)
    words.insert(words.end(), call.params.begin(), call.params.end());
  const std::uint64_t rolled = fingerprint(words.data(), static_cast<std::int64_t>(words.size()) * 8, hash());
  Noted noted{{call.kind, call.phase, {}}, call.params.size(), rolled};
  noted.call.params.assign(call.params.begin(),
                           call.params.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, noted.params)));
  recent_.push_back(std::move(noted));
}

std::uint64_t OrderCheck::hash_at(std::size_t position) const {
  return position < recent_.size() ? recent_[position].hash : 0;
}

std::string OrderCheck::words_at(std::size_t position) const {
  if (position >= recent_.size()) return "";
  const Noted& noted = recent_[position];
  std::vector<std::string> names;
  for (const int param : noted.call.params) names.push_back(fmt::format("\"{}\"", name_of_param_(param)));
  const std::size_t more = noted.params - names.size();
  return fmt::format(
      "{}({}{}){}{}", name_of(noted.call.kind), fmt::join(names, ", "),
      more > 0 ? fmt::format(" and {} more", more) : "", words_of_phase(noted.call.phase),
      noted.call.kind == OrderedCall::Kind::micro_batch_end ? ", which ends a micro-batch" : "");
}

}  // namespace gemini
