#include "injectors/primitives/stall.h"

#include <utility>

#include "injectors/primitives/page_watch.h"

namespace shakedown {
namespace {

using std::chrono::milliseconds;

// A rank that was only released goes on within microseconds; this is far above what a busy machine
// keeps a running thread waiting, and far below any timeout of a job.
constexpr Nanoseconds kStands = milliseconds(50);
// Of the peers, which first have to come to where they wait.
constexpr Nanoseconds kPeersWait = milliseconds(100);

class Stall : public Injector {
 public:
  explicit Stall(Injection injection)
      : injection_(std::move(injection)), watch_(injection_.point, injection_.step) {}

  ArmSpec Arm() const override { return {ArmAction::kStall}; }

  Result<UndoRecipe> Prepare(Reach& reach) override {
    SHAKEDOWN_TRY(TargetIsAlive(reach));
    return UndoRecipe{};
  }

  Result<Json> Inject(Reach& reach) override {
    return Json{{"process", ToJson(reach.target().identity)},
                {"action", "stall"},
                {"point", PointName(injection_.point)},
                {"step", injection_.step}};
  }

  bool EffectBeforeRelease() const override { return false; }

  Witness Effect(Reach& reach) override {
    const ProcessRef target = reach.target();
    watch_.Look(*reach.Page(target), MonoNow());
    const char state = reach.State(target);
    // Only a living process can be seen to stand; once it has been, it stands until it ends.
    if (!Ended(reach, target) && watch_.stood() >= kStands) stood_ = true;
    Witness witness;
    witness.what = "progress and state of " + Describe(target);
    witness.observed = watch_.Observed();
    if (!witness.observed.is_null()) witness.observed["state"] = std::string(1, state);
    witness.expected = {{"point", PointName(injection_.point)},
                        {"step", injection_.step},
                        {"stood_ms", ToMs(kStands)}};
    witness.holds = stood_ && !watch_.moved();
    return witness;
  }

  // The whole job comes to rest: no rank ends a step and no peer passes a point.
  Witness Consequence(Reach& reach) override {
    std::vector<uint64_t> words = {reach.Page(reach.target())->last_step.load()};
    Json last_steps = Json::object();
    for (const ProcessRef& peer : reach.bystanders()) {
      const PageObserved& page = *reach.Page(peer);
      last_steps[Describe(peer)] = page.last_step.load();
      words.push_back(page.last_step.load());
      words.push_back(MainWord(page));
    }
    const Nanoseconds still = peers_.Look(std::move(words), MonoNow());
    Witness witness;
    witness.what = "time in which no rank ended a step and no peer passed a point";
    witness.observed = {{"still_ms", ToMs(still)}, {"last_steps", last_steps}};
    witness.expected = {{"still_ms", ToMs(kPeersWait)}};
    witness.unit = "ms";
    witness.holds = stood_ && still >= kPeersWait;
    return witness;
  }

  // A peer waits for the victim and not at an arm of ours when it has handed over a collective that
  // the victim has not: true wherever in its step the victim stands.
  Witness Bystander(Reach& reach) override {
    const uint64_t victim = reach.Page(reach.target())->collectives_enqueued.load();
    Witness witness;
    witness.what =
        "collectives handed over by each peer, against those of " + Describe(reach.target());
    witness.observed = {{Describe(reach.target()), victim}};
    witness.expected = "each peer more than " + std::to_string(victim);
    witness.unit = "collectives";
    witness.holds = stood_;
    for (const ProcessRef& peer : reach.bystanders()) {
      const uint64_t count = reach.Page(peer)->collectives_enqueued.load();
      witness.observed[Describe(peer)] = count;
      if (count <= victim) witness.holds = false;
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
  Injection injection_;
  LaneWatch watch_;
  StillWatch peers_;
  bool stood_ = false;
};

}  // namespace

std::unique_ptr<Injector> MakeStall(const Injection& injection, const Availability&) {
  return std::make_unique<Stall>(injection);
}

}  // namespace shakedown
