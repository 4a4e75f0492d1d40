// rank.kill: a signal ends a rank.
#include <utility>

#include "injectors/catalog.h"
#include "injectors/injector.h"
#include "injectors/primitives/page_watch.h"
#include "injectors/primitives/params.h"

namespace shakedown::faults {
namespace {

// Two samples this far apart: a process that still ran would have passed many points.
constexpr Nanoseconds kStands = std::chrono::milliseconds(20);

class Kill : public Injector {
 public:
  explicit Kill(Injection injection)
      : injection_(std::move(injection)),
        signal_(SignalNumber(TextParam(injection_.with, "signal"))),
        watch_(injection_.point, injection_.step) {
    SHAKEDOWN_ASSERT(signal_ != 0);
  }

  Result<UndoRecipe> Prepare(Reach& reach) override {
    SHAKEDOWN_TRY(TargetIsAlive(reach));
    return UndoRecipe{};
  }

  Result<Json> Inject(Reach& reach) override {
    SHAKEDOWN_TRY(reach.Signal(reach.target(), signal_));
    sent_ = true;
    return Json{{"process", ToJson(reach.target().identity)}, {"signal", SignalName(signal_)}};
  }

  // A signal that ends the process has done so before the process can see its release; one that it
  // survives must not keep it in the hold.
  bool EffectBeforeRelease() const override { return false; }

  Witness Effect(Reach& reach) override {
    const std::optional<WaitStatus> exit = reach.Exit(reach.target());
    Witness witness;
    witness.what = "how " + Describe(reach.target()) + " ended";
    witness.observed = exit ? exit->ToString() : "not ended";
    witness.expected = SignalName(signal_);
    witness.holds = sent_ && exit && exit->signal() == signal_;
    // At once: later the launcher may end the others, by the same signal and with good reason.
    if (witness.holds && !others_) LookAtOthers(reach);
    return witness;
  }

  // Its page, which outlives it, stands where it was held: nothing ran after the signal.
  Witness Consequence(Reach& reach) override {
    if (others_) watch_.Look(*reach.Page(reach.target()), MonoNow());
    Witness witness;
    witness.what = "progress of " + Describe(reach.target()) + " after its end";
    witness.observed = watch_.Observed();
    witness.expected = {{"point", PointName(injection_.point)},
                        {"step", injection_.step},
                        {"stood_ms", ToMs(kStands)}};
    witness.holds = watch_.stood() >= kStands && !watch_.moved();
    return witness;
  }

  Witness Bystander(Reach&) override {
    Witness witness;
    witness.what = "how the other ranks were when the victim's end was seen";
    witness.expected = "none ended by " + SignalName(signal_);
    if (!others_) return witness;
    witness.observed = others_->states;
    witness.holds = others_->hit == 0;
    return witness;
  }

  Witness Undone(Reach& reach) override {
    Witness witness;
    witness.what = "whether " + Describe(reach.target()) + " has ended";
    witness.holds = Ended(reach, reach.target());
    witness.observed = witness.holds;
    witness.expected = true;
    return witness;
  }

 private:
  struct Others {
    Json states = Json::object();
    int hit = 0;
  };

  void LookAtOthers(Reach& reach) {
    others_.emplace();
    for (const ProcessRef& other : reach.bystanders()) {
      const std::optional<WaitStatus> exit = reach.Exit(other);
      others_->states[Describe(other)] =
          exit ? exit->ToString() : "state " + std::string(1, reach.State(other));
      if (exit && exit->signal() == signal_) ++others_->hit;
    }
  }

  Injection injection_;
  int signal_;
  LaneWatch watch_;
  bool sent_ = false;
  std::optional<Others> others_;  // set when the victim's end was seen
};

constexpr Point kKillPoints[] = {Point::kCollectiveEnter,
                                 Point::kInitStore,
                                 Point::kInitGroup,
                                 Point::kResumeList,
                                 Point::kResumeLoad,
                                 Point::kDataNext,
                                 Point::kStepBegin,
                                 Point::kForwardBegin,
                                 Point::kBackwardBegin,
                                 Point::kCollectiveEnqueued,
                                 Point::kOptimizerBegin,
                                 Point::kStepEnd,
                                 Point::kEvalBegin,
                                 Point::kEvalEnd,
                                 Point::kCheckpointBegin,
                                 Point::kCheckpointSerialize,
                                 Point::kCheckpointWrite,
                                 Point::kCheckpointFsync,
                                 Point::kCheckpointRename,
                                 Point::kCheckpointPublish,
                                 Point::kCheckpointRotate,
                                 Point::kTermReceived,
                                 Point::kTeardownBegin,
                                 Point::kTeardownGroup,
                                 Point::kExit};
constexpr std::string_view kSignals[] = {"KILL", "TERM", "INT", "HUP", "QUIT",
                                         "SEGV", "ABRT", "BUS", "FPE", "ILL"};
constexpr ParamSpec kKillParams[] = {
    {.name = "signal",
     .type = ParamType::kChoice,
     .default_text = "KILL",
     .choices = kSignals,
     .sentence =
         "The signal that ends the rank; one that the rank handles and survives makes the run "
         "INVALID."}};
constexpr std::string_view kClasses[] = {"C02"};

Availability Available(const Machine&) {
  return {.available = true, .level = Level::kReal, .means = "pidfd_send_signal"};
}

std::unique_ptr<Injector> Make(const Injection& injection, const Availability&) {
  return std::make_unique<Kill>(injection);
}

}  // namespace

const Fault rank_kill = {
    .family = "rank",
    .name = "kill",
    .summary = "A signal ends a rank at the named point.",
    .params = kKillParams,
    .target = TargetKind::kRank,
    .points = kKillPoints,
    .level = Level::kReal,
    .level_why =
        "The kernel ends the process by this signal, as its out-of-memory killer, an operator "
        "or a crash would.",
    .needs = "nothing",
    .classes = kClasses,
    .radius = "the one rank",
    .ends = Ends::kWithProcess,
    .needs_hold = true,
    .excludes = {},
    .mechanism = "killed",
    .operator_sees =
        "One rank ends by the signal; its peers report a lost connection a moment later, "
        "and the launcher restarts or stops the job.",
    .runbook = "rank_killed.md",
    .available = Available,
    .make = Make,
};

}  // namespace shakedown::faults
