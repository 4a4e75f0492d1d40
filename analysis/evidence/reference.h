// The undisturbed run of the same job that a run is compared with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/evidence/observed.h"
#include "harness/wire/json.h"
#include "harness/wire/run_dir.h"

namespace shakedown {

struct ReferenceEvidence {
  struct Rank {
    std::optional<RankLedger> ledger;
    std::optional<WeightsDump> weights_end;
  };
  std::map<int, Rank> ranks;
  Json key = Json::object();  // key.json
  // Empty: comparable with the run. Else why not: absent, of other numerics, of another job, or the
  // two reference runs did not agree. Then nothing may be called broken because it differs.
  std::string unusable;
  std::vector<Damage> damage;

  bool usable() const { return unusable.empty(); }
  const RankLedger* ledger(int rank) const;  // nullptr when there is none
};

// `run_json` is run.json (an empty object when there is none).
ReferenceEvidence LoadReference(const RunDir& run, const ObservedEvidence& observed,
                                const Json& run_json);

}  // namespace shakedown
