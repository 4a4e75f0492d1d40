// shakedown-launch as a program, with ranks that do what a test says (tests/victims/rank.cc).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "harness/base/file.h"
#include "harness/process/spawn.h"
#include "harness/wire/environment.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/job.h"
#include "harness/wire/log_events.h"
#include "harness/wire/run_dir.h"
#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Launcher : public ::testing::Test {
 protected:
  Launcher() : run_(dir_.path() / "run") {
    fs::create_directory(dir_.path() / "tmp");
    job_.max_restarts = 2;
    job_.startup_timeout = std::chrono::seconds(60);
  }

  void SetUp() override {
    // What a launcher leaves behind comes to us, so that it can be seen.
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  }

  // Starts the launcher with these arguments after its own.
  SpawnedProcess Start(const std::vector<std::string>& arguments) {
    std::ofstream(dir_.path() / "job.json") << DumpPretty(ToJson(job_));
    SpawnOptions spawn;
    spawn.argv = {SHAKEDOWN_BINARY_DIR "/shakedown-launch", "--config", dir_.path() / "job.json",
                  "--log-dir", run_.root()};
    spawn.argv.insert(spawn.argv.end(), arguments.begin(), arguments.end());
    spawn.environment = {std::string(env::kTmpDir) + "=" + (dir_.path() / "tmp").native(),
                         "PATH=/usr/bin:/bin"};
    const UniqueFd err(
        ::open((dir_.path() / "stderr").c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600));
    spawn.descriptors = {{err.get(), STDERR_FILENO}};
    Result<SpawnedProcess> launcher = Spawn(spawn);
    if (!launcher) ADD_FAILURE() << launcher.error().message;
    return launcher ? *std::move(launcher) : SpawnedProcess();
  }
  static std::vector<std::string> Victims(const std::vector<std::string>& script) {
    std::vector<std::string> arguments = {"--", VICTIM_RANK};
    arguments.insert(arguments.end(), script.begin(), script.end());
    return arguments;
  }

  // The exit status; -1 when it was ended by a signal. Whatever happened, nothing may be left.
  int Finish(const SpawnedProcess& launcher) {
    const Result<WaitStatus> status = Wait(launcher.pidfd.get());
    EXPECT_TRUE(status);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "the launcher left a process";
    EXPECT_EQ(errno, ECHILD);
    EXPECT_TRUE(fs::is_empty(dir_.path() / "tmp")) << "the launcher left files in TMPDIR";
    return status ? status->code() : -1;
  }
  int Run(const std::vector<std::string>& script) { return Finish(Start(Victims(script))); }
  static std::vector<std::string> Forked(const std::vector<std::string>& script) {
    std::vector<std::string> arguments = {"--start-method", "forkserver"};
    const std::vector<std::string> victims = Victims(script);
    arguments.insert(arguments.end(), victims.begin(), victims.end());
    return arguments;
  }

  std::string Read(const fs::path& path) {
    const Result<std::string> text = ReadFile(path);
    return text ? *text : "(" + text.error().message + ")";
  }
  std::string Stderr() { return Read(dir_.path() / "stderr"); }
  std::string RankStdout(int attempt, int rank) {
    return Read(run_.rank(attempt, rank) / kRankStdout);
  }

  // Records of attempt K's launcher.jsonl with this name.
  std::vector<Json> Events(int attempt, std::string_view name) {
    std::vector<Json> out;
    const std::string text = Read(run_.launcher_log(attempt));
    for (const std::string_view line : SplitLines(text).complete) {
      const Result<Json> json = ParseJson(line);
      EXPECT_TRUE(json) << line;
      if (json && StringField(*json, "event") == name) out.push_back(*json);
    }
    return out;
  }
  Json OneEvent(int attempt, std::string_view name) {
    const std::vector<Json> found = Events(attempt, name);
    EXPECT_EQ(found.size(), 1u) << name << " in attempt " << attempt;
    return found.empty() ? Json::object() : found[0];
  }
  static std::vector<int> Ranks(const Json& blames) {
    std::vector<int> out;
    for (const Json& blame : blames) out.push_back(blame.at("rank").get<int>());
    return out;
  }

  test_support::TempDir dir_;
  RunDir run_;
  JobConfig job_;  // 3 ranks
};

