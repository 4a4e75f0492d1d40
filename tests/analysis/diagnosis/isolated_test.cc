// A diagnosis reads a run directory blindly: the secret files make no difference, and where the
// kernel has Landlock they cannot even be opened.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/landlock.h"
#include "harness/base/file.h"
#include "tests/support/run_dir_builder.h"
#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

using test_support::RunDirBuilder;
using test_support::TempDir;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

namespace fs = std::filesystem;

void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::vector<fs::path> SecretFiles(const RunDir& run) {
  return {run.run_json(), run.injected(), run.journal(), run.undone(), run.verdict()};
}

std::string DiagnosisBytes(const RunDir& run) {
  const Result<Diagnosis> diagnosis = DiagnoseIsolated(run);
  return diagnosis ? DumpJson(ToJson(*diagnosis)) : "error: " + diagnosis.error().message;
}

// Runs `body` in a child; returns its exit status.
template <typename Body>
int InChild(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int ErrnoOfOpening(const fs::path& path, int flags = O_RDONLY) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

// The run with what the pages show while rank 1 stands at the door of collective 77 and its peers,
// who have handed over two more, wait.
RunDirBuilder WithStandingPages(RunDirBuilder run) {
  const auto door = std::find_if(run.observed.begin(), run.observed.end(), [](const Event& event) {
    return event.name == events::kPageSampled &&
           Field(Field(event.fields, "lanes"), "main").value("point", "") == "collective.enter";
  });
  SHAKEDOWN_ASSERT(door != run.observed.end());
  std::vector<Event> pages;
  for (int rank = 0; rank < 3; ++rank) {
    Event page = *door;
    page.t = page.t + std::chrono::milliseconds(1);
    page.fields["rank"] = rank;
    page.fields.erase("final");
    page.fields["lanes"]["main"]["count"] = 9000;
    page.fields["lanes"]["main"]["point"] = rank == 1 ? "collective.enter" : "collective.enqueued";
    page.fields["collectives_entered"] = rank == 1 ? 77 : 78;
    page.fields["collectives_enqueued"] = rank == 1 ? 76 : 78;
    pages.push_back(std::move(page));
  }
  run.observed.insert(std::next(door), pages.begin(), pages.end());
  return run;
}

struct Named {
  const char* scenario;
  RunDirBuilder (*make)();
  const char* mechanism;
  const char* culprits;
};
class RunDirectory : public ::testing::TestWithParam<Named> {};
INSTANTIATE_TEST_SUITE_P(
    Diagnosis, RunDirectory,
    ::testing::Values(
        Named{"control", [] { return RunDirBuilder::Control(); }, "none", "nobody"},
        Named{"rank_killed", [] { return RunDirBuilder::RankKilled(); }, "killed", "rank 1"},
        Named{"collective_timeout",
              [] { return WithStandingPages(RunDirBuilder::CollectiveTimeout()); }, "not_joined",
              "rank 1"},
        Named{"hang_watchdog", [] { return WithStandingPages(RunDirBuilder::HangWatchdog()); },
              "not_joined", "rank 1"},
        Named{"disk_full", &RunDirBuilder::DiskFull, "storage_full", "storage checkpoint"},
        Named{"slow_data_worker", &RunDirBuilder::SlowDataWorker, "slow_data",
              "worker 0 of rank 0"},
        Named{"out_of_memory", &RunDirBuilder::OutOfMemory, "out_of_memory_device", "rank 0"}),
    [](const auto& named) { return std::string(named.param.scenario); });

TEST_P(RunDirectory, IsNamedRight) {
  TempDir dir;
  GetParam().make().WriteTo(dir.path());
  const Result<Diagnosis> d = DiagnoseIsolated(RunDir(dir.path()));
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->mechanism, GetParam().mechanism) << DumpPretty(ToJson(*d));
  EXPECT_EQ(DescribeCulprits(d->culprits), GetParam().culprits);
}

TEST_P(RunDirectory, SecretFilesMakeNoDifference) {
  TempDir dir;
  GetParam().make().WriteTo(dir.path());
  const RunDir run(dir.path());
  const std::string with = DiagnosisBytes(run);
  ASSERT_THAT(with, Not(StartsWith("error")));
  for (const fs::path& secret : SecretFiles(run)) Write(secret, "rank 2 did it\n");
  EXPECT_EQ(DiagnosisBytes(run), with);
  for (const fs::path& secret : SecretFiles(run)) fs::remove(secret);
  EXPECT_EQ(DiagnosisBytes(run), with);
}

TEST(DiagnoseIsolated, SaysThatLandlockWasEnforced) {
  if (diagnosis::LandlockVersion() == 0) GTEST_SKIP() << "no Landlock";
  TempDir dir;
  RunDirBuilder::Control().WriteTo(dir.path());
  EXPECT_EQ(DiagnoseIsolated(RunDir(dir.path()))->isolation, "landlock");
}

TEST(DiagnoseIsolated, WorksWhileOtherThreadsAllocate) {
  TempDir dir;
  RunDirBuilder::RankKilled().WriteTo(dir.path());
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) std::string(1000, 'x').append("y");
  });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(DiagnoseIsolated(RunDir(dir.path()))->mechanism, "killed");
  stop = true;
  busy.join();
}

