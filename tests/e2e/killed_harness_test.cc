// The controller and the reaper die by SIGKILL at random instants of every smoke scenario: nothing
// is left, and what was recorded can be judged, but never passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "harness/base/random.h"
#include "tests/e2e/background.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScenarios[] = {"control",          "rank_killed",  "collective_timeout",
                                      "hang_watchdog",    "disk_full",    "disk_full_killed",
                                      "slow_data_worker", "out_of_memory"};
// Shorter than the shortest of them.
constexpr int kLongestMs = 2200;

enum class Who { kController, kReaperFirst, kBothAtOnce, kControllerFirst };

// Kills of each kind: 50 of the controller and 18 with the reaper in a test, as many as it says in
// a benchmark.
int Kills(int in_a_test) {
  const char* wanted = std::getenv("SHAKEDOWN_TRUST_KILLS");
  return wanted != nullptr ? std::atoi(wanted) : in_a_test;
}

// The reaper is the controller's child that is no short-lived helper: it started first.
std::optional<ProcessIdentity> ReaperOf(pid_t controller) {
  for (const ProcessIdentity& process : Below(controller)) {
    const Result<ProcessStat> stat = ReadProcessStat(process.pid);
    if (stat && stat->parent == controller && stat->name == "shakedown-reape") return process;
  }
  return std::nullopt;
}

void Kill(const ProcessIdentity& process) {
  const Result<UniqueFd> pidfd = OpenPidfd(process);
  if (pidfd) (void)SignalPidfd(pidfd->get(), SIGKILL);
}

// A run directory that is complete enough to be one.
std::vector<fs::path> RunsIn(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (fs::exists(entry.path() / "run.json")) runs.push_back(entry.path());
  }
  return runs;
}

void KillOne(const std::string& scenario, Milliseconds after, Who who) {
  SCOPED_TRACE(::testing::Message() << scenario << ", killed after " << after.count() << " ms");
  const RunsFolder folder;
  const fs::path runs = folder.path() / "runs";
  const fs::path tmp = folder.path() / "tmp";
  fs::create_directory(tmp);
  Background run({"run", scenario, "--out", runs.native()}, {"TMPDIR=" + tmp.native()});
  if (run.Ended(after)) return;  // on a machine that is faster than we know
  const std::optional<ProcessIdentity> reaper = ReaperOf(run.pid());
  const std::vector<ProcessIdentity> processes = Below(run.pid());
  if (who == Who::kReaperFirst && reaper) {
    Kill(*reaper);
    run.Await();  // the controller notices, and ends by itself
  } else {
    if (who == Who::kBothAtOnce && reaper) Kill(*reaper);
    run.Signal(SIGKILL);
    if (who == Who::kControllerFirst && reaper) Kill(*reaper);
  }
  run.Await();
  const CliResult clean = Cli({"clean", runs.native(), "--json"}, {"TMPDIR=" + tmp.native()});
  if (fs::exists(runs)) {
    EXPECT_EQ(clean.status, 0) << clean.out << clean.err;
  }
  ExpectGone(processes);
  for (const fs::path& dir : RunsIn(runs)) {
    const CliResult check = Cli({"check", dir.native(), "--json"});
    // Sealed: the run was over, and the controller died over its last words.
    const bool complete = fs::exists(dir / "seal.json");
    EXPECT_TRUE(check.status == 4 || check.status == 5 || (complete && check.status == 0))
        << check.out << check.err;
    EXPECT_NE(StringField(check.json, "reason").value_or(""), "");
  }
  EXPECT_TRUE(fs::is_empty(tmp)) << fs::directory_iterator(tmp)->path();
}

class KilledAtAnyInstant : public ::testing::TestWithParam<int> {};

TEST_P(KilledAtAnyInstant, TheControllerLeavesNothingAndNeverAPass) {
  const auto scenario = static_cast<size_t>(GetParam());
  Random random(100 + scenario);
  const int kills = Kills(50);
  for (int i = 0; i < kills; ++i) {
    if (static_cast<size_t>(i) % std::size(kScenarios) != scenario) continue;
    KillOne(kScenarios[scenario], Milliseconds(random.Below(kLongestMs)), Who::kController);
    if (HasFailure()) return;
  }
}

TEST_P(KilledAtAnyInstant, TheReaperTooLeavesNothingAfterClean) {
  const auto scenario = static_cast<size_t>(GetParam());
  Random random(200 + scenario);
  const int kills = std::max(Kills(50) / 8, 1);
  for (const Who who : {Who::kReaperFirst, Who::kBothAtOnce, Who::kControllerFirst}) {
    for (int i = 0; i < kills; ++i) {
      if ((static_cast<size_t>(i) + static_cast<size_t>(who)) % std::size(kScenarios) != scenario) {
        continue;
      }
      KillOne(kScenarios[scenario], Milliseconds(random.Below(kLongestMs)), who);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, KilledAtAnyInstant,
                         ::testing::Range(0, static_cast<int>(std::size(kScenarios))),
                         [](const auto& test) {
                           return std::string(kScenarios[static_cast<size_t>(test.param)]);
                         });

}  // namespace
}  // namespace shakedown
