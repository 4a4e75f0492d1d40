#include "trainer/launch/exit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "harness/wire/exit_code.h"

namespace shakedown {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RankEnd Exit(int rank, int code, int64_t at = 1) {
  return {rank, WaitStatus::Exited(code), false, MonoTime{at}, 38};
}
RankEnd Signal(int rank, int signal, int64_t at = 1) {
  return {rank, WaitStatus::Signaled(signal), false, MonoTime{at}, 38};
}
RankEnd Ended(int rank, int64_t step = 38) {
  return {rank, WaitStatus::Signaled(SIGKILL), true, MonoTime{9}, step};
}

ExitReport Report(std::vector<RankEnd> ends) {
  return MakeExitReport({AttemptTrigger::kRankEnded, std::move(ends), {}});
}
std::vector<int> Ranks(const std::vector<ExitReport::Blame>& blames) {
  std::vector<int> out;
  for (const auto& blame : blames) out.push_back(blame.rank);
  return out;
}

TEST(ExitReport, ASignalThatWasNotOursIsTheCause) {
  const ExitReport report =
      Report({Exit(0, kRankPeerLost, 1), Signal(1, SIGKILL, 2), Exit(2, kRankPeerLost, 3)});
  EXPECT_EQ(report.reason, "signal");
  EXPECT_THAT(Ranks(report.cause), ElementsAre(1));
  EXPECT_EQ(report.cause[0].what, "killed by SIGKILL");
  EXPECT_THAT(Ranks(report.consequences), ElementsAre(0, 2));
  EXPECT_EQ(report.consequences[0].what, "exit 65 (peer lost)");
  EXPECT_EQ(report.first, 0);
  EXPECT_EQ(report.last_step, 38);
}

TEST(ExitReport, OfEndsInTheSameInstantTheCauseIsFirst) {
  EXPECT_EQ(Report({Exit(0, kRankPeerLost, 5), Signal(1, SIGKILL, 5)}).first, 1);
}

TEST(ExitReport, AnAbortAfterAKillIsAConsequence) {
  const ExitReport report = Report({Signal(0, SIGABRT, 1), Signal(1, SIGKILL, 1)});
  EXPECT_THAT(Ranks(report.cause), ElementsAre(1));
  EXPECT_THAT(Ranks(report.consequences), ElementsAre(0));
}

TEST(ExitReport, TwoThatWereKilledAreBothCauses) {
  const ExitReport report =
      Report({Signal(2, SIGKILL, 1), Exit(1, kRankPeerLost, 2), Signal(0, SIGKILL, 3)});
  EXPECT_THAT(Ranks(report.cause), ElementsAre(0, 2));
}

TEST(ExitReport, OfTwoCrashesTheFirstIsTheCause) {
  const ExitReport report = Report({Signal(2, SIGSEGV, 1), Signal(0, SIGABRT, 2)});
  EXPECT_THAT(Ranks(report.cause), ElementsAre(2));
  EXPECT_THAT(Ranks(report.consequences), ElementsAre(0));
}

TEST(ExitReport, AnOwnFailureGoesBeforeTimeouts) {
  const ExitReport report = Report({Exit(1, kRankCollectiveTimeout, 1),
                                    Exit(0, kRankOutOfMemory, 2), Exit(2, kRankPeerLost, 3)});
  EXPECT_EQ(report.reason, "exit");
  EXPECT_THAT(Ranks(report.cause), ElementsAre(0));
  EXPECT_EQ(report.cause[0].what, "exit 67 (out of memory)");
}

TEST(ExitReport, RanksThatFailAlikeAreAllCauses) {
  const ExitReport report =
      Report({Exit(0, kRankNotFinite), Exit(2, kRankException), Exit(1, kRankNotFinite)});
  EXPECT_THAT(Ranks(report.cause), ElementsAre(0, 1));
  EXPECT_THAT(Ranks(report.consequences), ElementsAre(2));
}

TEST(ExitReport, AStatusThatHasNoMeaningIsReportedAsItIs) {
  EXPECT_EQ(Report({Exit(0, 3)}).cause[0].what, "exit 3");
}

TEST(ExitReport, TheOneThatLivedOnIsTheCauseOfTimeouts) {
  const ExitReport report =
      Report({Exit(0, kRankCollectiveTimeout), Exit(2, kRankCollectiveTimeout), Ended(1)});
  EXPECT_EQ(report.reason, "timeout");
  EXPECT_THAT(Ranks(report.cause), ElementsAre(1));
  EXPECT_THAT(report.cause[0].what, HasSubstr("alive, did not join"));
  EXPECT_THAT(Ranks(report.consequences), ElementsAre(0, 2));
  EXPECT_EQ(report.first, 0);
}

TEST(ExitReport, WhenMostLiveOnNobodyIsNamed) {
  const ExitReport report = Report({Exit(0, kRankCollectiveTimeout), Ended(1), Ended(2)});
  EXPECT_THAT(report.cause, IsEmpty());
  EXPECT_THAT(ToSentence(report), HasSubstr("No rank stands out"));
}

TEST(ExitReport, OneThatLeftEarlyIsTheCauseOfLostPeers) {
  const ExitReport report = Report({Exit(1, 0, 1), Exit(0, kRankPeerLost, 2)});
  EXPECT_EQ(report.reason, "timeout");
  EXPECT_THAT(Ranks(report.cause), ElementsAre(1));
  EXPECT_THAT(report.cause[0].what, HasSubstr("left before"));
}

TEST(ExitReport, OnlyTimeoutsNameNobody) {
  const ExitReport report = Report({Exit(0, kRankCollectiveTimeout), Exit(1, kRankPeerLost)});
  EXPECT_THAT(report.cause, IsEmpty());
  EXPECT_THAT(Ranks(report.consequences), ElementsAre(0, 1));
}

TEST(ExitReport, WithASignalThoseEndedByTheLauncherAreConsequences) {
  const ExitReport report = Report({Signal(1, SIGKILL), Ended(0), Ended(2)});
  EXPECT_THAT(Ranks(report.cause), ElementsAre(1));
  EXPECT_EQ(report.consequences[0].what, "ended by the launcher");
}

TEST(ExitReport, TheWatchdogNamesTheRankBehind) {
  const ExitReport report =
      MakeExitReport({AttemptTrigger::kWatchdog, {Ended(0), Ended(1, 37), Ended(2)}, {1}});
  EXPECT_EQ(report.reason, "watchdog");
  EXPECT_THAT(Ranks(report.cause), ElementsAre(1));
  EXPECT_EQ(report.first, std::nullopt);
  EXPECT_EQ(report.last_step, 37);
}

TEST(ExitReport, TheWatchdogNamesNobodyWhenAllStandAtOneStep) {
  const ExitReport report =
      MakeExitReport({AttemptTrigger::kWatchdog, {Ended(0), Ended(1)}, {0, 1}});
  EXPECT_THAT(report.cause, IsEmpty());
  EXPECT_THAT(Ranks(report.consequences), ElementsAre(0, 1));
}

TEST(ExitReport, TheOnlyRankThatRunsIsNamedByTheWatchdog) {
  const ExitReport report =
      MakeExitReport({AttemptTrigger::kWatchdog, {Exit(0, 0), Ended(1)}, {1}});
  EXPECT_THAT(Ranks(report.cause), ElementsAre(1));
}

TEST(ExitReport, AStartUpTimeoutNamesTheMissing) {
  const ExitReport report =
      MakeExitReport({AttemptTrigger::kStartup, {Ended(0, 0), Ended(1, 0)}, {1}});
  EXPECT_EQ(report.reason, "startup");
  EXPECT_THAT(Ranks(report.cause), ElementsAre(1));
}

TEST(ExitReport, AsJsonHasTheFieldsOfTheContract) {
  const Json json = ToJson(Report({Signal(1, SIGKILL), Exit(0, kRankPeerLost)}));
  const Json expected = {{"first", 1},
                         {"reason", "signal"},
                         {"cause", {{{"rank", 1}, {"what", "killed by SIGKILL"}}}},
                         {"consequences", {{{"rank", 0}, {"what", "exit 65 (peer lost)"}}}},
                         {"last_step", 38}};
  EXPECT_EQ(json, expected) << DumpJson(json);
}

}  // namespace
}  // namespace shakedown
