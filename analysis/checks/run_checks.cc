#include "analysis/checks/run_checks.h"

#include <exception>

#include "analysis/checks/catalog.h"
#include "harness/wire/run_dir.h"

namespace shakedown {
namespace {

using Missing = std::optional<std::string>;

// `readable`: its content could be read. A file that lies there as it was sealed and cannot be read
// is missing evidence: it cannot be told who spoiled it.
Missing MissingFile(const CheckInput& in, const std::string& file, bool readable) {
  const SealState state = in.seal.StateOf(file);
  if (state == SealState::kAbsentAtSeal) return std::nullopt;
  if (state != SealState::kIntact) {
    const std::string why = in.seal.present ? "" : " (" + in.seal.problem + ")";
    return in.seal.Describe(file) + why;
  }
  if (!readable) return file + " cannot be read";
  return std::nullopt;
}

Missing MissingEvents(const CheckInput& in) {
  if (const Damage* damage = in.observed.Unreadable("observed.jsonl")) return damage->what;
  if (!in.observed.has_observed) return "observed.jsonl does not begin with run.started";
  return MissingFile(in, "observed.jsonl", true);
}

Missing MissingRecords(const CheckInput& in, bool any, const char* what) {
  if (Missing missing = MissingEvents(in)) return missing;
  if (!any) return std::string("observed.jsonl holds no ") + what;
  return std::nullopt;
}

// A file of each rank: of every attempt, or of the last only.
Missing MissingRankFiles(const CheckInput& in, const char* name, bool last_only) {
  if (!in.observed.job) return "the job's configuration is not known";
  if (in.observed.attempts.empty()) return "there is no attempt";
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    if (last_only && &attempt != &in.observed.attempts.back()) continue;
    for (int r = 0; r < in.observed.job->ranks; ++r) {
      const std::string file =
          "attempt-" + std::to_string(attempt.attempt) + "/rank-" + std::to_string(r) + "/" + name;
      if (Missing missing = MissingFile(in, file, in.observed.Unreadable(file) == nullptr))
        return missing;
    }
  }
  return std::nullopt;
}

Missing MissingLauncherLog(const CheckInput& in) {
  if (in.observed.attempts.empty()) return "there is no attempt";
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    const std::string file = "attempt-" + std::to_string(attempt.attempt) + "/launcher.jsonl";
    if (Missing missing = MissingFile(in, file, in.observed.Unreadable(file) == nullptr))
      return missing;
  }
  return std::nullopt;
}

Missing MissingReference(const CheckInput& in) {
  if (!in.reference.usable()) return in.reference.unusable;
  if (Missing missing = MissingFile(in, "reference/key.json", true)) return missing;
  for (const auto& [rank, evidence] : in.reference.ranks) {
    for (const char* name : {kRankLedger, kRankWeightsEnd}) {
      const std::string file = "reference/rank-" + std::to_string(rank) + "/" + name;
      if (in.seal.StateOf(file) != SealState::kIntact) return in.seal.Describe(file);
    }
  }
  return std::nullopt;
}

Missing MissingSecret(const CheckInput& in, const std::string& file, bool there,
                      const std::string& problem) {
  if (!there) return problem;
  // Unlike the job's files, these are the harness's own: that they were not there at the seal
  // cannot count against the job.
  if (in.seal.StateOf(file) != SealState::kIntact) return in.seal.Describe(file);
  return std::nullopt;
}

const Finding* NotKept(const std::vector<Checked>& done) {
  for (const Checked& checked : done) {
    if (checked.finding.status == CheckStatus::kInvalid) return &checked.finding;
  }
  return nullptr;
}

Finding Inconclusive(std::string reason) {
  Finding finding;
  finding.status = CheckStatus::kInconclusive;
  finding.reason = std::move(reason);
  return finding;
}

Finding Call(const CheckInfo& check, const CheckInput& input) {
  try {
    return check.function(input);
  } catch (const std::exception& e) {
    return Inconclusive("the check threw: " + std::string(e.what()));
  } catch (...) {
    return Inconclusive("the check threw something that is no exception");
  }
}

}  // namespace

std::optional<std::string> WhatIsMissing(const CheckInput& in, Need need) {
  switch (need) {
    case Need::kPlan:
      return MissingSecret(in, "run.json", in.secret.plan.has_value(), in.secret.plan_problem);
    case Need::kInjected:
      return MissingSecret(in, "injected.jsonl", in.secret.has_injected,
                           in.secret.injected_problem);
    case Need::kJob:
      if (!in.observed.job) return "the job's configuration is in no file";
      return std::nullopt;
    case Need::kObserved:
      return MissingEvents(in);
    case Need::kPages:
      return MissingRecords(in, !in.observed.pages.empty(), "page.sampled");
    case Need::kExits:
      return MissingRecords(
          in, !in.observed.exits.empty() || in.observed.First(events::kJobExited) != nullptr,
          "process.exited and no job.exited");
    case Need::kLoad:
      return MissingRecords(in, in.load.samples > 0, "load.sampled");
    case Need::kLedgers: {
      // Of the last attempt all; of earlier ones, those that are there must be what was sealed.
      return MissingRankFiles(in, kRankLedger, false);
    }
    case Need::kRankLogs:
      return MissingRankFiles(in, kRankLog, false);
    case Need::kLauncherLog:
      return MissingLauncherLog(in);
    case Need::kCheckpoints:
      if (const Damage* damage = in.observed.Unreadable("checkpoints.jsonl")) return damage->what;
      if (!in.observed.checkpoints) return "checkpoints.jsonl is missing";
      return MissingFile(in, "checkpoints.jsonl", true);
    case Need::kWeights: {
      if (Missing missing = MissingRankFiles(in, kRankWeightsStart, true)) return missing;
      return MissingRankFiles(in, kRankWeightsEnd, true);
    }
    case Need::kReference:
      return MissingReference(in);
    case Need::kLeftovers:
      return MissingRecords(in, in.observed.First(events::kLeftoversInspected) != nullptr,
                            "leftovers.inspected");
  }
  return "unknown evidence";
}

Finding RunCheck(const CheckInfo& check, const CheckInput& input) {
  for (const Need need : check.evidence) {
    if (const Missing missing = WhatIsMissing(input, need)) {
      return Inconclusive("evidence is missing: " + *missing);
    }
  }
  Finding finding = Call(check, input);
  if (finding.status == CheckStatus::kPass && finding.compared < finding.least) {
    finding.status = CheckStatus::kInconclusive;
    finding.reason = "compared " + std::to_string(finding.compared) + ", at least " +
                     std::to_string(finding.least) + " are needed";
  }
  if (finding.status == CheckStatus::kFail && check.by_time && input.load.overloaded) {
    finding.status = CheckStatus::kInconclusive;
    finding.reason += " (the machine was overloaded: " + input.load.why + ")";
  }
  return finding;
}

std::vector<Checked> RunChecks(const CheckInput& input) {
  std::vector<Checked> done;
  for (const CheckInfo* check : CheckCatalog()) {
    const Finding* invalid = NotKept(done);
    const bool foundation = check->check_class <= CheckClass::kProof;
    if (invalid == nullptr || foundation || !check->depends_on_fault) {
      done.push_back({check, RunCheck(*check, input)});
      continue;
    }
    Finding finding;
    finding.status = CheckStatus::kNotJudged;
    finding.reason = "not judged: " + invalid->reason;
    done.push_back({check, std::move(finding)});
  }
  return done;
}

}  // namespace shakedown
