#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "harness/base/file.h"
#include "harness/process/process_tree.h"
#include "harness/process/spawn.h"
#include "harness/reaper/client.h"
#include "harness/wire/journal_record.h"
#include "harness/wire/progress_page.h"

namespace shakedown {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

constexpr char kReaper[] = SHAKEDOWN_BINARY_DIR "/shakedown-reaper";
constexpr Milliseconds kLong{30'000};

bool BecomesReadable(int fd) {
  pollfd ready{fd, POLLIN, 0};
  return ::poll(&ready, 1, static_cast<int>(kLong.count())) == 1;
}

// One line, without its newline; empty at the end.
std::string ReadLine(int fd) {
  std::string line;
  char c = 0;
  while (BecomesReadable(fd) && ::read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read.Reset(ends[0]);
    write.Reset(ends[1]);
  }
  UniqueFd read;
  UniqueFd write;
};

// Everything below this test program is the test's own and must be gone at its end.
class ReaperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/reaper_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    run_ = RunDir(fs::canonical(name));
    ASSERT_TRUE(MakeDirectories(run_.checkpoint_dir()));
    null_.Reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
  }
  void TearDown() override {
    // Orphans of a victim controller come to us.
    siginfo_t info{};
    while (::waitid(P_ALL, 0, &info, WEXITED) == 0) continue;
    const Result<ProcessTree> tree = ProcessesBelow(::getpid());
    ASSERT_TRUE(tree);
    for (const TreeProcess& left : tree->processes) {
      ADD_FAILURE() << "left behind: " << CommandOf(left.identity.pid);
    }
    KillRound(tree->processes);
    fs::remove_all(run_.root());
  }

  ReaperClient Start() {
    Result<ReaperClient> client = ReaperClient::Start(kReaper, run_);
    if (!client) {
      ADD_FAILURE() << client.error().message;
      std::abort();
    }
    return *std::move(client);
  }

  JobRequest Shell(const std::string& script) {
    JobRequest job;
    job.argv = {"/bin/sh", "-c", script};
    job.environment = {"PATH=/usr/bin:/bin"};
    job.directory = run_.root();
    job.stdout_fd = out_.write.get();
    job.stderr_fd = null_.get();
    return job;
  }

  static std::vector<ReaperEvent> AwaitEvents(ReaperClient& client, size_t count) {
    std::vector<ReaperEvent> events;
    while (true) {
      const Result<std::vector<ReaperEvent>> more = client.ReadEvents();
      EXPECT_TRUE(more) << more.error().message;
      if (!more) return events;
      events.insert(events.end(), more->begin(), more->end());
      if (events.size() >= count || !BecomesReadable(client.fd())) return events;
    }
  }

  RunDir run_{""};
  Pipe out_;
  UniqueFd null_;
};

TEST_F(ReaperTest, StartsTheJobAndReportsItsExit) {
  ReaperClient client = Start();
  const Result<StartedJob> job = client.StartJob(Shell("pwd; exit 9"));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(ReadLine(out_.read.get()), run_.root().native());
  const std::vector<ReaperEvent> events = AwaitEvents(client, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].role, ReaperEvent::Role::kJob);
  EXPECT_EQ(events[0].process, job->process);
  EXPECT_EQ(events[0].status, WaitStatus::Exited(9));
  ASSERT_TRUE(client.Shutdown());
}

TEST_F(ReaperTest, ReaperIsInASessionOfItsOwnAndTheJobInAnother) {
  ReaperClient client = Start();
  const Result<StartedJob> job = client.StartJob(Shell("echo ready; exec sleep 1000"));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(ReadProcessStat(client.identity().pid)->session, client.identity().pid);
  const Result<ProcessStat> stat = ReadProcessStat(job->process.pid);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->session, job->process.pid);
  EXPECT_EQ(stat->parent, client.identity().pid);
  ASSERT_TRUE(client.Shutdown());
  EXPECT_TRUE(BecomesReadable(job->pidfd.get()));
}

