#include "harness/run/injection.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "injectors/catalog.h"

namespace shakedown {
namespace {

using std::chrono::milliseconds;

// How often a fault that acts is measured, and how often its effect is asked for inside a hold.
constexpr Nanoseconds kSamplePeriod = milliseconds(10);
constexpr Nanoseconds kEffectPeriod = milliseconds(1);

std::string_view ActionName(ArmAction action) {
  switch (action) {
    case ArmAction::kNone:
      return "none";
    case ArmAction::kStall:
      return "stall";
    case ArmAction::kDelay:
      return "delay";
    case ArmAction::kRefuseMemory:
      return "refuse_memory";
    case ArmAction::kMemoryBudget:
      return "memory_budget";
    case ArmAction::kIoError:
      return "io_error";
    case ArmAction::kExit:
      return "exit";
  }
  return "unknown";
}

// Points that every rank passes once per step: bystanders can hold there too. The rest (a
// checkpoint is written by one rank) has no decoy.
bool EveryRankPasses(Point point) { return PointPhase(point) != "checkpoint"; }

Json OrNull(const std::optional<int>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

struct Injections::Decoy {
  TrackedProcess* process;
  HeldMessage held;
  EventLoop::TimerId limit;
};

struct Injections::Life {
  enum class State { kWaiting, kHeld, kActive, kOver };

  Life(const Injection& planned, const Fault& declaration)
      : injection(planned), fault(declaration) {}

  const Injection& injection;
  const Fault& fault;
  std::unique_ptr<Injector> injector;
  std::unique_ptr<RunReach> reach;
  State state = State::kWaiting;

  TrackedProcess* target = nullptr;
  HeldMessage held{};
  bool holding = false;  // the target waits for our release
  MonoTime released;
  Nanoseconds hold{0};
  EventLoop::TimerId limit_timer = 0;
  EventLoop::TimerId effect_timer = 0;
  EventLoop::TimerId undo_timer = 0;
  EventLoop::TimerId sample_timer = 0;
  std::vector<Decoy> decoys;

  bool began = false;  // fault.injected is written
  bool reported = false;
  MonoTime t0;
  std::string failure;
  std::vector<uint64_t> journal;
  UndoRecipe recipe;
  bool undone = false;

  Witness effect, consequence, bystander;
  int samples = 0, samples_held = 0, consequence_asked = 0, bystander_asked = 0;
  double first_ms = -1, last_ms = -1;

  double SinceMs() const { return ToMs(MonoNow() - t0); }
  // A means without a recipe may have an end all the same, when it is due: then there is nothing to
  // do, and that it is over is witnessed like any other undo.
  bool MustBeUndone() const { return !recipe.empty() || injection.duration || injection.until; }
};

// The injectors' hands on a real job.
class Injections::RunReach : public Reach {
 public:
  RunReach(const Context& context, const Life& life) : c_(context), life_(life) {}

  ProcessRef target() const override { return Ref(*life_.target); }

  std::vector<ProcessRef> bystanders() const override {
    std::vector<ProcessRef> out;
    for (TrackedProcess* p : c_.processes.OfAttempt(life_.injection.attempt)) {
      if (p != life_.target && p->role == life_.target->role && p->rank != life_.target->rank &&
          p->worker == life_.target->worker) {
        out.push_back(Ref(*p));
      }
    }
    return out;
  }

  Status Signal(const ProcessRef& ref, int signal) override {
    return SignalPidfd(Of(ref).pidfd.get(), signal);
  }

  std::optional<WaitStatus> Exit(const ProcessRef& ref) const override { return Of(ref).exit; }

  char State(const ProcessRef& ref) const override {
    const TrackedProcess& process = Of(ref);
    if (process.dead) return '-';
    const Result<ProcessStat> stat = ReadProcessStat(process.identity.pid);
    return stat && stat->start_time == process.identity.start_time ? stat->state : '-';
  }

  const PageObserved* Page(const ProcessRef& ref) const override { return &Of(ref).observed(); }
  int CheckpointDirectory() const override { return c_.checkpoint.directory.get(); }
  std::string CheckpointPath() const override { return c_.checkpoint.path; }
  std::optional<ProcessIdentity> CheckpointHolder() const override { return c_.checkpoint.holder; }
  int RunDirectory() const override { return c_.run_directory; }
  bool CheckpointFilesystemIsPrivate() const override { return c_.checkpoint.holder.has_value(); }

 private:
  static ProcessRef Ref(const TrackedProcess& p) { return {p.identity, p.rank, p.worker}; }
  TrackedProcess& Of(const ProcessRef& ref) const {
    for (TrackedProcess* p : c_.processes.All()) {
      if (p->identity == ref.identity) return *p;
    }
    SHAKEDOWN_ASSERT(!"a process reference that this run did not give out");
    std::abort();
  }

  const Context& c_;
  const Life& life_;
};

Result<std::unique_ptr<Injections>> Injections::Make(Context context, const Machine& machine) {
  std::unique_ptr<Injections> out(new Injections(std::move(context)));
  for (const Injection& injection : out->c_.plan.injections) {
    const Fault* fault = FindFault(injection.fault);
    if (fault == nullptr)
      return shakedown::Fail("the plan names an unknown fault '" + injection.fault + "'");
    const Availability means = fault->available(machine);
    if (!means.available) {
      return shakedown::Fail("fault " + injection.fault +
                             " is not available here: " + means.why_not);
    }
    auto life = std::make_unique<Life>(injection, *fault);
    life->injector = fault->make(injection, means);
    life->reach = std::make_unique<RunReach>(out->c_, *life);
    out->lives_.push_back(std::move(life));
  }
  return out;
}

Injections::Injections(Context context) : c_(std::move(context)) {}
Injections::~Injections() = default;

int Injections::injected() const {
  return static_cast<int>(
      std::count_if(lives_.begin(), lives_.end(), [](const auto& life) { return life->began; }));
}

void Injections::Arm(TrackedProcess& process) {
  for (const auto& life : lives_) {
    const Injection& i = life->injection;
    if (life->state != Life::State::kWaiting || i.attempt != process.attempt ||
        i.worker != process.worker || process.incarnation != 0) {
      continue;
    }
    if (i.rank == process.rank) {
      PutArm(process, *life, false);
    } else if (i.hold == HoldMode::kAuto && EveryRankPasses(i.point)) {
      PutArm(process, *life, true);
    }
  }
}

void Injections::Rearm(TrackedProcess& process) {
  PageControl& control = process.page->control;
  control.armed.store(0);
  for (shakedown::Arm& arm : control.arms) {
    if (arm.state.load() == static_cast<uint32_t>(ArmState::kArmed)) {
      arm.state.store(static_cast<uint32_t>(ArmState::kEmpty));
    }
  }
  Arm(process);
}

void Injections::PutArm(TrackedProcess& process, Life& life, bool decoy) {
  PageControl& control = process.page->control;
  for (shakedown::Arm& arm : control.arms) {
    if (arm.state.load() != static_cast<uint32_t>(ArmState::kEmpty)) continue;
    const Injection& i = life.injection;
    const ArmSpec spec = decoy ? ArmSpec{} : life.injector->Arm();
    arm.id = static_cast<uint32_t>(i.id) | (decoy ? 0x80000000u : 0u);
    arm.point = static_cast<uint32_t>(i.point);
    arm.step = static_cast<uint32_t>(i.step);
    arm.occurrence = static_cast<uint32_t>(i.occurrence);
    arm.flags = (i.hold == HoldMode::kAuto ? kArmHold : 0u) | (spec.repeat ? kArmRepeat : 0u);
    arm.action = spec.action;
    arm.argument = spec.argument;
    arm.seen.store(0);
    arm.state.store(static_cast<uint32_t>(ArmState::kArmed));
    control.armed.fetch_or(uint64_t{1} << arm.point);
    Json record = {{"injection", decoy ? 0 : i.id}, {"rank", process.rank}};
    record["worker"] = OrNull(process.worker);
    record["attempt"] = process.attempt;
    record["pid"] = process.identity.pid;
    record["point"] = PointName(i.point);
    record["step"] = i.step;
    record["occurrence"] = i.occurrence;
    record["action"] = ActionName(spec.action);
    record["hold"] = i.hold == HoldMode::kAuto;
    c_.recorder.Secret(secret_events::kProcessArmed, std::move(record));
    return;
  }
  Fail(life, "arm", "no free arm in the page of " + process.Describe());
}

Injections::Life* Injections::FindLife(uint32_t arm_id) {
  for (const auto& life : lives_) {
    if (static_cast<uint32_t>(life->injection.id) == (arm_id & 0x7FFFFFFFu)) return life.get();
  }
  return nullptr;
}

Json Injections::Where(const Life& life) const {
  const Injection& i = life.injection;
  Json out = {{"injection", i.id}, {"fault", i.fault}, {"rank", i.rank}};
  out["worker"] = OrNull(i.worker);
  out["attempt"] = i.attempt;
  out["point"] = PointName(i.point);
  out["mechanism"] = life.fault.mechanism;
  return out;
}

namespace {
Json HoldRecord(int injection, bool decoy, const TrackedProcess& process, const HeldMessage& held) {
  Json record = {{"injection", injection}, {"decoy", decoy}, {"rank", process.rank}};
  record["worker"] = OrNull(process.worker);
  record["attempt"] = process.attempt;
  record["pid"] = process.identity.pid;
  record["point"] = PointName(static_cast<Point>(held.point));
  record["step"] = held.step;
  record["occurrence"] = held.occurrence;
  record["reached_ns"] = held.t_ns;
  return record;
}
}  // namespace

void Injections::OnHeld(TrackedProcess& process, const HeldMessage& held) {
  Life* life = FindLife(held.arm_id);
  if (life == nullptr || finished_) {
    c_.release(process, held.arm_index, false);
    return;
  }
  if ((held.arm_id & 0x80000000u) != 0) {
    OnDecoyHeld(*life, process, held);
    return;
  }
  c_.recorder.Secret(secret_events::kHoldEntered,
                     HoldRecord(life->injection.id, false, process, held));
  if (life->state != Life::State::kWaiting) {
    c_.release(process, held.arm_index, false);
    return;
  }
  life->state = Life::State::kHeld;
  life->target = &process;
  life->held = held;
  life->holding = true;
  life->limit_timer = c_.loop.After(c_.plan.hold_limit, [this, life] {
    life->limit_timer = 0;
    if (!life->began) {
      Fail(*life, "committed",
           "checkpoint " + std::to_string(life->injection.committed.value_or(0)) +
               " was not published within the hold's limit");
    } else {
      Fail(*life, "effect", "the effect was not seen within the hold's limit");
    }
    Release(*life, false);
    if (life->began) Activate(*life);
  });
  if (!life->injection.committed || c_.published(*life->injection.committed)) Inject(*life);
}

void Injections::OnPublished(int64_t step) {
  for (const auto& life : lives_) {
    if (life->state == Life::State::kHeld && !life->began && life->injection.committed == step) {
      Inject(*life);
    }
  }
}

void Injections::Inject(Life& life) {
  Result<UndoRecipe> recipe = life.injector->Prepare(*life.reach);
  if (!recipe) {
    Fail(life, "prepare", recipe.error().message);
    return Release(life, false);
  }
  life.recipe = *recipe;
  for (const UndoStep& step : life.recipe) {
    Result<uint64_t> seq = c_.journal.Append(step, life.injection.id);
    if (!seq) {
      Fail(life, "journal", seq.error().message);
      return Release(life, false);
    }
    life.journal.push_back(*seq);
  }
  life.t0 = MonoNow();
  life.began = true;
  Result<Json> facts = life.injector->Inject(*life.reach);
  RecordInjected(life, facts ? *facts : Json(nullptr));
  if (facts) c_.injected(life.injection);
  if (!facts) {
    Fail(life, "inject", facts.error().message);
    Release(life, false);
    return Undo(life);
  }
  if (life.injector->EffectBeforeRelease()) {
    AwaitEffect(life);
  } else {
    Release(life, life.injector->Arm().action != ArmAction::kNone);
    Activate(life);
  }
}

// REQUIRES: t0 and what the target reached (`held`) are set.
void Injections::RecordInjected(Life& life, Json facts) {
  Json record = Where(life);
  record["step"] = life.held.step;
  record["occurrence"] = life.held.occurrence;
  record["level"] = life.injection.level;
  record["means"] = life.injection.means;
  record["t0_ns"] = life.t0.ns;
  record["facts"] = std::move(facts);
  c_.recorder.Secret(secret_events::kFaultInjected, std::move(record));
}

void Injections::AwaitEffect(Life& life) {
  if (!life.holding) return;  // the limit has passed meanwhile
  life.effect = life.injector->Effect(*life.reach);
  if (!life.effect.holds) {
    life.effect_timer = c_.loop.After(kEffectPeriod, [this, &life] {
      life.effect_timer = 0;
      AwaitEffect(life);
    });
    return;
  }
  life.samples = life.samples_held = 1;
  life.first_ms = life.last_ms = life.SinceMs();
  Release(life, life.injector->Arm().action != ArmAction::kNone);
  Activate(life);
}

void Injections::Release(Life& life, bool act) {
  if (!life.holding) return;
  life.holding = false;
  c_.loop.Cancel(life.limit_timer);
  c_.loop.Cancel(life.effect_timer);
  life.released = life.target->dead ? life.target->died : MonoNow();
  life.hold = life.released - MonoTime{life.held.t_ns};
  c_.release(*life.target, life.held.arm_index, act);
  Json record = HoldRecord(life.injection.id, false, *life.target, life.held);
  record["hold_ms"] = ToMs(life.hold);
  record["acted"] = act;
  c_.recorder.Secret(secret_events::kHoldReleased, std::move(record));
  if (life.state == Life::State::kHeld) life.state = Life::State::kActive;
  FreeDecoys(life);
}

void Injections::OnDecoyHeld(Life& life, TrackedProcess& process, const HeldMessage& held) {
  c_.recorder.Secret(secret_events::kHoldEntered,
                     HoldRecord(life.injection.id, true, process, held));
  Decoy decoy{&process, held, 0};
  const bool over = life.state != Life::State::kWaiting && life.state != Life::State::kHeld;
  // As long as the target was held; or, while that is not known, until it is.
  const Nanoseconds length =
      over ? life.hold - (MonoNow() - MonoTime{held.t_ns}) : c_.plan.hold_limit;
  if (over && length.count() <= 0) return ReleaseDecoy(life, decoy);
  decoy.limit = c_.loop.After(length, [this, &life, pid = process.identity.pid] {
    const auto it = std::find_if(life.decoys.begin(), life.decoys.end(),
                                 [pid](const Decoy& d) { return d.process->identity.pid == pid; });
    if (it == life.decoys.end()) return;
    const Decoy expired = *it;
    life.decoys.erase(it);
    ReleaseDecoy(life, expired);
  });
  life.decoys.push_back(decoy);
}

void Injections::FreeDecoys(Life& life) {
  for (const Decoy& decoy : std::exchange(life.decoys, {})) {
    c_.loop.Cancel(decoy.limit);
    ReleaseDecoy(life, decoy);
  }
}

void Injections::ReleaseDecoy(Life& life, const Decoy& decoy) {
  c_.release(*decoy.process, decoy.held.arm_index, false);
  Json record = HoldRecord(life.injection.id, true, *decoy.process, decoy.held);
  record["hold_ms"] = ToMs(MonoNow() - MonoTime{decoy.held.t_ns});
  record["acted"] = false;
  c_.recorder.Secret(secret_events::kHoldReleased, std::move(record));
}

void Injections::OnFired(TrackedProcess& process, const FiredMessage& fired) {
  Life* life = FindLife(fired.arm_id);
  if (life == nullptr || life->state != Life::State::kWaiting) return;
  life->target = &process;
  life->held.t_ns = fired.t_ns;
  life->held.point = fired.point;
  life->held.step = fired.step;
  life->held.occurrence = fired.occurrence;
  life->t0 = MonoTime{fired.t_ns};
  life->began = true;
  RecordInjected(*life, Json(nullptr));
  Activate(*life);
}

void Injections::Activate(Life& life) {
  life.state = Life::State::kActive;
  if (life.injection.duration) {
    const Nanoseconds left = *life.injection.duration - (MonoNow() - life.t0);
    life.undo_timer = c_.loop.After(std::max(left, Nanoseconds(0)), [this, &life] {
      life.undo_timer = 0;
      Undo(life);
    });
  }
  Sample(life);
  if (life.sample_timer == 0 && life.state == Life::State::kActive) {
    life.sample_timer = c_.loop.Every(kSamplePeriod, [this, &life](Nanoseconds) { Sample(life); });
  }
}

// One measurement of everything that is still open.
void Injections::Sample(Life& life) {
  if (life.state != Life::State::kActive) return;
  // Whether the target had ended before we measured: what ends with its process need not hold then.
  const bool ended = HasEnded(*life.target) && life.samples_held > 0;
  if (!ended) MeasureEffect(life);
  if (!life.consequence.holds) {
    life.consequence = life.injector->Consequence(*life.reach);
    ++life.consequence_asked;
  }
  if (!life.bystander.holds) {
    life.bystander = life.injector->Bystander(*life.reach);
    ++life.bystander_asked;
  }
  if (ended && life.consequence.holds && life.bystander.holds) {
    StopSampling(life);
    if (!life.MustBeUndone()) Report(life);
  }
}

// The effect counts from the first time it holds; before that the fault is still on its way.
void Injections::MeasureEffect(Life& life) {
  const Witness now = life.injector->Effect(*life.reach);
  if (!now.holds && (life.samples_held == 0 || HasEnded(*life.target))) {
    if (life.samples_held == 0) life.effect = now;
    return;
  }
  ++life.samples;
  life.last_ms = life.SinceMs();
  if (now.holds && life.samples_held++ == 0) life.first_ms = life.last_ms;
  // Of all samples the record shows the last, or the last that did not hold.
  if (!now.holds || life.samples_held == life.samples) life.effect = now;
}

void Injections::StopSampling(Life& life) {
  c_.loop.Cancel(life.sample_timer);
  life.sample_timer = 0;
}

void Injections::OnDied(TrackedProcess& process) {
  for (const auto& life : lives_) {
    life->decoys.erase(std::remove_if(life->decoys.begin(), life->decoys.end(),
                                      [&](const Decoy& decoy) {
                                        if (decoy.process != &process) return false;
                                        c_.loop.Cancel(decoy.limit);
                                        return true;
                                      }),
                       life->decoys.end());
    if (life->target != &process || !life->holding) continue;
    if (!life->began) {
      Fail(*life, "held", "the target ended by itself while it was held");
      Release(*life, false);
    }
  }
}

void Injections::OnJobEvent(const std::string& name, int rank) {
  for (const auto& life : lives_) {
    if (life->state == Life::State::kActive && life->injection.until == name &&
        life->injection.rank == rank) {
      Sample(*life);
      Undo(*life);
    }
  }
}

void Injections::Undo(Life& life) {
  if (life.undone || !life.MustBeUndone()) return;
  c_.loop.Cancel(life.undo_timer);
  // The consequence has had its time when the undo is due; ask a last time while the fault acts.
  if (life.state == Life::State::kActive) Sample(life);
  StopSampling(life);
  life.undone = true;
  std::string reason;
  for (size_t i = life.recipe.size(); i-- > 0;) {
    if (i >= life.journal.size()) continue;  // never reached the journal, never done
    const Status played = PlayUndo(life.recipe[i]);
    if (!played) {
      reason = played.error().message;
      continue;
    }
    if (Status marked = c_.journal.MarkUndone(life.journal[i]); !marked && reason.empty()) {
      // Undone all the same; playing it again is harmless.
      c_.recorder.Secret(secret_events::kFaultFailed, {{"injection", life.injection.id},
                                                       {"stage", "journal"},
                                                       {"reason", marked.error().message}});
    }
  }
  if (!reason.empty()) dirty_ = true;
  const double after_ms = life.SinceMs();
  const Witness undone =
      life.target != nullptr ? life.injector->Undone(*life.reach) : Witness{true, "", {}, {}, ""};
  c_.recorder.Secret(secret_events::kFaultUndone, {{"injection", life.injection.id},
                                                   {"ok", reason.empty()},
                                                   {"reason", reason},
                                                   {"after_ms", after_ms}});
  Witnessed(life, "undone", undone, 1, undone.holds ? 1 : 0, after_ms, after_ms);
  Report(life);
}

void Injections::Fail(Life& life, const char* stage, const std::string& reason) {
  life.failure = reason;
  c_.recorder.Secret(secret_events::kFaultFailed,
                     {{"injection", life.injection.id}, {"stage", stage}, {"reason", reason}});
}

void Injections::Witnessed(Life& life, const char* kind, const Witness& witness, int samples,
                           int held, double first_ms, double last_ms) {
  c_.recorder.Secret(secret_events::kWitnessed, {{"injection", life.injection.id},
                                                 {"kind", kind},
                                                 {"holds", witness.holds},
                                                 {"what", witness.what},
                                                 {"observed", witness.observed},
                                                 {"expected", witness.expected},
                                                 {"unit", witness.unit},
                                                 {"samples", samples},
                                                 {"held", held},
                                                 {"first_ms", first_ms},
                                                 {"last_ms", last_ms}});
}

void Injections::Report(Life& life) {
  if (life.reported) return;
  life.reported = true;
  life.state = Life::State::kOver;
  StopSampling(life);
  if (!life.began) {
    c_.recorder.Secret(secret_events::kFaultMissed,
                       {{"injection", life.injection.id},
                        {"reason", life.failure.empty()
                                       ? "its point was never reached: " + life.injection.fault +
                                             " at " + std::string(PointName(life.injection.point)) +
                                             " of step " + std::to_string(life.injection.step)
                                       : life.failure}});
    return;
  }
  const double now = life.SinceMs();
  const bool lasted = life.samples_held > 0 && life.samples == life.samples_held;
  life.effect.holds = lasted;
  Witnessed(life, "effect", life.effect, life.samples, life.samples_held, life.first_ms,
            life.last_ms);
  Witnessed(life, "consequence", life.consequence, life.consequence_asked,
            life.consequence.holds ? 1 : 0, now, now);
  Witnessed(life, "bystander", life.bystander, life.bystander_asked, life.bystander.holds ? 1 : 0,
            now, now);
}

bool Injections::AllWitnessed() const {
  return std::all_of(lives_.begin(), lives_.end(), [](const auto& life) {
    return life->state != Life::State::kActive ||
           (life->samples_held > 0 && life->consequence.holds && life->bystander.holds);
  });
}

void Injections::Finish() {
  if (finished_) return;
  finished_ = true;
  for (const auto& life : lives_) {
    if (life->holding) Release(*life, false);
    FreeDecoys(*life);
  }
  for (auto it = lives_.rbegin(); it != lives_.rend(); ++it) {
    Life& life = **it;
    c_.loop.Cancel(life.undo_timer);
    if (life.began) Undo(life);
    // A last look, for what the job did after the fault had ended.
    if (life.state == Life::State::kActive) Sample(life);
    Report(life);
  }
}

}  // namespace shakedown
