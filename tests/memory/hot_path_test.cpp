// Operations on chunks that are gathered already ask for no heap memory, once the order is known.
#include <cstdlib>
#include <new>

#include "support/rank_assert.hpp"
#include "support/test_context.hpp"

namespace {

// Of this thread: what communication does in the background is its own.
thread_local std::int64_t allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t size = (bytes / alignment + 1) * alignment;
  void* memory = std::aligned_alloc(alignment, size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The other forms of the standard library call these.
void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace {

using gemini_test::Context;
using gemini_test::Params;

class HotPath : public testing::TestWithParam<std::int32_t> {
 protected:
  static constexpr std::int64_t kElems = 4096;  // a chunk each

  HotPath() {
    for (int p = 0; p < 4; ++p)
      w_.push_back(ctx_.add_constant("w" + std::to_string(p), GEMINI_F32, {kElems}, 1.0, GetParam()));
    ctx_.commit();
  }

  void operate_on_each() {
    for (gemini_param_t w : w_) {
      failed_ = failed_ || gemini_pre_op(ctx_, &w, 1) != GEMINI_SUCCESS;
      failed_ = failed_ || gemini_post_op(ctx_, &w, 1) != GEMINI_SUCCESS;
    }
  }

  struct Counts {
    std::int64_t first, forward, backward, gathers;
  };
  // Every parameter is leased more often in FORWARD than in the first pass of BACKWARD, so that this one
  // completes no gradient.
  Counts iterate() {
    Counts counts{};
    counts.first = count([&] { operate_on_each(); });
    const std::int64_t gathers = ctx_.stat(GEMINI_STAT_GATHERS);
    counts.forward = count([&] { operate_on_each(); });
    ctx_.phase(GEMINI_BACKWARD);
    counts.backward = count([&] { operate_on_each(); });
    counts.gathers = ctx_.stat(GEMINI_STAT_GATHERS) - gathers;
    operate_on_each();
    ctx_.step();
    return counts;
  }

  template <class Body>
  static std::int64_t count(Body&& body) {
    const std::int64_t before = allocations;
    body();
    return allocations - before;
  }

  Context ctx_{{"chunk_elems", std::to_string(kElems)}, {"placement", "auto"}};
  Params w_;
  bool failed_ = false;
};

TEST_P(HotPath, AllocatesNothing) {
  EXPECT_GT(iterate().first, 0);  // they are counted
  iterate();
  for (int iteration = 0; iteration < 3; ++iteration) {
    const Counts counts = iterate();
    EXPECT_EQ(counts.gathers, 0);
    EXPECT_EQ(counts.forward, 0);
    EXPECT_EQ(counts.backward, 0);
  }
  EXPECT_FALSE(failed_) << gemini_last_error_message();
}

INSTANTIATE_TEST_SUITE_P(Memory, HotPath, testing::Values(0, GEMINI_PARAM_RESIDENT),
                         [](const testing::TestParamInfo<std::int32_t>& param) {
                           return param.param == 0 ? "Kept" : "Resident";
                         });

}  // namespace
