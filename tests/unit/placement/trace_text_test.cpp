// Learnt traces as text: what is written is read again, and nothing else is.
#include "placement/trace_text.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "property/placement_traces.hpp"
#include "unit/placement/traces.hpp"

namespace gemini {
namespace {

TraceOrigin origin_with(int chunks) {
  return {0x0123456789ABCDEFU, 0xFEDCBA9876543210U, chunks, 3};
}

Trace small() {
  return Trace(
      {traces::begin({0, 1}, {1}, 5), traces::end({0, 1}), traces::begin({2}), traces::end({2}, {1})}, 3);
}

gemini_status_t status_of(const std::string& text, const TraceOrigin& here) {
  try {
    static_cast<void>(parse_trace(text, here));
    return GEMINI_SUCCESS;
  } catch (const Error& error) {
    return error.status();
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TraceText, IsReadAsItWasWritten) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const random_traces::Iteration made = random_traces::Maker(seed).iteration();
    const auto chunks = static_cast<int>(made.facts.size());
    const Trace read = parse_trace(text_of(made.trace, origin_with(chunks)), origin_with(chunks));
    ASSERT_EQ(read.size(), made.trace.size());
    for (int e = 0; e < read.size(); ++e) {
      const TraceEvent& wrote = made.trace.events()[static_cast<std::size_t>(e)];
      const TraceEvent& got = read.events()[static_cast<std::size_t>(e)];
      EXPECT_TRUE(got.is(wrote.kind, wrote.phase, wrote.chunks));
      EXPECT_EQ(got.opens, wrote.opens);
      EXPECT_EQ(got.closes, wrote.closes);
      EXPECT_EQ(got.compute_ns, wrote.compute_ns);
      EXPECT_EQ(got.non_model_bytes, wrote.non_model_bytes);
    }
    for (int chunk = 0; chunk < chunks; ++chunk)
      EXPECT_EQ(read.next_use(chunk, -1), made.trace.next_use(chunk, -1));
  }
}

TEST(TraceText, MayBeLaidOutAnew) {
  std::string text = text_of(small(), origin_with(3));
  for (std::size_t at = 0; (at = text.find(',', at)) != std::string::npos; at += 2) text.insert(at + 1, "\n");
  EXPECT_EQ(status_of(text, origin_with(3)), GEMINI_SUCCESS);
}

TEST(TraceText, FromAnotherModelIsAMismatch) {
  const std::string text = text_of(small(), origin_with(3));
  TraceOrigin other = origin_with(3);
  other.parameters = 1;
  EXPECT_EQ(status_of(text, other), GEMINI_ERR_MISMATCH);
  other = origin_with(3);
  other.layout = 1;
  EXPECT_EQ(status_of(text, other), GEMINI_ERR_MISMATCH);
  other = origin_with(3);
  other.shard_ranks = 2;
  EXPECT_EQ(status_of(text, other), GEMINI_ERR_MISMATCH);
  EXPECT_EQ(status_of(text, origin_with(4)), GEMINI_ERR_MISMATCH);
}

TEST(TraceText, CutAnywhereIsRefused) {
  const std::string text = text_of(small(), origin_with(3));
  for (std::size_t length = 0; length + 1 < text.size(); ++length)  // the last is the end of the line
    EXPECT_EQ(status_of(text.substr(0, length), origin_with(3)), GEMINI_ERR_IO) << length;
}

TEST(TraceText, WithAnyBitTurnedIsRefused) {
  const std::string text = text_of(small(), origin_with(3));
  for (std::size_t at = 0; at < text.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      EXPECT_EQ(status_of(damaged, origin_with(3)), GEMINI_ERR_IO) << "bit " << bit << " at " << at;
    }
}

TEST(TraceText, ThatIsNoTraceIsRefused) {
  const std::string text = text_of(small(), origin_with(3));
  for (const std::string& other :
       {std::string("{}"), std::string("[]"), std::string("7"), std::string(10000, '['), std::string(3, '\0'),
        replaced(text, "\"format_version\":1", "\"format_version\":2"),
        replaced(text, "\"content\":", "\"contents\":"), replaced(text, "learnt trace", "checkpoint")})
    EXPECT_EQ(status_of(other, origin_with(3)), GEMINI_ERR_IO) << other;
}

TEST(TraceText, WithEventsThatAreNoIterationIsRefused) {
  for (const std::vector<TraceEvent>& events : {std::vector<TraceEvent>{traces::end({0})},
                                                {traces::begin({0})},
                                                {traces::begin({2}), traces::end({2})}}) {
    const Trace wrong(events, 3);
    EXPECT_EQ(status_of(text_of(wrong, origin_with(2)), origin_with(2)), GEMINI_ERR_IO);
  }
  TraceEvent negative = traces::begin({0});
  negative.compute_ns = -1;
  EXPECT_EQ(status_of(text_of(Trace({negative, traces::end({0})}, 3), origin_with(3)), origin_with(3)),
            GEMINI_ERR_IO);
}

}  // namespace
}  // namespace gemini
