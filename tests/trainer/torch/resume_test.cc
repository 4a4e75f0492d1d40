// The training goes on from a checkpoint as if nothing had happened: bit for bit, on all ranks.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "harness/base/file.h"
#include "harness/wire/checkpoint_format.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/log_events.h"
#include "harness/wire/schedule.h"
#include "tests/support/await.h"
#include "tests/trainer/torch/rank_group.h"

namespace shakedown {
namespace {

using test_support::Arms;
using test_support::Eventually;
using test_support::QuickJob;
using test_support::RankGroup;
using test_support::RankRecord;
using testing::ElementsAre;
using testing::IsEmpty;

void ExpectAllWell(const std::vector<RankRecord>& ranks) {
  for (const RankRecord& rank : ranks) {
    EXPECT_TRUE(rank.status.ok()) << rank.status.ToString() << "\n" << rank.errors;
    EXPECT_THAT(rank.Alarms(), IsEmpty());
    EXPECT_EQ(rank.errors, "");
  }
}

void DamageCheckpoint(const RankGroup& group, int64_t step) {
  const auto path = group.checkpoints() / CheckpointFileName(step);
  std::string bytes = *ReadFile(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_TRUE(PublishFile(path, bytes, Durability::kBuffered));
}

// An undisturbed run, against what it promises.
TEST(Training, TwoRunsAreEqualToTheBitAndAllRanksHoldTheSameWeights) {
  RankGroup one(QuickJob());
  RankGroup two(QuickJob());
  const auto first = one.Run(0);
  const auto second = two.Run(0);
  ExpectAllWell(first);
  ExpectAllWell(second);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(first[rank].Rows().size(), 24u);
    EXPECT_EQ(first[rank].Rows(), second[rank].Rows());
    EXPECT_EQ(one.Weights(static_cast<int>(rank)), one.Weights(0));
    const auto& start = std::get<LedgerStart>(first[rank].ledger.records.front());
    EXPECT_EQ(start.step, 0u);
    EXPECT_NE(start.state.weights, first[rank].Step(1)->state.weights);
    EXPECT_EQ(start.state.rng.bytes, 5056u);
    const auto& end = std::get<LedgerEnd>(first[rank].ledger.records.back());
    EXPECT_EQ(end.step, 24u);
    EXPECT_EQ(end.exit_code, kRankOk);
  }
  EXPECT_NE(first[0].Step(1)->state.rng, first[1].Step(1)->state.rng);
  EXPECT_GT(first[0].Events(log_events::kGroupJoined)[0]["buckets"], 1);
}

TEST(Training, LearnsAndFollowsTheDeclaredScheduleAndOrder) {
  RankGroup group(QuickJob());
  const JobConfig& job = group.job();
  const auto ranks = group.Run(0);
  ExpectAllWell(ranks);
  const auto loss = [&](uint64_t step) {
    double value;
    std::memcpy(&value, &ranks[0].Step(step)->loss_bits, sizeof value);
    return value;
  };
  EXPECT_LT(loss(24), 0.8 * loss(1));
  const auto order = EpochOrder(job.seed, 1, 1797);
  for (size_t rank = 0; rank < 3; ++rank) {
    const LedgerStep& step = *ranks[rank].Step(20);  // the second of epoch 1
    double rate;
    std::memcpy(&rate, &step.lr_bits, sizeof rate);
    EXPECT_EQ(rate, LearningRate(job, 20));
    EXPECT_EQ(step.epoch, 1u);
    EXPECT_EQ(step.position, 192u);
    const auto begin = order.begin() + 96 + static_cast<long>(rank) * 32;
    EXPECT_EQ(step.ids, std::vector<uint32_t>(begin, begin + 32));
  }
}

class Resume : public testing::TestWithParam<CheckpointMode> {};

// Killed at the door of the first all-reduce of step 15; the resume from 12 crosses an epoch.
TEST_P(Resume, AfterAKillEveryStepEqualsTheUndisturbedRun) {
  JobConfig job = QuickJob();
  job.checkpoint.mode = GetParam();
  RankGroup undisturbed(job);
  const auto expected = undisturbed.Run(0);
  ExpectAllWell(expected);

  RankGroup group(job);
  group.Start(0, {{1, {{.point = Point::kCollectiveEnter, .step = 15}}}});
  ASSERT_TRUE(group.met(1).AwaitHeld());
  ASSERT_TRUE(Eventually([&] { return group.IsPublished(12); }));
  group.Signal(1, SIGKILL);
  const auto killed = group.Wait();
  EXPECT_EQ(killed[1].status, WaitStatus::Signaled(SIGKILL));
  EXPECT_EQ(killed[1].Rows().rbegin()->first, 14u);
  for (const int rank : {0, 2}) {
    const RankRecord& survivor = killed[static_cast<size_t>(rank)];
    EXPECT_EQ(survivor.status, WaitStatus::Exited(kRankPeerLost)) << survivor.errors;
    const auto lost = survivor.Events(log_events::kPeerLost);
    ASSERT_EQ(lost.size(), 1u);
    EXPECT_EQ(lost[0]["level"], "ERROR");
    EXPECT_EQ(lost[0]["step"], 15);
    EXPECT_EQ(lost[0]["phase"], "backward");
    EXPECT_TRUE(std::filesystem::exists(group.rank_dir(rank) / "flight_recorder.json"));
  }

  const auto resumed = group.Run(1);
  ExpectAllWell(resumed);
  for (size_t rank = 0; rank < 3; ++rank) {
    const auto& start = std::get<LedgerStart>(resumed[rank].ledger.records.front());
    EXPECT_EQ(start.step, 12u);
    EXPECT_EQ(start.file, CheckpointFileName(12));
    EXPECT_EQ(start.state, expected[rank].Step(12)->state);
    auto rows = expected[rank].Rows();
    rows.erase(rows.begin(), rows.find(13));
    EXPECT_EQ(resumed[rank].Rows(), rows);
    EXPECT_EQ(group.Weights(static_cast<int>(rank)), undisturbed.Weights(static_cast<int>(rank)));
  }
}

INSTANTIATE_TEST_SUITE_P(BothModes, Resume,
                         testing::Values(CheckpointMode::kSync, CheckpointMode::kAsync),
                         [](const auto& mode) { return std::string(ToString(mode.param)); });

TEST(Checkpoints, AreKeptAsConfiguredAndVerifiedByTheSecondReader) {
  RankGroup group(QuickJob());
  group.job().checkpoint.keep = 2;
  const auto ranks = group.Run(0);
  ExpectAllWell(ranks);
  const UniqueFd directory(::open(group.checkpoints().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::vector<std::string> names;
  const auto listing = ListCheckpoints(directory.get());
  for (const auto& file : listing->files) names.push_back(file.name);
  EXPECT_THAT(names, ElementsAre("step-00000018.json", "step-00000018.pt", "step-00000024.json",
                                 "step-00000024.pt"));
  for (const int64_t step : {18, 24}) {
    const auto found = InspectCheckpoint(directory.get(), step);
    EXPECT_TRUE(found.verified) << found.why;
    const StateDigests& state = ranks[0].Step(static_cast<uint64_t>(step))->state;
    EXPECT_EQ(found.weights, state.weights.digest);
    EXPECT_EQ(found.optimizer, state.optimizer.digest);
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(found.rng.at(rank),
                ranks[rank].Step(static_cast<uint64_t>(step))->state.rng.digest);
    }
  }
}

TEST(Checkpoints, TheLastStepIsSavedEvenWhenItIsNotAMultiple) {
  RankGroup group(QuickJob());
  group.job().steps = 4;
  ExpectAllWell(group.Run(0));
  EXPECT_TRUE(group.IsPublished(4));
}

TEST(Checkpoints, ADamagedOneIsRefusedAndTheOneBeforeIsUsed) {
  RankGroup group(QuickJob());
  const auto expected = group.Run(0);
  DamageCheckpoint(group, 24);
  const auto resumed = group.Run(1);
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(resumed[rank].status.ok()) << resumed[rank].errors;
    EXPECT_THAT(resumed[rank].Alarms(), ElementsAre(log_events::kCheckpointRefused));
    EXPECT_EQ(std::get<LedgerStart>(resumed[rank].ledger.records.front()).step, 18u);
    EXPECT_EQ(resumed[rank].Rows().at(24), expected[rank].Rows().at(24));
  }
}

TEST(Checkpoints, WhenNoneVerifiesTheJobDoesNotBeginAgainFromZero) {
  RankGroup group(QuickJob());
  group.job().steps = 6;
  ExpectAllWell(group.Run(0));
  DamageCheckpoint(group, 6);
  for (const RankRecord& rank : group.Run(1)) {
    EXPECT_EQ(rank.status, WaitStatus::Exited(kRankCheckpoint));
    EXPECT_THAT(rank.Alarms(),
                ElementsAre(log_events::kCheckpointRefused, log_events::kRankFailed));
    EXPECT_THAT(rank.Rows(), IsEmpty());
  }
  EXPECT_TRUE(group.IsPublished(6));
}

TEST(Checkpoints, AnotherSeedOrGroupIsRefused) {
  RankGroup group(QuickJob());
  group.job().steps = 6;
  ExpectAllWell(group.Run(0));
  group.job().steps = 8;
  group.job().seed = 2;
  for (const RankRecord& rank : group.Run(1)) {
    EXPECT_EQ(rank.status, WaitStatus::Exited(kRankCheckpoint));
  }
  group.job().seed = 1;
  group.job().ranks = 2;
  for (const RankRecord& rank : group.Run(2)) {
    EXPECT_EQ(rank.status, WaitStatus::Exited(kRankCheckpoint));
    EXPECT_THAT(rank.errors, testing::HasSubstr("a group of 3 ranks"));
  }
}

}  // namespace
}  // namespace shakedown
