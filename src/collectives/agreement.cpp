#include "collectives/agreement.hpp"

#include <algorithm>
#include <climits>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <sstream>

#include "base/fingerprint.hpp"
#include "collectives/basic_operations.hpp"

namespace gemini {

const char* name_of(Call call) noexcept {
  switch (call) {
    case Call::create: return "gemini_create";
    case Call::commit: return "gemini_commit";
    case Call::step: return "gemini_step";
    case Call::discard: return "gemini_discard";
    case Call::param_get: return "gemini_param_get";
    case Call::param_set: return "gemini_param_set";
    case Call::grad_get: return "gemini_grad_get";
    case Call::shard_visit: return "gemini_shard_visit";
    case Call::checkpoint_write: return "gemini_checkpoint_write";
    case Call::checkpoint_wait: return "gemini_checkpoint_wait";
    case Call::checkpoint_read: return "gemini_checkpoint_read";
    case Call::set_option: return "gemini_set_option";
    case Call::param_set_option: return "gemini_param_set_option";
    case Call::report: return "gemini_report";
    case Call::trace_write: return "gemini_trace_write";
    case Call::destroy: return "gemini_destroy";
    case Call::ordered: return "an operation";
  }
  return "an unknown call";
}

// The outcome of one vote, equal on all ranks. Ranks are named lowest first; -1: none.
struct Agreement::Verdict {
  Call lowest, highest;  // differ: ranks are in different calls
  int in_lowest, in_highest;
  int refused, failed;  // a rank with a positive, a negative status
  bool same_text, same_order;
};

Claim::Claim(std::string text)
    : digest(fingerprint(text)), lines([text = std::move(text)] { return text; }) {}

Agreement::Agreement(Communicator comm, CommQueue& queue)
    : comm_(std::move(comm)), queue_(queue), rank_(comm_.rank()), size_(comm_.size()) {}

Agreement::Verdict Agreement::vote(Call call, std::uint64_t digest, int sign) {
  // A maximum finds the lowest rank by counting from the end; 0: no rank. A call stands above its rank.
  constexpr std::int64_t kCall = std::int64_t{1} << 32;
  constexpr std::int64_t kCalls = 1 << 8;
  const std::int64_t me = size_ - rank_;
  const auto id = static_cast<std::int64_t>(call);
  const auto text = static_cast<std::int64_t>(digest);
  const auto order = static_cast<std::int64_t>(order_.hash());
  std::vector<std::int64_t> ballot = {
      id * kCall + me, (kCalls - id) * kCall + me, sign > 0 ? me : 0, sign < 0 ? me : 0, text, ~text, order,
      ~order};
  all_reduce(MPI_MAX, ballot, "agreeing with the other ranks");
  const auto rank_of = [this](std::int64_t found) {
    return found == 0 ? -1 : static_cast<int>(size_ - found);
  };
  return {static_cast<Call>(kCalls - ballot[1] / kCall),
          static_cast<Call>(ballot[0] / kCall),
          rank_of(ballot[1] % kCall),
          rank_of(ballot[0] % kCall),
          rank_of(ballot[2]),
          rank_of(ballot[3]),
          ballot[4] == ~ballot[5],
          ballot[6] == ~ballot[7]};
}

void Agreement::agree(Call call, const Claim& claim, const std::function<void()>& check) {
  std::exception_ptr mine;
  std::string words;
  int sign = 0;
  try {
    check();
  } catch (const Error& error) {
    mine = std::current_exception();
    words = error.what();
    sign = error.status() > 0 ? 1 : -1;
  } catch (const std::bad_alloc&) {  // in the check itself: nothing was done
    mine = std::make_exception_ptr(Error(GEMINI_ERR_OUT_OF_MEMORY, kNoMemory));
    words = kNoMemory;
    sign = 1;
  } catch (...) {
    mine = std::current_exception();
    words = "an exception that is not the library's";
    sign = -1;
  }
  if (size_ == 1) {
    if (mine) std::rethrow_exception(mine);
    return;
  }
  const Verdict verdict = vote(call, claim.digest, sign);
  check_same_calls(call, verdict);
  const int speaker = verdict.failed >= 0 ? verdict.failed : verdict.refused;
  if (speaker >= 0) {
    words = words_of(speaker, words);
    if (mine && (sign < 0 || verdict.failed < 0)) std::rethrow_exception(mine);
    fail(verdict.failed >= 0 ? GEMINI_ERR_REMOTE_FATAL : GEMINI_ERR_REMOTE, "rank {}: {}", speaker, words);
  }
  if (!verdict.same_text) explain_mismatch(claim.lines());
}

void Agreement::check_same_calls(Call call, const Verdict& verdict) {
  if (verdict.lowest != verdict.highest || !verdict.same_order) {
    if (order_.on()) explain_order(call);
    fail(GEMINI_ERR_ORDER, "this rank, {}, called {}; rank {} called {} and rank {} called {}", rank_,
         name_of(call), verdict.in_lowest, name_of(verdict.lowest), verdict.in_highest,
         name_of(verdict.highest));
  }
  order_.forget();
}

void Agreement::check_order(std::function<std::string(int param)> name_of_param) {
  if (size_ > 1) order_.turn_on(std::move(name_of_param));
}

void Agreement::note(const OrderedCall& call) {
  order_.note(call);
  if (order_.full()) confirm();
}

void Agreement::confirm() {
  if (!order_.empty()) check_same_calls(Call::ordered, vote(Call::ordered, 0, 0));
}

// Hashes roll: the first that differs belongs to the first call that does. The agreed call comes last.
void Agreement::explain_order(Call call) {
  const bool agreed = call != Call::ordered;
  std::vector<std::int64_t> hashes;
  for (std::size_t position = 0; position <= OrderCheck::kMost; ++position) {
    const bool here = agreed && position == order_.size();
    const auto hash =
        here ? static_cast<std::int64_t>(call) : static_cast<std::int64_t>(order_.hash_at(position));
    hashes.insert(hashes.end(), {hash, ~hash});
  }
  all_reduce(MPI_MAX, hashes, "comparing calls");
  std::size_t first = 0;
  while (first < OrderCheck::kMost && hashes[2 * first] == ~hashes[2 * first + 1]) ++first;
  std::string mine = agreed && first == order_.size() ? name_of(call) : order_.words_at(first);
  if (mine.empty()) mine = "no further call";
  fail(GEMINI_ERR_ORDER, "ranks made different calls: {}", words_of_all(mine.substr(0, 1000)));
}

// Each of the words that ranks have, with the lowest rank that has them; a few of them.
std::string Agreement::words_of_all(const std::string& mine) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> heard;
  std::string all;
  while (heard.size() < kMost) {
    const bool said = std::find(heard.begin(), heard.end(), mine) != heard.end();
    std::vector<std::int64_t> finder = {said ? 0 : size_ - rank_};
    all_reduce(MPI_MAX, finder, "comparing calls");
    if (finder[0] == 0) break;
    const int speaker = size_ - static_cast<int>(finder[0]);
    heard.push_back(words_of(speaker, mine));
    all += fmt::format("{}rank {}: {}", all.empty() ? "" : ", ", speaker, heard.back());
  }
  return all;
}

