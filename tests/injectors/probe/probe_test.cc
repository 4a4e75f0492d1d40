// The probe inside a process of its own (tests/victims/scripted), with a stand-in for the
// controller.
#include "injectors/probe/probe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "harness/wire/environment.h"
#include "harness/wire/exit_code.h"
#include "tests/support/await.h"
#include "tests/support/control_double.h"
#include "tests/support/scripted_process.h"

namespace shakedown {
namespace {

using test_support::ArmFields;
using test_support::ControlDouble;
using test_support::Eventually;
using test_support::MetProcess;
using test_support::PutArm;
using test_support::ScriptedProcess;
using ::testing::HasSubstr;

// How long a thing that must not happen is given to happen.
constexpr Nanoseconds kQuiet = std::chrono::milliseconds(100);

class Probe : public ::testing::Test {
 protected:
  void SetUp() override {
    auto control = ControlDouble::Listen();
    ASSERT_TRUE(control) << control.error().message;
    control_ = *std::move(control);
  }

  void Launch(std::vector<std::string> environment = {}) {
    environment.push_back(std::string(env::kControlSocket) + "=" + control_->path());
    auto process = ScriptedProcess::Start(std::move(environment));
    ASSERT_TRUE(process) << process.error().message;
    process_ = *std::move(process);
  }

  // Starts it with these arms in its page.
  void LaunchArmed(const std::vector<ArmFields>& arms, std::vector<std::string> environment = {}) {
    Launch(std::move(environment));
    auto met = control_->Meet([&](const HelloMessage&, ProgressPage* page) {
      for (size_t i = 0; i < arms.size(); ++i) PutArm(page, i, arms[i]);
    });
    ASSERT_TRUE(met) << met.error().message;
    met_ = *std::move(met);
  }

  HeldMessage MustBeHeld() {
    const auto held = met_->AwaitHeld();
    EXPECT_TRUE(held) << held.error().message;
    return held.value_or(HeldMessage{});
  }

  ArmState StateOf(size_t arm) const {
    return static_cast<ArmState>(met_->page()->control.arms[arm].state.load());
  }
  bool ArmedAt(Point point) const {
    return (met_->page()->control.armed.load() >> static_cast<unsigned>(point) & 1) != 0;
  }
  std::string ExitText() {
    const auto status = process_->Wait();
    return status ? status->ToString() : status.error().message;
  }

