// Ctrl-C, SIGTERM, a closed terminal, a killed controller, broken programs and two runs at once:
// what was done is undone, the job is ended, evidence stays, nothing is left.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <thread>

#include "tests/e2e/background.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;

class Interrupt : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(Interrupt, IsUndoneEndedAndKeepsEvidence) {
  const auto [signal, status] = GetParam();
  const RunsFolder folder;
  Background run({"run", "disk_full", "--out", folder.str(), "--set", "job.steps=600"});
  const auto dir = AwaitEvent(folder, events::kRankJoined, run);
  ASSERT_TRUE(dir) << "the run ended by itself";
  const std::vector<ProcessIdentity> processes = Below(run.pid());
  ASSERT_GE(processes.size(), 4u);
  run.Signal(signal);
  EXPECT_EQ(run.Await().code(), status);
  ExpectGone(processes);
  const Json verdict = ParseJson(ReadFile(dir->verdict()).value()).value();
  EXPECT_EQ(StringField(verdict, "verdict"), "INCONCLUSIVE") << DumpPretty(verdict);
  EXPECT_TRUE(fs::exists(dir->seal()));
  EXPECT_EQ(Cli({"clean", folder.str()}).status, 0);
}

INSTANTIATE_TEST_SUITE_P(BySignal, Interrupt,
                         ::testing::Values(std::pair(SIGINT, 130), std::pair(SIGTERM, 143),
                                           std::pair(SIGHUP, 129)),
                         [](const auto& test) { return SignalName(test.param.first); });

TEST(KilledController, LeavesNothingRunning) {
  const RunsFolder folder;
  Background run({"run", "control", "--out", folder.str(), "--set", "job.steps=600"});
  const auto dir = AwaitEvent(folder, events::kRankJoined, run);
  ASSERT_TRUE(dir);
  const std::vector<ProcessIdentity> processes = Below(run.pid());
  run.Signal(SIGKILL);
  EXPECT_EQ(run.Await().signal(), SIGKILL);
  ExpectGone(processes);
  // What was recorded can be judged, and is no PASS.
  const CliResult check = Cli({"check", dir->root().native(), "--json"});
  EXPECT_TRUE(check.status == 4 || check.status == 5) << check.out;
  EXPECT_EQ(Cli({"clean", folder.str()}).status, 0);
}

TEST(Abort, StopsARunFromOutside) {
  const RunsFolder folder;
  Background run({"run", "control", "--out", folder.str(), "--set", "job.steps=600"});
  const auto dir = AwaitEvent(folder, events::kRankJoined, run);
  ASSERT_TRUE(dir);
  // The test is the run's parent and has to reap it, as a shell would.
  std::thread reaper([&] { run.Await(); });
  const CliResult aborted = Cli({"abort", dir->root().native()});
  reaper.join();
  EXPECT_EQ(aborted.status, 0) << aborted.out << aborted.err;
  EXPECT_EQ(run.Await().code(), 143);
  EXPECT_EQ(Cli({"abort", folder.str() + "/no-such-run"}).status, 2);
}

TEST(TwoAtOnce, DoNotDisturbOneAnother) {
  const RunsFolder folder;
  // A recovery budget is for a machine of one's own.
  const std::vector<std::string> arguments = {"run",   "rank_killed",
                                              "--out", folder.str(),
                                              "--set", "expect.budget.recovery=30s",
                                              "--set", "expect.detected.within=10s"};
  Background first(arguments), second(arguments);
  EXPECT_EQ(first.Await().code(), 0);
  EXPECT_EQ(second.Await().code(), 0);
}

TEST(Broken, AMissingTrainerIsAnErrorThatNamesIt) {
  const RunsFolder folder;
  const CliResult run = Cli({"run", "control", "--json", "--out", folder.str()},
                            {"SHAKEDOWN_TRAINER=/nowhere/trainer"});
  EXPECT_EQ(run.status, 5);
  EXPECT_NE(StringField(run.json, "reason").value_or("").find("/nowhere/trainer"),
            std::string::npos)
      << run.out;
}

TEST(Broken, ATrainerThatIsNoTrainerIsAnErrorWithTheCause) {
  const RunsFolder folder;
  const fs::path fake = folder.path() / "trainer";
  std::ofstream(fake) << "#!/bin/sh\necho 'no such library' >&2\nexit 127\n";
  fs::permissions(fake, fs::perms::owner_all);
  const CliResult run = Cli({"run", "control", "--json", "--out", folder.str() + "/runs"},
                            {"SHAKEDOWN_TRAINER=" + fake.native()});
  EXPECT_EQ(run.status, 5) << run.out << run.err;
  EXPECT_NE(StringField(run.json, "reason").value_or("").find("127"), std::string::npos) << run.out;
}

TEST(Broken, AMissingDataSetIsRefusedBeforeAnythingStarts) {
  const RunsFolder folder;
  const CliResult run =
      Cli({"run", "control", "--json", "--out", folder.str(), "--set", "job.data=/nowhere/digits"});
  EXPECT_EQ(run.status, 2) << run.out << run.err;
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Broken, AnUnwritableOutputFolderIsRefusedBeforeAnythingStarts) {
  const RunsFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  const CliResult run = Cli({"run", "control", "--out", folder.str() + "/file/runs"});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("--out"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace shakedown
