#include "harness/run/log_follower.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "harness/base/digest.h"
#include "harness/base/file.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;

class LogFollowerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "shakedown-test-XXXXXX").native();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    run_ = RunDir(pattern);
    auto recorder = Recorder::Open(run_);
    ASSERT_TRUE(recorder) << recorder.error().message;
    recorder_ = std::move(*recorder);
    auto follower =
        LogFollower::Start(run_, loop_, recorder_, [this](const LogFollower::Line& line) {
          if (drain_inside_) follower_->Drain();
          lines_.push_back(line.source + ":" + std::to_string(line.rank.value_or(-1)) + ":" +
                           std::string(line.text));
          if (lines_.size() >= wanted_) loop_.Stop();
        });
    ASSERT_TRUE(follower) << follower.error().message;
    follower_ = std::move(*follower);
  }
  void TearDown() override {
    follower_.reset();
    fs::remove_all(run_.root());
  }
  void Append(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  }
  // Runs the loop until so many lines have arrived.
  void Await(size_t lines) {
    wanted_ = lines;
    if (lines_.size() < lines) loop_.Run();
  }
  std::vector<Event> Recorded() { return ParseEvents(ReadFile(run_.observed()).value()).events; }

  RunDir run_{""};
  EventLoop loop_;
  Recorder recorder_;
  std::unique_ptr<LogFollower> follower_;
  std::vector<std::string> lines_;
  size_t wanted_ = 0;
  bool drain_inside_ = false;
};

TEST_F(LogFollowerTest, FindsFilesOfAttemptsThatAreMadeLater) {
  Append(run_.rank(0, 1) / kRankLog, "{\"a\":1}\n");
  Await(1);
  Append(run_.launcher_log(0), "started\n");
  Await(2);
  Append(run_.rank(1, 0) / kRankStderr, "boom\n");
  Await(3);
  EXPECT_EQ(lines_,
            (std::vector<std::string>{"log:1:{\"a\":1}", "launcher:-1:started", "stderr:0:boom"}));
}

TEST_F(LogFollowerTest, ALineCountsOnlyWhenItIsComplete) {
  Append(run_.rank(0, 0) / kRankStdout, "hel");
  Append(run_.rank(0, 0) / kRankStdout, "lo\nworld\n");
  Await(2);
  EXPECT_EQ(lines_, (std::vector<std::string>{"stdout:0:hello", "stdout:0:world"}));
}

TEST_F(LogFollowerTest, RecordsFileLineAndDigestOfEachArrival) {
  Append(run_.rank(0, 2) / kRankLog, "one\ntwo\n");
  Await(2);
  const std::vector<Event> events = Recorded();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].name, events::kLineArrived);
  EXPECT_EQ(events[1].fields.at("file"), "attempt-0/rank-2/log.jsonl");
  EXPECT_EQ(events[1].fields.at("line"), 2);
  EXPECT_EQ(events[1].fields.at("rank"), 2);
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(Xxh3Of64("two")));
  EXPECT_EQ(events[1].fields.at("xxh3"), hex);
}

TEST_F(LogFollowerTest, DrainReadsWhatHasNoNotificationYet) {
  Append(run_.rank(0, 0) / kRankLog, "late\n");
  follower_->Drain();
  EXPECT_EQ(lines_, (std::vector<std::string>{"log:0:late"}));
}

TEST_F(LogFollowerTest, AHandlerThatDrainsGetsEachLineOnceAndInOrder) {
  drain_inside_ = true;
  Append(run_.rank(0, 0) / kRankLog, "one\ntwo\nthree\n");
  Append(run_.rank(0, 1) / kRankLog, "four\n");
  follower_->Drain();
  ASSERT_EQ(lines_.size(), 4u);
  std::vector<std::string> of_rank_0;
  for (const std::string& line : lines_) {
    if (line.starts_with("log:0:")) of_rank_0.push_back(line);
  }
  EXPECT_EQ(of_rank_0, (std::vector<std::string>{"log:0:one", "log:0:two", "log:0:three"}));
  int number = 0;
  for (const Event& event : Recorded()) {
    if (event.fields.at("rank") == 0) {
      EXPECT_EQ(event.fields.at("line"), ++number);
    }
  }
  EXPECT_EQ(number, 3);
}

TEST_F(LogFollowerTest, AFifoOrALinkInThePlaceOfALogIsNotFollowed) {
  const fs::path folder = run_.rank(0, 0);
  fs::create_directories(folder);
  ASSERT_EQ(::mkfifo((folder / kRankStdout).c_str(), 0600), 0);
  fs::create_symlink("/etc/hostname", folder / kRankStderr);
  Append(folder / kRankLog, "fine\n");
  follower_->Drain();
  EXPECT_EQ(lines_, (std::vector<std::string>{"log:0:fine"}));
}

TEST_F(LogFollowerTest, OtherNamesAreIgnored) {
  Append(run_.root() / "attempt-x" / "rank-0" / kRankLog, "no\n");
  Append(run_.root() / "attempt-0" / "rank-0x" / kRankLog, "no\n");
  Append(run_.root() / "attempt-0" / "rank-0" / "other.log", "no\n");
  Append(run_.rank(0, 0) / kRankLog, "yes\n");
  follower_->Drain();
  EXPECT_EQ(lines_, (std::vector<std::string>{"log:0:yes"}));
}

}  // namespace
}  // namespace shakedown
