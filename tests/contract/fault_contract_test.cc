// What every fault of the catalogue has to keep, on a small job of victim programs: no effect
// before; effect on the victim, none on a bystander; undo, effect gone, undo again changes nothing;
// undo after half an inject; nothing twice; and each witness comes out red when it should.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <set>

#include "harness/base/quantity.h"
#include "injectors/catalog.h"
#include "injectors/undo.h"
#include "tests/support/await.h"
#include "tests/support/victim_reach.h"

namespace shakedown {
namespace {

using test_support::Eventually;
using test_support::Throughout;
using test_support::VictimOptions;
using test_support::VictimReach;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

// How long victims of whom nothing was asked are watched: many times what a witness needs to hold.
constexpr Nanoseconds kUndisturbed = std::chrono::milliseconds(400);

// A fault by one of its means, and the program that it is tried on.
struct Case {
  std::string fault;
  Machine machine;  // decides which means is taken
  std::string victim;
  Params with;
  Point point;
  std::optional<int> worker;
  std::optional<int64_t> private_fs_bytes;
  // What hits a bystander as well, so that the bystander witness has something to find.
  ArmSpec on_bystander;
};

const Machine kFull{.mount_namespace = true, .user_namespace = true, .root = true};
const Machine kPoor{.why_no_mount_namespace = "this test says so"};
constexpr int64_t kFsBytes = 4 << 20;

const std::vector<Case>& Cases() {
  static const std::vector<Case> kCases = {
      {.fault = "collective.never_return",
       .machine = kFull,
       .victim = "stepper",
       .point = Point::kCollectiveEnqueued,
       .on_bystander = {ArmAction::kStall}},
      {.fault = "data.worker_slow",
       .machine = kFull,
       .victim = "worker",
       .with = {{"delay", int64_t{300'000'000}}},
       .point = Point::kWorkerRead,
       .worker = 0,
       .on_bystander = {ArmAction::kDelay, 600'000'000}},
      {.fault = "disk.full",
       .machine = kFull,
       .victim = "writer",
       .with = {{"size", kFsBytes}},
       .point = Point::kCheckpointWrite,
       .private_fs_bytes = kFsBytes,
       .on_bystander = {ArmAction::kIoError, ENOSPC}},
      {.fault = "disk.full",
       .machine = kPoor,
       .victim = "writer",
       .with = {{"size", kFsBytes}},
       .point = Point::kCheckpointWrite,
       .on_bystander = {ArmAction::kIoError, ENOSPC}},
      {.fault = "memory.device_oom",
       .machine = kFull,
       .victim = "stepper",
       .with = {{"allocation", int64_t{3}}},
       .point = Point::kForwardBegin,
       .on_bystander = {ArmAction::kRefuseMemory, 1}},
      {.fault = "memory.device_oom",
       .machine = kFull,
       .victim = "stepper",
       .with = {{"budget", int64_t{2048}}},
       .point = Point::kForwardBegin,
       .on_bystander = {ArmAction::kRefuseMemory, 1}},
      {.fault = "rank.kill",
       .machine = kFull,
       .victim = "stepper",
       .with = {{"signal", std::string("KILL")}},
       .point = Point::kCollectiveEnter},
      {.fault = "rank.kill",
       .machine = kFull,
       .victim = "stepper",
       .with = {{"signal", std::string("SEGV")}},
       .point = Point::kForwardBegin},
      {.fault = "rank.stall",
       .machine = kFull,
       .victim = "stepper",
       .point = Point::kCollectiveEnter,
       .on_bystander = {ArmAction::kStall}},
      {.fault = "rank.stall",
       .machine = kFull,
       .victim = "stepper",
       .point = Point::kStepEnd,
       .on_bystander = {ArmAction::kStall}},
  };
  return kCases;
}

std::string Describe(const Case& c) {
  std::string name = c.fault + "_" + std::string(PointName(c.point)) + "_" +
                     FindFault(c.fault)->available(c.machine).means;
  for (const auto& [key, value] : c.with) {
    name += "_" + key;
    if (const auto* text = std::get_if<std::string>(&value)) name += *text;
  }
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return letter == '.' || letter == ' '; }, '_');
  return name;
}

void PrintTo(const Case& c, std::ostream* out) { *out << Describe(c); }

