// The actions of one decision while it is being made, and what memory would look like after them.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/policy.hpp"

namespace gemini {

class Draft {
 public:
  explicit Draft(const std::vector<ChunkFacts>& facts);

  // What is needed counts as gathered from here on. need.chunks: NULL is none.
  void open(const Need& need, const std::vector<ChunkStatus>& chunks, std::int64_t in_use_bytes);
  void release(int chunk);
  void prefetch(int chunk);
  // Releases, then gathers, then prefetches.
  void write(std::vector<Action>& actions) const;

  [[nodiscard]] std::int64_t filled_bytes() const { return filled_; }
  [[nodiscard]] bool present(int chunk) const;
  [[nodiscard]] bool released(int chunk) const;
  [[nodiscard]] bool prefetched(int chunk) const;
  // Here or arriving, and nobody's.
  [[nodiscard]] bool evictable(int chunk) const;

 private:
  [[nodiscard]] std::int64_t slot(int chunk) const;

  const std::vector<ChunkFacts>& facts_;
  const std::vector<ChunkStatus>* chunks_ = nullptr;
  std::int64_t filled_ = 0;
  std::vector<int> releases_, gathers_, prefetches_;
  // Number of the decision that wanted or released the chunk last: no clearing between decisions.
  std::int64_t decision_ = 0;
  std::vector<std::int64_t> wanted_, released_;
};

}  // namespace gemini
