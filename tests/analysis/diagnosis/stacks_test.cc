// Stacks: read, stripped of the observer, and never enough alone.
#include <gmock/gmock.h>

#include "analysis/diagnosis/detector.h"
#include "analysis/diagnosis/stack_text.h"
#include "tests/analysis/diagnosis/observed_builder.h"

namespace shakedown::diagnosis {
namespace stacks {
extern const Detector kDetector;
}

namespace {

using test_support::ObservedBuilder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Findings Detect(const ObservedBuilder& job) { return stacks::kDetector.detect(job.Build()); }

constexpr char kEuStack[] =
    "PID 812 - process\n"
    "TID 812:\n"
    "#0  0x00007f3c1 clock_nanosleep@@GLIBC_2.17\n"
    "#1  0x00005581a shakedown::probe::internal::Matched(shakedown::Point, unsigned int)\n"
    "#2  0x00005582b trainer::AllReduce(at::Tensor&)\n"
    "#3  0x00005583c main\n"
    "TID 813:\n"
    "#0  0x00007f3c2 epoll_wait\n";

TEST(StackText, ReadsWhatEuStackPrints) {
  const ProcessStacks stacks = ParseStacks(kEuStack);
  ASSERT_THAT(stacks.threads, SizeIs(2));
  EXPECT_EQ(stacks.threads[0].title, "TID 812:");
  ASSERT_THAT(stacks.threads[0].frames, SizeIs(4));
  EXPECT_EQ(stacks.threads[0].frames[2].text, "trainer::AllReduce(at::Tensor&)");
  EXPECT_EQ(stacks.threads[0].frames[2].line, 5);
}

TEST(StackText, ReadsWhatGdbPrints) {
  const ProcessStacks stacks = ParseStacks(
      "State:\tT (stopped)\n"
      "Thread 1 (LWP 812):\n"
      "#0  0x00007f3c1 in c10d::Work::wait () at work.cc:12\n"
      "#1  main () at main.cc:3\n");
  EXPECT_EQ(stacks.state, 'T');
  ASSERT_THAT(stacks.threads, SizeIs(1));
  EXPECT_EQ(stacks.threads[0].frames[0].text, "c10d::Work::wait () at work.cc:12");
  EXPECT_EQ(stacks.threads[0].frames[1].text, "main () at main.cc:3");
}

TEST(StackText, NonsenseIsNoStack) {
  for (const char* text : {"", "\n\n", "no stack: the process has ended\n", "#\n#x\n# 1\n",
                           "TID\nTID\n", "\xff\xfe#0\n"}) {
    EXPECT_THAT(ParseStacks(text).threads, IsEmpty()) << text;
  }
}

TEST(StackText, ObserversFramesAndWhatTheyCalledAreTakenOff) {
  const std::vector<StackFrame> frames = JobFrames(ParseStacks(kEuStack).threads[0]);
  ASSERT_THAT(frames, SizeIs(2));
  EXPECT_EQ(frames[0].text, "trainer::AllReduce(at::Tensor&)");
}

TEST(StackText, NamesAreWithoutParametersAndTemplateArguments) {
  const auto name = [](const char* text) { return FunctionName({text, 1}); };
  EXPECT_EQ(name("main"), "main");
  EXPECT_EQ(name("a::(anonymous namespace)::F(std::vector<x>)"), "a::(anonymous namespace)::F");
  EXPECT_EQ(name("N<int>::G<a<b>>(c<d>) const"), "N::G");
  EXPECT_EQ(name("c10d::Work::wait () at work.cc:12"), "c10d::Work::wait");
  EXPECT_EQ(name("))>>((<<"), "");
}

TEST(StackText, SleepInTheCommunicationLibraryIsAWaitAndInTheJobIsNone) {
  const auto waits = [](const char* text) {
    return WaitsForPeers(JobFrames(ParseStacks(text).threads.at(0)));
  };
  EXPECT_TRUE(
      waits("TID 1:\n#0  0x1 __futex_abstimed_wait_common\n#1  0x2 pthread_cond_wait\n"
            "#2  0x3 std::condition_variable::wait(std::unique_lock<std::mutex>&)\n"
            "#3  0x4 c10d::Reducer::finalize_backward()\n"));
  EXPECT_FALSE(
      waits("TID 1:\n#0  0x1 __futex_abstimed_wait_common\n"
            "#1  0x2 trainer::Lock(c10d::Work&)\n#2  0x3 c10d::Reducer::x()\n"));
  EXPECT_FALSE(waits("TID 1:\n#0  0x1 main\n"));
}

TEST(Stacks, OnlyRankThatDoesNotWaitIsSupportedButNotNamed) {
  const Findings f = Detect(test_support::RankNotJoined(3, 2));
  ASSERT_THAT(f.hypotheses, SizeIs(1));
  EXPECT_EQ(f.hypotheses[0].culprits[0].rank, 2);
  EXPECT_LT(f.hypotheses[0].confidence, 0.5);
  EXPECT_THAT(f.notes, SizeIs(3));
}

TEST(Stacks, StandingInTheProbeIsNoEvidence) {
  // The same stacks with the probe under every rank: who watches says nothing.
  ObservedBuilder job(2);
  job.NoProgress(2160);
  for (int r = 0; r < 2; ++r) job.Stack(0, r, 2300, kEuStack);
  EXPECT_THAT(Detect(job).hypotheses, IsEmpty());
}

TEST(Stacks, StoppedProcessIsNamed) {
  ObservedBuilder job(2);
  job.NoProgress(2160).Stack(0, 1, 2300, "State:\tT (stopped)\nTID 812:\n#0  0x1 main\n");
  const Findings f = Detect(job);
  ASSERT_THAT(f.hypotheses, Not(IsEmpty()));
  EXPECT_EQ(f.hypotheses[0].mechanism, "stopped");
  EXPECT_EQ(f.hypotheses[0].culprits[0].rank, 1);
}

TEST(Stacks, TakenWhileRanksWereEndingSayNothing) {
  ObservedBuilder job = test_support::RankNotJoined(3, 2);
  job.Event(events::kStacksCollected, 7000, {{"attempt", 0}, {"rank", 0}});
  const Findings f = Detect(job);
  EXPECT_THAT(f.hypotheses, IsEmpty());
  EXPECT_THAT(f.missing, SizeIs(1));
}

TEST(Stacks, WithoutAStandStillSayNothing) {
  EXPECT_THAT(Detect(test_support::Healthy(2).Stack(0, 1, 900, kEuStack)).hypotheses, IsEmpty());
}

TEST(Stacks, LongFramesAreShortened) {
  ObservedBuilder job(2);
  job.NoProgress(2160).Stack(0, 1, 2300, "TID 1:\n#0  0x1 " + std::string(100'000, 'x') + "\n");
  const Findings f = Detect(job);
  ASSERT_THAT(f.notes, SizeIs(1));
  EXPECT_LT(f.notes[0].reason.text.size(), 300u);
  EXPECT_THAT(f.notes[0].reason.text, HasSubstr("stack of rank 1"));
}

}  // namespace
}  // namespace shakedown::diagnosis