class FaultContract : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kStep = 20;

  void SetUp() override {
    if (GetParam().private_fs_bytes && !DetectMachine().mount_namespace) {
      GTEST_SKIP() << DetectMachine().why_no_mount_namespace;
    }
    fault_ = FindFault(GetParam().fault);
    ASSERT_NE(fault_, nullptr);
    const Availability means = fault_->available(GetParam().machine);
    ASSERT_TRUE(means.available) << means.why_not;
    injection_ = {.id = 7,
                  .fault = GetParam().fault,
                  .with = GetParam().with,
                  .rank = 1,
                  .worker = GetParam().worker,
                  .step = kStep,
                  .point = GetParam().point,
                  .level = std::string(ToString(means.level)),
                  .means = means.means};
    injector_ = fault_->make(injection_, means);
    ASSERT_NE(injector_, nullptr);
    EXPECT_EQ(injector_->PrivateFilesystemBytes(), GetParam().private_fs_bytes);
  }

  void StartAndHold(std::optional<ArmSpec> arm_bystanders = std::nullopt) {
    auto reach = VictimReach::Start({.program = GetParam().victim,
                                     .private_fs_bytes = GetParam().private_fs_bytes,
                                     .arm_bystanders = arm_bystanders},
                                    injection_, injector_->Arm());
    ASSERT_TRUE(reach) << reach.error().message;
    reach_ = *std::move(reach);
    const auto held = reach_->AwaitHeld();
    ASSERT_TRUE(held) << held.error().message;
    ASSERT_EQ(held->step, kStep);
  }

  void Inject() {
    auto recipe = injector_->Prepare(*reach_);
    ASSERT_TRUE(recipe) << recipe.error().message;
    recipe_ = *recipe;
    EXPECT_EQ(recipe_.empty(), injector_->PrivateFilesystemBytes() == std::nullopt);
    const auto facts = injector_->Inject(*reach_);
    ASSERT_TRUE(facts) << facts.error().message;
    EXPECT_TRUE(facts->is_object());
  }

  // What harness/run does: ask inside the hold where the fault says so, release, go on asking.
  void ReleaseAndSeeTheEffect() {
    if (injector_->EffectBeforeRelease()) {
      ASSERT_TRUE(Eventually([&] { return Effect(); })) << Last();
    }
    (void)reach_->Release(injector_->Arm().action != ArmAction::kNone);  // a killed one cannot hear
    ASSERT_TRUE(Eventually([&] { return Effect(); })) << Last();
  }

  bool Effect() { return Look(injector_->Effect(*reach_)); }
  // Effect is asked first and all the time, as in a run; the others build on what it saw.
  bool Consequence() {
    Effect();
    return Look(injector_->Consequence(*reach_));
  }
  bool Bystander() {
    Effect();
    return Look(injector_->Bystander(*reach_));
  }
  bool Undone() { return Look(injector_->Undone(*reach_)); }
  bool Look(const Witness& witness) {
    EXPECT_FALSE(witness.what.empty());
    EXPECT_FALSE(witness.expected.is_null()) << witness.what;
    last_ = witness;
    return witness.holds;
  }
  std::string Last() const {
    return last_.what + ": observed " + DumpJson(last_.observed) + ", expected " +
           DumpJson(last_.expected);
  }

  // The fault's own end: by its recipe, or with its process.
  void End() {
    for (const UndoStep& step : recipe_) {
      const Status played = PlayUndo(step);
      ASSERT_TRUE(played) << played.error().message;
    }
    if (recipe_.empty()) (void)reach_->Signal(reach_->target(), SIGKILL);
  }

  const Fault* fault_ = nullptr;
  Injection injection_;
  std::unique_ptr<Injector> injector_;
  std::unique_ptr<VictimReach> reach_;
  UndoRecipe recipe_;
  Witness last_;
};

TEST_P(FaultContract, ActsOnItsVictimAloneAndIsUndone) {
  ASSERT_NO_FATAL_FAILURE(StartAndHold());
  EXPECT_FALSE(Effect()) << "before the injection: " << Last();
  EXPECT_FALSE(Consequence()) << "before the injection: " << Last();
  EXPECT_FALSE(Bystander()) << "before the injection: " << Last();
  ASSERT_NO_FATAL_FAILURE(Inject());
  ASSERT_NO_FATAL_FAILURE(ReleaseAndSeeTheEffect());
  bool consequence = false;
  bool bystander = false;
  EXPECT_TRUE(Eventually([&] {
    consequence = consequence || Consequence();
    bystander = bystander || Bystander();
    return consequence && bystander;
  })) << "consequence "
      << consequence << ", bystander " << bystander << "; " << Last();
  EXPECT_TRUE(Effect()) << "it no longer acts: " << Last();
  if (!recipe_.empty()) {
    EXPECT_FALSE(Undone()) << "while it acts: " << Last();
  }
  End();
  EXPECT_TRUE(Eventually([&] { return Undone(); })) << Last();
  End();
  EXPECT_TRUE(Undone()) << "undone a second time: " << Last();
  if (!recipe_.empty()) {
    EXPECT_FALSE(Effect()) << "after its undo: " << Last();
  }
}

