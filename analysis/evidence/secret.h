// The half of the evidence that knows the plan: run.json, injected.jsonl, journal.jsonl and
// undone.jsonl. Never given to diagnosis. Untrusted in the same way as observed.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/evidence/observed.h"
#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/wire/journal_record.h"
#include "harness/wire/json.h"
#include "harness/wire/run_dir.h"
#include "harness/wire/scenario.h"

namespace shakedown {

// Where a record of injected.jsonl says that something happened.
struct SecretPlace {
  int rank = -1;
  std::optional<int> worker;
  int attempt = 0;
  std::string point;
  int64_t step = 0;
  int64_t occurrence = 1;
};

struct ArmedRecord {
  MonoTime t;
  int injection = 0;  // 0: decoy
  SecretPlace place;
  Where where;
};

struct HoldRecord {
  MonoTime t;
  int injection = 0;
  bool decoy = false;
  SecretPlace place;
  std::optional<int64_t> reached_ns;
  std::optional<double> hold_ms;  // of hold.released
  bool acted = false;             // of hold.released
  bool released = false;          // hold.released, else hold.entered
  Where where;
};

struct InjectedRecord {
  MonoTime t;
  int injection = 0;
  std::string fault;
  std::string mechanism;  // what the fault declares: mechanisms.def; rules go by it, not by names
  SecretPlace place;
  std::string level;
  std::string means;
  std::optional<MonoTime> t0;  // just before the injecting call
  Json facts;
  Where where;
};

struct WitnessRecord {
  MonoTime t;
  int injection = 0;
  std::string kind;  // effect, consequence, bystander, undone
  bool holds = false;
  std::string what;
  Json observed;
  Json expected;
  std::string unit;
  int64_t samples = 0;
  int64_t held = 0;
  double first_ms = 0;
  double last_ms = 0;
  Where where;
};

// fault.undone, fault.failed, fault.missed.
struct FaultNote {
  MonoTime t;
  int injection = 0;
  bool ok = false;    // of fault.undone
  std::string stage;  // of fault.failed
  std::string reason;
  std::optional<double> after_ms;  // of fault.undone
  Where where;
};

struct SecretEvidence {
  std::optional<Plan> plan;
  std::string plan_problem;                                    // why there is none
  std::string injected_problem = "injected.jsonl is missing";  // when has_injected is false
  Json run = Json::object();                                   // run.json
  bool has_injected = false;                                   // injected.jsonl was there
  std::vector<ArmedRecord> armed;
  std::vector<HoldRecord> holds;
  std::vector<InjectedRecord> injected;
  std::vector<WitnessRecord> witnessed;
  std::vector<FaultNote> failed;
  std::vector<FaultNote> undone;
  std::vector<FaultNote> missed;
  Journal journal;  // pending: what nothing undid
  std::vector<Damage> damage;

  const Expectation* expect() const { return plan ? &plan->scenario.expect : nullptr; }
  // The last fault.injected of that injection; nullptr when there is none.
  const InjectedRecord* Injected(int injection) const;
  // Times of all injecting calls, sorted.
  std::vector<MonoTime> Zeros() const;
};

// Files that are absent leave their part empty; the run directory was opened by LoadObserved
// before.
SecretEvidence LoadSecret(const RunDir& run);

}  // namespace shakedown
