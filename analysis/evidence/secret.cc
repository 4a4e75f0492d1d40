#include "analysis/evidence/secret.h"

#include <algorithm>

#include "analysis/evidence/folder.h"
#include "analysis/evidence/process_files.h"
#include "analysis/evidence/sane.h"
#include "harness/base/file.h"

namespace shakedown {
namespace {

int SmallOr(const Json& f, std::string_view key, int otherwise) {
  const auto value = IntField(f, key);
  return value && *value >= 0 && *value <= 1'000'000 ? static_cast<int>(*value) : otherwise;
}

SecretPlace ToPlace(const Json& f) {
  SecretPlace place;
  place.rank = SmallOr(f, "rank", -1);
  if (const auto worker = IntField(f, "worker")) place.worker = static_cast<int>(*worker);
  place.attempt = SmallOr(f, "attempt", -1);
  place.point = StringField(f, "point").value_or("");
  place.step = SaneStep(IntField(f, "step").value_or(-1));
  place.occurrence = IntField(f, "occurrence").value_or(1);
  return place;
}

Where At(const Event& event) { return {"injected.jsonl", event.line}; }

WitnessRecord ToWitness(const Event& event) {
  const Json& f = event.fields;
  WitnessRecord w;
  w.t = event.t;
  w.injection = SmallOr(f, "injection", -1);
  w.kind = StringField(f, "kind").value_or("");
  w.holds = BoolField(f, "holds").value_or(false);
  w.what = StringField(f, "what").value_or("");
  w.observed = Field(f, "observed");
  w.expected = Field(f, "expected");
  w.unit = StringField(f, "unit").value_or("");
  w.samples = IntField(f, "samples").value_or(0);
  w.held = IntField(f, "held").value_or(0);
  w.first_ms = NumberField(f, "first_ms").value_or(0);
  w.last_ms = NumberField(f, "last_ms").value_or(0);
  w.where = At(event);
  return w;
}

InjectedRecord ToInjected(const Event& event) {
  const Json& f = event.fields;
  InjectedRecord r;
  r.t = event.t;
  r.injection = SmallOr(f, "injection", -1);
  r.fault = StringField(f, "fault").value_or("");
  r.mechanism = StringField(f, "mechanism").value_or("");
  r.place = ToPlace(f);
  r.level = StringField(f, "level").value_or("");
  r.means = StringField(f, "means").value_or("");
  if (const auto t0 = IntField(f, "t0_ns")) r.t0 = SaneTime(*t0);
  r.facts = Field(f, "facts");
  r.where = At(event);
  return r;
}

HoldRecord ToHold(const Event& event) {
  const Json& f = event.fields;
  HoldRecord h;
  h.t = event.t;
  h.injection = SmallOr(f, "injection", -1);
  h.decoy = BoolField(f, "decoy").value_or(false);
  h.place = ToPlace(f);
  if (const auto ns = IntField(f, "reached_ns")) h.reached_ns = SaneTime(*ns).ns;
  h.hold_ms = NumberField(f, "hold_ms");
  h.acted = BoolField(f, "acted").value_or(false);
  h.released = event.name == secret_events::kHoldReleased;
  h.where = At(event);
  return h;
}

FaultNote ToNote(const Event& event) {
  const Json& f = event.fields;
  FaultNote n;
  n.t = event.t;
  n.injection = SmallOr(f, "injection", -1);
  n.ok = BoolField(f, "ok").value_or(false);
  n.stage = StringField(f, "stage").value_or("");
  n.reason = StringField(f, "reason").value_or("");
  n.after_ms = NumberField(f, "after_ms");
  n.where = At(event);
  return n;
}

void Sort(const Event& event, SecretEvidence* out) {
  namespace e = secret_events;
  if (event.name == e::kProcessArmed) {
    out->armed.push_back(
        {event.t, SmallOr(event.fields, "injection", -1), ToPlace(event.fields), At(event)});
  } else if (event.name == e::kHoldEntered || event.name == e::kHoldReleased) {
    out->holds.push_back(ToHold(event));
  } else if (event.name == e::kFaultInjected) {
    out->injected.push_back(ToInjected(event));
  } else if (event.name == e::kWitnessed) {
    out->witnessed.push_back(ToWitness(event));
  } else if (event.name == e::kFaultFailed) {
    out->failed.push_back(ToNote(event));
  } else if (event.name == e::kFaultUndone) {
    out->undone.push_back(ToNote(event));
  } else if (event.name == e::kFaultMissed) {
    out->missed.push_back(ToNote(event));
  }
}

bool IsSanePlan(const Plan& plan) {
  for (const Injection& i : plan.injections) {
    if (i.step != SaneStep(i.step) || i.rank < 0 || i.rank >= kMaxRanks || i.attempt < 0) {
      return false;
    }
  }
  return IsSane(plan.scenario.job);
}

void LoadJournals(const RunDir& run, const EvidenceFolder& folder, SecretEvidence* out) {
  const auto text = [&](const std::filesystem::path& path) {
    return ReadOptional(folder, path, kMaxLogBytes, &out->damage).value_or("");
  };
  out->journal = ParseJournal(text(run.journal()), text(run.undone()));
  for (const int line : out->journal.damaged_lines) {
    out->damage.push_back({{"journal.jsonl", line}, "no record of the undo journal"});
  }
}

}  // namespace

const InjectedRecord* SecretEvidence::Injected(int injection) const {
  for (auto it = injected.rbegin(); it != injected.rend(); ++it) {
    if (it->injection == injection) return &*it;
  }
  return nullptr;
}

std::vector<MonoTime> SecretEvidence::Zeros() const {
  std::vector<MonoTime> zeros;
  for (const InjectedRecord& r : injected) {
    if (r.t0) zeros.push_back(*r.t0);
  }
  std::sort(zeros.begin(), zeros.end());
  return zeros;
}

SecretEvidence LoadSecret(const RunDir& run) {
  SecretEvidence out;
  const Result<EvidenceFolder> folder = EvidenceFolder::Open(run.root());
  if (!folder) {
    out.plan_problem = folder.error().message;
    return out;
  }
  if (const auto text = ReadOptional(*folder, run.run_json(), kMaxLogBytes, &out.damage)) {
    const Result<Json> json = ParseJson(*text);
    const Result<Plan> plan = json ? PlanFromJson(Field(*json, "plan"))
                                   : Result<Plan>(tl::unexpected<Error>(json.error()));
    if (json) out.run = *json;
    if (plan && IsSanePlan(*plan)) {
      out.plan = *plan;
    } else if (plan) {
      out.plan_problem = "run.json: the plan holds impossible numbers";
    } else {
      out.plan_problem = "run.json: " + plan.error().message;
      out.damage.push_back({{"run.json", 0}, plan.error().message});
    }
  } else {
    out.plan_problem = out.damage.empty() ? "run.json is missing" : out.damage.back().what;
  }
  if (const auto text = ReadOptional(*folder, run.injected(), kMaxEventBytes, &out.damage)) {
    out.has_injected = true;
    EventFile file = ParseEvents(*text);
    for (const int line : file.damaged_lines) {
      out.damage.push_back({{"injected.jsonl", line}, "no event record"});
    }
    for (Event& event : file.events) {
      event.t = SaneTime(event.t.ns);
      Sort(event, &out);
    }
  }
  if (!out.has_injected && !out.damage.empty() &&
      out.damage.back().where.file == "injected.jsonl") {
    out.injected_problem = out.damage.back().what;
  }
  LoadJournals(run, *folder, &out);
  return out;
}

}  // namespace shakedown
