#include "harness/run/recorder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

using test_support::TempDir;

// No file of this process grows beyond `bytes` while it lives: what a full disk does to one file.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_ = std::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, previous_);
  }

 private:
  rlimit before_{};
  void (*previous_)(int) = nullptr;
};

TEST(Recorder, TheRecordAfterATornOneIsReadable) {
  const TempDir folder;
  const RunDir run(folder.path());
  Result<Recorder> recorder = Recorder::Open(run);
  ASSERT_TRUE(recorder) << recorder.error().message;
  recorder->Observe(events::kRunStarted, Json::object());
  {
    const FileSizeLimit limit(std::filesystem::file_size(run.observed()) + 10);
    recorder->Observe(events::kLoadSampled, {{"load1", 1}});
  }
  EXPECT_FALSE(recorder->status());
  recorder->FreeReserve();
  recorder->Observe(events::kRunEnded, {{"how", "failed"}});
  const EventFile file = ParseEvents(ReadFile(run.observed()).value());
  ASSERT_EQ(file.events.size(), 2U);
  EXPECT_EQ(file.events[1].name, events::kRunEnded);
  EXPECT_EQ(file.damaged_lines, std::vector<int>{2});
}

TEST(Recorder, ARunWithoutSpaceForItsLastWordsDoesNotBegin) {
  const TempDir folder;
  const FileSizeLimit limit(4096);
  const Result<Recorder> recorder = Recorder::Open(RunDir(folder.path()));
  ASSERT_FALSE(recorder);
  EXPECT_NE(recorder.error().message.find("keep 256 KiB free"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace shakedown
