// What a rank does when something goes wrong: which line it logs, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>

#include "harness/base/file.h"
#include "harness/wire/checkpoint_format.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/log_events.h"
#include "tests/support/await.h"
#include "tests/trainer/torch/rank_group.h"

namespace shakedown {
namespace {

using test_support::ArmFields;
using test_support::Eventually;
using test_support::QuickJob;
using test_support::RankGroup;
using test_support::RankRecord;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ArmFields Acts(Point point, uint32_t step, ArmAction action, int64_t argument = 0,
               uint32_t occurrence = 1) {
  return {.point = point,
          .step = step,
          .occurrence = occurrence,
          .flags = 0,
          .action = action,
          .argument = argument};
}

double LargestDifference(const std::string& a, const std::string& b) {
  EXPECT_EQ(a.size(), b.size());
  EXPECT_FALSE(a.empty());
  double largest = 0;
  for (size_t at = 0; at + sizeof(float) <= a.size(); at += sizeof(float)) {
    float x;
    float y;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    largest = std::max(largest, std::abs(double{x} - double{y}));
  }
  return largest;
}

// --- collectives ---------------------------------------------------------------------------------

TEST(Collectives, TheFirstOfAStepIsTheFirstBucketEvenAfterACheckpoint) {
  RankGroup group(QuickJob());
  group.job().steps = 8;
  group.Start(0, {{1,
                   {{.point = Point::kCollectiveEnter, .step = 3},
                    {.point = Point::kCollectiveEnter, .step = 7}}}});
  const auto entered = [&] { return group.met(1).page()->observed.collectives_entered.load(); };
  const auto third = group.met(1).AwaitHeld();
  ASSERT_TRUE(third) << third.error().message;
  const uint64_t at_3 = entered();
  EXPECT_EQ(group.met(1).page()->observed.collectives_enqueued.load(), at_3 - 1);
  ASSERT_TRUE(group.met(1).Release(third->arm_index, false));
  const auto seventh = group.met(1).AwaitHeld();
  ASSERT_TRUE(seventh) << seventh.error().message;
  // Two buckets a step, and one gathering of generator states for checkpoint 6.
  EXPECT_EQ(entered(), at_3 + 4 * 2 + 1);
  ASSERT_TRUE(group.met(1).Release(seventh->arm_index, false));
  const auto ranks = group.Wait();
  EXPECT_TRUE(ranks[1].status.ok()) << ranks[1].errors;
}

TEST(Collectives, WhenARankNeverJoinsTheOthersTimeOutAsConfigured) {
  RankGroup group(QuickJob());
  group.job().collective_timeout = Milliseconds(1500);
  group.Start(0, {{1, {Acts(Point::kCollectiveEnter, 5, ArmAction::kStall)}}});
  ASSERT_TRUE(group.met(1).AwaitFired());
  ASSERT_TRUE(Eventually([&] {
    return std::filesystem::exists(group.rank_dir(0) / "flight_recorder.json") &&
           std::filesystem::exists(group.rank_dir(2) / "flight_recorder.json");
  }));
  group.Signal(1, SIGKILL);
  const auto ranks = group.Wait();
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(ranks[rank].status, WaitStatus::Exited(kRankCollectiveTimeout)) << ranks[rank].errors;
    const auto lines = ranks[rank].Events(log_events::kCollectiveTimeout);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0]["level"], "ERROR");
    EXPECT_EQ(lines[0]["step"], 5);
    EXPECT_EQ(lines[0]["phase"], "backward");
    EXPECT_EQ(lines[0]["timeout_ms"], 1500);
    EXPECT_GE(lines[0]["waited_ms"], 1400);
    EXPECT_GT(lines[0]["collective"], 8);  // of set-up and of four steps
  }
}

