// What the ends of ranks say by themselves.
#include <gmock/gmock.h>

#include "analysis/diagnosis/detector.h"
#include "tests/analysis/diagnosis/observed_builder.h"

namespace shakedown::diagnosis {
namespace exits {
extern const Detector kDetector;
}

namespace {

using test_support::ObservedBuilder;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Findings Detect(const ObservedBuilder& job) { return exits::kDetector.detect(job.Build()); }

ObservedBuilder Broken() {
  ObservedBuilder job(3);
  job.JobExit(5000, 1).RunEnded(5100);
  return job;
}

TEST(Exits, SignalFromOutsideIsKilled) {
  const Findings f = Detect(Broken().Exit(0, 2, 1000, "SIGKILL", "itself"));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, "killed");
  EXPECT_EQ(f.hypotheses[0].culprits[0].rank, 2);
  EXPECT_TRUE(f.hypotheses[0].ends_attempt);
  EXPECT_GE(f.hypotheses[0].confidence, 0.9);
  // The host's out-of-memory killer looks the same: said, not hidden.
  EXPECT_THAT(f.hypotheses[0].missing, Contains(HasSubstr("kernel log")));
}

TEST(Exits, SignalOfTheLauncherIsTeardown) {
  const Findings f = Detect(Broken().Exit(0, 2, 1000, "SIGKILL", "launcher"));
  EXPECT_THAT(f.hypotheses, IsEmpty());
  ASSERT_THAT(f.links, SizeIs(1));
  EXPECT_EQ(f.links[0].role, ChainRole::kTeardown);
}

TEST(Exits, SignalWithoutTheLaunchersWordIsThin) {
  const Findings f = Detect(Broken().Exit(0, 2, 1000, "SIGKILL", ""));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_LE(f.hypotheses[0].confidence, 0.5);
  EXPECT_THAT(f.hypotheses[0].missing, Contains(HasSubstr("rank.exited")));
}

TEST(Exits, SignalKnownFromTheLauncherOnlyIsLessSureThanTheKernels) {
  const Findings f = Detect(Broken().Exit(0, 2, 1000, "SIGKILL", "itself", "launcher"));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_LT(f.hypotheses[0].confidence, 0.9);
  EXPECT_GE(f.hypotheses[0].confidence, 0.6);
}

TEST(Exits, SignalInTheLastAttemptOfABrokenOffRunMayBeTheCleanUps) {
  ObservedBuilder job(3);
  job.Exit(0, 2, 1000, "SIGKILL", "itself").RunEnded(5100, "interrupted");
  const Findings f = Detect(job);
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_LT(f.hypotheses[0].confidence, 0.5);
}

TEST(Exits, SignalsAfterTheLaunchersOwnEndAreNoCauses) {
  ObservedBuilder job(3);
  job.Event(events::kJobExited, 900, {{"signal", "SIGKILL"}}).RunEnded(5100);
  job.Exit(0, 0, 1000, "SIGKILL", "").Exit(0, 1, 1001, "SIGKILL", "");
  const Findings f = Detect(job);
  ASSERT_THAT(f.hypotheses, SizeIs(2));
  EXPECT_EQ(f.hypotheses[0].culprits[0].kind, "service");
  EXPECT_GE(f.hypotheses[0].confidence, 0.6);
  EXPECT_LT(f.hypotheses[1].confidence, 0.5);
}

TEST(Exits, SignalAfterAPeerFailedIsThin) {
  const Findings f =
      Detect(Broken().Exit(0, 0, 1000, "66", "itself").Exit(0, 2, 1800, "SIGKILL", "itself"));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_LE(f.hypotheses[0].confidence, 0.5);
}

// The kernel closes a dying process's sockets before its end is seen.
TEST(Exits, APeerThatIsSeenToEndJustBeforeTheKilledRankIsItsVictim) {
  const Findings f =
      Detect(Broken().Exit(0, 0, 1000, "65", "itself").Exit(0, 2, 1004, "SIGKILL", "itself"));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].culprits[0].rank, 2);
  EXPECT_GE(f.hypotheses[0].confidence, 0.9);
  const Findings late =
      Detect(Broken().Exit(0, 0, 1000, "65", "itself").Exit(0, 2, 3000, "SIGKILL", "itself"));
  EXPECT_LE(late.hypotheses.at(0).confidence, 0.5) << "two seconds later it is somebody's clean-up";
}

TEST(Exits, VictimsCodesAreNoCause) {
  const Findings f =
      Detect(Broken().Exit(0, 0, 1000, "65", "itself").Exit(0, 1, 1001, "66", "itself"));
  EXPECT_THAT(f.hypotheses, IsEmpty());
  EXPECT_THAT(f.suffered, SizeIs(2));
}

TEST(Exits, FirstFailureOfItsOwnIsTheCauseAndLaterOnesSuffered) {
  const Findings f =
      Detect(Broken().Exit(0, 1, 1000, "73", "itself").Exit(0, 0, 1020, "73", "itself"));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, "exception");
  EXPECT_EQ(f.hypotheses[0].culprits[0].rank, 1);
  ASSERT_THAT(f.suffered, SizeIs(1));
  EXPECT_EQ(f.suffered[0].rank, 0);
}

struct CodeCase {
  const char* how;
  const char* mechanism;
};
class OwnCode : public ::testing::TestWithParam<CodeCase> {};
INSTANTIATE_TEST_SUITE_P(Exits, OwnCode,
                         ::testing::Values(CodeCase{"67", "out_of_memory_device"},
                                           CodeCase{"68", "bad_data"},
                                           CodeCase{"69", "checkpoint_bad"},
                                           CodeCase{"70", "numeric"}, CodeCase{"64", "environment"},
                                           CodeCase{"73", "exception"}, CodeCase{"3", "exited"},
                                           CodeCase{"SIGSEGV", "exception"}));

TEST_P(OwnCode, SaysWhatTheRanksContractSays) {
  const Findings f = Detect(Broken().Exit(0, 1, 1000, GetParam().how, "itself"));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, GetParam().mechanism);
}

TEST(Exits, JobThatWasToldToStopIsPreempted) {
  ObservedBuilder job(2);
  job.Line(0, 1, 990, "WARNING", "term.received");
  job.Exit(0, 0, 1000, "71", "launcher").Exit(0, 1, 1001, "71", "launcher");
  job.JobExit(1100, 3).RunEnded(1200);
  const Findings f = Detect(job);
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, "preempted");
  EXPECT_THAT(f.hypotheses[0].culprits, IsEmpty());
}

TEST(Exits, GoodEndsSayNothing) {
  const Findings f = Detect(test_support::Healthy(3));
  EXPECT_THAT(f.hypotheses, IsEmpty());
  EXPECT_THAT(f.suffered, IsEmpty());
}

}  // namespace
}  // namespace shakedown::diagnosis
