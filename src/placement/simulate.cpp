#include "placement/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace gemini {
namespace {

constexpr std::size_t kReductions = 2;  // unfinished at a time

using Copy = ChunkStatus::Copy;

}  // namespace

double Playback::hidden() const {
  return link_ns == 0 ? 1.0 : 1.0 - static_cast<double>(stall_ns()) / static_cast<double>(link_ns);
}

Simulator::Simulator(const std::vector<ChunkFacts>& facts, const Machine& machine,
                     std::vector<ChunkStatus> start)
    : facts_(facts),
      machine_(machine),
      chunks_(std::move(start)),
      arrival_ns_(facts.size()),
      in_use_(machine.resting_bytes) {
  chunks_.resize(facts_.size());
  for (std::size_t c = 0; c < facts_.size(); ++c)
    if (chunks_[c].copy != Copy::absent) in_use_ += facts_[c].slot_bytes;
}

Playback Simulator::play(const Trace& trace, Policy& policy, bool order_known) {
  played_ = {};
  played_.peak_bytes = in_use_;
  now_ns_ = link_free_ns_ = 0;
  Moment moment;
  if (order_known) moment.trace = &trace;
  for (const TraceEvent& event : trace.events()) {
    if (event.kind == TraceEvent::Kind::begin)
      begin(event, moment, policy);
    else
      end(event, moment, policy);
    if (!played_.fits) break;
    now_ns_ += event.compute_ns;
    played_.compute_ns += event.compute_ns;
    ++moment.position;
  }
  played_.stopped_at = moment.position;
  step();
  played_.total_ns = now_ns_;
  return played_;
}

void Simulator::begin(const TraceEvent& event, const Moment& moment, Policy& policy) {
  for (const int chunk : event.closes) reduce(chunk);
  if (unavoidable_bytes(event) > machine_.budget.hard()) {
    played_.fits = false;
    return;
  }
  Need need{&event.chunks, 0};
  for (const int chunk : event.opens)
    need.gradient_bytes += facts_[static_cast<std::size_t>(chunk)].gradient_bytes;
  actions_.clear();
  policy.before(need, moment, chunks_, in_use_, actions_);
  carry_out(actions_, event.chunks);
  for (const int chunk : event.chunks) {
    ChunkStatus& status = chunks_[static_cast<std::size_t>(chunk)];
    ensure(status.copy != Copy::absent, "a policy gathers what an operation needs");
    arrive(chunk);
    if (status.leases++ == 0) leased_ += facts_[static_cast<std::size_t>(chunk)].slot_bytes;
  }
  for (const int chunk : event.opens) {
    const std::int64_t bytes = facts_[static_cast<std::size_t>(chunk)].gradient_bytes;
    take(bytes);
    open_ += bytes;
    chunks_[static_cast<std::size_t>(chunk)].gradient_open = true;
  }
}

void Simulator::end(const TraceEvent& event, const Moment& moment, Policy& policy) {
  for (const int chunk : event.chunks) {
    const auto c = static_cast<std::size_t>(chunk);
    if (std::exchange(chunks_[c].leases, 0) > 0) leased_ -= facts_[c].slot_bytes;
  }
  for (const int chunk : event.closes) reduce(chunk);
  actions_.clear();
  policy.after(event.chunks, moment, chunks_, actions_);
  for (const Action& action : actions_)
    ensure(action.kind == Action::Kind::release, "a policy only releases after an operation");
  carry_out(actions_, {});
}

void Simulator::step() {
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    if (chunks_[c].gradient_open) reduce(static_cast<int>(c));
  while (!reductions_.empty()) wait_for_oldest_reduction();
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    if (chunks_[c].copy == Copy::absent || chunks_[c].leases > 0) continue;
    release(static_cast<int>(c));
  }
}

