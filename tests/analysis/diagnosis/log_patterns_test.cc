// What lines mean, and what they must not be taken for.
#include <gmock/gmock.h>

#include <set>
#include <string>

#include "analysis/diagnosis/detector.h"
#include "analysis/diagnosis/patterns.h"
#include "tests/analysis/diagnosis/observed_builder.h"

namespace shakedown::diagnosis {
namespace log_patterns {
extern const Detector kDetector;
}

namespace {

using test_support::Healthy;
using test_support::ObservedBuilder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Findings Detect(const ObservedBuilder& job) { return log_patterns::kDetector.detect(job.Build()); }

TEST(LogPatterns, ErrnoAndNotTheWordsTellAFullDisk) {
  const Findings full = Detect(Healthy(2).Line(0, 0, 700, "ERROR", "checkpoint.failed",
                                               {{"errno", 28}, {"message", "oops"}}));
  ASSERT_THAT(full.hypotheses, SizeIs(1));
  EXPECT_EQ(full.hypotheses[0].mechanism, "storage_full");
  const Findings error =
      Detect(Healthy(2).Line(0, 0, 700, "ERROR", "checkpoint.failed",
                             {{"errno", 5}, {"message", "No space left on device"}}));
  ASSERT_THAT(error.hypotheses, SizeIs(1));
  EXPECT_EQ(error.hypotheses[0].mechanism, "storage_error");
}

TEST(LogPatterns, ErrnoMayBeAName) {
  const Findings f =
      Detect(Healthy(2).Line(0, 0, 700, "ERROR", "checkpoint.failed", {{"errno", "EDQUOT"}}));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, "storage_full");
}

TEST(LogPatterns, LostPeersAndTimeoutsOnlySuffer) {
  const Findings f = Detect(Healthy(2)
                                .Line(0, 0, 700, "ERROR", "peer.lost")
                                .Line(0, 1, 700, "ERROR", "collective.timeout"));
  EXPECT_THAT(f.hypotheses, IsEmpty());
  EXPECT_THAT(f.suffered, SizeIs(2));
  for (const ChainLink& link : f.links) EXPECT_EQ(link.role, ChainRole::kCascade);
}

TEST(LogPatterns, SlowDataNamesWorkerAndRank) {
  const Findings f =
      Detect(Healthy(3).Line(0, 2, 700, "WARNING", "data.slow", {{"worker", 1}, {"batch", 9}}));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].culprits[0], (Culprit{"data", 2, 1, ""}));
}

TEST(LogPatterns, SlowDataWithoutAWorkerNamesNobody) {
  EXPECT_THAT(Detect(Healthy(3).Line(0, 2, 700, "WARNING", "data.slow")).hypotheses, IsEmpty());
  EXPECT_THAT(
      Detect(Healthy(3).Line(0, 2, 700, "WARNING", "data.slow", {{"worker", "x"}})).hypotheses,
      IsEmpty());
}

TEST(LogPatterns, RefusedCheckpointIsBadOnlyWhereNothingExplainsIt) {
  const auto refused = [](ObservedBuilder job) {
    return job.Line(0, 1, 150, "WARNING", "checkpoint.refused", {{"checkpoint", 20}});
  };
  const Findings alone = Detect(refused(Healthy(2)));
  ASSERT_THAT(alone.hypotheses, SizeIs(1));
  EXPECT_EQ(alone.hypotheses[0].mechanism, "checkpoint_bad");
  ObservedBuilder killed = test_support::RankKilled(2, 0);
  killed.Line(1, 1, 1300, "WARNING", "checkpoint.refused", {{"checkpoint", 20}});
  EXPECT_THAT(Detect(killed).hypotheses, IsEmpty());
}

TEST(LogPatterns, ExceptionAfterAPeersErrorIsNoCause) {
  const Json code = {{"exit_code", 73}};
  const Findings first = Detect(Healthy(2).Line(0, 1, 700, "ERROR", "rank.failed", code));
  ASSERT_THAT(first.hypotheses, SizeIs(1));
  EXPECT_EQ(first.hypotheses[0].mechanism, "exception");
  const Findings second = Detect(Healthy(2)
                                     .Line(0, 0, 690, "ERROR", "memory.exhausted")
                                     .Line(0, 1, 700, "ERROR", "rank.failed", code));
  ASSERT_THAT(second.hypotheses, SizeIs(1));
  EXPECT_EQ(second.hypotheses[0].mechanism, "out_of_memory_device");
}

