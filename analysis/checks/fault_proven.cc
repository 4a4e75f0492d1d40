// Each planned fault acted exactly as planned, once, and nothing else did.
#include <algorithm>

#include "analysis/checks/common.h"
#include "analysis/checks/proof.h"

namespace shakedown {
namespace {

using Reason = std::optional<NotProven>;

// A signal that ends a process does so at once; the record of its end waits for the kernel's word.
constexpr Nanoseconds kDeathTime = std::chrono::seconds(1);

std::string Describe(const SecretPlace& place) {
  std::string out = RankName(place.rank);
  if (place.worker) out += " worker " + std::to_string(*place.worker);
  return out + ", attempt " + std::to_string(place.attempt) + ", " + place.point + " of step " +
         std::to_string(place.step) + ", occurrence " + std::to_string(place.occurrence);
}

SecretPlace Planned(const Injection& i) {
  return {i.rank, i.worker, i.attempt, std::string(PointName(i.point)), i.step, i.occurrence};
}

bool Same(const SecretPlace& a, const SecretPlace& b) {
  return a.rank == b.rank && a.worker == b.worker && a.attempt == b.attempt && a.point == b.point &&
         a.step == b.step && a.occurrence == b.occurrence;
}

Reason ActedOnceAsPlanned(const SecretEvidence& secret, const Injection& injection,
                          const InjectedRecord** found) {
  for (const FaultNote& note : secret.missed) {
    if (note.injection == injection.id)
      return NotProven{"it never acted: " + note.reason, {note.where}};
  }
  for (const FaultNote& note : secret.failed) {
    if (note.injection == injection.id) {
      return NotProven{"it failed in " + note.stage + ": " + note.reason, {note.where}};
    }
  }
  std::vector<const InjectedRecord*> records;
  for (const InjectedRecord& record : secret.injected) {
    if (record.injection == injection.id) records.push_back(&record);
  }
  if (records.empty()) return NotProven{"there is no record that it acted", {}};
  if (records.size() > 1) {
    return NotProven{"it acted " + std::to_string(records.size()) + " times",
                     {records[0]->where, records[1]->where}};
  }
  const InjectedRecord& record = *records.front();
  *found = &record;
  if (record.fault != injection.fault) {
    return NotProven{"it is recorded as " + record.fault, {record.where}};
  }
  if (!Same(record.place, Planned(injection))) {
    return NotProven{
        "it acted at " + Describe(record.place) + " instead of " + Describe(Planned(injection)),
        {record.where}};
  }
  // A weaker means than the plan's would make a weaker proof look like the stronger one.
  if (record.level != injection.level) {
    return NotProven{
        "it acted at level '" + record.level + "' instead of '" + injection.level + "'",
        {record.where}};
  }
  if (!record.t0) return NotProven{"the record of it has no time", {record.where}};
  return std::nullopt;
}

Reason HeldAsPlanned(const CheckInput& in, const Injection& injection,
                     const InjectedRecord& injected) {
  if (injection.hold == HoldMode::kNone) return std::nullopt;
  const HoldRecord* hold = nullptr;
  for (const HoldRecord& record : in.secret.holds) {
    if (record.injection != injection.id || record.decoy || !record.released) continue;
    if (hold != nullptr) return NotProven{"its target was held twice", {hold->where, record.where}};
    hold = &record;
  }
  if (hold == nullptr) return NotProven{"there is no record that its target was held", {}};
  SecretPlace planned = Planned(injection);
  if (!Same(hold->place, planned)) {
    return NotProven{"its target was held at " + Describe(hold->place), {hold->where}};
  }
  const double limit_ms = ToMs(in.plan().hold_limit);
  if (!hold->hold_ms || *hold->hold_ms > limit_ms) {
    return NotProven{
        "its target was held for " +
            (hold->hold_ms ? Ms(Nanoseconds(static_cast<int64_t>(*hold->hold_ms * 1e6)))
                           : std::string("an unknown time")) +
            ", limit " + Ms(in.plan().hold_limit),
        {hold->where}};
  }
  if (!hold->reached_ns || injected.t0->ns < *hold->reached_ns) {
    return NotProven{"it acted before its target was held", {hold->where, injected.where}};
  }
  return std::nullopt;
}

Reason Witnessed(const SecretEvidence& secret, const Injection& injection) {
  for (const char* kind : {"effect", "consequence", "bystander"}) {
    const WitnessRecord* last = nullptr;
    for (const WitnessRecord& record : secret.witnessed) {
      if (record.injection == injection.id && record.kind == kind) last = &record;
    }
    if (last == nullptr) return NotProven{std::string(kind) + " was not witnessed", {}};
    if (!last->holds) {
      return NotProven{std::string(kind) + " does not hold: " + last->what + " was " +
                           DumpJson(last->observed) + ", expected " + DumpJson(last->expected),
                       {last->where}};
    }
    if (last->samples < 1 || last->held < 1) {
      return NotProven{std::string(kind) + " was never measured", {last->where}};
    }
    if (std::string_view(kind) == "effect" && last->held != last->samples) {
      return NotProven{"the effect held in " + std::to_string(last->held) + " of " +
                           std::to_string(last->samples) + " samples",
                       {last->where}};
    }
  }
  return std::nullopt;
}

Reason UndoneAsPlanned(const SecretEvidence& secret, const Injection& injection) {
  const FaultNote* undone = nullptr;
  for (const FaultNote& note : secret.undone) {
    if (note.injection == injection.id) undone = &note;
  }
  const bool due = injection.duration || injection.until;
  if (undone == nullptr) {
    return due ? Reason(NotProven{"there is no record that it was undone", {}}) : std::nullopt;
  }
  if (!undone->ok) return NotProven{"it was not undone: " + undone->reason, {undone->where}};
  for (const WitnessRecord& record : secret.witnessed) {
    if (record.injection == injection.id && record.kind == "undone" && record.holds) {
      return std::nullopt;
    }
  }
  return NotProven{"that it was undone was not witnessed", {undone->where}};
}

// What an operator could see must agree with what the harness says that it did.
Reason ObservedAgrees(const CheckInput& in, const Injection& injection,
                      const InjectedRecord& injected) {
  const ProcessExit* exit = nullptr;
  for (const ProcessExit& e : in.observed.exits) {
    if (e.attempt != injection.attempt || e.rank != injection.rank) continue;
    if (e.worker != injection.worker || (injection.worker && e.incarnation != 0)) continue;
    exit = &e;
    break;
  }
  if (exit != nullptr && exit->t < *injected.t0) {
    return NotProven{"its target had ended " + Ms(*injected.t0 - exit->t) + " before it acted",
                     {exit->where, injected.where}};
  }
  if (injected.mechanism == "killed") {
    const auto signal = injection.with.find("signal");
    const auto* name =
        signal == injection.with.end() ? nullptr : std::get_if<std::string>(&signal->second);
    // Other signals a rank may handle; how it ends is then its own affair.
    if (name != nullptr && *name == "KILL") {
      if (exit == nullptr) return NotProven{"its target was never seen to end", {}};
      if (exit->signal != "SIGKILL" || exit->t - *injected.t0 > kDeathTime) {
        return NotProven{"its target ended by " +
                             (exit->signal.empty() ? std::string("exit") : exit->signal) + " " +
                             Ms(exit->t - *injected.t0) + " after it, not by SIGKILL at once",
                         {exit->where}};
      }
    }
  }
  // Only what stops its target for good leaves the page at the point.
  if (injection.worker || (injected.mechanism != "killed" && injected.mechanism != "not_joined")) {
    return std::nullopt;
  }
  const PageSample* last = nullptr;
  for (const PageSample& page : in.observed.pages) {
    if (page.attempt == injection.attempt && page.rank == injection.rank && !page.worker) {
      last = &page;
    }
  }
  if (last == nullptr) return NotProven{"its target's page was never seen", {}};
  for (const auto& [name, lane] : last->lanes) {
    if (lane.point == PointName(injection.point) && lane.step == injection.step) {
      return std::nullopt;
    }
  }
  return NotProven{"its target's page does not stand at " +
                       std::string(PointName(injection.point)) + " of step " +
                       std::to_string(injection.step),
                   {last->where}};
}

}  // namespace

std::optional<NotProven> WhyNotProven(const CheckInput& in, const Injection& injection) {
  const InjectedRecord* injected = nullptr;
  if (auto reason = ActedOnceAsPlanned(in.secret, injection, &injected)) return reason;
  if (auto reason = HeldAsPlanned(in, injection, *injected)) return reason;
  if (auto reason = Witnessed(in.secret, injection)) return reason;
  if (auto reason = UndoneAsPlanned(in.secret, injection)) return reason;
  return ObservedAgrees(in, injection, *injected);
}

std::optional<double> HoldMs(const SecretEvidence& secret, int injection) {
  for (const HoldRecord& record : secret.holds) {
    if (record.injection == injection && !record.decoy && record.released) return record.hold_ms;
  }
  return std::nullopt;
}

namespace checks {
extern const CheckInfo fault_proven;
namespace {

constexpr std::string_view kName = "fault_proven";
constexpr Need kNeeds[] = {Need::kPlan, Need::kInjected, Need::kObserved, Need::kExits,
                           Need::kPages};

bool IsPlanned(const Plan& plan, int injection) {
  return std::any_of(plan.injections.begin(), plan.injections.end(),
                     [&](const Injection& i) { return i.id == injection; });
}

Finding Check(const CheckInput& in) {
  for (const InjectedRecord& record : in.secret.injected) {
    if (!IsPlanned(in.plan(), record.injection)) {
      return NotKept(kName, record.fault + " was injected and stands in no plan", {record.where});
    }
  }
  for (const Damage& damage : in.secret.damage) {
    if (damage.where.file == "injected.jsonl") {
      return Unclear("injected.jsonl is damaged: " + damage.what, {damage.where});
    }
  }
  Json proven = Json::array();
  for (const Injection& injection : in.plan().injections) {
    if (const auto reason = WhyNotProven(in, injection)) {
      return NotKept(
          kName,
          injection.fault + " (injection " + std::to_string(injection.id) + "): " + reason->why,
          reason->where);
    }
    proven.push_back(injection.fault);
  }
  const auto count = static_cast<int64_t>(in.plan().injections.size());
  Finding finding = Pass(count == 0 ? "nothing was planned and nothing was injected"
                                    : "every planned fault acted as planned, once",
                         std::max<int64_t>(count, 1), std::max<int64_t>(count, 1));
  finding.observed = std::move(proven);
  return finding;
}

}  // namespace

const CheckInfo fault_proven = {
    .name = kName,
    .promise =
        "Each planned fault acted exactly as planned, once, where and as long as planned, "
        "and nothing else was injected.",
    .check_class = CheckClass::kProof,
    .evidence = kNeeds,
    .parameters = {},
    .by_time = false,
    .depends_on_fault = false,
    .function = Check};

}  // namespace checks
}  // namespace shakedown
