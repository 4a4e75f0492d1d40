// Who was behind when the job stood still, and when that must not be said.
#include <gmock/gmock.h>

#include "analysis/diagnosis/detector.h"
#include "tests/analysis/diagnosis/observed_builder.h"

namespace shakedown::diagnosis {
namespace progress_lag {
extern const Detector kDetector;
}

namespace {

using test_support::ObservedBuilder;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Findings Detect(const ObservedBuilder& job) { return progress_lag::kDetector.detect(job.Build()); }

// Rank 1 of three stands at `point`; the others wait in collective 78; noticed at 2160.
ObservedBuilder Hung(const std::string& point = "collective.enter", int64_t entered = 77,
                     int64_t enqueued = 76) {
  ObservedBuilder job(3);
  job.Page(0, 0, 1100, "collective.enqueued", 39, 78, 78);
  job.Page(0, 1, 1100, point, 39, entered, enqueued);
  job.Page(0, 2, 1100, "collective.enqueued", 39, 78, 78);
  job.NoProgress(2160).LauncherLine(0, 7000, "ERROR", "attempt.failed");
  return job;
}

TEST(ProgressLag, RankAtTheDoorDidNotJoin) {
  const Findings f = Detect(Hung());
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, "not_joined");
  EXPECT_EQ(f.hypotheses[0].culprits[0].rank, 1);
  EXPECT_GE(f.hypotheses[0].confidence, 0.8);
}

TEST(ProgressLag, RankThatNeverCalledTheCollectiveIsNamedLessSurely) {
  const Findings f = Detect(Hung("forward.begin", 76, 76));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, "not_joined");
  EXPECT_LT(f.hypotheses[0].confidence, Detect(Hung()).hypotheses[0].confidence);
}

TEST(ProgressLag, WhatSurvivorsDoOnceTheyGiveUpIsNotLookedAt) {
  // After the notice rank 0 falls behind the culprit's count in a new group.
  const Findings f = Detect(Hung().Page(0, 0, 3000, "init.group", 39, 0, 0));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].culprits[0].rank, 1);
}

TEST(ProgressLag, NobodyIsAccusedWithoutAStandStill) {
  ObservedBuilder job(3);
  job.Page(0, 0, 1100, "collective.enqueued", 39, 78, 78);
  job.Page(0, 1, 1100, "collective.enter", 39, 77, 76);
  EXPECT_THAT(Detect(job).hypotheses, IsEmpty());
}

TEST(ProgressLag, DeadRankIsNotAccusedOfNotJoining) {
  EXPECT_THAT(Detect(Hung().Exit(0, 1, 1150, "SIGKILL", "itself")).hypotheses, IsEmpty());
}

TEST(ProgressLag, NobodyBehindIsUnexplained) {
  const Findings f = Detect(Hung("collective.enqueued", 78, 78));
  EXPECT_THAT(f.hypotheses, IsEmpty());
  EXPECT_THAT(f.unexplained, SizeIs(1));
}

TEST(ProgressLag, MoreBehindThanWaitingIsUnexplained) {
  ObservedBuilder job(3);
  job.Page(0, 0, 1100, "collective.enqueued", 39, 78, 78);
  job.Page(0, 1, 1100, "collective.enqueued", 39, 77, 77);
  job.Page(0, 2, 1100, "collective.enqueued", 39, 77, 77);
  job.NoProgress(2160).LauncherLine(0, 7000, "ERROR", "attempt.failed");
  const Findings f = Detect(job);
  EXPECT_THAT(f.hypotheses, IsEmpty());
  ASSERT_THAT(f.unexplained, SizeIs(1));
  EXPECT_THAT(f.unexplained[0].text, HasSubstr("more ranks are behind"));
}

TEST(ProgressLag, TwoRanksSeenAtTheDoorAreNamedTogether) {
  ObservedBuilder job(3);
  job.Page(0, 0, 1100, "collective.enqueued", 39, 78, 78);
  job.Page(0, 1, 1100, "collective.enter", 39, 77, 76);
  job.Page(0, 2, 1100, "collective.enter", 39, 77, 76);
  job.NoProgress(2160).LauncherLine(0, 7000, "ERROR", "attempt.failed");
  const Findings f = Detect(job);
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_THAT(f.hypotheses[0].culprits, SizeIs(2));
}

TEST(ProgressLag, RankThatStillMovesIsSlowAndNotAccused) {
  const Findings f = Detect(Hung().Page(0, 1, 2100, "forward.begin", 39, 76, 76));
  EXPECT_THAT(f.hypotheses, IsEmpty());
  ASSERT_THAT(f.unexplained, SizeIs(1));
  EXPECT_THAT(f.unexplained[0].text, HasSubstr("slow, not stuck"));
}

