// memory.device_oom: the device's allocator refuses an allocation of the training thread.
#include <utility>

#include "injectors/catalog.h"
#include "injectors/injector.h"
#include "injectors/primitives/page_watch.h"
#include "injectors/primitives/params.h"

namespace shakedown::faults {
namespace {

std::string Conflict(const Params& params) {
  if (OptionalInt(params, "allocation") && OptionalInt(params, "budget")) {
    return "memory.device_oom takes `allocation` or `budget`, not both";
  }
  return "";
}

struct Refusals {
  uint32_t step;
  uint32_t count;
};
Refusals RefusalsOf(const PageObserved& page) {
  const uint64_t word = page.memory_refused.load(std::memory_order_relaxed);
  return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
}

class DeviceOom : public Injector {
 public:
  explicit DeviceOom(Injection injection) : injection_(std::move(injection)) {}

  ArmSpec Arm() const override {
    if (const auto budget = OptionalInt(injection_.with, "budget")) {
      return {ArmAction::kMemoryBudget, *budget};
    }
    return {ArmAction::kRefuseMemory, OptionalInt(injection_.with, "allocation").value_or(1)};
  }

  Result<UndoRecipe> Prepare(Reach& reach) override {
    if (const std::string conflict = Conflict(injection_.with); !conflict.empty()) {
      return Fail(conflict);
    }
    SHAKEDOWN_TRY(TargetIsAlive(reach));
    return UndoRecipe{};
  }

  Result<Json> Inject(Reach& reach) override {
    const ArmSpec arm = Arm();
    const bool budget = arm.action == ArmAction::kMemoryBudget;
    return Json{{"process", ToJson(reach.target().identity)},
                {"action", budget ? "memory_budget" : "refuse_memory"},
                {budget ? "budget_bytes" : "allocation", arm.argument}};
  }

  bool EffectBeforeRelease() const override { return false; }

  // A counter that only grows, as CUDA's num_ooms: once it has been seen at this step, a refusal by
  // another injection later does not take it back.
  Witness Effect(Reach& reach) override {
    const Refusals seen = RefusalsOf(*reach.Page(reach.target()));
    if (seen.count >= 1 && seen.step == injection_.step) refused_ = true;
    Witness witness;
    witness.what = "allocations refused to " + Describe(reach.target());
    witness.observed = {{"count", seen.count}, {"step", seen.step}};
    witness.expected = {{"count", 1}, {"step", injection_.step}};
    witness.unit = "allocations";
    witness.holds = refused_ && seen.count >= 1;
    return witness;
  }

  // The rank lived through it and ended the step, or failed.
  Witness Consequence(Reach& reach) override {
    const uint64_t last_step = reach.Page(reach.target())->last_step.load();
    const std::optional<WaitStatus> exit = reach.Exit(reach.target());
    Witness witness;
    witness.what = "what " + Describe(reach.target()) + " did about the refused allocation";
    witness.observed = {{"last_step", last_step}, {"exit", nullptr}};
    if (exit) witness.observed["exit"] = exit->ToString();
    witness.expected = "step " + std::to_string(injection_.step) + " ended, or a failing exit";
    witness.holds =
        refused_ && (last_step >= static_cast<uint64_t>(injection_.step) || (exit && !exit->ok()));
    return witness;
  }

  Witness Bystander(Reach& reach) override {
    Witness witness;
    witness.what = "allocations refused to the other ranks";
    witness.observed = Json::object();
    witness.expected = 0;
    witness.unit = "allocations";
    witness.holds = refused_;
    for (const ProcessRef& other : reach.bystanders()) {
      const Refusals seen = RefusalsOf(*reach.Page(other));
      witness.observed[Describe(other)] = seen.count;
      if (seen.count != 0) witness.holds = false;
    }
    return witness;
  }

  // It acts once by itself; nothing stays behind.
  Witness Undone(Reach& reach) override {
    const Refusals seen = RefusalsOf(*reach.Page(reach.target()));
    Witness witness;
    witness.what = "allocations refused to " + Describe(reach.target()) + " in all";
    witness.observed = seen.count;
    witness.expected = 1;
    witness.unit = "allocations";
    witness.holds = seen.count == 1 || Ended(reach, reach.target());
    return witness;
  }

 private:
  Injection injection_;
  bool refused_ = false;
};

constexpr Point kOomPoints[] = {Point::kForwardBegin, Point::kBackwardBegin, Point::kStepBegin};
constexpr ParamSpec kOomParams[] = {
    {.name = "allocation",
     .type = ParamType::kCount,
     .default_text = "",
     .optional = true,
     .minimum = "1",
     .sentence = "The allocation that is refused, counted from the point in this phase; 1 unless "
                 "said."},
    {.name = "budget",
     .type = ParamType::kBytes,
     .default_text = "",
     .optional = true,
     .minimum = "1B",
     .sentence = "Instead: the first allocation that would bring the total over this size is "
                 "refused."}};
constexpr std::string_view kClasses[] = {"C05"};

Availability Available(const Machine&) {
  return {.available = true,
          .level = Level::kSimulated,
          .means = "probe",
          .better = "a GPU, whose allocator really runs out"};
}

std::unique_ptr<Injector> Make(const Injection& injection, const Availability&) {
  return std::make_unique<DeviceOom>(injection);
}

}  // namespace

const Fault memory_device_oom = {
    .family = "memory",
    .name = "device_oom",
    .summary = "An allocation on the device is refused once, as when its memory is used up.",
    .params = kOomParams,
    .target = TargetKind::kRank,
    .points = kOomPoints,
    .level = Level::kSimulated,
    .level_why =
        "The framework's own out-of-memory error is thrown on the training thread, but no "
        "device ran out of memory.",
    .needs = "nothing",
    .classes = kClasses,
    .radius = "the one rank, one allocation",
    .ends = Ends::kWithProcess,
    .excludes = {},
    .mechanism = "out_of_memory_device",
    .operator_sees =
        "One rank logs an out-of-memory error with sizes; it retries in smaller parts, or "
        "exits and is restarted.",
    .runbook = "device_out_of_memory.md",
    .available = Available,
    .make = Make,
    .conflict = Conflict,
};

}  // namespace shakedown::faults
