// The whole diagnosis over what an operator would have seen: the right name for every rank, and
// unknown where the evidence carries none.
#include "analysis/diagnosis/diagnosis.h"

#include <gmock/gmock.h>

#include "tests/analysis/diagnosis/observed_builder.h"

namespace shakedown {
namespace {

using test_support::ObservedBuilder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Culprit Rank(int rank) { return {"rank", rank, std::nullopt, ""}; }
Culprit Storage() { return {"storage", std::nullopt, std::nullopt, "checkpoint"}; }

std::vector<int> SufferedRanks(const Diagnosis& diagnosis, int attempt) {
  std::vector<int> ranks;
  for (const Suffered& suffered : diagnosis.cascade) {
    if (suffered.attempt == attempt) ranks.push_back(suffered.rank);
  }
  return ranks;
}

// World size and the rank that is broken.
class EveryRank : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  int ranks() const { return GetParam().first; }
  int rank() const { return GetParam().second; }
  // Everybody but the broken one.
  std::vector<int> Others() const {
    std::vector<int> others;
    for (int r = 0; r < ranks(); ++r) {
      if (r != rank()) others.push_back(r);
    }
    return others;
  }
};

INSTANTIATE_TEST_SUITE_P(Diagnosis, EveryRank,
                         ::testing::Values(std::pair(3, 0), std::pair(3, 1), std::pair(3, 2),
                                           std::pair(2, 0), std::pair(2, 1), std::pair(8, 5)));

TEST_P(EveryRank, KilledIsNamedAndItsPeersOnlySuffered) {
  const Diagnosis d = Diagnose(test_support::RankKilled(ranks(), rank()).Build());
  EXPECT_EQ(d.mechanism, "killed");
  EXPECT_THAT(d.culprits, ElementsAre(Rank(rank())));
  EXPECT_EQ(SufferedRanks(d, 0), Others());
  EXPECT_GE(d.confidence, 0.9);
  EXPECT_EQ(d.runbook, "rank_killed.md");
  EXPECT_THAT(d.reasons, Contains(HasSubstr("SIGKILL")));
  ASSERT_THAT(d.chain, Not(IsEmpty()));
  EXPECT_EQ(d.chain.front().role, ChainRole::kRoot);
  EXPECT_EQ(d.chain.front().rank, rank());
}

TEST_P(EveryRank, NotJoinedIsNamedAfterACollectiveTimeout) {
  const Diagnosis d = Diagnose(test_support::RankNotJoined(ranks(), rank()).Build());
  EXPECT_EQ(d.mechanism, "not_joined");
  EXPECT_THAT(d.culprits, ElementsAre(Rank(rank())));
  EXPECT_EQ(SufferedRanks(d, 0), Others());
  EXPECT_GE(d.confidence, 0.9);
  EXPECT_THAT(d.reasons, Contains(HasSubstr("at the door of collective 77")));
}

TEST_P(EveryRank, StackIsShownWithoutTheObserversFrames) {
  const Diagnosis d = Diagnose(test_support::RankNotJoined(ranks(), rank()).Build());
  EXPECT_THAT(d.reasons, Contains(HasSubstr("shakedown::ProcessGroup::allreduce")));
  EXPECT_THAT(d.reasons, Not(Contains(HasSubstr("shakedown::probe"))));
  EXPECT_THAT(d.reasons, Not(Contains(HasSubstr("clock_nanosleep"))));
}

TEST_P(EveryRank, NotJoinedIsNamedAfterTheWatchdog) {
  const Diagnosis d = Diagnose(test_support::HangWatchdog(ranks(), rank()).Build());
  EXPECT_EQ(d.mechanism, "not_joined");
  EXPECT_THAT(d.culprits, ElementsAre(Rank(rank())));
  EXPECT_EQ(d.runbook, "not_joined.md");
}

TEST_P(EveryRank, CallThatNeverReturnsIsNamedByTheNextCollective) {
  const Diagnosis d = Diagnose(test_support::NeverReturns(ranks(), rank()).Build());
  EXPECT_EQ(d.mechanism, "not_joined");
  EXPECT_THAT(d.culprits, ElementsAre(Rank(rank())));
  EXPECT_THAT(d.reasons, Contains(HasSubstr("the call has not come back")));
  EXPECT_EQ(d.runbook, "collective_never_returns.md");
}

TEST_P(EveryRank, OutOfMemoryIsNamed) {
  const Diagnosis d = Diagnose(test_support::OutOfMemory(ranks(), rank()).Build());
  EXPECT_EQ(d.mechanism, "out_of_memory_device");
  EXPECT_THAT(d.culprits, ElementsAre(Rank(rank())));
  EXPECT_THAT(d.cascade, IsEmpty());
}

TEST_P(EveryRank, SlowWorkerIsNamedWithItsRank) {
  const Diagnosis d = Diagnose(test_support::SlowWorker(ranks(), rank(), 1).Build());
  EXPECT_EQ(d.mechanism, "slow_data");
  EXPECT_THAT(d.culprits, ElementsAre(Culprit{"data", rank(), 1, ""}));
  EXPECT_GE(d.confidence, 0.9);  // the job's words and the worker's page agree
}

TEST_P(EveryRank, SlowWorkerIsNotTakenForAHang) {
  const Diagnosis d =
      Diagnose(test_support::SlowWorker(ranks(), rank(), 0).NoProgress(1500).Build());
  EXPECT_EQ(d.mechanism, "slow_data");
  EXPECT_THAT(d.also, IsEmpty());
}

TEST_P(EveryRank, FullDiskIsNamedWhoeverWrites) {
  const Diagnosis d = Diagnose(test_support::DiskFull(ranks(), rank()).Build());
  EXPECT_EQ(d.mechanism, "storage_full");
  EXPECT_THAT(d.culprits, ElementsAre(Storage()));
  EXPECT_EQ(d.runbook, "storage_full.md");
}

TEST_P(EveryRank, KillThatEndsTheAttemptComesBeforeAnEarlierFullDisk) {
  const Diagnosis d =
      Diagnose(test_support::RankKilled(ranks(), rank())
                   .Line(0, 0, 700, "ERROR", "checkpoint.failed", {{"step", 20}, {"errno", 28}})
                   .Line(1, 0, 1400, "WARNING", "checkpoint.refused", {{"checkpoint", 20}})
                   .Build());
  EXPECT_EQ(d.mechanism, "killed");
  EXPECT_THAT(d.culprits, ElementsAre(Rank(rank())));
  ASSERT_THAT(d.also, SizeIs(1));  // and not the torn file that it left behind
  EXPECT_EQ(d.also.front().mechanism, "storage_full");
  EXPECT_THAT(d.also.front().culprits, ElementsAre(Storage()));
}

TEST(Diagnosis, FullDiskThatEndsTheJobIsTheCauseAndNotABadCheckpoint) {
  ObservedBuilder job(3);
  job.Line(0, 0, 1000, "ERROR", "checkpoint.failed", {{"checkpoint", 60}, {"errno", 28}});
  job.Exit(0, 0, 1100, "69", "itself").JobExit(1200, 1).RunEnded(1300);
  const Diagnosis d = Diagnose(job.Build());
  EXPECT_EQ(d.mechanism, "storage_full");
  EXPECT_THAT(d.culprits, ElementsAre(Storage()));
  EXPECT_THAT(d.also, IsEmpty());
}

TEST(Diagnosis, OutOfMemoryThatEndsTheAttemptIsTheCauseAndPeersSuffered) {
  ObservedBuilder job(3);
  job.Line(0, 2, 1000, "ERROR", "memory.exhausted", {{"step", 15}});
  job.Exit(0, 2, 1010, "67", "itself");
  job.Exit(0, 0, 1020, "65", "itself").Exit(0, 1, 1021, "65", "itself");
  job.JobExit(1200, 1).RunEnded(1300);
  const Diagnosis d = Diagnose(job.Build());
  EXPECT_EQ(d.mechanism, "out_of_memory_device");
  EXPECT_THAT(d.culprits, ElementsAre(Rank(2)));
  EXPECT_EQ(SufferedRanks(d, 0), (std::vector<int>{0, 1}));
}

TEST(Diagnosis, HealthyRunIsNone) {
  const Diagnosis d = Diagnose(test_support::Healthy(3).Build());
  EXPECT_EQ(d.mechanism, "none");
  EXPECT_THAT(d.culprits, IsEmpty());
  EXPECT_THAT(d.chain, IsEmpty());
  EXPECT_THAT(d.runbook, IsEmpty());
}

TEST(Diagnosis, ShortPausesOfAllRanksAtOnePointAreNone) {
  ObservedBuilder job = test_support::Healthy(3);
  for (int r = 0; r < 3; ++r) job.Page(0, r, 1060.5 + r, "collective.enter", 39, 77, 76);
  EXPECT_EQ(Diagnose(job.Build()).mechanism, "none");
}

TEST(Diagnosis, AlarmThatNobodyUnderstandsIsUnknownAndNotNone) {
  const Diagnosis d =
      Diagnose(test_support::Healthy(3).Line(0, 1, 800, "WARNING", "fan.loud").Build());
  EXPECT_EQ(d.mechanism, "unknown");
  EXPECT_THAT(d.reasons, Contains(HasSubstr("fan.loud")));
}

TEST(Diagnosis, RunWhoseEndNobodySawIsUnknown) {
  ObservedBuilder job(3);
  job.Page(0, 0, 300, "step.end", 1, 2, 2);
  EXPECT_EQ(Diagnose(job.Build()).mechanism, "unknown");
}

TEST(Diagnosis, EmptyEvidenceIsUnknownAndSaysWhatIsMissing) {
  const Diagnosis d = Diagnose(ObservedEvidence{});
  EXPECT_EQ(d.mechanism, "unknown");
  EXPECT_EQ(d.confidence, 0);
  EXPECT_THAT(d.culprits, IsEmpty());
  EXPECT_THAT(d.missing, Not(IsEmpty()));
}

TEST(Diagnosis, HangWithEverybodyAlikeIsUnknown) {
  ObservedBuilder job(3);
  for (int r = 0; r < 3; ++r) job.Page(0, r, 1100, "collective.enqueued", 39, 78, 78);
  job.NoProgress(2160);
  job.LauncherLine(0, 2200, "ERROR", "watchdog.fired");
  for (int r = 0; r < 3; ++r) job.Exit(0, r, 2210 + r, "SIGKILL", "launcher");
  job.LauncherLine(0, 2300, "ERROR", "attempt.failed").JobExit(2350, 1).RunEnded(2400);
  const Diagnosis d = Diagnose(job.Build());
  EXPECT_EQ(d.mechanism, "unknown");
  EXPECT_THAT(d.culprits, IsEmpty());
  EXPECT_THAT(d.reasons, Contains(HasSubstr("nobody is behind")));
  EXPECT_THAT(d.missing, Contains(HasSubstr("flight recorder")));
}

TEST(Diagnosis, KernelAndLauncherThatDisagreeAboutAnExitAreUnknown) {
  ObservedBuilder job(3);
  job.Exit(0, 1, 1110, "SIGKILL", "");
  job.LauncherLine(0, 1111, "ERROR", "rank.exited", {{"rank", 1}, {"code", 1}, {"by", "itself"}});
  job.LauncherLine(0, 1200, "ERROR", "attempt.failed").JobExit(1250, 1).RunEnded(1300);
  const Diagnosis d = Diagnose(job.Build());
  EXPECT_EQ(d.mechanism, "unknown");
  EXPECT_THAT(d.culprits, IsEmpty());
}

TEST(Diagnosis, TwoDeathsAtOneTimeThatTellTwoStoriesAreUnknown) {
  ObservedBuilder job(3);
  job.Exit(0, 1, 1110, "73", "itself");
  job.Exit(0, 2, 1112, "SIGKILL", "itself");
  job.LauncherLine(0, 1200, "ERROR", "attempt.failed").JobExit(1250, 1).RunEnded(1300);
  const Diagnosis d = Diagnose(job.Build());
  EXPECT_EQ(d.mechanism, "unknown");
  EXPECT_THAT(d.reasons, Contains(HasSubstr("speaks for")));
  EXPECT_EQ(d.confidence, 0);
}

TEST(Diagnosis, TwoRanksKilledTogetherAreBothNamed) {
  ObservedBuilder job(3);
  job.Exit(0, 2, 1110, "SIGKILL", "itself").Exit(0, 1, 1111, "SIGKILL", "itself");
  job.Exit(0, 0, 1130, "65", "itself");
  job.LauncherLine(0, 1200, "ERROR", "attempt.failed").JobExit(1250, 1).RunEnded(1300);
  const Diagnosis d = Diagnose(job.Build());
  EXPECT_EQ(d.mechanism, "killed");
  EXPECT_THAT(d.culprits, ElementsAre(Rank(1), Rank(2)));
  EXPECT_EQ(SufferedRanks(d, 0), std::vector<int>{0});
}

TEST(Diagnosis, HungRankThatWasKilledLaterDidNotJoin) {
  // Somebody's impatience is not the cause.
  ObservedBuilder job(3);
  job.Page(0, 0, 1100, "collective.enqueued", 39, 78, 78);
  job.Page(0, 1, 1100, "collective.enter", 39, 77, 76);
  job.Page(0, 2, 1100, "collective.enqueued", 39, 78, 78);
  job.NoProgress(2160);
  job.Exit(0, 2, 4000, "SIGKILL", "itself");
  job.LauncherLine(0, 4100, "ERROR", "attempt.failed").JobExit(4200, 1).RunEnded(4300);
  const Diagnosis d = Diagnose(job.Build());
  EXPECT_EQ(d.mechanism, "not_joined");
  EXPECT_THAT(d.culprits, ElementsAre(Rank(1)));
  ASSERT_THAT(d.also, SizeIs(1));
  EXPECT_THAT(d.also.front().culprits, ElementsAre(Rank(2)));
}

TEST(Diagnosis, SameEvidenceGivesTheSameBytes) {
  const ObservedEvidence evidence = test_support::RankNotJoined(3, 1).Build();
  EXPECT_EQ(DumpJson(ToJson(Diagnose(evidence))), DumpJson(ToJson(Diagnose(evidence))));
}

TEST(Diagnosis, JsonRoundTripKeepsEverything) {
  Diagnosis d = Diagnose(test_support::RankNotJoined(3, 1).Build());
  d.also.push_back({{Storage()}, "storage_full", "a save failed", {"observed.jsonl", 7}});
  d.isolation = "landlock";
  const Result<Diagnosis> back = DiagnosisFromJson(ToJson(d));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, d);
}

TEST(Diagnosis, JsonOfAWrongTypeIsAnError) {
  for (const char* text :
       {"[]", R"({"culprits": 3})", R"({"mechanism": 3})", R"({"confidence": "high"})",
        R"({"chain": [7]})", R"({"reasons": [1]})", R"({"culprits": [{"rank": 1e99}]})"}) {
    EXPECT_FALSE(DiagnosisFromJson(*ParseJson(text))) << text;
  }
}

TEST(Diagnosis, CulpritsAreListedAndNeverNull) {
  const Json json = ToJson(Diagnose(test_support::Healthy(3).Build()));
  EXPECT_TRUE(json["culprits"].is_array());
  EXPECT_TRUE(json["runbook"].is_null());
}

TEST(Diagnosis, CulpritsAreDescribedForPeople) {
  EXPECT_EQ(DescribeCulprits({}), "nobody");
  EXPECT_EQ(DescribeCulprits({Rank(1), Rank(2)}), "rank 1, rank 2");
  EXPECT_EQ(DescribeCulprits({{"data", 2, 0, ""}}), "worker 0 of rank 2");
  EXPECT_EQ(DescribeCulprits({Storage()}), "storage checkpoint");
}

}  // namespace
}  // namespace shakedown