TEST_P(FaultContract, NothingIsSeenWhenNothingWasInjected) {
  ASSERT_NO_FATAL_FAILURE(StartAndHold());
  ASSERT_TRUE(reach_->Release(false));
  EXPECT_TRUE(Throughout(kUndisturbed, [&] { return !Effect() && !Consequence() && !Bystander(); }))
      << Last();
  if (fault_->ends == Ends::kWithProcess) {
    EXPECT_FALSE(Undone()) << Last();
  }
}

TEST_P(FaultContract, AVictimThatHasEndedAlreadyIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartAndHold());
  ASSERT_TRUE(reach_->Signal(reach_->target(), SIGINT));
  ASSERT_TRUE(Eventually([&] { return reach_->Exit(reach_->target()).has_value(); }));
  const auto recipe = injector_->Prepare(*reach_);
  ASSERT_FALSE(recipe);
  EXPECT_EQ(recipe.error().code, ESRCH) << recipe.error().message;
  EXPECT_FALSE(Effect()) << "an end that we did not cause: " << Last();
}

TEST_P(FaultContract, TheBystanderWitnessFindsABystanderThatWasHitToo) {
  const bool by_signal = GetParam().on_bystander.action == ArmAction::kNone;
  ASSERT_NO_FATAL_FAILURE(
      StartAndHold(by_signal ? std::nullopt : std::optional(GetParam().on_bystander)));
  if (by_signal) {
    for (const ProcessRef& other : reach_->bystanders()) {
      ASSERT_TRUE(
          reach_->Signal(other, SignalNumber(std::get<std::string>(GetParam().with.at("signal")))));
      ASSERT_TRUE(Eventually([&] { return reach_->Exit(other).has_value(); }));
    }
  } else {
    ASSERT_TRUE(Eventually([&] { return reach_->BystandersWereHit(); }));
  }
  ASSERT_NO_FATAL_FAILURE(Inject());
  ASSERT_NO_FATAL_FAILURE(ReleaseAndSeeTheEffect());
  EXPECT_TRUE(Throughout(kUndisturbed, [&] { return !Bystander(); })) << Last();
  End();
}

TEST_P(FaultContract, ItActsOnce) {
  ASSERT_NO_FATAL_FAILURE(StartAndHold());
  ASSERT_NO_FATAL_FAILURE(Inject());
  ASSERT_NO_FATAL_FAILURE(ReleaseAndSeeTheEffect());
  if (injector_->Arm().action == ArmAction::kNone) {
    EXPECT_FALSE(injector_->Inject(*reach_)) << "a second injection was not refused";
  } else {
    const ArmState after = injector_->Arm().repeat ? ArmState::kRepeating : ArmState::kDone;
    EXPECT_EQ(reach_->TargetArm(), after);
  }
  End();
  EXPECT_TRUE(Eventually([&] { return Undone(); })) << Last();
}

// What ends with its process has no half that could be left.
using FaultWithRecipe = FaultContract;