TEST(ProgressLag, WriterThatMovesDoesNotMakeItsRankMove) {
  ObservedEvidence evidence = Hung().Build();
  PageSample writer = evidence.pages[1];
  writer.t = MonoTime{evidence.pages[1].t.ns + 1'000'000'000};
  writer.lanes["writer"] = {"checkpoint.fsync", 30, 4};
  evidence.pages.push_back(writer);
  const Findings f = progress_lag::kDetector.detect(evidence);
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_THAT(f.hypotheses[0].reasons[0].text, HasSubstr("unmoved for 1060 ms"));
}

TEST(ProgressLag, RankWithoutDataIsNotAccused) {
  const Findings f = Detect(Hung("data.next", 76, 76));
  EXPECT_THAT(f.hypotheses, IsEmpty());
  EXPECT_THAT(f.missing, Contains(HasSubstr("no data")));
}

TEST(ProgressLag, RankInACheckpointIsNotAccused) {
  const Findings f = Detect(Hung("checkpoint.fsync", 76, 76));
  EXPECT_THAT(f.hypotheses, IsEmpty());
  EXPECT_THAT(f.missing, Contains(HasSubstr("storage")));
}

TEST(ProgressLag, WaitAsShortAsAHoldIsTooShortToTell) {
  ObservedBuilder job(3);
  job.Page(0, 0, 1100, "collective.enqueued", 39, 78, 78);
  job.Page(0, 1, 1100, "collective.enter", 39, 77, 76);
  job.Page(0, 2, 1100, "collective.enqueued", 39, 78, 78);
  job.LauncherLine(0, 1200, "ERROR", "watchdog.fired", {{"limit_ms", 100}});
  EXPECT_THAT(Detect(job).hypotheses, IsEmpty());
}

TEST(ProgressLag, WatchdogThatBlamesOthersIsHeldAgainstTheName) {
  const double before = Detect(Hung()).hypotheses[0].confidence;
  const Findings f =
      Detect(Hung().LauncherLine(0, 6000, "ERROR", "watchdog.fired", {{"behind", {0}}}));
  EXPECT_LT(f.hypotheses[0].confidence, before);
  EXPECT_LT(f.hypotheses[0].confidence, 0.6);
}

TEST(ProgressLag, TimeoutOfACollectiveThatItDidHandOverIsHeldAgainstTheName) {
  const Findings f =
      Detect(Hung().Line(0, 0, 6100, "ERROR", "collective.timeout", {{"collective", 70}}));
  EXPECT_LT(f.hypotheses[0].confidence, 0.6);
  const Findings g =
      Detect(Hung().Line(0, 0, 6100, "ERROR", "collective.timeout", {{"collective", 77}}));
  EXPECT_GE(g.hypotheses[0].confidence, 0.8);
}

TEST(ProgressLag, MissingPageOfARankMakesTheNameThin) {
  ObservedBuilder job(4);
  job.Page(0, 0, 1100, "collective.enqueued", 39, 78, 78);
  job.Page(0, 1, 1100, "collective.enter", 39, 77, 76);
  job.Page(0, 2, 1100, "collective.enqueued", 39, 78, 78);
  job.NoProgress(2160).LauncherLine(0, 7000, "ERROR", "attempt.failed");
  const Findings f = Detect(job);
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_LT(f.hypotheses[0].confidence, 0.6);
  EXPECT_THAT(f.hypotheses[0].missing, Contains(HasSubstr("all 4 ranks")));
}

TEST(ProgressLag, OverloadedMachineMakesTheNameThin) {
  const Findings f =
      Detect(Hung().Event(events::kLoadSampled, 2000, {{"load1", 40.0}, {"slip_ms", 900.0}}));
  EXPECT_LT(f.hypotheses[0].confidence, 0.6);
}

TEST(ProgressLag, StandStillThatWentAwayMakesTheNameThin) {
  ObservedBuilder job(3);
  job.Page(0, 0, 1100, "collective.enqueued", 39, 78, 78);
  job.Page(0, 1, 1100, "collective.enter", 39, 77, 76);
  job.Page(0, 2, 1100, "collective.enqueued", 39, 78, 78);
  job.NoProgress(2160).JobExit(5000).RunEnded(5100);
  const Findings f = Detect(job);
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_LT(f.hypotheses[0].confidence, 0.6);
}

TEST(ProgressLag, WorkerThatStandsAtItsReadWhileItsRankWaitsIsSlow) {
  const Findings f = Detect(test_support::SlowWorker(3, 2, 1));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, "slow_data");
  EXPECT_EQ(f.hypotheses[0].culprits[0], (Culprit{"data", 2, 1, ""}));
  EXPECT_FALSE(f.hypotheses[0].ends_attempt);
}

TEST(ProgressLag, WorkerThatStandsAtItsReadWhileItsRankTrainsIsNot) {
  ObservedBuilder job(2);
  job.WorkerPage(0, 1, 0, 500, "worker.read", 12);
  job.Page(0, 1, 510, "forward.begin", 12, 22, 22);
  job.WorkerPage(0, 1, 0, 2500, "worker.deliver", 12);
  EXPECT_THAT(Detect(job).hypotheses, IsEmpty());
}

TEST(ProgressLag, EmptyPagesAreMissingEvidence) {
  ObservedBuilder job(3);
  job.NoProgress(2160);
  const Findings f = Detect(job);
  EXPECT_THAT(f.hypotheses, IsEmpty());
  EXPECT_THAT(f.missing, Not(IsEmpty()));
}

}  // namespace
}  // namespace shakedown::diagnosis