void Simulator::carry_out(const std::vector<Action>& actions, const std::vector<int>& needed) {
  for (const Action& action : actions) {
    const ChunkStatus& status = chunks_[static_cast<std::size_t>(action.chunk)];
    if (action.kind == Action::Kind::release) {
      ensure(status.leases == 0, "a policy releases no leased copy");
      ensure(std::find(needed.begin(), needed.end(), action.chunk) == needed.end(),
             "a policy releases no needed copy");
      ensure(status.copy != Copy::absent, "a policy releases what is there");
      release(action.chunk);
      continue;
    }
    ensure(status.copy == Copy::absent, "a policy gathers what is absent");
    gather(action.chunk);
    if (action.kind == Action::Kind::gather) arrive(action.chunk);
  }
}

void Simulator::release(int chunk) {
  const auto c = static_cast<std::size_t>(chunk);
  if (chunks_[c].copy == Copy::arriving) {
    wait_until(arrival_ns_[c]);
    played_.evicted_arriving_bytes += facts_[c].wire_bytes;
  }
  chunks_[c].copy = Copy::absent;
  in_use_ -= facts_[c].slot_bytes;
}

void Simulator::gather(int chunk) {
  const auto c = static_cast<std::size_t>(chunk);
  take(facts_[c].slot_bytes);
  const Rates& rates = machine_.rates;
  arrival_ns_[c] =
      pass(rates.gather_latency_ns + rates.gather_ns_per_byte * static_cast<double>(facts_[c].wire_bytes));
  chunks_[c].copy = Copy::arriving;
  ++played_.gathers;
  played_.gathered_bytes += facts_[c].wire_bytes;
}

void Simulator::arrive(int chunk) {
  ChunkStatus& status = chunks_[static_cast<std::size_t>(chunk)];
  if (status.copy == Copy::arriving) wait_until(arrival_ns_[static_cast<std::size_t>(chunk)]);
  status.copy = Copy::gathered;
}

void Simulator::reduce(int chunk) {
  ChunkStatus& status = chunks_[static_cast<std::size_t>(chunk)];
  const std::int64_t bytes = facts_[static_cast<std::size_t>(chunk)].gradient_bytes;
  ensure(status.gradient_open, "a trace closes open gradients");
  status.gradient_open = false;
  while (!reductions_.empty() && reductions_.front().done_ns <= now_ns_) wait_for_oldest_reduction();
  while (reductions_.size() >= kReductions) wait_for_oldest_reduction();
  in_use_ -= bytes;
  open_ -= bytes;
  reducing_ += bytes;
  reductions_.push_back({pass(machine_.rates.reduce_ns_per_byte * static_cast<double>(bytes)), bytes});
}

// Compute memory; buffers of reductions in flight can be waited for.
void Simulator::take(std::int64_t bytes) {
  const std::int64_t limit = machine_.budget.hard();
  while (!reductions_.empty() &&
         (reductions_.front().done_ns <= now_ns_ || in_use_ + reducing_ + bytes > limit))
    wait_for_oldest_reduction();
  in_use_ += bytes;
  ensure(in_use_ + reducing_ <= limit, "a policy keeps to the limit");
  played_.peak_bytes = std::max(played_.peak_bytes, in_use_ + reducing_);
}

void Simulator::wait_until(std::int64_t ns) {
  now_ns_ = std::max(now_ns_, ns);
}

void Simulator::wait_for_oldest_reduction() {
  wait_until(reductions_.front().done_ns);
  reducing_ -= reductions_.front().bytes;
  reductions_.pop_front();
}

// Something of that length passes over the link: when it is done.
std::int64_t Simulator::pass(double ns) {
  const std::int64_t length = std::llround(ns);
  link_free_ns_ = std::max(link_free_ns_, now_ns_) + length;
  played_.link_ns += length;
  return link_free_ns_;
}

// What the operation needs, what is leased or open, and what rests here.
std::int64_t Simulator::unavoidable_bytes(const TraceEvent& event) const {
  std::int64_t bytes = machine_.resting_bytes + leased_ + open_;
  for (const int chunk : event.chunks) {
    const auto c = static_cast<std::size_t>(chunk);
    if (chunks_[c].leases == 0) bytes += facts_[c].slot_bytes;
  }
  for (const int chunk : event.opens) bytes += facts_[static_cast<std::size_t>(chunk)].gradient_bytes;
  return bytes;
}

}  // namespace gemini