TEST_P(FaultWithRecipe, AHalfDoneInjectIsUndone) {
  ASSERT_NO_FATAL_FAILURE(StartAndHold());
  const auto recipe = injector_->Prepare(*reach_);
  ASSERT_TRUE(recipe) << recipe.error().message;
  recipe_ = *recipe;
  ASSERT_EQ(recipe_.size(), 1u);
  // Prepared only: there is nothing yet.
  End();
  EXPECT_TRUE(Undone()) << Last();
  // And with a part of the ballast written.
  const std::string name = std::filesystem::path(recipe_.at(0).path).filename();
  UniqueFd half(::openat(reach_->CheckpointDirectory(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  ASSERT_TRUE(half);
  ASSERT_EQ(::fallocate(half.get(), 0, 0, kFsBytes / 2), 0);
  half.Reset();
  EXPECT_FALSE(Undone()) << Last();
  End();
  EXPECT_TRUE(Undone()) << Last();
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) { return Describe(info.param); }

std::vector<Case> CasesWithARecipe() {
  std::vector<Case> cases;
  for (const Case& c : Cases()) {
    if (c.private_fs_bytes) cases.push_back(c);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, FaultContract, ::testing::ValuesIn(Cases()), NameOf);
INSTANTIATE_TEST_SUITE_P(Catalogue, FaultWithRecipe, ::testing::ValuesIn(CasesWithARecipe()),
                         NameOf);

TEST(FaultCatalogue, EveryFaultNamesItsVictimForEachOfItsMeans) {
  std::set<std::string> covered;
  for (const Case& c : Cases()) {
    ASSERT_NE(FindFault(c.fault), nullptr) << c.fault;
    covered.insert(c.fault + " by " + FindFault(c.fault)->available(c.machine).means);
  }
  for (const Fault* fault : FaultCatalog()) {
    for (const Machine& machine : {kFull, kPoor}) {
      const Availability means = fault->available(machine);
      EXPECT_TRUE(means.available || !means.why_not.empty()) << fault->full_name();
      if (means.available) {
        EXPECT_EQ(covered.count(fault->full_name() + " by " + means.means), 1u)
            << fault->full_name() << " by " << means.means << " has no victim here";
      }
    }
  }
}

TEST(FaultCatalogue, EveryFaultIsFoundByItsNameAndNoOtherIs) {
  for (const Fault* fault : FaultCatalog()) EXPECT_EQ(FindFault(fault->full_name()), fault);
  EXPECT_EQ(FindFault("rank.kil"), nullptr);
  EXPECT_EQ(FindFault(""), nullptr);
}

// Without a hold nothing is done from outside: only an armed page acts.
TEST(FaultCatalogue, AFaultThatAMeansLeavesUnarmedNeedsItsHold) {
  std::set<std::string> unarmed;
  for (const Case& c : Cases()) {
    const Fault& fault = *FindFault(c.fault);
    const Availability means = fault.available(c.machine);
    Injection injection;
    injection.fault = c.fault;
    injection.point = c.point;
    injection.step = 1;
    injection.with = c.with;
    if (fault.make(injection, means)->Arm().action == ArmAction::kNone) unarmed.insert(c.fault);
  }
  for (const Fault* fault : FaultCatalog()) {
    EXPECT_EQ(fault->needs_hold, unarmed.contains(fault->full_name())) << fault->full_name();
  }
}

bool IsMechanism(std::string_view name) {
#define SHAKEDOWN_MECHANISM(mechanism, sentence) \
  if (name == #mechanism) return true;
#include "harness/wire/mechanisms.def"
#undef SHAKEDOWN_MECHANISM
  return false;
}

TEST(FaultCatalogue, EveryDeclarationIsComplete) {
  for (const Fault* fault : FaultCatalog()) {
    SCOPED_TRACE(fault->full_name());
    for (const std::string_view sentence :
         {fault->summary, fault->level_why, fault->operator_sees}) {
      EXPECT_THAT(std::string(sentence), EndsWith("."));
    }
    EXPECT_FALSE(fault->needs.empty());
    EXPECT_FALSE(fault->radius.empty());
    EXPECT_FALSE(fault->points.empty());
    for (const Point point : fault->points) {
      EXPECT_EQ(PointPhase(point) == "worker", fault->target == TargetKind::kDataWorker);
      EXPECT_NE(point, Point::kCollectiveExit) << "a point that cannot hold";
    }
    EXPECT_FALSE(fault->classes.empty());
    for (const std::string_view name : fault->classes) {
      EXPECT_THAT(std::string(name), MatchesRegex("C[0-9][0-9]"));
    }
    EXPECT_TRUE(IsMechanism(fault->mechanism)) << fault->mechanism;
    EXPECT_THAT(std::string(fault->runbook), MatchesRegex("[a-z_]+\\.md"));
    EXPECT_EQ(fault->available(kFull).level, fault->level) << "level is that of the best means";
    EXPECT_FALSE(fault->available(kFull).means.empty());
  }
}

// Empty, or what does not parse.
std::string Unparsed(const ParamSpec& param, std::string_view text) {
  if (text.empty()) return "";
  switch (param.type) {
    case ParamType::kDuration:
      return ParseDuration(text) ? "" : ParseDuration(text).error().message;
    case ParamType::kBytes:
      return ParseBytes(text) ? "" : ParseBytes(text).error().message;
    case ParamType::kCount:
      return text.find_first_not_of("0123456789") == text.npos ? "" : std::string(text);
    case ParamType::kChoice:
      for (const std::string_view choice : param.choices) {
        if (choice == text) return "";
      }
      return std::string(text) + " is no choice";
  }
  return "unknown type";
}

TEST(FaultCatalogue, EveryParameterHasASentenceAndADefaultOfItsType) {
  for (const Fault* fault : FaultCatalog()) {
    for (const ParamSpec& param : fault->params) {
      SCOPED_TRACE(fault->full_name() + " " + std::string(param.name));
      EXPECT_THAT(std::string(param.sentence), EndsWith("."));
      for (const std::string_view text : {param.default_text, param.minimum, param.maximum}) {
        EXPECT_EQ(Unparsed(param, text), "");
      }
      EXPECT_EQ(param.type == ParamType::kChoice, !param.choices.empty());
    }
  }
}

}  // namespace
}  // namespace shakedown