// It contributed, so the step is complete for the others; they miss it in the next one.
TEST(Collectives, WhenTheLastCallOfAStepNeverReturnsTheOthersFailInTheNextStep) {
  RankGroup group(QuickJob());
  group.job().collective_timeout = Milliseconds(1500);
  group.Start(0, {{1, {Acts(Point::kCollectiveEnqueued, 5, ArmAction::kStall, 0, 2)}}});
  ASSERT_TRUE(group.met(1).AwaitFired());
  ASSERT_TRUE(Eventually(
      [&] { return std::filesystem::exists(group.rank_dir(0) / "flight_recorder.json"); }));
  group.Signal(1, SIGKILL);
  const auto ranks = group.Wait();
  EXPECT_EQ(ranks[0].Rows().rbegin()->first, 5u);
  EXPECT_EQ(ranks[1].Rows().rbegin()->first, 4u);
  ASSERT_EQ(ranks[0].Events(log_events::kCollectiveTimeout).size(), 1u);
  EXPECT_EQ(ranks[0].Events(log_events::kCollectiveTimeout)[0]["step"], 6);
}

// --- memory --------------------------------------------------------------------------------------

class Memory : public testing::Test {
 protected:
  // Runs with memory refused on rank 0 in step 5.
  std::vector<RankRecord> Run(const ArmFields& arm) { return group_.Run(0, {{0, {arm}}}); }
  void ExpectRecovered(const std::vector<RankRecord>& ranks, const std::string& phase) {
    RankGroup undisturbed(QuickJob());
    const auto expected = undisturbed.Run(0);
    for (const RankRecord& rank : ranks) EXPECT_TRUE(rank.status.ok()) << rank.errors;
    EXPECT_THAT(ranks[0].Alarms(),
                ElementsAre(log_events::kMemoryExhausted, log_events::kMemorySplit));
    const Json line = ranks[0].Events(log_events::kMemoryExhausted).at(0);
    EXPECT_EQ(line["phase"], phase);
    EXPECT_EQ(line["step"], 5);
    EXPECT_GT(line["requested_bytes"], 0);
    EXPECT_GT(line["in_use_bytes"], 100'000);
    EXPECT_THAT(line["error"].get<std::string>(), HasSubstr("out of memory. Tried to allocate"));
    EXPECT_EQ(ranks[0].Events(log_events::kMemorySplit).at(0)["parts"], 2);
    EXPECT_THAT(ranks[1].Alarms(), IsEmpty());
    // Up to rounding, and only from that step on.
    EXPECT_EQ(ranks[0].Rows().at(4), expected[0].Rows().at(4));
    EXPECT_EQ(ranks[0].Step(5)->parts, 2u);
    EXPECT_EQ(ranks[1].Step(5)->parts, 1u);
    EXPECT_EQ(ranks[0].Step(6)->parts, 1u);
    EXPECT_EQ(ranks[0].Step(5)->ids, expected[0].Step(5)->ids);
    // Dropout masks are the same, so the generator is where it would have been.
    EXPECT_EQ(ranks[0].Step(5)->state.rng, expected[0].Step(5)->state.rng);
    EXPECT_LT(LargestDifference(group_.Weights(0), undisturbed.Weights(0)), 1e-5);
    EXPECT_EQ(group_.Weights(0), group_.Weights(1));
  }
  RankGroup group_{QuickJob()};
};

TEST_F(Memory, RefusedInTheForwardTheMicroBatchIsSplitWithTheSameMasks) {
  ExpectRecovered(Run(Acts(Point::kForwardBegin, 5, ArmAction::kRefuseMemory, 3)), "forward");
}

TEST_F(Memory, RefusedInTheSecondForwardTheGradientsOfTheFirstAreKept) {
  ExpectRecovered(Run(Acts(Point::kForwardBegin, 5, ArmAction::kRefuseMemory, 3, 2)), "forward");
}

// Two gradients are accumulated by then, which must be taken back.
TEST_F(Memory, RefusedInTheFirstBackwardPartialGradientsAreTakenBack) {
  ExpectRecovered(Run(Acts(Point::kBackwardBegin, 5, ArmAction::kRefuseMemory, 6)), "backward");
}

TEST_F(Memory, RefusedInTheAveragingBackwardBeforeABucketItIsRetried) {
  ExpectRecovered(Run(Acts(Point::kBackwardBegin, 5, ArmAction::kRefuseMemory, 2, 2)), "backward");
}

TEST_F(Memory, RefusedAfterABucketWasLaunchedTheRankEnds) {
  const auto ranks = Run(Acts(Point::kCollectiveEnqueued, 5, ArmAction::kRefuseMemory, 1));
  EXPECT_EQ(ranks[0].status, WaitStatus::Exited(kRankOutOfMemory)) << ranks[0].errors;
  EXPECT_THAT(ranks[0].Alarms(),
              ElementsAre(log_events::kMemoryExhausted, log_events::kRankFailed));
  EXPECT_EQ(ranks[1].status, WaitStatus::Exited(kRankPeerLost));
}

TEST_F(Memory, WhenNoPartFitsTheRankEnds) {
  const auto arm = [](uint32_t occurrence) {
    return Acts(Point::kForwardBegin, 5, ArmAction::kRefuseMemory, 3, occurrence);
  };
  const auto ranks = group_.Run(0, {{0, {arm(1), arm(2), arm(3)}}});
  EXPECT_EQ(ranks[0].status, WaitStatus::Exited(kRankOutOfMemory)) << ranks[0].errors;
  EXPECT_EQ(ranks[0].Events(log_events::kMemoryExhausted).size(), 3u);
  EXPECT_THAT(ranks[0].errors, HasSubstr("in 4 parts"));
}

// --- saving --------------------------------------------------------------------------------------

class Saving : public testing::TestWithParam<CheckpointMode> {};

TEST_P(Saving, AFailedSaveIsReportedAndTrainingGoesOnUndisturbed) {
  JobConfig job = QuickJob();
  job.checkpoint.mode = GetParam();
  RankGroup undisturbed(job);
  const auto expected = undisturbed.Run(0);
  RankGroup group(job);
  const auto ranks =
      group.Run(0, {{0, {Acts(Point::kCheckpointWrite, 12, ArmAction::kIoError, ENOSPC)}}});
  ASSERT_TRUE(ranks[0].status.ok()) << ranks[0].errors;
  EXPECT_THAT(ranks[0].Alarms(), ElementsAre(log_events::kCheckpointFailed));
  const Json line = ranks[0].Events(log_events::kCheckpointFailed).at(0);
  EXPECT_EQ(line["level"], "ERROR");
  EXPECT_EQ(line["checkpoint"], 12);
  EXPECT_EQ(line["operation"], "write");
  EXPECT_EQ(line["errno"], ENOSPC);
  EXPECT_EQ(line["mode"], ToString(GetParam()));
  EXPECT_TRUE(group.IsPublished(6));
  EXPECT_FALSE(group.IsPublished(12));
  EXPECT_TRUE(group.IsPublished(18));
  for (size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks[rank].Rows(), expected[rank].Rows());
  std::vector<uint64_t> recorded;
  for (const LedgerRecord& record : ranks[0].ledger.records) {
    if (const auto* saved = std::get_if<LedgerCheckpoint>(&record)) recorded.push_back(saved->step);
  }
  EXPECT_THAT(recorded, ElementsAre(6, 18, 24));
}

TEST_P(Saving, WhenTheLastSaveFailsTheRankSaysSoInItsStatus) {
  RankGroup group(QuickJob());
  group.job().steps = 6;
  group.job().checkpoint.mode = GetParam();
  const auto ranks =
      group.Run(0, {{0, {Acts(Point::kCheckpointFsync, 6, ArmAction::kIoError, EIO)}}});
  EXPECT_EQ(ranks[0].status, WaitStatus::Exited(kRankCheckpoint));
  EXPECT_THAT(ranks[0].Alarms(),
              ElementsAre(log_events::kCheckpointFailed, log_events::kRankFailed));
  EXPECT_THAT(ranks[0].Events(log_events::kTrainingFinished), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(BothModes, Saving,
                         testing::Values(CheckpointMode::kSync, CheckpointMode::kAsync),
                         [](const auto& mode) { return std::string(ToString(mode.param)); });

// --- SIGTERM -------------------------------------------------------------------------------------

TEST(Sigterm, AllRanksStopAtTheSameStepWithACheckpointOfIt) {
  JobConfig job = QuickJob();
  RankGroup undisturbed(job);
  const auto expected = undisturbed.Run(0);
  RankGroup group(job);
  // Only rank 1 gets the signal, and in the middle of a step: the hardest case to agree in.
  group.Start(0, {{1, {{.point = Point::kBackwardBegin, .step = 8}}}});
  const auto held = group.met(1).AwaitHeld();
  ASSERT_TRUE(held) << held.error().message;
  group.Signal(1, SIGTERM);
  ASSERT_TRUE(group.met(1).Release(held->arm_index, false));
  const auto stopped = group.Wait();
  const uint64_t last = stopped[0].Rows().rbegin()->first;
  EXPECT_LT(last, 24u);
  for (const RankRecord& rank : stopped) {
    EXPECT_EQ(rank.status, WaitStatus::Exited(kRankTerminated)) << rank.errors;
    EXPECT_EQ(rank.Rows().rbegin()->first, last);
    EXPECT_THAT(rank.Alarms(), ElementsAre(log_events::kTermReceived));
  }
  EXPECT_TRUE(group.IsPublished(static_cast<int64_t>(last)));
  EXPECT_FALSE(std::filesystem::is_symlink(group.path() / "store-0.stop"));
  const auto resumed = group.Run(1);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(std::get<LedgerStart>(resumed[rank].ledger.records.front()).step, last);
    EXPECT_EQ(resumed[rank].Rows().at(24), expected[rank].Rows().at(24));
  }
}

TEST(Sigterm, ARankThatIsStuckInACollectiveEndsByTheSignal) {
  RankGroup group(QuickJob());
  group.job().term_grace = Milliseconds(400);
  group.Start(0, {{1, {Acts(Point::kCollectiveEnter, 5, ArmAction::kStall)}}});
  ASSERT_TRUE(group.met(1).AwaitFired());
  for (int rank = 0; rank < 3; ++rank) group.Signal(rank, SIGTERM);
  for (const RankRecord& rank : group.Wait()) {
    if (rank.status == WaitStatus::Exited(kRankPeerLost)) continue;  // saw another end first
    EXPECT_EQ(rank.status, WaitStatus::Signaled(SIGTERM)) << rank.errors;
    EXPECT_THAT(rank.Alarms(), ElementsAre(log_events::kTermReceived));
  }
}

// --- input ---------------------------------------------------------------------------------------

class Input : public testing::Test {
 protected:
  void ExpectAllEnd(RankExit exit, const std::string& reason) {
    for (const RankRecord& rank : group_.Run(0)) {
      EXPECT_EQ(rank.status, WaitStatus::Exited(exit)) << rank.errors;
      EXPECT_THAT(rank.Alarms(), ElementsAre(log_events::kRankFailed));
      EXPECT_THAT(rank.errors, HasSubstr(reason));
      EXPECT_EQ(rank.Events(log_events::kRankFailed).at(0)["exit_code"], int{exit});
    }
  }
  RankGroup group_{QuickJob()};
};

TEST_F(Input, AJobThatCannotBeRunIsAUsageError) {
  group_.job().model = "gpt";
  ExpectAllEnd(kRankUsage, "'gpt'");
}

TEST_F(Input, MissingDataIsADataError) {
  group_.job().data_dir = group_.path() / "nowhere";
  ExpectAllEnd(kRankData, "nowhere");
}

TEST_F(Input, AFileInPlaceOfTheCheckpointDirectoryIsACheckpointError) {
  ASSERT_TRUE(PublishFile(group_.path() / "file", "", Durability::kBuffered));
  group_.UseCheckpoints("file");
  ExpectAllEnd(kRankCheckpoint, "Not a directory");
}

TEST_F(Input, NumbersThatOverflowEndTheTraining) {
  group_.job().learning_rate = 1e38;
  for (const RankRecord& rank : group_.Run(0)) {
    EXPECT_EQ(rank.status, WaitStatus::Exited(kRankNotFinite)) << rank.errors;
    EXPECT_THAT(rank.errors, HasSubstr("not finite"));
  }
}

}  // namespace
}  // namespace shakedown
