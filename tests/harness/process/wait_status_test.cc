#include "harness/process/wait_status.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace shakedown {
namespace {

TEST(WaitStatusOf, ExitNineIsNotSigkill) {
  const WaitStatus exited = WaitStatus::Exited(9);
  const WaitStatus killed = WaitStatus::Signaled(9);
  EXPECT_NE(exited, killed);
  EXPECT_EQ(exited.code(), 9);
  EXPECT_EQ(exited.signal(), 0);
  EXPECT_EQ(killed.code(), -1);
  EXPECT_EQ(killed.signal(), SIGKILL);
  EXPECT_EQ(exited.ToString(), "exit 9");
  EXPECT_EQ(killed.ToString(), "SIGKILL");
}

TEST(WaitStatusOf, OnlyExitZeroIsOk) {
  EXPECT_TRUE(WaitStatus::Exited(0).ok());
  EXPECT_FALSE(WaitStatus::Exited(1).ok());
  EXPECT_FALSE(WaitStatus::Signaled(SIGTERM).ok());
}

TEST(WaitStatusOf, StatusWordAndSiginfoAgree) {
  EXPECT_EQ(WaitStatus::FromWord(W_EXITCODE(3, 0)), WaitStatus::Exited(3));
  EXPECT_EQ(WaitStatus::FromWord(W_EXITCODE(0, SIGKILL)), WaitStatus::Signaled(SIGKILL));
  constexpr int kCoreFlag = 0x80;
  EXPECT_EQ(WaitStatus::FromWord(SIGABRT | kCoreFlag), WaitStatus::Signaled(SIGABRT));
  siginfo_t info{};
  info.si_code = CLD_EXITED;
  info.si_status = 3;
  EXPECT_EQ(WaitStatus::FromSiginfo(info), WaitStatus::Exited(3));
  info.si_code = CLD_DUMPED;
  info.si_status = SIGSEGV;
  EXPECT_EQ(WaitStatus::FromSiginfo(info), WaitStatus::Signaled(SIGSEGV));
}

TEST(WaitStatusOf, ARecordHoldsTheCodeOrTheNameOfTheSignal) {
  Json record = Json::object();
  WaitStatus::Signaled(SIGKILL).AddTo(record);
  EXPECT_EQ(DumpJson(record), R"({"signal":"SIGKILL"})");
  record = Json::object();
  WaitStatus::Exited(9).AddTo(record);
  EXPECT_EQ(DumpJson(record), R"({"code":9})");
}

TEST(SignalNames, EverySignalSurvivesTheWayToItsNameAndBack) {
  for (int signal = 1; signal <= 64; ++signal) {
    EXPECT_EQ(SignalNumber(SignalName(signal)), signal) << SignalName(signal);
  }
  EXPECT_EQ(SignalName(SIGKILL), "SIGKILL");
  EXPECT_EQ(SignalName(64), "signal 64");
}

TEST(SignalNames, ShortFormIsTakenAndUnknownIsZero) {
  EXPECT_EQ(SignalNumber("KILL"), SIGKILL);
  EXPECT_EQ(SignalNumber("kill"), 0);
  EXPECT_EQ(SignalNumber(""), 0);
  EXPECT_EQ(SignalNumber("SIGNOTHING"), 0);
  EXPECT_EQ(SignalNumber("signal 65"), 0);
  EXPECT_EQ(SignalNumber("signal 9x"), 0);
}

}  // namespace
}  // namespace shakedown