TEST(DiagnoseIsolated, LeavesNoChildBehind) {
  TempDir dir;
  RunDirBuilder::Control().WriteTo(dir.path());
  ASSERT_TRUE(DiagnoseIsolated(RunDir(dir.path())));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(DiagnoseIsolated, TimeThatIsUpIsAnErrorAndNoChildStays) {
  if (diagnosis::LandlockVersion() == 0) GTEST_SKIP() << "no Landlock";
  TempDir dir;
  RunDirBuilder::Control().WriteTo(dir.path());
  const Result<Diagnosis> d = DiagnoseIsolated(RunDir(dir.path()), 0);
  ASSERT_FALSE(d);
  EXPECT_THAT(d.error().message, HasSubstr("did not end within 0 ms"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(DiagnoseIsolated, FolderThatIsNoRunIsAnError) {
  TempDir dir;
  EXPECT_FALSE(DiagnoseIsolated(RunDir(dir.path())));
  EXPECT_FALSE(DiagnoseIsolated(RunDir(dir.path() / "absent")));
  Write(dir.path() / "observed.jsonl", R"({"t_ns": 5, "event": "attempt.started"})"
                                       "\n");
  const Result<Diagnosis> d = DiagnoseIsolated(RunDir(dir.path()));
  ASSERT_FALSE(d);
  EXPECT_THAT(d.error().message, HasSubstr("nothing to diagnose"));
}

TEST(DiagnoseIsolated, FileInThePlaceOfARunIsAnError) {
  TempDir dir;
  Write(dir.path() / "file", "x");
  EXPECT_FALSE(DiagnoseIsolated(RunDir(dir.path() / "file")));
}

TEST(DiagnoseIsolated, LinkToASecretFileIsNotFollowed) {
  TempDir dir;
  RunDirBuilder::Control().WriteTo(dir.path());
  const RunDir run(dir.path());
  const std::string before = DiagnosisBytes(run);
  fs::remove(run.rank(0, 0) / kRankStderr);
  fs::create_symlink(run.run_json(), run.rank(0, 0) / kRankStderr);
  const Result<Diagnosis> d = DiagnoseIsolated(run);
  ASSERT_TRUE(d);
  EXPECT_THAT(DumpJson(ToJson(*d)), Not(HasSubstr("plan")));
}

class Landlock : public ::testing::Test {
 protected:
  void SetUp() override {
    if (diagnosis::LandlockVersion() == 0) GTEST_SKIP() << "no Landlock";
    fs::create_directories(run_.rank(0, 1));
    Write(run_.observed(), "{}");
    Write(run_.rank(0, 1) / kRankLog, "{}");
    for (const fs::path& secret : SecretFiles(run_)) Write(secret, "secret");
  }
  // The errno of opening `path` for somebody who may read the observed files only.
  int Restricted(const fs::path& path, int flags = O_RDONLY) {
    return InChild([&] {
      const diagnosis::ReadableFiles files{{run_.observed(), run_.attempt(0)}, {run_.root()}};
      if (!diagnosis::RestrictReading(files)) return 250;
      return ErrnoOfOpening(path, flags);
    });
  }
  TempDir dir_;
  RunDir run_{dir_.path()};
};

TEST_F(Landlock, SecretFilesCannotBeOpened) {
  for (const fs::path& secret : SecretFiles(run_)) {
    EXPECT_EQ(ErrnoOfOpening(secret), 0) << secret;  // it is there
    EXPECT_EQ(Restricted(secret), EACCES) << secret;
  }
}

TEST_F(Landlock, ObservedFilesCanBeOpenedAndTheFolderListed) {
  EXPECT_EQ(Restricted(run_.observed()), 0);
  EXPECT_EQ(Restricted(run_.rank(0, 1) / kRankLog), 0);
  EXPECT_EQ(Restricted(run_.root(), O_RDONLY | O_DIRECTORY), 0);
}

TEST_F(Landlock, NothingCanBeWrittenOrMade) {
  EXPECT_EQ(Restricted(run_.observed(), O_WRONLY), EACCES);
  EXPECT_EQ(Restricted(run_.root() / "new", O_WRONLY | O_CREAT), EACCES);
  EXPECT_FALSE(fs::exists(run_.root() / "new"));
}

TEST_F(Landlock, LinkInsideTheAttemptDoesNotLeadOut) {
  fs::create_symlink(run_.run_json(), run_.rank(0, 1) / "link");
  EXPECT_EQ(Restricted(run_.rank(0, 1) / "link"), EACCES);
}

TEST_F(Landlock, LinkInThePlaceOfAnAttemptAllowsNothing) {
  fs::create_directory_symlink("/etc", run_.attempt(1));
  EXPECT_EQ(InChild([&] {
              if (!diagnosis::RestrictReading({{run_.attempt(1)}, {}})) return 250;
              return ErrnoOfOpening("/etc/passwd");
            }),
            EACCES);
}

TEST_F(Landlock, FilesThatAreAbsentAreLeftOut) {
  EXPECT_EQ(InChild([&] {
              return diagnosis::RestrictReading({{run_.root() / "absent"}, {}}) ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace shakedown
