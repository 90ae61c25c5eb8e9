// Agreed calls: check locally, agree, then act.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "collectives/comm_queue.hpp"
#include "collectives/order_check.hpp"

namespace gemini {

// What a rank came to do; ranks that meet in different calls are told so (GEMINI_ERR_ORDER).
enum class Call {
  create = 1,
  commit,
  step,
  discard,
  param_get,
  param_set,
  grad_get,
  shard_visit,
  checkpoint_write,
  checkpoint_wait,
  checkpoint_read,
  set_option,
  param_set_option,
  report,
  trace_write,
  destroy,
  ordered  // not agreed: ranks compare the ordered calls they made
};

const char* name_of(Call call) noexcept;

// What a rank brings to a call, to be equal on all: lines "name = value" and their digest. Long texts are
// only made where the digests differ.
struct Claim {
  Claim(std::string text);                               // NOLINT: a text is a claim
  Claim(const char* text) : Claim(std::string(text)) {}  // NOLINT
  Claim(std::uint64_t digest_of_lines, std::function<std::string()> make_lines)
      : digest(digest_of_lines), lines(std::move(make_lines)) {}
  std::uint64_t digest;
  std::function<std::string()> lines;
};

class Agreement {
 public:
  // comm carries agreements alone. The queue outlives it.
  Agreement(Communicator comm, CommQueue& queue);

  // Runs check, which throws what this rank has against the call; returns if no rank has anything against
  // it and all came with the same claim. Otherwise every rank throws with the same
  // sign: the refusal here, GEMINI_ERR_REMOTE or _REMOTE_FATAL elsewhere, GEMINI_ERR_MISMATCH everywhere
  // (naming the first line that differs), GEMINI_ERR_ORDER everywhere.
  void agree(Call call, const Claim& claim, const std::function<void()>& check);

  // Acts on this rank, then agrees whether every rank could.
  void act_and_agree(Call call, const std::function<void()>& act);

  // check = order. Ordered calls are noted where nothing speaks against them any more and before they move
  // anything; ranks compare theirs in each vote, an agreed call's or confirm()'s, which is none if nothing
  // was noted. Where they differ every rank throws GEMINI_ERR_ORDER that names the first differing call of
  // each.
  void check_order(std::function<std::string(int param)> name_of_param);
  [[nodiscard]] bool notes_order() const noexcept { return order_.on(); }
  void note(const OrderedCall& call);
  void confirm();

  // The words op'ed over ranks, in place; any rank may be waited for.
  void all_reduce(MPI_Op op, std::vector<std::int64_t>& words, const char* what);
  // A text of `bytes` from one rank to another, which gets it; every rank calls.
  std::string relay(const std::string& text, std::int64_t bytes, int from, int to, const char* what);
  // `bytes` from root to all.
  void broadcast(void* bytes, std::int64_t count_bytes, int root, const char* what);

  [[nodiscard]] MPI_Comm comm() const noexcept { return comm_.get(); }
  void free_communicator() noexcept { comm_.free(); }

 private:
  struct Verdict;
  Verdict vote(Call call, std::uint64_t digest, int sign);
  std::string words_of(int rank, std::string words);
  [[noreturn]] void explain_mismatch(const std::string& text);
  void check_same_calls(Call call, const Verdict& verdict);
  [[noreturn]] void explain_order(Call call);
  std::string words_of_all(const std::string& mine);

  Communicator comm_;
  CommQueue& queue_;
  OrderCheck order_;
  int rank_;
  int size_;
};

}  // namespace gemini
