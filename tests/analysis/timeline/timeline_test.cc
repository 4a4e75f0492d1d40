#include "analysis/timeline/timeline.h"

#include <gtest/gtest.h>

#include "analysis/timeline/load.h"
#include "analysis/timeline/reactions.h"
#include "harness/wire/run_dir.h"
#include "tests/support/run_dir_builder.h"
#include "tests/support/temp_dir.h"

namespace shakedown::test_support {
namespace {

struct Loaded {
  ObservedEvidence observed;
  SecretEvidence secret;
  Timeline timeline;
};

Loaded Load(const RunDirBuilder& run) {
  const TempDir folder;
  run.WriteTo(folder.path());
  Loaded out;
  out.observed = *LoadObserved(RunDir(folder.path()));
  out.secret = LoadSecret(RunDir(folder.path()));
  out.timeline = BuildTimeline(out.observed, out.secret);
  return out;
}

TEST(Timeline, ARestartIsARecoveryWithLostStepsAndRework) {
  const Loaded loaded = Load(RunDirBuilder::RankKilled());
  ASSERT_EQ(loaded.timeline.recoveries.size(), 1U);
  const Recovery& recovery = loaded.timeline.recoveries[0];
  EXPECT_EQ(recovery.reached, 38);
  EXPECT_EQ(recovery.resumed_from, 30);
  EXPECT_EQ(recovery.lost_steps, 8);
  EXPECT_EQ(recovery.rework, std::chrono::milliseconds(160));
  ASSERT_TRUE(recovery.new_step_seen && recovery.new_step_ledger);
  EXPECT_EQ(*recovery.new_step_seen - *recovery.new_step_ledger, std::chrono::milliseconds(1));
}

TEST(Timeline, AFaultThatWasLivedThroughLosesNothing) {
  const Loaded loaded = Load(RunDirBuilder::DiskFull());
  ASSERT_EQ(loaded.timeline.recoveries.size(), 1U);
  EXPECT_EQ(loaded.timeline.recoveries[0].reached, 20);
  EXPECT_EQ(loaded.timeline.recoveries[0].lost_steps, 0);
  EXPECT_TRUE(loaded.timeline.recoveries[0].ToNewStep().has_value());
}

TEST(Timeline, AnUndisturbedRunHasNoRecovery) {
  const Loaded loaded = Load(RunDirBuilder::Control());
  EXPECT_TRUE(loaded.timeline.recoveries.empty());
  EXPECT_FALSE(loaded.timeline.zero.has_value());
  ASSERT_EQ(loaded.timeline.attempts.size(), 1U);
  EXPECT_EQ(loaded.timeline.attempts[0].CompletedByAll(), 60);
}

TEST(Timeline, StepsBetweenTwoSamplesGetTheTimeOfTheLater) {
  RunDirBuilder run = RunDirBuilder::Control();
  std::erase_if(run.observed, [](const Event& event) {
    return event.name == events::kPageSampled && event.fields["rank"] == 0 &&
           event.fields["last_step"] == 10;
  });
  const Loaded loaded = Load(run);
  const RankTimeline& rank = loaded.timeline.attempts[0].ranks[0];
  ASSERT_NE(rank.Find(10), nullptr);
  EXPECT_EQ(rank.Find(10)->seen, rank.Find(11)->seen);
  EXPECT_LT(rank.Find(10)->ledger, rank.Find(11)->ledger);
}

TEST(Timeline, WindowsLieAroundTheFault) {
  const Loaded loaded = Load(RunDirBuilder::DiskFull());
  const MonoTime zero = *loaded.timeline.zero;
  EXPECT_EQ(loaded.timeline.WindowOf(zero - Milliseconds(1)), Window::kBefore);
  EXPECT_EQ(loaded.timeline.WindowOf(zero + Milliseconds(5)), Window::kDuring);
  EXPECT_EQ(loaded.timeline.WindowOf(zero + Milliseconds(50)), Window::kAfter);
}

TEST(Timeline, EntriesAreInOrderOfTime) {
  const Loaded loaded = Load(RunDirBuilder::RankKilled());
  ASSERT_GT(loaded.timeline.entries.size(), 50U);
  for (size_t i = 1; i < loaded.timeline.entries.size(); ++i) {
    EXPECT_LE(loaded.timeline.entries[i - 1].t, loaded.timeline.entries[i].t);
  }
}

TEST(Reactions, TheJobsOwnLineCountsAndTheVictimsDeathDoesNot) {
  const Loaded loaded = Load(RunDirBuilder::RankKilled());
  const InjectedRecord& injected = loaded.secret.injected.at(0);
  const auto reaction = JobReaction(loaded.observed, loaded.secret, injected);
  ASSERT_TRUE(reaction.has_value());
  EXPECT_EQ(reaction->what, "the launcher logged rank.exited");
  const auto notice = OwnNotice(loaded.observed, *injected.t0);
  ASSERT_TRUE(notice.has_value());
  EXPECT_LT(notice->at, reaction->at);
}

TEST(Load, ALateTimerIsOverloadAndAPunctualOneIsNot) {
  RunDirBuilder run = RunDirBuilder::Control();
  EXPECT_FALSE(MeasureLoad(Load(run).observed).overloaded);
  run.FindObserved(events::kLoadSampled, 1).fields["slip_ms"] = 250;
  const LoadReport report = MeasureLoad(Load(run).observed);
  EXPECT_TRUE(report.overloaded);
  EXPECT_EQ(report.why, "the controller's timer came late by 250 ms, limit 100 ms");
}

TEST(Load, TimeTakenByOtherMachinesIsOverload) {
  RunDirBuilder run = RunDirBuilder::Control();
  run.FindObserved(events::kLoadSampled, 2).fields["steal_ticks"] = 5 + 200;
  EXPECT_TRUE(MeasureLoad(Load(run).observed).overloaded);
}

}  // namespace
}  // namespace shakedown::test_support