TEST_F(ReaperTest, ArgumentsAndEnvironmentArriveByteForByte) {
  ReaperClient client = Start();
  JobRequest job =
      Shell("printf '%s|%s|' \"$1\" \"$BIG\" | wc -c; printf '%s' \"$1\" | od -An -tx1");
  job.argv.insert(job.argv.end(), {"sh", "\xff\x80 \xc3\xa4"});
  job.environment.push_back("BIG=" + std::string(100'000, 'b'));
  ASSERT_TRUE(client.StartJob(job));
  EXPECT_EQ(ReadLine(out_.read.get()), "100007");
  EXPECT_EQ(ReadLine(out_.read.get()), " ff 80 20 c3 a4");
  ASSERT_TRUE(client.Shutdown());
}

TEST_F(ReaperTest, JobThatCannotStartIsNamed) {
  ReaperClient client = Start();
  JobRequest job = Shell("");
  job.argv = {"/nonexistent/launcher"};
  const Result<StartedJob> started = client.StartJob(job);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ENOENT);
  EXPECT_THAT(started.error().message, HasSubstr("/nonexistent/launcher"));
  ASSERT_TRUE(client.Shutdown());
}

TEST_F(ReaperTest, AdoptedOrphansAreReportedWithTheirStatus) {
  ReaperClient client = Start();
  // The subshell between the job and the sleeper exits at once.
  ASSERT_TRUE(client.StartJob(Shell("(sleep 1000 & echo $!); exit 0")));
  const Result<ProcessIdentity> orphan = IdentityOf(std::atoi(ReadLine(out_.read.get()).c_str()));
  ASSERT_TRUE(orphan);
  const std::vector<ReaperEvent> job = AwaitEvents(client, 1);
  ASSERT_EQ(job.size(), 1u);
  EXPECT_EQ(job[0].role, ReaperEvent::Role::kJob);
  ASSERT_TRUE(SignalPidfd(OpenPidfd(*orphan)->get(), SIGUSR1));
  const std::vector<ReaperEvent> events = AwaitEvents(client, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].role, ReaperEvent::Role::kOrphan);
  EXPECT_EQ(events[0].process, *orphan);
  EXPECT_EQ(events[0].status, WaitStatus::Signaled(SIGUSR1));
  ASSERT_TRUE(client.Shutdown());
}

TEST_F(ReaperTest, LeftoversOfAnEndedJobAreFoundAndEnded) {
  ReaperClient client = Start();
  const Result<StartedJob> job =
      client.StartJob(Shell("setsid sh -c 'sleep 1000 & echo $!; wait' & wait $!"));
  ASSERT_TRUE(job) << job.error().message;
  const pid_t grandchild = std::atoi(ReadLine(out_.read.get()).c_str());
  ASSERT_TRUE(SignalPidfd(job->pidfd.get(), SIGKILL));
  ASSERT_EQ(AwaitEvents(client, 1).size(), 1u);

  const Result<std::vector<LeftoverProcess>> left = client.InspectLeftovers();
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_EQ(left->size(), 2u);
  EXPECT_TRUE(std::any_of(left->begin(), left->end(), [&](const LeftoverProcess& p) {
    return p.process.pid == grandchild && !p.command.empty();
  }));
  const Result<std::vector<LeftoverProcess>> remain = client.EndAll();
  ASSERT_TRUE(remain) << remain.error().message;
  EXPECT_THAT(*remain, IsEmpty());
  EXPECT_THAT(*client.InspectLeftovers(), IsEmpty());
  EXPECT_FALSE(IdentityOf(grandchild));
  ASSERT_TRUE(client.Shutdown());
}

