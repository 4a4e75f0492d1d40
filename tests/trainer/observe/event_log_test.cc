// log.jsonl.
#include "trainer/observe/event_log.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

class EventLogTest : public testing::Test {
 protected:
  std::filesystem::path path() const { return directory_.path() / "log.jsonl"; }
  std::vector<Json> Lines() const {
    std::vector<Json> lines;
    const auto text = ReadFile(path());
    for (const std::string_view line : SplitLines(*text).complete)
      lines.push_back(*ParseJson(line));
    return lines;
  }
  test_support::TempDir directory_;
};

TEST_F(EventLogTest, ALineHasTheCommonFieldsAndItsOwn) {
  const auto log = EventLog::Open(path(), 2);
  ASSERT_TRUE(log);
  (*log)->SetStep(39);
  (*log)->Write(EventLevel::kWarning, "data.slow", "a sentence", {{"worker", 1}});
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  const Json& line = lines[0];
  EXPECT_EQ(line["level"], "WARNING");
  EXPECT_EQ(line["rank"], 2);
  EXPECT_EQ(line["step"], 39);
  EXPECT_EQ(line["event"], "data.slow");
  EXPECT_EQ(line["message"], "a sentence");
  EXPECT_EQ(line["worker"], 1);
  EXPECT_GT(line["t_ns"].get<int64_t>(), 0);
  EXPECT_EQ(line["timestamp"].get<std::string>().back(), 'Z');
}

TEST_F(EventLogTest, LinesOfTwoThreadsDoNotMix) {
  const auto log = EventLog::Open(path(), 0);
  ASSERT_TRUE(log);
  const auto write = [&](const char* event) {
    for (int i = 0; i < 500; ++i) {
      (*log)->Write(EventLevel::kInfo, event, std::string(300, event[0]));
    }
  };
  std::thread other(write, "other");
  write("one");
  other.join();
  EXPECT_EQ(Lines().size(), 1000u);
}

TEST_F(EventLogTest, AnErrorStandsOnStderrToo) {
  const auto log = EventLog::Open(path(), 0);
  ASSERT_TRUE(log);
  testing::internal::CaptureStderr();
  (*log)->Write(EventLevel::kInfo, "training.finished", "fine");
  (*log)->Write(EventLevel::kError, "peer.lost", "a peer is gone");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("fine"), std::string::npos);
  EXPECT_NE(text.find("a peer is gone"), std::string::npos);
}

TEST_F(EventLogTest, AFileThatCannotBeOpenedIsAnError) {
  EXPECT_FALSE(EventLog::Open(directory_.path() / "nowhere" / "log.jsonl", 0));
}

}  // namespace
}  // namespace shakedown