void Agreement::act_and_agree(Call call, const std::function<void()>& act) {
  std::exception_ptr failure;
  try {
    act();
  } catch (...) {
    failure = std::current_exception();
  }
  agree(call, "", [&] {
    if (failure) std::rethrow_exception(failure);
  });
}

std::string Agreement::words_of(int rank, std::string words) {
  words.resize(1023);
  broadcast(words.data(), 1023, rank, "words of a refusal");
  return words.substr(0, words.find('\0'));
}

void Agreement::explain_mismatch(const std::string& text) {
  auto length = static_cast<std::int64_t>(text.size());
  broadcast(&length, sizeof length, 0, "comparing ranks");
  std::string theirs = text;
  theirs.resize(static_cast<std::size_t>(length));
  broadcast(theirs.data(), length, 0, "comparing ranks");

  std::istringstream here(text);
  std::istringstream there(theirs);
  std::string mine;
  std::string first;
  std::string words;
  while (words.empty() && (here || there)) {
    if (!std::getline(here, mine)) mine = "(nothing)";
    if (!std::getline(there, first)) first = "(nothing)";
    if (mine != first) words = fmt::format("rank 0 has {}, rank {} has {}", first, rank_, mine);
  }
  std::vector<std::int64_t> finder = {words.empty() ? 0 : size_ - rank_};
  all_reduce(MPI_MAX, finder, "comparing ranks");
  ensure(finder[0] > 0, "ranks that differ find a line that differs");
  fail(GEMINI_ERR_MISMATCH, "ranks disagree: {}", words_of(size_ - static_cast<int>(finder[0]), words));
}

void Agreement::all_reduce(MPI_Op op, std::vector<std::int64_t>& words, const char* what) {
  if (size_ == 1) return;
  auto shared = std::make_shared<Words>(std::move(words));
  queue_.run(std::make_unique<AllReduceWords>(comm_.get(), op, shared), what);
  words = std::move(*shared);
}

std::string Agreement::relay(const std::string& text, std::int64_t bytes, int from, int to,
                             const char* what) {
  ensure(bytes <= INT_MAX, "a relayed text fits one message");
  const auto count = static_cast<int>(bytes);
  auto data = std::make_shared<Bytes>(static_cast<std::size_t>(rank_ == from || rank_ == to ? bytes : 0));
  std::unique_ptr<Operation> part = std::make_unique<Nothing>();
  if (rank_ == from) {
    std::memcpy(data->data(), text.data(), data->size());
    part = std::make_unique<Message>(Message::Way::send, comm_.get(), MPI_CHAR, data, count, to);
  } else if (rank_ == to) {
    part = std::make_unique<Message>(Message::Way::receive, comm_.get(), MPI_CHAR, data, count, from);
  }
  queue_.run(std::move(part), what);
  return rank_ == to ? std::string(reinterpret_cast<const char*>(data->data()), data->size()) : "";
}

void Agreement::broadcast(void* bytes, std::int64_t count_bytes, int root, const char* what) {
  constexpr std::int64_t kPiece = 1 << 20;
  auto* at = static_cast<std::byte*>(bytes);
  for (std::int64_t done = 0; done < count_bytes; done += kPiece) {
    const std::int64_t count = std::min(count_bytes - done, kPiece);
    auto piece = std::make_shared<Bytes>(at + done, at + done + count);
    queue_.run(std::make_unique<Broadcast>(comm_.get(), MPI_CHAR, piece, static_cast<int>(count), root),
               what);
    std::copy(piece->begin(), piece->end(), at + done);
  }
}

}  // namespace gemini
