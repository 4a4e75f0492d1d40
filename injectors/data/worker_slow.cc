// data.worker_slow: a data worker takes long for each batch from one on.
#include <algorithm>
#include <map>
#include <utility>

#include "injectors/catalog.h"
#include "injectors/injector.h"
#include "injectors/primitives/page_watch.h"
#include "injectors/primitives/params.h"

namespace shakedown::faults {
namespace {

class WorkerSlow : public Injector {
 public:
  explicit WorkerSlow(Injection injection)
      : injection_(std::move(injection)),
        delay_(IntParam(injection_.with, "delay")),
        slack_(std::min<Nanoseconds>(std::chrono::milliseconds(50), delay_ / 2)),
        watch_(injection_.point, injection_.step) {}

  ArmSpec Arm() const override { return {ArmAction::kDelay, delay_.count(), /*repeat=*/true}; }

  Result<UndoRecipe> Prepare(Reach& reach) override {
    SHAKEDOWN_TRY(TargetIsAlive(reach));
    return UndoRecipe{};
  }

  Result<Json> Inject(Reach& reach) override {
    Begin(reach);
    return Json{{"process", ToJson(reach.target().identity)},
                {"action", "delay"},
                {"delay_ms", ToMs(delay_)},
                {"batch", injection_.step}};
  }

  bool EffectBeforeRelease() const override { return false; }

  // It stands at the point until its delay is over, and after that gets no further than one batch
  // per delay.
  Witness Effect(Reach& reach) override {
    Begin(reach);
    const ProcessRef target = reach.target();
    const PageObserved& page = *reach.Page(target);
    const MonoTime now = MonoNow();
    watch_.Look(page, now);
    if (!Ended(reach, target) && watch_.stood() >= slack_) stood_ = true;
    Witness witness;
    witness.what =
        "batches by which " + Describe(target) + " advanced, and time since the injection";
    witness.expected = "at most one batch per " + std::to_string(ToMs(delay_)) + " ms";
    if (!watch_.found()) return witness;
    const Nanoseconds elapsed = now - *watch_.since();
    const int64_t advanced = int64_t{Unpack(MainWord(page)).step} - injection_.step;
    witness.observed = watch_.Observed();
    witness.observed["advanced"] = advanced;
    witness.observed["elapsed_ms"] = ToMs(elapsed);
    // Without the slack a first look that came late would count as a delay that ended early.
    const bool early = watch_.moved() && watch_.moved_after() + slack_ < delay_;
    witness.holds = stood_ && !early && advanced * delay_ <= elapsed + slack_;
    return witness;
  }

  // Whoever waited for the batch got it late, or gave the worker up.
  Witness Consequence(Reach& reach) override {
    const bool ended = Ended(reach, reach.target());
    Witness witness;
    witness.what = "when " + Describe(reach.target()) + " went on with batch " +
                   std::to_string(injection_.step) + ", or whether it was ended before";
    witness.observed = {{"ended", ended}, {"late_ms", nullptr}};
    witness.expected = {{"ended", true}, {"or_late_ms", ToMs(delay_ - slack_)}};
    witness.unit = "ms";
    bool late = false;
    if (watch_.moved()) {
      witness.observed["late_ms"] = ToMs(watch_.moved_after());
      late = watch_.moved_after() + slack_ >= delay_;
    }
    witness.holds = stood_ && (late || (ended && !watch_.moved()));
    return witness;
  }

  // Seen within less than one delay, so that no delay of ours can have passed in it.
  Witness Bystander(Reach& reach) override {
    const MonoTime now = MonoNow();
    Witness witness;
    witness.what = "whether the same worker of each other rank passed a point since the injection";
    witness.expected = "each within " + std::to_string(ToMs(delay_)) + " ms";
    if (!others_) return witness;
    witness.observed = Json::object();
    witness.holds = stood_;
    for (Other& other : *others_) {
      const bool moves = MainWord(*reach.Page(other.process)) != other.word;
      if (moves && !other.moved && now - began_ < delay_) other.moved = true;
      witness.observed[Describe(other.process)] = other.moved;
      if (!other.moved) witness.holds = false;
    }
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
  struct Other {
    ProcessRef process;
    uint64_t word = 0;
    bool moved = false;
  };

  // At the injection, or at the first look when there was no hold.
  void Begin(Reach& reach) {
    if (others_) return;
    began_ = MonoNow();
    others_.emplace();
    for (const ProcessRef& other : reach.bystanders()) {
      others_->push_back({other, MainWord(*reach.Page(other))});
    }
  }

  Injection injection_;
  Nanoseconds delay_;
  Nanoseconds slack_;
  LaneWatch watch_;
  MonoTime began_;
  std::optional<std::vector<Other>> others_;
  bool stood_ = false;
};

constexpr Point kSlowPoints[] = {Point::kWorkerRead, Point::kWorkerDecode};
constexpr ParamSpec kSlowParams[] = {
    {.name = "delay",
     .type = ParamType::kDuration,
     .default_text = "3s",
     .minimum = "100ms",
     .sentence = "What each batch takes in addition, from the named batch on."}};
constexpr std::string_view kClasses[] = {"C04", "C13"};

Availability Available(const Machine&) {
  return {.available = true, .level = Level::kRealEffect, .means = "probe"};
}

std::unique_ptr<Injector> Make(const Injection& injection, const Availability&) {
  return std::make_unique<WorkerSlow>(injection);
}

}  // namespace

const Fault data_worker_slow = {
    .family = "data",
    .name = "worker_slow",
    .summary = "A data worker takes long for each batch, from the named one on.",
    .params = kSlowParams,
    .target = TargetKind::kDataWorker,
    .points = kSlowPoints,
    .level = Level::kRealEffect,
    .level_why = "The worker really delivers late, as from slow storage; the storage is not slow.",
    .needs = "nothing",
    .classes = kClasses,
    .radius = "the one data worker; its rank waits for data, the peers for the rank",
    .ends = Ends::kWithProcess,
    .excludes = {},
    .mechanism = "slow_data",
    .operator_sees =
        "Steps take as long as the worker's batches; one rank waits for data while its "
        "peers wait for it in a collective.",
    .runbook = "slow_data_worker.md",
    .available = Available,
    .make = Make,
};

}  // namespace shakedown::faults