  std::unique_ptr<ControlDouble> control_;
  std::unique_ptr<ScriptedProcess> process_;
  std::unique_ptr<MetProcess> met_;
};

using ProbeHello = Probe;

TEST_F(ProbeHello, SaysWhoItIsAsTheEnvironmentHasIt) {
  LaunchArmed({}, {"RANK=2", "TORCHELASTIC_RESTART_COUNT=1"});
  EXPECT_EQ(met_->hello().pid, process_->identity().pid);
  EXPECT_EQ(met_->hello().role, Role::kRank);
  EXPECT_EQ(met_->hello().rank_hint, 2);
  EXPECT_EQ(met_->hello().attempt_hint, 1);
  EXPECT_EQ(met_->hello().worker_hint, -1);
  EXPECT_EQ(process_->Ask("pass step.begin 3"), "0 0");
  EXPECT_EQ(Unpack(met_->lane(Lane::kMain)).attempt, 1);
  EXPECT_EQ(met_->page()->observed.magic, kPageMagic);
  EXPECT_EQ(met_->page()->observed.pid.load(), process_->identity().pid);
  EXPECT_EQ(met_->page()->observed.rank.load(), -1) << "a hint is not a rank";
  EXPECT_EQ(met_->page()->observed.worker.load(), -1);
}

TEST_F(ProbeHello, AWorkerSaysThatItIsOneAndWhichIncarnation) {
  LaunchArmed({}, {"RANK=0", "SHAKEDOWN_WORKER=3", "SHAKEDOWN_WORKER_INCARNATION=2"});
  EXPECT_EQ(met_->hello().role, Role::kWorker);
  EXPECT_EQ(met_->hello().worker_hint, 3);
  EXPECT_EQ(met_->hello().incarnation, 2);
  EXPECT_EQ(process_->Ask("pass worker.read 1"), "0 0");
  EXPECT_EQ(met_->page()->observed.worker.load(), 3);
}

TEST_F(ProbeHello, NonsenseInTheEnvironmentIsAbsent) {
  LaunchArmed({}, {"RANK=two", "TORCHELASTIC_RESTART_COUNT=99999999999"});
  EXPECT_EQ(met_->hello().rank_hint, -1);
  EXPECT_EQ(met_->hello().attempt_hint, -1);
}

TEST_F(ProbeHello, WithoutAControllerPointsArePassedAllTheSame) {
  auto process = ScriptedProcess::Start({});
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ((*process)->Ask("pass collective.enter 1"), "0 0");
  EXPECT_EQ((*process)->Ask("step 1"), "ok");
}

TEST_F(ProbeHello, ASocketThatIsNotThereIsNamedAndTheProcessGoesOn) {
  auto process =
      ScriptedProcess::Start({std::string(env::kControlSocket) + "=/nonexistent/control"});
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ((*process)->Ask("pass collective.enter 1"), "0 0");
  ASSERT_TRUE((*process)->Signal(SIGKILL));
  ASSERT_TRUE((*process)->Wait());
  EXPECT_THAT((*process)->Errors(), HasSubstr("'/nonexistent/control'"));
}

TEST_F(ProbeHello, AControllerThatNeverAnswersCostsFiveSeconds) {
  Launch();
  const auto met = control_->MeetInSilence();
  ASSERT_TRUE(met) << met.error().message;
  const MonoTime asked = MonoNow();
  EXPECT_EQ(process_->Ask("pass step.begin 1"), "0 0");
  const double waited_ms = ToMs(MonoNow() - asked);
  EXPECT_GT(waited_ms, 4500);
  EXPECT_LT(waited_ms, 15000);
}

TEST_F(ProbeHello, AProcessThatIsNotWantedGoesOnUnarmedAndSilently) {
  Launch();
  const WelcomeMessage refusal{{kControlMagic, MessageKind::kWelcome}, 0};
  ASSERT_TRUE(control_->MeetWith(refusal, sizeof refusal, -1));
  EXPECT_EQ(process_->Ask("pass step.begin 1"), "0 0");
  ASSERT_TRUE(process_->Signal(SIGKILL));
  ASSERT_TRUE(process_->Wait());
  EXPECT_EQ(process_->Errors(), "");
}

struct BadWelcome {
  const char* what;
  WelcomeMessage welcome;
  size_t bytes;
  int seals;  // -1: no descriptor
  size_t page_bytes;
};
void PrintTo(const BadWelcome& bad, std::ostream* out) { *out << bad.what; }

class ProbeBadWelcome : public Probe, public ::testing::WithParamInterface<BadWelcome> {};

TEST_P(ProbeBadWelcome, IsRefusedAndTheProcessGoesOnUnarmed) {
  const BadWelcome& bad = GetParam();
  UniqueFd page;
  if (bad.seals >= 0) {
    page = test_support::MakePageFd(bad.seals, bad.page_bytes);
    ASSERT_TRUE(page);
  }
  Launch();
  const auto met = control_->MeetWith(bad.welcome, bad.bytes, page.get());
  ASSERT_TRUE(met) << met.error().message;
  EXPECT_EQ(process_->Ask("pass step.begin 1"), "0 0");
  ASSERT_TRUE(process_->Signal(SIGKILL));
  ASSERT_TRUE(process_->Wait());
  EXPECT_THAT(process_->Errors(), HasSubstr("going on unarmed"));
  char first = 0;
  if (page) {
    EXPECT_EQ(::pread(page.get(), &first, 1, 0), 1);
  }
  EXPECT_EQ(first, 0) << "the page was used";
}

constexpr WelcomeMessage kGood{{kControlMagic, MessageKind::kWelcome}, 1};
constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;
INSTANTIATE_TEST_SUITE_P(
    All, ProbeBadWelcome,
    ::testing::Values(
        BadWelcome{"no page", kGood, sizeof kGood, -1, 0},
        BadWelcome{"a page without seals", kGood, sizeof kGood, 0, kPageBytes},
        BadWelcome{"a page that could shrink", kGood, sizeof kGood, F_SEAL_GROW, kPageBytes},
        BadWelcome{"a page that is too small", kGood, sizeof kGood, kSealed, kPageBytes / 2},
        BadWelcome{"a short packet", kGood, sizeof kGood - 1, kSealed, kPageBytes},
        BadWelcome{
            "another magic", {{1, MessageKind::kWelcome}, 1}, sizeof kGood, kSealed, kPageBytes},
        BadWelcome{"another kind",
                   {{kControlMagic, MessageKind::kRelease}, 1},
                   sizeof kGood,
                   kSealed,
                   kPageBytes}));

using ProbePage = Probe;

TEST_F(ProbePage, TellsLanesStepsCollectivesAndCheckpoints) {
  LaunchArmed({}, {"RANK=1"});
  EXPECT_EQ(process_->Ask("join 1 3"), "ok");
  const auto joined = met_->AwaitJoined();
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(joined->rank, 1);
  EXPECT_EQ(joined->world_size, 3);
  process_->Ask("pass data.next 7");
  process_->Ask("pass collective.enter 7");
  process_->Ask("enter");
  process_->Ask("enter");
  process_->Ask("enqueue");
  const int64_t before_ns = MonoNow().ns;
  process_->Ask("step 7");
  process_->Ask("committed 5");
  process_->Ask("save_failed 6 28");
  process_->Ask("lane writer");
  process_->Ask("pass checkpoint.write 6");
  const PageObserved& page = met_->page()->observed;
  const Progress main = Unpack(met_->lane(Lane::kMain));
  EXPECT_EQ(main.point, Point::kCollectiveEnter);
  EXPECT_EQ(main.step, 7u);
  EXPECT_EQ(main.count, 2u);
  EXPECT_EQ(Unpack(met_->lane(Lane::kWriter)).point, Point::kCheckpointWrite);
  EXPECT_EQ(page.rank.load(), 1);
  EXPECT_EQ(page.world_size.load(), 3);
  EXPECT_EQ(page.last_step.load(), 7u);
  EXPECT_GE(static_cast<int64_t>(page.last_step_ns.load()), before_ns);
  EXPECT_EQ(page.collectives_entered.load(), 2u);
  EXPECT_EQ(page.collectives_enqueued.load(), 1u);
  EXPECT_EQ(page.committed_step.load(), 5u);
  EXPECT_EQ(page.checkpoint_error.load(), uint64_t{ENOSPC} << 32 | 6);
}

TEST_F(ProbePage, OutlivesItsProcess) {
  LaunchArmed({});
  process_->Ask("pass collective.enter 9");
  ASSERT_TRUE(process_->Signal(SIGKILL));
  EXPECT_EQ(ExitText(), "SIGKILL");
  EXPECT_EQ(Unpack(met_->lane(Lane::kMain)).step, 9u);
}

using ProbeHold = Probe;

TEST_F(ProbeHold, ReportsTheMatchAndWaitsForItsRelease) {
  LaunchArmed({{.point = Point::kCollectiveEnter, .step = 3, .id = 42}});
  EXPECT_EQ(process_->Ask("pass collective.enter 2"), "0 0");
  const int64_t before_ns = MonoNow().ns;
  ASSERT_TRUE(process_->Tell("pass collective.enter 3"));
  const HeldMessage held = MustBeHeld();
  EXPECT_EQ(held.arm_id, 42u);
  EXPECT_EQ(held.arm_index, 0u);
  EXPECT_EQ(held.point, static_cast<uint32_t>(Point::kCollectiveEnter));
  EXPECT_EQ(held.step, 3u);
  EXPECT_EQ(held.occurrence, 1u);
  EXPECT_EQ(held.lane, Lane::kMain);
  EXPECT_GE(held.t_ns, before_ns);
  EXPECT_LE(held.t_ns, MonoNow().ns);
  EXPECT_EQ(StateOf(0), ArmState::kTaken);
  EXPECT_TRUE(process_->IsSilentFor(kQuiet)) << "it went on without a release";
  ASSERT_TRUE(met_->Release(0, true));
  EXPECT_EQ(*process_->Hear(), "0 0");
  EXPECT_EQ(StateOf(0), ArmState::kDone);
  EXPECT_FALSE(ArmedAt(Point::kCollectiveEnter)) << "later passes still take the slow way";
  EXPECT_EQ(process_->Ask("pass collective.enter 3"), "0 0") << "an arm acts once";
}

TEST_F(ProbeHold, SurvivesSignalsThatTheJobHandles) {
  LaunchArmed({{.point = Point::kStepBegin}});
  process_->Ask("handle_term");
  ASSERT_TRUE(process_->Tell("pass step.begin 1"));
  MustBeHeld();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(process_->Signal(SIGTERM));
  EXPECT_TRUE(process_->IsSilentFor(kQuiet));
  ASSERT_TRUE(met_->Release(0, false));
  EXPECT_EQ(*process_->Hear(), "0 0");
  EXPECT_NE(process_->Ask("terms"), "0");
}

TEST_F(ProbeHold, AtTheEndOfTheSocketAReferenceRankExits) {
  LaunchArmed({{.point = Point::kStepBegin}}, {"SHAKEDOWN_REFERENCE_JOB=1"});
  ASSERT_TRUE(process_->Tell("pass step.begin 1"));
  MustBeHeld();
  met_->HangUp();
  EXPECT_EQ(ExitText(), "exit " + std::to_string(kRankControlLost));
}

TEST_F(ProbeHold, AtTheEndOfTheSocketAForeignJobGoesOnUnarmed) {
  LaunchArmed({{.point = Point::kStepBegin, .action = ArmAction::kIoError, .argument = EIO},
               {.point = Point::kStepBegin, .step = 2, .action = ArmAction::kStall}});
  ASSERT_TRUE(process_->Tell("pass step.begin 1"));
  MustBeHeld();
  met_->HangUp();
  EXPECT_EQ(*process_->Hear(), "0 0") << "it acted although nobody released it";
  EXPECT_EQ(process_->Ask("pass step.begin 2"), "0 0") << "a later arm held or acted";
}

TEST_F(ProbeHold, AReleaseOfAnotherArmCountsAsALostController) {
  LaunchArmed({{.point = Point::kStepBegin, .action = ArmAction::kIoError, .argument = EIO}});
  ASSERT_TRUE(process_->Tell("pass step.begin 1"));
  MustBeHeld();
  ASSERT_TRUE(met_->Release(1, true));
  EXPECT_EQ(*process_->Hear(), "0 0");
}

TEST_F(ProbeHold, ATooLongPacketCountsAsALostController) {
  LaunchArmed({{.point = Point::kStepBegin, .action = ArmAction::kIoError, .argument = EIO}});
  ASSERT_TRUE(process_->Tell("pass step.begin 1"));
  MustBeHeld();
  struct {
    ReleaseMessage release{{kControlMagic, MessageKind::kRelease}, 0, 1};
    char more = 0;
  } packet;
  ASSERT_TRUE(met_->SendRaw(&packet, sizeof packet));
  EXPECT_EQ(*process_->Hear(), "0 0");
}

TEST_F(ProbeHold, OneThreadIsHeldAtATime) {
  LaunchArmed({{.point = Point::kStepBegin, .id = 1},
               {.point = Point::kStepBegin, .occurrence = 2, .id = 2}});
  ASSERT_TRUE(process_->Tell("threads 2 step.begin 1"));
  const HeldMessage first = MustBeHeld();
  EXPECT_FALSE(met_->SomethingArrives(kQuiet)) << "two threads are held at once";
  ASSERT_TRUE(met_->Release(first.arm_index, false));
  const HeldMessage second = MustBeHeld();
  EXPECT_NE(first.arm_id, second.arm_id);
  ASSERT_TRUE(met_->Release(second.arm_index, false));
  EXPECT_EQ(*process_->Hear(), "passed");
}

TEST_F(ProbeHold, AnArmWithdrawnDuringTheHoldStaysWithdrawn) {
  LaunchArmed({{.point = Point::kWorkerRead,
                .flags = kArmHold | kArmRepeat,
                .action = ArmAction::kIoError,
                .argument = EIO}});
  ASSERT_TRUE(process_->Tell("pass worker.read 1"));
  MustBeHeld();
  met_->page()->control.arms[0].state.store(static_cast<uint32_t>(ArmState::kDone));
  ASSERT_TRUE(met_->Release(0, false));
  EXPECT_EQ(*process_->Hear(), "0 0");
  EXPECT_EQ(StateOf(0), ArmState::kDone);
  EXPECT_EQ(process_->Ask("pass worker.read 2"), "0 0");
}

using ProbeMatch = Probe;

TEST_F(ProbeMatch, CountsOccurrencesOfItsStepOnly) {
  LaunchArmed({{.point = Point::kCollectiveEnter, .step = 2, .occurrence = 3}});
  EXPECT_EQ(process_->Ask("pass collective.enter 1"), "0 0");
  EXPECT_EQ(process_->Ask("pass collective.enter 2"), "0 0");
  EXPECT_EQ(process_->Ask("pass collective.enter 2"), "0 0");
  ASSERT_TRUE(process_->Tell("pass collective.enter 2"));
  EXPECT_EQ(MustBeHeld().occurrence, 3u);
  EXPECT_EQ(met_->page()->control.arms[0].seen.load(), 3u);
  ASSERT_TRUE(met_->Release(0, false));
  EXPECT_EQ(*process_->Hear(), "0 0");
}

TEST_F(ProbeMatch, HoweverManyThreadsPassAnArmActsOnce) {
  LaunchArmed({{.point = Point::kStepBegin, .occurrence = 4, .flags = 0}});
  EXPECT_EQ(process_->Ask("threads 16 step.begin 1"), "passed");
  const auto fired = met_->AwaitFired();
  ASSERT_TRUE(fired) << fired.error().message;
  EXPECT_EQ(fired->occurrence, 4u);
  EXPECT_FALSE(met_->SomethingArrives(kQuiet)) << "it fired twice";
  EXPECT_EQ(StateOf(0), ArmState::kDone);
}

TEST_F(ProbeMatch, AStepThatIsNotReachedLeavesTheArm) {
  LaunchArmed({{.point = Point::kStepBegin, .step = 5}});
  for (int step = 1; step <= 4; ++step) {
    EXPECT_EQ(process_->Ask("pass step.begin " + std::to_string(step)), "0 0");
  }
  EXPECT_EQ(process_->Ask("pass step.end 5"), "0 0") << "another point of that step";
  EXPECT_EQ(StateOf(0), ArmState::kArmed);
  EXPECT_TRUE(ArmedAt(Point::kStepBegin));
}

TEST_F(ProbeMatch, WithoutAHoldItReportsAndActsAtOnce) {
  LaunchArmed({{.point = Point::kCheckpointWrite,
                .step = 10,
                .flags = 0,
                .action = ArmAction::kIoError,
                .argument = ENOSPC,
                .id = 7}});
  EXPECT_EQ(process_->Ask("pass checkpoint.write 10"),
            std::to_string(static_cast<int>(ArmAction::kIoError)) + " " + std::to_string(ENOSPC));
  const auto fired = met_->AwaitFired();
  ASSERT_TRUE(fired) << fired.error().message;
  EXPECT_EQ(fired->arm_id, 7u);
  EXPECT_EQ(fired->step, 10u);
  EXPECT_EQ(process_->Ask("pass checkpoint.write 10"), "0 0");
}

TEST_F(ProbeMatch, ARepeatingArmHoldsOnceAndActsAtEachLaterMatch) {
  LaunchArmed({{.point = Point::kWorkerRead,
                .step = 2,
                .flags = kArmHold | kArmRepeat,
                .action = ArmAction::kIoError,
                .argument = EIO}});
  const std::string acted =
      std::to_string(static_cast<int>(ArmAction::kIoError)) + " " + std::to_string(EIO);
  EXPECT_EQ(process_->Ask("pass worker.read 1"), "0 0");
  ASSERT_TRUE(process_->Tell("pass worker.read 4")) << "a step that was jumped over still matches";
  EXPECT_EQ(MustBeHeld().step, 4u);
  ASSERT_TRUE(met_->Release(0, true));
  EXPECT_EQ(*process_->Hear(), acted);
  EXPECT_EQ(StateOf(0), ArmState::kRepeating);
  EXPECT_EQ(process_->Ask("pass worker.read 5"), acted);
  EXPECT_EQ(process_->Ask("pass worker.read 6"), acted);
  EXPECT_FALSE(met_->SomethingArrives(kQuiet)) << "a repetition reported again";
  met_->page()->control.arms[0].state.store(static_cast<uint32_t>(ArmState::kDone));
  EXPECT_EQ(process_->Ask("pass worker.read 7"), "0 0") << "it acts after it was withdrawn";
  EXPECT_FALSE(ArmedAt(Point::kWorkerRead));
}

TEST_F(ProbeMatch, AnArmPutInLaterIsSeen) {
  LaunchArmed({});
  EXPECT_EQ(process_->Ask("pass step.begin 1"), "0 0");
  PutArm(met_->page(), 5, {.point = Point::kStepBegin, .step = 2, .id = 9});
  ASSERT_TRUE(process_->Tell("pass step.begin 2"));
  EXPECT_EQ(MustBeHeld().arm_index, 5u);
  ASSERT_TRUE(met_->Release(5, false));
  EXPECT_EQ(*process_->Hear(), "0 0");
}

TEST_F(ProbeMatch, ADecoyAndAnArmAtOnePassBothHold) {
  LaunchArmed(
      {{.point = Point::kStepBegin, .id = 0},
       {.point = Point::kStepBegin, .action = ArmAction::kIoError, .argument = EIO, .id = 1}});
  ASSERT_TRUE(process_->Tell("pass step.begin 1"));
  EXPECT_EQ(MustBeHeld().arm_id, 0u);
  ASSERT_TRUE(met_->Release(0, false));
  EXPECT_EQ(MustBeHeld().arm_id, 1u);
  ASSERT_TRUE(met_->Release(1, true));
  EXPECT_EQ(*process_->Hear(),
            std::to_string(static_cast<int>(ArmAction::kIoError)) + " " + std::to_string(EIO));
}

using ProbeInProcess = Probe;

TEST_F(ProbeInProcess, AStalledProcessStaysAliveHandlesSignalsAndNeverGoesOn) {
  LaunchArmed({{.point = Point::kCollectiveEnter, .action = ArmAction::kStall}});
  process_->Ask("handle_term");
  ASSERT_TRUE(process_->Tell("pass collective.enter 1"));
  MustBeHeld();
  const uint64_t word = met_->lane(Lane::kMain);
  ASSERT_TRUE(met_->Release(0, true));
  ASSERT_TRUE(process_->Signal(SIGTERM));
  EXPECT_TRUE(process_->IsSilentFor(kQuiet));
  EXPECT_EQ(met_->lane(Lane::kMain), word);
  const auto stat = ReadProcessStat(process_->identity().pid);
  ASSERT_TRUE(stat) << stat.error().message;
  EXPECT_EQ(stat->state, 'S');
  // A signal at its default ends it, as it would a rank in a real deadlock.
  ASSERT_TRUE(process_->Signal(SIGINT));
  EXPECT_EQ(ExitText(), "SIGINT");
}

TEST_F(ProbeInProcess, ADelayLastsItsWholeTimeAcrossSignals) {
  constexpr int64_t kDelayNs = 200'000'000;
  LaunchArmed({{.point = Point::kWorkerRead, .action = ArmAction::kDelay, .argument = kDelayNs}});
  process_->Ask("handle_term");
  ASSERT_TRUE(process_->Tell("pass worker.read 1"));
  MustBeHeld();
  const MonoTime released = MonoNow();
  ASSERT_TRUE(met_->Release(0, true));
  while (process_->IsSilentFor(std::chrono::milliseconds(20))) (void)process_->Signal(SIGTERM);
  EXPECT_EQ(*process_->Hear(), "0 0");
  EXPECT_GE((MonoNow() - released).count(), kDelayNs);
  EXPECT_NE(process_->Ask("terms"), "0");
}

TEST_F(ProbeInProcess, ExitEndsTheProcessWithThatStatus) {
  LaunchArmed({{.point = Point::kStepEnd, .flags = 0, .action = ArmAction::kExit, .argument = 9}});
  ASSERT_TRUE(process_->Tell("pass step.end 1"));
  EXPECT_EQ(ExitText(), "exit 9");
}

TEST_F(ProbeInProcess, ReleasedWithoutActingItGoesOnAsIfUnarmed) {
  LaunchArmed({{.point = Point::kStepEnd, .action = ArmAction::kExit, .argument = 9}});
  ASSERT_TRUE(process_->Tell("pass step.end 1"));
  MustBeHeld();
  ASSERT_TRUE(met_->Release(0, false));
  EXPECT_EQ(*process_->Hear(), "0 0");
  EXPECT_EQ(StateOf(0), ArmState::kDone);
}

using ProbeMemory = Probe;

TEST_F(ProbeMemory, RefusesTheNamedAllocationOnceAndCountsIt) {
  LaunchArmed({{.point = Point::kForwardBegin,
                .step = 15,
                .flags = 0,
                .action = ArmAction::kRefuseMemory,
                .argument = 3}});
  EXPECT_EQ(process_->Ask("allocate 10 0"), "granted");
  EXPECT_EQ(process_->Ask("pass forward.begin 15"), "0 0");
  EXPECT_EQ(process_->Ask("allocate 10 0"), "granted");
  EXPECT_EQ(process_->Ask("allocate 10 10"), "granted");
  EXPECT_EQ(met_->page()->observed.memory_refused.load(), 0u);
  EXPECT_EQ(process_->Ask("allocate 10 20"), "refused");
  EXPECT_EQ(met_->page()->observed.memory_refused.load(), uint64_t{15} << 32 | 1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(process_->Ask("allocate 10 20"), "granted");
}

TEST_F(ProbeMemory, CountsAllocationsOfTheThreadThatPassedOnly) {
  LaunchArmed({{.point = Point::kForwardBegin,
                .flags = 0,
                .action = ArmAction::kRefuseMemory,
                .argument = 1}});
  process_->Ask("pass forward.begin 1");
  EXPECT_EQ(process_->Ask("elsewhere 10 0"), "granted");
  EXPECT_EQ(process_->Ask("allocate 10 0"), "refused");
}

TEST_F(ProbeMemory, TheEndOfThePhaseEndsTheCounting) {
  LaunchArmed({{.point = Point::kForwardBegin,
                .flags = 0,
                .action = ArmAction::kRefuseMemory,
                .argument = 2}});
  process_->Ask("pass forward.begin 1");
  EXPECT_EQ(process_->Ask("allocate 10 0"), "granted");
  EXPECT_EQ(process_->Ask("end_memory_phase"), "ok");
  EXPECT_EQ(process_->Ask("allocate 10 0"), "granted");
  EXPECT_EQ(met_->page()->observed.memory_refused.load(), 0u);
}

TEST_F(ProbeMemory, ABudgetRefusesTheAllocationThatWouldPassIt) {
  LaunchArmed({{.point = Point::kForwardBegin,
                .flags = 0,
                .action = ArmAction::kMemoryBudget,
                .argument = 100}});
  process_->Ask("pass forward.begin 1");
  EXPECT_EQ(process_->Ask("allocate 60 0"), "granted");
  EXPECT_EQ(process_->Ask("allocate 40 60"), "granted") << "exactly the budget fits";
  EXPECT_EQ(process_->Ask("allocate 18446744073709551615 60"), "refused") << "sizes must not wrap";
  EXPECT_EQ(process_->Ask("allocate 200 60"), "granted") << "it acts once";
}

TEST_F(ProbeMemory, ABudgetThatIsUsedUpAlreadyRefusesTheNext) {
  LaunchArmed({{.point = Point::kForwardBegin,
                .flags = 0,
                .action = ArmAction::kMemoryBudget,
                .argument = 100}});
  process_->Ask("pass forward.begin 1");
  EXPECT_EQ(process_->Ask("allocate 1 101"), "refused");
}

using ProbeFork = Probe;

TEST_F(ProbeFork, TheChildDropsPageArmsAndSocket) {
  LaunchArmed({{.point = Point::kStepBegin, .action = ArmAction::kStall}});
  process_->Ask("pass data.next 1");
  const uint64_t word = met_->lane(Lane::kMain);
  ASSERT_TRUE(process_->Tell("fork step.begin 1"));
  EXPECT_EQ(*process_->Hear(), "child 1") << "the child goes on in its parent's page";
  EXPECT_EQ(*process_->Hear(), "7") << "the child was held, or stalled";
  EXPECT_EQ(met_->lane(Lane::kMain), word);
  EXPECT_EQ(StateOf(0), ArmState::kArmed) << "the child took its parent's arm";
  EXPECT_FALSE(met_->SomethingArrives(kQuiet)) << "the child spoke for its parent";
  // The parent is as it was.
  ASSERT_TRUE(process_->Tell("pass step.begin 1"));
  MustBeHeld();
  ASSERT_TRUE(met_->Release(0, false));
  EXPECT_EQ(*process_->Hear(), "0 0");
}

TEST_F(ProbeFork, TheChildsEndOfTheSocketIsClosed) {
  LaunchArmed({});
  EXPECT_EQ(process_->Ask("fork_and_stay"), "ok");
  ASSERT_TRUE(process_->Signal(SIGKILL));
  ASSERT_TRUE(process_->Wait());
  // The child is still there; the end of the parent is seen all the same.
  const auto end = met_->AwaitHeld();
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "the process is gone");
}

}  // namespace
}  // namespace shakedown