TEST(LogPatterns, OutOfMemoryEndsTheAttemptOnlyIfThatRankExits) {
  EXPECT_FALSE(Detect(test_support::OutOfMemory(2, 1)).hypotheses[0].ends_attempt);
  ObservedBuilder job(2);
  job.Line(0, 1, 700, "ERROR", "memory.exhausted").Exit(0, 1, 710, "67", "itself");
  EXPECT_TRUE(Detect(job).hypotheses[0].ends_attempt);
}

TEST(LogPatterns, StartupTimeoutNamesTheMissing) {
  ObservedBuilder job(3);
  job.LauncherLine(0, 900, "ERROR", "startup.timeout", {{"missing", {1, 2}}});
  const Findings f = Detect(job);
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, "not_joined");
  EXPECT_THAT(f.hypotheses[0].culprits, SizeIs(2));
}

TEST(LogPatterns, StartupTimeoutAfterADeathNamesNobody) {
  ObservedBuilder job(3);
  job.Exit(0, 1, 800, "SIGKILL", "itself");
  job.LauncherLine(0, 900, "ERROR", "startup.timeout", {{"missing", {1}}});
  EXPECT_THAT(Detect(job).hypotheses, IsEmpty());
}

TEST(LogPatterns, FreeTextAloneIsNotEnough) {
  const Findings f = Detect(Healthy(2).Printed(0, 1, "write: No space left on device\n"));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_LT(f.hypotheses[0].confidence, 0.5);
}

TEST(LogPatterns, StructuredLineOnStderrIsNotReadTwice) {
  const Findings f = Detect(Healthy(2).Printed(0, 1,
                                               R"({"message":"No space left on device"})"
                                               "\n"));
  EXPECT_THAT(f.hypotheses, IsEmpty());
}

TEST(LogPatterns, WorkerThatDeliveredDamageIsNotSlow) {
  const Json fields = {{"worker", 0}, {"reason", "checksum"}};
  const Findings f = Detect(Healthy(2).Line(0, 1, 700, "WARNING", "worker.replaced", fields));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].mechanism, "bad_data");
}

TEST(LogPatterns, ThousandLinesAreOneReason) {
  ObservedBuilder job = Healthy(2);
  for (int i = 0; i < 1000; ++i) job.Line(0, 1, 700 + i, "WARNING", "data.slow", {{"worker", 0}});
  const Findings f = Detect(job);
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_THAT(f.hypotheses[0].reasons, SizeIs(1));
  EXPECT_LE(f.hypotheses[0].confidence, 0.65);
}

TEST(LogPatterns, UnknownAlarmIsUnexplained) {
  const Findings f = Detect(Healthy(2).Line(0, 1, 700, "ERROR", "fan.loud"));
  EXPECT_THAT(f.hypotheses, IsEmpty());
  ASSERT_THAT(f.unexplained, SizeIs(1));
  EXPECT_THAT(f.unexplained[0].text, HasSubstr("fan.loud"));
}

TEST(LogPatterns, EveryRowSaysWhatKeepsItFromBeingOverRead) {
  std::set<std::string> mechanisms;
#define SHAKEDOWN_MECHANISM(name, sentence) mechanisms.insert(#name);
#include "harness/wire/mechanisms.def"
#undef SHAKEDOWN_MECHANISM
  ASSERT_FALSE(EventPatterns().empty());
  for (const EventPattern& row : EventPatterns()) {
    EXPECT_FALSE(row.sentence.empty()) << row.event;
    EXPECT_LT(row.percent, 100) << row.event;
    const bool root = row.role == ChainRole::kRoot;
    EXPECT_EQ(root, mechanisms.contains(std::string(row.mechanism))) << row.event;
    EXPECT_EQ(root, row.culprit != CulpritForm::kNobody) << row.event;
  }
  ASSERT_FALSE(TextPatterns().empty());
  for (const TextPattern& row : TextPatterns()) {
    EXPECT_FALSE(row.sentence.empty()) << row.text;
    EXPECT_LT(row.percent, 50) << row.text << ": free text alone may not name a cause";
  }
}

}  // namespace
}  // namespace shakedown::diagnosis