// rank 1 fails as said, the other two notice it and exit 65.
std::vector<std::string> OneFails(const std::string& verb) {
  return {"0.0=ready,step:38,watch:1,exit:65", "0.1=ready,step:38," + verb,
          "0.2=ready,step:38,watch:1,exit:65"};
}

TEST_F(Launcher, AllRanksSucceed) {
  EXPECT_EQ(Run({}), kLaunchOk);
  const Json started = OneEvent(0, log_events::kAttemptStarted);
  EXPECT_EQ(started["ranks"], 3);
  EXPECT_EQ(started["restarts_left"], 2);
  EXPECT_EQ(Events(0, log_events::kRankSpawned).size(), 3u);
  const std::vector<Json> exited = Events(0, log_events::kRankExited);
  ASSERT_EQ(exited.size(), 3u);
  EXPECT_EQ(exited[0]["code"], 0);
  EXPECT_EQ(exited[0]["by"], "itself");
  EXPECT_EQ(exited[0]["level"], "INFO");
  EXPECT_EQ(OneEvent(0, log_events::kAttemptFinished)["attempt"], 0);
  EXPECT_EQ(OneEvent(0, log_events::kJobFinished)["exit_code"], 0);
  EXPECT_EQ(Stderr(), "");
}

TEST_F(Launcher, AKilledRankIsNamedAndTheGroupStartsAgain) {
  EXPECT_EQ(Run(OneFails("raise:9")), kLaunchOk);
  const Json failed = OneEvent(0, log_events::kAttemptFailed);
  EXPECT_EQ(failed["first"], 1);
  EXPECT_EQ(failed["reason"], "signal");
  EXPECT_THAT(Ranks(failed["cause"]), ElementsAre(1));
  EXPECT_THAT(Ranks(failed["consequences"]), ElementsAre(0, 2));
  EXPECT_EQ(failed["last_step"], 38);
  for (const Json& exited : Events(0, log_events::kRankExited)) EXPECT_EQ(exited["by"], "itself");
  EXPECT_EQ(OneEvent(0, log_events::kRestartScheduled)["restarts_left"], 1);
  EXPECT_EQ(OneEvent(1, log_events::kJobFinished)["attempts"], 2);
  EXPECT_THAT(Stderr(), HasSubstr("rank 1: killed by SIGKILL"));
}

TEST_F(Launcher, NobodyWaitsForRanksThatHaveEnded) {
  EXPECT_EQ(Run(OneFails("raise:9")), kLaunchOk);
  const auto exited = Events(0, log_events::kRankExited);
  const auto restarted = OneEvent(1, log_events::kAttemptStarted);
  const int64_t last = std::max({exited[0]["t_ns"].get<int64_t>(), exited[1]["t_ns"].get<int64_t>(),
                                 exited[2]["t_ns"].get<int64_t>()});
  // Half of the grace that others are given.
  EXPECT_LT(restarted["t_ns"].get<int64_t>() - last, 500'000'000);
}

TEST_F(Launcher, AnExitStatusOfItsOwnIsTheCause) {
  EXPECT_EQ(Run(OneFails("exit:73")), kLaunchOk);
  const Json failed = OneEvent(0, log_events::kAttemptFailed);
  EXPECT_EQ(failed["reason"], "exit");
  EXPECT_THAT(Ranks(failed["cause"]), ElementsAre(1));
  EXPECT_EQ(failed["cause"][0]["what"], "exit 73 (exception)");
}

