// The ordered calls of this rank since ranks last agreed: a rolling hash to compare, and the calls to name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace gemini {

struct OrderedCall {
  // micro_batch_end: a FORWARD gemini_pre_op ends a micro-batch; its parameters are for the words alone.
  enum class Kind : std::int64_t { pre_op = 1, post_op, grad_ready, micro_batch_end };
  Kind kind;
  int phase;                // of pre_op, else 0
  std::vector<int> params;  // numbers
};

class OrderCheck {
 public:
  // How many calls may be noted until ranks must agree.
  static constexpr std::size_t kMost = 128;

  void turn_on(std::function<std::string(int param)> name_of_param) {
    name_of_param_ = std::move(name_of_param);
  }
  [[nodiscard]] bool on() const { return static_cast<bool>(name_of_param_); }

  void note(const OrderedCall& call);
  [[nodiscard]] bool empty() const { return recent_.empty(); }
  [[nodiscard]] bool full() const { return recent_.size() == kMost; }
  // Of all calls noted; 0 if there are none.
  [[nodiscard]] std::uint64_t hash() const { return empty() ? 0 : recent_.back().hash; }
  // Ranks agreed: earlier calls are of no interest any more.
  void forget() { recent_.clear(); }

  // The hash of the first calls up to `position`, 0 where fewer were noted.
  [[nodiscard]] std::uint64_t hash_at(std::size_t position) const;
  // gemini_pre_op("w", "b") in GEMINI_FORWARD; "" where fewer were noted.
  [[nodiscard]] std::string words_at(std::size_t position) const;
  [[nodiscard]] std::size_t size() const { return recent_.size(); }

 private:
  struct Noted {
    OrderedCall call;  // with the first few parameters
    std::size_t params;
    std::uint64_t hash;
  };
  std::function<std::string(int)> name_of_param_;
  std::vector<Noted> recent_;
};

}  // namespace gemini
