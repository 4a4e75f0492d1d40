#include "analysis/evidence/reference.h"

#include "analysis/evidence/folder.h"
#include "analysis/evidence/process_files.h"

namespace shakedown {
namespace {

// Why the reference may not be compared with the run; "" when it may.
std::string WhyUnusable(const ReferenceEvidence& reference, const ObservedEvidence& observed,
                        const Json& run_json) {
  if (reference.key.empty()) return "reference/key.json is missing or cannot be read";
  const Json& stated = Field(run_json, "reference");
  if (!BoolField(stated, "equal").value_or(false)) {
    return "the two reference runs are not known to be equal";
  }
  // The key is the digest of what it is made of, so it need not be believed.
  const std::string key = ToHex(Xxh3Of(DumpJson(reference.key)));
  if (key != StringField(stated, "key")) {
    return "the reference has another key (" + key + ") than the run asked for";
  }
  const Json& numerics = Field(observed.run_started, "numerics");
  if (!numerics.is_object() || Field(reference.key, "numerics") != numerics) {
    return "the reference was made with other numerics: " +
           DumpJson(Field(reference.key, "numerics")) + ", this run has " + DumpJson(numerics);
  }
  if (!observed.job) return "the job's configuration is not known";
  for (int r = 0; r < observed.job->ranks; ++r) {
    const RankLedger* ledger = reference.ledger(r);
    if (ledger == nullptr) {
      return "reference/rank-" + std::to_string(r) + " has no readable ledger";
    }
    if (ledger->header.world_size != observed.job->ranks ||
        std::cmp_not_equal(ledger->steps.size(), observed.job->steps)) {
      return "the reference is of another job: " + std::to_string(ledger->steps.size()) +
             " steps on " + std::to_string(ledger->header.world_size) + " ranks";
    }
  }
  return "";
}

}  // namespace

const RankLedger* ReferenceEvidence::ledger(int rank) const {
  const auto it = ranks.find(rank);
  return it == ranks.end() || !it->second.ledger ? nullptr : &*it->second.ledger;
}

ReferenceEvidence LoadReference(const RunDir& run, const ObservedEvidence& observed,
                                const Json& run_json) {
  ReferenceEvidence out;
  const Result<EvidenceFolder> folder = EvidenceFolder::Open(run.root());
  if (!folder) {
    out.unusable = folder.error().message;
    return out;
  }
  if (const auto text =
          ReadOptional(*folder, run.reference() / "key.json", kMaxLogBytes, &out.damage)) {
    const Result<Json> json = ParseJson(*text);
    if (json && json->is_object()) out.key = *json;
  }
  const int ranks = observed.job ? observed.job->ranks : 0;
  for (int r = 0; r < ranks; ++r) {
    const auto at = run.reference() / ("rank-" + std::to_string(r));
    out.ranks[r] = {ReadRankLedger(*folder, at / kRankLedger, &out.damage),
                    ReadWeights(*folder, at / kRankWeightsEnd, &out.damage)};
  }
  out.unusable = WhyUnusable(out, observed, run_json);
  return out;
}

}  // namespace shakedown