TEST_F(Launcher, TheRankThatDidNotJoinIsEndedSoonAndNamed) {
  job_.ranks = 4;
  EXPECT_EQ(Run({"0.0=ready,step:38,exit:66", "0.1=ready,step:38,pause",
                 "0.2=ready,step:38,exit:66", "0.3=ready,step:38,exit:65"}),
            kLaunchOk);
  const Json failed = OneEvent(0, log_events::kAttemptFailed);
  EXPECT_EQ(failed["reason"], "timeout");
  EXPECT_THAT(Ranks(failed["cause"]), ElementsAre(1));
  EXPECT_THAT(Ranks(failed["consequences"]), ElementsAre(0, 2, 3));
  const std::vector<Json> exited = Events(0, log_events::kRankExited);
  ASSERT_EQ(exited.size(), 4u);
  EXPECT_EQ(exited[3]["rank"], 1);
  EXPECT_EQ(exited[3]["signal"], "SIGKILL");
  EXPECT_EQ(exited[3]["by"], "launcher");
  // After one still moment, not after the whole grace.
  EXPECT_GE(exited[3]["t_ns"].get<int64_t>() - exited[2]["t_ns"].get<int64_t>(), 100'000'000);
  EXPECT_LT(exited[3]["t_ns"].get<int64_t>() - exited[0]["t_ns"].get<int64_t>(), 1'000'000'000);
}

TEST_F(Launcher, RanksThatDoNotNoticeAreEndedAfterTheGrace) {
  EXPECT_EQ(Run({"0.0=ready,step:38,pause", "0.1=ready,step:38,raise:11", "0.2=ready,pause"}),
            kLaunchOk);
  const Json failed = OneEvent(0, log_events::kAttemptFailed);
  EXPECT_THAT(Ranks(failed["cause"]), ElementsAre(1));
  EXPECT_EQ(failed["consequences"][0]["what"], "ended by the launcher");
  const std::vector<Json> exited = Events(0, log_events::kRankExited);
  ASSERT_EQ(exited.size(), 3u);
  EXPECT_GE(exited[1]["t_ns"].get<int64_t>() - exited[0]["t_ns"].get<int64_t>(), 1'000'000'000);
}

TEST_F(Launcher, TheRestartBudgetIsCountedOverAllRanks) {
  EXPECT_EQ(
      Run({"0.0=ready,exit:73", "1.1=ready,exit:73", "2.2=ready,exit:73", "3.0=ready,exit:0"}),
      kLaunchFailed);
  EXPECT_THAT(Ranks(OneEvent(0, log_events::kAttemptFailed)["cause"]), ElementsAre(0));
  EXPECT_THAT(Ranks(OneEvent(1, log_events::kAttemptFailed)["cause"]), ElementsAre(1));
  EXPECT_THAT(Ranks(OneEvent(2, log_events::kAttemptFailed)["cause"]), ElementsAre(2));
  EXPECT_EQ(OneEvent(2, log_events::kRestartExhausted)["restarts"], 2);
  EXPECT_EQ(OneEvent(2, log_events::kJobFinished)["exit_code"], 1);
  EXPECT_FALSE(fs::exists(run_.attempt(3)));
  EXPECT_THAT(Stderr(), HasSubstr("budget of 2 restarts is used up"));
}

TEST_F(Launcher, WithPolicyNoneTheFirstFailureEndsTheJob) {
  job_.restart_policy = RestartPolicy::kNone;
  EXPECT_EQ(Run(OneFails("exit:73")), kLaunchFailed);
  EXPECT_EQ(OneEvent(0, log_events::kJobFinished)["exit_code"], 1);
  EXPECT_THAT(Events(0, log_events::kRestartExhausted), IsEmpty());
  EXPECT_FALSE(fs::exists(run_.attempt(1)));
}

TEST_F(Launcher, TheWatchdogEndsAGroupThatStandsStillAndNamesWhoIsBehind) {
  job_.watchdog = Milliseconds(300);
  EXPECT_EQ(Run({"0.0=ready,step:38,pause", "0.1=ready,step:37,pause", "0.2=ready,step:38,pause"}),
            kLaunchOk);
  const Json fired = OneEvent(0, log_events::kWatchdogFired);
  EXPECT_EQ(fired["limit_ms"], 300);
  EXPECT_GE(fired["waited_ms"].get<double>(), 300);
  EXPECT_EQ(fired["last_step"], 37);
  EXPECT_EQ(DumpJson(fired["behind"]), "[1]");
  const Json failed = OneEvent(0, log_events::kAttemptFailed);
  EXPECT_EQ(failed["reason"], "watchdog");
  EXPECT_EQ(failed["first"], nullptr);
  EXPECT_THAT(Ranks(failed["cause"]), ElementsAre(1));
  for (const Json& exited : Events(0, log_events::kRankExited)) EXPECT_EQ(exited["by"], "launcher");
}

TEST_F(Launcher, TheWatchdogNamesNobodyWhenAllStandAtTheSameStep) {
  job_.watchdog = Milliseconds(200);
  EXPECT_EQ(Run({"0.0=ready,step:38,pause", "0.1=ready,step:38,pause", "0.2=ready,step:38,pause"}),
            kLaunchOk);
  EXPECT_EQ(DumpJson(OneEvent(0, log_events::kWatchdogFired)["behind"]), "[0,1,2]");
  EXPECT_THAT(Ranks(OneEvent(0, log_events::kAttemptFailed)["cause"]), IsEmpty());
}

TEST_F(Launcher, RanksThatAreNotReadyInTimeAreMissing) {
  job_.startup_timeout = Milliseconds(300);
  job_.max_restarts = 0;
  EXPECT_EQ(Run({"0.0=ready,pause", "0.1=pause", "0.2=ready,pause"}), kLaunchFailed);
  const Json timeout = OneEvent(0, log_events::kStartupTimeout);
  EXPECT_EQ(timeout["limit_ms"], 300);
  EXPECT_GE(timeout["waited_ms"].get<double>(), 300);
  EXPECT_EQ(DumpJson(timeout["missing"]), "[1]");
  EXPECT_EQ(OneEvent(0, log_events::kAttemptFailed)["reason"], "startup");
  EXPECT_THAT(Events(0, log_events::kWatchdogFired), IsEmpty());
}

TEST_F(Launcher, LogsAndStoreOfEachAttemptAreItsOwn) {
  EXPECT_EQ(Run({"0.0=print-store,ready,exit:73", "0.1=print:first,ready,step:1,exit:0",
                 "1.0=print-store,ready,exit:0", "1.1=print:second,ready,exit:0"}),
            kLaunchOk);
  EXPECT_EQ(RankStdout(0, 1), "first\n");
  EXPECT_EQ(RankStdout(1, 1), "second\n");
  EXPECT_THAT(RankStdout(0, 0), HasSubstr("is new"));
  EXPECT_THAT(RankStdout(1, 0), HasSubstr("is new"));
  EXPECT_NE(RankStdout(0, 0), RankStdout(1, 0));
  EXPECT_NE(OneEvent(0, log_events::kAttemptStarted)["store"],
            OneEvent(1, log_events::kAttemptStarted)["store"]);
}

TEST_F(Launcher, AfterOutOfMemoryTheNextAttemptSplitsItsBatches) {
  job_.micro_batch = 3;
  EXPECT_EQ(Run({"0.0=print-parts,ready,exit:67", "1.0=print-parts,ready,exit:67",
                 "2.0=print-parts,ready,exit:0"}),
            kLaunchOk);
  EXPECT_EQ(RankStdout(0, 0), "parts 1\n");
  EXPECT_EQ(RankStdout(1, 0), "parts 2\n");
  EXPECT_EQ(RankStdout(2, 0), "parts 3\n");  // no more than samples
}

TEST_F(Launcher, OtherFailuresDoNotSplitBatches) {
  EXPECT_EQ(Run({"0.0=ready,exit:73", "1.0=print-parts,ready,exit:0"}), kLaunchOk);
  EXPECT_EQ(RankStdout(1, 0), "parts 1\n");
}

// For stopping: rank 0 says when it is there.
class LauncherStop : public Launcher {
 protected:
  LauncherStop() : fifo_(dir_.path() / "fifo") { ::mkfifo(fifo_.c_str(), 0600); }
  // Blocks until a rank announces itself.
  static void AwaitAnnouncement(const fs::path& fifo) {
    const UniqueFd fd(::open(fifo.c_str(), O_RDONLY | O_CLOEXEC));
    char byte = 0;
    ASSERT_EQ(::read(fd.get(), &byte, 1), 0);
  }
  void AwaitAnnouncement() { AwaitAnnouncement(fifo_); }
  std::string Announce() const { return "announce:" + fifo_.native(); }
  fs::path fifo_;
};

TEST_F(LauncherStop, ForkedRanksAreTheLaunchersChildrenWithLogsAndSettingsOfTheirOwn) {
  const SpawnedProcess launcher =
      Start(Forked({"0.0=ready,print-store,print-session,exit:0", "0.1=ready,print-session,raise:9",
                    "0.2=ready,watch:1,exit:65", "1.2=ready,print-store,exit:0"}));
  const std::string parent = "leads, parent " + std::to_string(launcher.pid) + "\n";
  EXPECT_EQ(Finish(launcher), kLaunchOk);
  EXPECT_THAT(RankStdout(0, 0), HasSubstr("is new\n" + parent));
  EXPECT_EQ(RankStdout(0, 1), parent);
  EXPECT_EQ(RankStdout(0, 2), "");
  EXPECT_THAT(RankStdout(1, 2), HasSubstr("is new"));
  EXPECT_THAT(Ranks(OneEvent(0, log_events::kAttemptFailed)["cause"]), ElementsAre(1));
  EXPECT_THAT(Stderr(), Not(HasSubstr("one by one")));
}

TEST_F(Launcher, ACommandThatCannotBeForkedIsStartedOncePerRank) {
  const SpawnedProcess launcher =
      Start({"--start-method", "forkserver", "--", "/bin/sh", "-c", "echo rank $RANK"});
  EXPECT_EQ(Finish(launcher), kLaunchOk);
  EXPECT_EQ(RankStdout(0, 2), "rank 2\n");
  EXPECT_THAT(Stderr(), HasSubstr("ended instead of becoming a fork server"));
}

TEST_F(LauncherStop, AForkServerThatWasKilledIsDoneWithout) {
  job_.ranks = 1;
  const fs::path go_on = dir_.path() / "go-on";
  ASSERT_EQ(::mkfifo(go_on.c_str(), 0600), 0);
  const SpawnedProcess launcher =
      Start(Forked({"0.0=ready," + Announce() + ",announce:" + go_on.native() + ",exit:1"}));
  AwaitAnnouncement();
  // The launcher's children: the server, and the rank that waits at the FIFO.
  std::istringstream children(Read("/proc/" + std::to_string(launcher.pid) + "/task/" +
                                   std::to_string(launcher.pid) + "/children"));
  pid_t server = 0;
  ASSERT_TRUE(children >> server);  // the oldest comes first
  const Result<ProcessIdentity> identity = IdentityOf(server);
  ASSERT_TRUE(identity);
  const Result<UniqueFd> pidfd = OpenPidfd(*identity);
  ASSERT_TRUE(pidfd);
  ASSERT_TRUE(SignalPidfd(pidfd->get(), SIGKILL));
  AwaitAnnouncement(go_on);
  EXPECT_EQ(Finish(launcher), kLaunchOk);
  EXPECT_EQ(OneEvent(1, log_events::kJobFinished)["attempts"], 2);
  EXPECT_THAT(Stderr(), HasSubstr("one by one from now on"));
}

TEST_F(LauncherStop, SigtermIsForwardedAndTheJobIsNotStartedAgain) {
  job_.ranks = 1;
  job_.term_grace = std::chrono::seconds(60);
  const SpawnedProcess launcher = Start(Victims({"0.0=ready," + Announce() + ",term:71"}));
  AwaitAnnouncement();
  ASSERT_TRUE(SignalPidfd(launcher.pidfd.get(), SIGTERM));
  EXPECT_EQ(Finish(launcher), kLaunchStopped);
  EXPECT_EQ(OneEvent(0, log_events::kTermReceived)["signal"], "SIGTERM");
  const Json exited = OneEvent(0, log_events::kRankExited);
  EXPECT_EQ(exited["code"], 71);
  EXPECT_EQ(exited["by"], "itself");
  EXPECT_EQ(OneEvent(0, log_events::kJobFinished)["exit_code"], 3);
  EXPECT_THAT(Events(0, log_events::kAttemptFailed), IsEmpty());
}

TEST_F(LauncherStop, ARankThatIgnoresSigtermIsKilledAfterTheGrace) {
  job_.ranks = 1;
  job_.term_grace = Milliseconds(200);
  const SpawnedProcess launcher = Start(Victims({"0.0=ready," + Announce() + ",pause"}));
  AwaitAnnouncement();
  ASSERT_TRUE(SignalPidfd(launcher.pidfd.get(), SIGINT));
  EXPECT_EQ(Finish(launcher), kLaunchStopped);
  const Json exited = OneEvent(0, log_events::kRankExited);
  EXPECT_EQ(exited["signal"], "SIGKILL");
  EXPECT_EQ(exited["by"], "launcher");
  const int64_t asked = OneEvent(0, log_events::kTermReceived)["t_ns"].get<int64_t>();
  EXPECT_GE(exited["t_ns"].get<int64_t>() - asked, 200'000'000);
}

TEST_F(LauncherStop, ASecondSignalEndsTheGrace) {
  job_.ranks = 1;
  job_.term_grace = std::chrono::hours(1);
  const SpawnedProcess launcher = Start(Victims({"0.0=ready," + Announce() + ",pause"}));
  AwaitAnnouncement();
  ASSERT_TRUE(SignalPidfd(launcher.pidfd.get(), SIGTERM));
  ASSERT_TRUE(SignalPidfd(launcher.pidfd.get(), SIGINT));
  EXPECT_EQ(Finish(launcher), kLaunchStopped);
}

TEST_F(Launcher, AMissingProgramIsAUsageErrorAndNothingIsMade) {
  EXPECT_EQ(Finish(Start({"--", "/nonexistent/trainer"})), kLaunchUsage);
  EXPECT_THAT(Stderr(), HasSubstr("/nonexistent/trainer"));
  EXPECT_FALSE(fs::exists(run_.root()));
}

TEST_F(Launcher, AMissingTrainerIsAUsageErrorAndNothingIsMade) {
  EXPECT_EQ(Finish(Start({"--checkpoint-dir", dir_.path(), "--trainer", dir_.path() / "none"})),
            kLaunchUsage);
  EXPECT_THAT(Stderr(), HasSubstr("'" + (dir_.path() / "none").native() + "'"));
  EXPECT_FALSE(fs::exists(run_.root()));
}

TEST_F(Launcher, AProgramThatCannotBeExecutedFailsTheJobWithTheReason) {
  const fs::path program = dir_.path() / "damaged";
  std::ofstream(program) << "\x7F"
                            "ELF and nothing else";
  fs::permissions(program, fs::perms::owner_all);
  EXPECT_EQ(Finish(Start({"--", program})), kLaunchFailed);
  EXPECT_THAT(Stderr(), AllOf(HasSubstr("rank 0"), HasSubstr("damaged")));
}

TEST_F(Launcher, TheTrainerGetsConfigurationAndCheckpointDirectory) {
  job_.ranks = 1;
  const fs::path trainer = "/bin/echo";
  job_.startup_timeout = std::chrono::seconds(60);
  EXPECT_EQ(Finish(Start({"--checkpoint-dir", "/somewhere", "--trainer", trainer})), kLaunchOk);
  EXPECT_EQ(RankStdout(0, 0),
            "--config " + (dir_.path() / "job.json").native() + " --checkpoint-dir /somewhere\n");
}

TEST_F(Launcher, LogsOfAnEarlierJobAreNeverOverwritten) {
  EXPECT_EQ(Run({"0.0=print:first,ready,exit:0"}), kLaunchOk);
  EXPECT_EQ(Run({"0.0=print:second,ready,exit:0"}), kLaunchUsage);
  EXPECT_EQ(RankStdout(0, 0), "first\n");
  EXPECT_THAT(Stderr(), HasSubstr("already holds attempt-0"));
}

TEST_F(Launcher, BadUsageIsExplained) {
  EXPECT_EQ(Finish(Start({"--sideways"})), kLaunchUsage);
  EXPECT_THAT(Stderr(), HasSubstr("--sideways"));
  EXPECT_EQ(Finish(Start({"--trainer", "/bin/true", "--", "/bin/true"})), kLaunchUsage);
  EXPECT_THAT(Stderr(), HasSubstr("belong to the reference trainer"));
  EXPECT_EQ(Finish(Start({"--trainer", "/bin/true"})), kLaunchUsage);
  EXPECT_THAT(Stderr(), HasSubstr("--checkpoint-dir is missing"));
  job_.ranks = 0;
  EXPECT_EQ(Run({}), kLaunchUsage);
  EXPECT_THAT(Stderr(), HasSubstr("ranks must be at least 1"));
}

}  // namespace
}  // namespace shakedown