TEST_F(ReaperTest, JobThatEndedCleanlyLeavesNothingAndTheHolderDoesNotCount) {
  ReaperClient client = Start();
  const Result<PrivateFilesystem> filesystem =
      client.ProvisionPrivateFilesystem(run_.checkpoint_dir(), 1 << 20);
  ASSERT_TRUE(filesystem) << filesystem.error().message;
  ASSERT_TRUE(client.StartJob(Shell("sleep 0.01 & wait")));
  ASSERT_EQ(AwaitEvents(client, 1).size(), 1u);
  EXPECT_THAT(*client.InspectLeftovers(), IsEmpty());
  EXPECT_THAT(*client.EndAll(), IsEmpty());
  EXPECT_TRUE(IdentityOf(filesystem->holder.pid)) << "end_all must spare the holder";
  ASSERT_TRUE(client.Shutdown());
}

class ReaperAgainst : public ReaperTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ReaperAgainst, ProcessesThatForkOnAreAllEnded) {
  ReaperClient client = Start();
  JobRequest job = Shell("");
  job.argv = {VICTIM_FORKER, GetParam()};
  ASSERT_TRUE(client.StartJob(job));
  ASSERT_EQ(ReadLine(out_.read.get()), "ready");
  const Result<std::vector<LeftoverProcess>> remain = client.EndAll(Milliseconds(20'000));
  ASSERT_TRUE(remain) << remain.error().message;
  EXPECT_THAT(*remain, IsEmpty());
  EXPECT_THAT(*client.InspectLeftovers(), IsEmpty());
  ASSERT_TRUE(client.Shutdown());
  EXPECT_THAT(ProcessesBelow(::getpid())->processes, IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Victims, ReaperAgainst, ::testing::Values("spread", "hop", "detach"),
                         [](const auto& victim) { return std::string(victim.param); });

TEST_F(ReaperTest, PrivateFilesystemIsSeenByTheJobAndByNobodyElse) {
  ReaperClient client = Start();
  constexpr int64_t kBytes = 1 << 20;
  const Result<PrivateFilesystem> filesystem =
      client.ProvisionPrivateFilesystem(run_.checkpoint_dir(), kBytes);
  ASSERT_TRUE(filesystem) << filesystem.error().message;
  EXPECT_EQ(filesystem->user_namespace, ::geteuid() != 0);
  struct statfs size {};
  ASSERT_EQ(::fstatfs(filesystem->root.get(), &size), 0);
  EXPECT_EQ(static_cast<int64_t>(size.f_blocks) * size.f_bsize, kBytes);

  JobRequest job = Shell("echo inside > checkpoint/file; id -u; pwd");
  job.in_private_fs = true;
  ASSERT_TRUE(client.StartJob(job));
  EXPECT_EQ(ReadLine(out_.read.get()), std::to_string(::geteuid()));
  EXPECT_EQ(ReadLine(out_.read.get()), run_.root().native());
  ASSERT_EQ(AwaitEvents(client, 1)[0].status, WaitStatus::Exited(0));
  EXPECT_EQ(::faccessat(filesystem->root.get(), "file", F_OK, 0), 0);
  EXPECT_FALSE(fs::exists(run_.checkpoint_dir() / "file"));
  // Seen through the holder, as undo recipes reach it.
  EXPECT_TRUE(fs::exists("/proc/" + std::to_string(filesystem->holder.pid) + "/root" +
                         (run_.checkpoint_dir() / "file").native()));
  // A later attempt finds what an earlier one saved.
  job.argv = {"/bin/cat", "checkpoint/file"};
  ASSERT_TRUE(client.StartJob(job));
  EXPECT_EQ(ReadLine(out_.read.get()), "inside");
  ASSERT_TRUE(client.Shutdown());
  EXPECT_FALSE(IdentityOf(filesystem->holder.pid));
}

TEST_F(ReaperTest, SecondPrivateFilesystemMissingMountpointAndJobWithoutOneAreRefused) {
  ReaperClient client = Start();
  JobRequest job = Shell("true");
  job.in_private_fs = true;
  EXPECT_EQ(client.StartJob(job).error().code, EINVAL);
  const Result<PrivateFilesystem> missing =
      client.ProvisionPrivateFilesystem(run_.root() / "missing", 1 << 20);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
  EXPECT_THAT(missing.error().message, HasSubstr((run_.root() / "missing").native()));
  EXPECT_FALSE(client.ProvisionPrivateFilesystem(run_.checkpoint_dir(), 0));
  ASSERT_TRUE(client.ProvisionPrivateFilesystem(run_.checkpoint_dir(), 1 << 20));
  EXPECT_EQ(client.ProvisionPrivateFilesystem(run_.checkpoint_dir(), 1 << 20).error().code, EEXIST);
  ASSERT_TRUE(client.Shutdown());
}

TEST_F(ReaperTest, DeadHolderIsReported) {
  ReaperClient client = Start();
  const Result<PrivateFilesystem> filesystem =
      client.ProvisionPrivateFilesystem(run_.checkpoint_dir(), 1 << 20);
  ASSERT_TRUE(filesystem) << filesystem.error().message;
  ASSERT_TRUE(SignalPidfd(OpenPidfd(filesystem->holder)->get(), SIGKILL));
  const std::vector<ReaperEvent> events = AwaitEvents(client, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].role, ReaperEvent::Role::kHolder);
  EXPECT_EQ(events[0].status, WaitStatus::Signaled(SIGKILL));
  ASSERT_TRUE(client.Shutdown());
}

TEST_F(ReaperTest, PageOutsideTheRunIsRefused) {
  ReaperClient client = Start();
  for (const char* name : {"", "/etc/page", "../page", "a/../../page", "a//b", "a/."}) {
    EXPECT_EQ(client.KeepPage(name, null_.get()).error().code, EINVAL) << name;
  }
  EXPECT_TRUE(client.KeepPage("attempt-0/rank-0/page.bin", null_.get()));
  ASSERT_TRUE(client.Shutdown());
}

TEST_F(ReaperTest, SignalsOfATerminalDoNotEndTheReaper) {
  ReaperClient client = Start();
  for (const int signal : {SIGINT, SIGHUP, SIGTERM, SIGQUIT}) {
    ASSERT_TRUE(SignalPidfd(client.pidfd(), signal));
  }
  EXPECT_THAT(*client.InspectLeftovers(), IsEmpty());
  ASSERT_TRUE(client.Shutdown());
}

TEST_F(ReaperTest, ReaperThatDoesNotAnswerIsAnErrorAndItsJobIsEndedAllTheSame) {
  ReaperClient client = Start();
  const Result<StartedJob> job = client.StartJob(Shell("exec sleep 1000"));
  ASSERT_TRUE(job) << job.error().message;
  ASSERT_TRUE(SignalPidfd(client.pidfd(), SIGSTOP));
  const Result<std::vector<LeftoverProcess>> answer = client.EndAll(Milliseconds(-4'900));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ETIMEDOUT);
  EXPECT_THAT(*client.EndOrphans(), IsEmpty());
  EXPECT_TRUE(BecomesReadable(job->pidfd.get()));
}

TEST_F(ReaperTest, OrphansOfAKilledReaperAreEndedAndTheCallersOwnProcessesAreNot) {
  SpawnOptions sleeper;
  sleeper.argv = {"sleep", "1000"};
  sleeper.new_session = true;
  const Result<SpawnedProcess> before = Spawn(sleeper);
  ReaperClient other = Start();
  ReaperClient client = Start();
  sleeper.new_session = false;
  const Result<SpawnedProcess> after = Spawn(sleeper);
  ASSERT_TRUE(before && after);
  ASSERT_TRUE(other.StartJob(Shell("exec sleep 1000")));
  ASSERT_TRUE(client.StartJob(
      Shell("setsid sh -c 'sleep 1000 & sleep 1000 & echo $!; wait' & echo $!; wait")));
  const pid_t first = std::atoi(ReadLine(out_.read.get()).c_str());
  const pid_t second = std::atoi(ReadLine(out_.read.get()).c_str());

  ASSERT_TRUE(SignalPidfd(client.pidfd(), SIGKILL));
  ASSERT_TRUE(BecomesReadable(client.pidfd()));
  EXPECT_EQ(client.InspectLeftovers().error().code, EPIPE);
  EXPECT_EQ(client.ReadEvents().error().code, EPIPE);
  const Result<std::vector<LeftoverProcess>> remain = client.EndOrphans();
  ASSERT_TRUE(remain) << remain.error().message;
  EXPECT_THAT(*remain, IsEmpty());
  EXPECT_FALSE(IdentityOf(first));
  EXPECT_FALSE(IdentityOf(second));

  EXPECT_EQ(*IdentityOf(before->pid), before->identity);
  EXPECT_EQ(*IdentityOf(after->pid), after->identity);
  EXPECT_EQ(other.InspectLeftovers()->size(), 1u) << "another run's job must live";
  ASSERT_TRUE(other.Shutdown());
  for (const Result<SpawnedProcess>* own : {&before, &after}) {
    ASSERT_TRUE(SignalPidfd((*own)->pidfd.get(), SIGKILL));
    ASSERT_TRUE(Wait((*own)->pidfd.get()));
  }
}

// --- A controller that dies.

struct Victim {
  SpawnedProcess controller;
  pid_t holder = 0;
  pid_t job = 0;
  pid_t reaper = 0;
  UniqueFd reaper_pidfd;
  UniqueFd stdin_pipe;
};

class ReaperWithoutController : public ReaperTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    ReaperTest::SetUp();
    if (GetParam() && ::geteuid() != 0) GTEST_SKIP() << "only root can become nobody";
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    if (GetParam()) {
      for (const fs::path& path : {run_.root(), run_.checkpoint_dir()}) {
        ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
      }
    }
  }

  Victim StartVictim(int64_t ballast_bytes, const std::string& script) {
    Pipe in;
    SpawnOptions options;
    if (GetParam())
      options.argv = {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"};
    options.argv.insert(options.argv.end(), {VICTIM_CONTROLLER, kReaper, run_.root().native(),
                                             std::to_string(ballast_bytes), script});
    options.environment = {"PATH=/usr/bin:/bin"};
    options.descriptors = {{in.read.get(), 0}, {out_.write.get(), 1}, {err_.write.get(), 2}};
    Result<SpawnedProcess> controller = Spawn(options);
    EXPECT_TRUE(controller) << controller.error().message;
    Victim victim;
    victim.controller = *std::move(controller);
    victim.stdin_pipe = std::move(in.write);
    const std::string line = ReadLine(out_.read.get());
    if (std::sscanf(line.c_str(), "ready %d %d %d", &victim.holder, &victim.job, &victim.reaper) !=
        3) {
      ADD_FAILURE() << "the victim did not start: " << line << ReadLine(err_.read.get());
      return victim;
    }
    Result<UniqueFd> pidfd = OpenPidfd(*IdentityOf(victim.reaper));
    EXPECT_TRUE(pidfd);
    victim.reaper_pidfd = *std::move(pidfd);
    return victim;
  }

  static std::vector<Json> Records(const fs::path& path) {
    std::vector<Json> records;
    const Result<std::string> text = ReadFile(path);
    EXPECT_TRUE(text) << text.error().message;
    for (const std::string_view line : SplitLines(*text).complete) {
      const Result<Json> record = DecodeRecord(line);
      EXPECT_TRUE(record) << line;
      if (record) records.push_back(*record);
    }
    return records;
  }

  Pipe err_;
};

constexpr char kStubbornJob[] =
    // A grandchild in a session of its own whose parents are gone, and one that ignores SIGTERM.
    "trap '' TERM HUP; (setsid sh -c 'trap \"\" TERM; sleep 1000 & echo detached >&2; wait' &) ; "
    "sleep 1000";

TEST_P(ReaperWithoutController, UndoesEndsEverythingAndWritesThePagesWhenItIsKilled) {
  const Victim victim = StartVictim(1 << 20, kStubbornJob);
  ASSERT_NE(victim.reaper, 0);
  ASSERT_EQ(ReadLine(err_.read.get()), "detached");
  const Result<ProcessTree> before = ProcessesBelow(victim.reaper);
  ASSERT_TRUE(before);
  EXPECT_GE(before->processes.size(), 4u) << "holder, job, detached shell, its sleep";
  ASSERT_TRUE(fs::exists(run_.root() / "shakedown-tree"));

  ASSERT_TRUE(SignalPidfd(victim.controller.pidfd.get(), SIGKILL));
  ASSERT_TRUE(BecomesReadable(victim.reaper_pidfd.get()));
  for (const TreeProcess& process : before->processes) {
    EXPECT_FALSE(OpenPidfd(process.identity)) << CommandOf(process.identity.pid);
  }
  EXPECT_FALSE(fs::exists(run_.root() / "shakedown-tree"));
  EXPECT_EQ(*ReadFile(run_.rank(0, 0) / kRankPage), std::string(kPageObservedBytes, 'o'))
      << "the observed half, and nothing of the secret one";

  const std::vector<Json> records = Records(run_.undone());
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(StringField(records[0], "event"), "controller.lost");
  EXPECT_EQ(IntField(records[1], "seq"), 2) << "the last step is undone first";
  EXPECT_EQ(IntField(records[2], "seq"), 1);
  for (const Json& record : records) {
    EXPECT_EQ(StringField(record, "by"), "reaper");
    EXPECT_TRUE(Field(record, "error").is_null()) << DumpJson(record);
  }
  EXPECT_THAT(ParseJournal(*ReadFile(run_.journal()), *ReadFile(run_.undone())).pending, IsEmpty());
  // Once the last process and descriptor in it are gone, so is the filesystem.
  EXPECT_THAT(*ReadFile("/proc/self/mountinfo"), ::testing::Not(HasSubstr(run_.root().native())));
}

TEST_P(ReaperWithoutController, DoesTheSameWhenTheControllerOnlyDropsIt) {
  Victim victim = StartVictim(0, kStubbornJob);
  ASSERT_NE(victim.reaper, 0);
  const Result<ProcessTree> before = ProcessesBelow(victim.reaper);
  ASSERT_TRUE(before);
  victim.stdin_pipe.Reset();
  ASSERT_TRUE(BecomesReadable(victim.reaper_pidfd.get()));
  for (const TreeProcess& process : before->processes) {
    EXPECT_FALSE(OpenPidfd(process.identity)) << CommandOf(process.identity.pid);
  }
  EXPECT_FALSE(fs::exists(run_.root() / "shakedown-tree"));
}

TEST_P(ReaperWithoutController, SaysWhatItCouldNotUndo) {
  const Victim victim = StartVictim(0, "exec sleep 1000");
  ASSERT_NE(victim.reaper, 0);
  // The tree is exchanged for a link to something that must stay.
  fs::remove_all(run_.root() / "shakedown-tree");
  ASSERT_TRUE(MakeDirectories(run_.root() / "precious"));
  fs::create_directory_symlink(run_.root() / "precious", run_.root() / "shakedown-tree");
  ASSERT_TRUE(SignalPidfd(victim.controller.pidfd.get(), SIGKILL));
  ASSERT_TRUE(BecomesReadable(victim.reaper_pidfd.get()));
  EXPECT_TRUE(fs::exists(run_.root() / "precious"));
  const std::vector<Json> records = Records(run_.undone());
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(BoolField(records[1], "undone"), false);
  EXPECT_THAT(StringField(records[1], "error").value_or(""), HasSubstr("shakedown-tree"));
  EXPECT_THAT(ParseJournal(*ReadFile(run_.journal()), *ReadFile(run_.undone())).pending,
              ::testing::SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(As, ReaperWithoutController, ::testing::Values(false, true),
                         [](const auto& as) { return as.param ? "Nobody" : "Oneself"; });

}  // namespace
}  // namespace shakedown
