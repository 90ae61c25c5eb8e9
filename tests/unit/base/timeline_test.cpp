// The record of what happened when, and its text.
#include "base/timeline.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/timeline_text.hpp"

namespace gemini {
namespace {

TimelineEvent gather(int chunk) {
  TimelineEvent event{TimelineEvent::Track::gathers};
  event.chunk = chunk;
  event.what = "gather";
  return event;
}

TEST(Timeline, KeepsTheLastEventsAndCountsTheOthers) {
  Timeline timeline(4);
  for (int chunk = 0; chunk < 11; ++chunk) {
    timeline.add(gather(chunk));
    const Timeline::Recorded recorded = timeline.recorded();
    EXPECT_EQ(recorded.events.size(), std::min<std::size_t>(4, static_cast<std::size_t>(chunk) + 1));
    EXPECT_EQ(recorded.dropped, std::max(0, chunk - 3));
    for (std::size_t e = 0; e < recorded.events.size(); ++e)
      EXPECT_EQ(recorded.events[e].chunk, recorded.dropped + static_cast<int>(e));
  }
  EXPECT_NE(text_of(timeline, 0).find("7 older events dropped"), std::string::npos);
}

TEST(Timeline, TakesEventsFromSeveralThreads) {
  Timeline timeline(1000);
  const auto add = [&] {
    for (int chunk = 0; chunk < 5000; ++chunk) timeline.add(gather(chunk));
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(timeline.recorded().dropped, 9000);
}

TEST(Timeline, NumbersWordsOnce) {
  Timeline timeline(4);
  EXPECT_EQ(timeline.label("a"), 0);
  EXPECT_EQ(timeline.label("b"), 1);
  EXPECT_EQ(timeline.label("a"), 0);
}

TEST(Timeline, RecordsMemoryWhereItChanged) {
  Timeline timeline(8);
  for (const std::int64_t bytes : {5, 5, 7, 7, 5}) timeline.memory("gathered", bytes);
  EXPECT_EQ(timeline.recorded().events.size(), 3U);
}

TEST(TimelineText, IsJsonWhateverParametersAreCalled) {
  Timeline timeline(8);
  TimelineEvent event{TimelineEvent::Track::operations};
  event.what = "forward";
  event.label = timeline.label("a \"quoted\" \\ name\nof \x01 and \xff and \xc3\xa9");
  event.begin_ns = 1500;
  event.end_ns = 2750;
  timeline.add(event);
  const auto all = nlohmann::json::parse("[" + text_of(timeline, 3) + "]");
  const auto& written = all.back();
  EXPECT_EQ(written.at("name"), "a \"quoted\" \\ name\nof \x01 and \xef\xbf\xbd and \xc3\xa9");
  EXPECT_EQ(written.at("pid"), 3);
  EXPECT_EQ(written.at("ts"), 1.5);
  EXPECT_EQ(written.at("dur"), 1.25);
}

}  // namespace
}  // namespace gemini
