// Records of observed.jsonl and injected.jsonl.
#include "harness/wire/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shakedown {
namespace {

TEST(Event, ComesBackAsItWasWritten) {
  Event event{MonoTime{42}, "attempt.started"};
  event.fields["attempt"] = 1;
  event.fields["text"] = "two\nlines";
  const std::string line = EncodeEvent(event);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto again = DecodeEvent(line);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->t, event.t);
  EXPECT_EQ(again->name, event.name);
  EXPECT_EQ(again->fields, event.fields);
}

TEST(Event, ARecordWithoutTimeOrNameIsNone) {
  EXPECT_FALSE(DecodeEvent(R"({"event": "x"})"));
  EXPECT_FALSE(DecodeEvent(R"({"t_ns": 1})"));
  EXPECT_FALSE(DecodeEvent(R"({"t_ns": "1", "event": "x"})"));
  EXPECT_FALSE(DecodeEvent(R"([])"));
  EXPECT_FALSE(DecodeEvent("{"));
}

TEST(Event, AFileKeepsLineNumbersAndTellsDamageFromATornTail) {
  const std::string good = EncodeEvent({MonoTime{1}, "a.b"});
  const EventFile file = ParseEvents(good + "\nrubbish\n" + good + "\n{\"t_ns\": 3, \"ev");
  ASSERT_EQ(file.events.size(), 2u);
  EXPECT_EQ(file.events[0].line, 1);
  EXPECT_EQ(file.events[1].line, 3);
  EXPECT_THAT(file.damaged_lines, testing::ElementsAre(2));
  EXPECT_TRUE(file.torn_tail);
  EXPECT_FALSE(ParseEvents(good + "\n").torn_tail);
}

}  // namespace
}  // namespace shakedown
