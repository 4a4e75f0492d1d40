// Judging one run: reads its directory, calls the diagnosis and the checks, and weighs the
// findings.
#include <algorithm>
#include <filesystem>

#include "analysis/checks/proof.h"
#include "analysis/checks/run_checks.h"
#include "analysis/evidence/reference.h"
#include "analysis/evidence/seal.h"
#include "analysis/evidence/secret.h"
#include "analysis/timeline/load.h"
#include "analysis/timeline/reactions.h"
#include "analysis/timeline/timeline.h"
#include "analysis/verdict/verdict.h"

namespace shakedown {
namespace {

std::string WaivedBecause(const Plan& plan, const std::string& check, WallTime today) {
  const std::string day = FormatRfc3339(today).substr(0, 10);
  for (const Waiver& waiver : plan.scenario.waive) {
    // ISO dates compare as text.
    if (waiver.check == check && day <= waiver.until) {
      return waiver.reason + " (until " + waiver.until + ")";
    }
  }
  return "";
}

std::vector<InjectionResult> Injections(const CheckInput& in) {
  std::vector<InjectionResult> out;
  for (const Injection& i : in.plan().injections) {
    InjectionResult result;
    result.fault = i.fault;
    result.id = i.id;
    result.rank = i.rank;
    result.worker = i.worker;
    result.step = i.step;
    result.point = std::string(PointName(i.point));
    result.attempt = i.attempt;
    result.level = i.level;
    result.means = i.means;
    result.hold_ms = HoldMs(in.secret, i.id);
    result.proven = !WhyNotProven(in, i).has_value();
    out.push_back(std::move(result));
  }
  return out;
}

RunTimes Times(const CheckInput& in) {
  RunTimes times;
  const Timeline& timeline = in.timeline;
  for (const InjectedRecord& injected : in.secret.injected) {
    const auto reaction = JobReaction(in.observed, in.secret, injected);
    if (!reaction || !injected.t0) continue;
    const double ms = ToMs(reaction->at - *injected.t0);
    times.detected_ms = std::max(times.detected_ms.value_or(ms), ms);
  }
  if (timeline.zero) {
    std::optional<MonoTime> fired;
    for (const char* name : {"collective", "watchdog", "worker_deadline"}) {
      const LogLine* line = FirstLimitLine(in.observed, *FindLimit(name), *timeline.zero);
      if (line != nullptr) fired = std::min(fired.value_or(line->when()), line->when());
    }
    if (fired) times.timeout_ms = ToMs(*fired - *timeline.zero);
  }
  for (const Recovery& recovery : timeline.recoveries) {
    if (const auto took = recovery.ToNewStep()) {
      times.first_new_step_ms = std::max(times.first_new_step_ms.value_or(0), ToMs(*took));
    }
    if (recovery.lost_steps) {
      times.lost_steps = times.lost_steps.value_or(0) + *recovery.lost_steps;
    }
    if (recovery.rework) {
      times.rework_ms = times.rework_ms.value_or(0) + ToMs(*recovery.rework);
    }
  }
  const Event* exited = in.observed.First(events::kJobExited);
  const AttemptTimeline* first = timeline.attempts.empty() ? nullptr : &timeline.attempts.front();
  if (exited != nullptr && first != nullptr && first->started) {
    times.wall_ms =
        NumberField(exited->fields, "wall_ms").value_or(ToMs(exited->t - *first->started));
  }
  return times;
}

std::vector<AttemptSummary> Attempts(const CheckInput& in) {
  std::vector<AttemptSummary> out;
  for (const AttemptTimeline& attempt : in.timeline.attempts) {
    AttemptSummary summary;
    summary.attempt = attempt.attempt;
    if (in.timeline.begin) {
      if (attempt.started) summary.started_ms = ToMs(*attempt.started - *in.timeline.begin);
      if (attempt.ended) summary.ended_ms = ToMs(*attempt.ended - *in.timeline.begin);
    }
    summary.resumed_from = attempt.ResumedFrom();
    if (!attempt.ranks.empty()) summary.last_step = attempt.CompletedByAll();
    for (const ProcessExit& exit : in.observed.exits) {
      if (exit.attempt != attempt.attempt || exit.role != "rank") continue;
      summary.exits.push_back({exit.rank, exit.code, exit.signal, exit.source});
    }
    out.push_back(std::move(summary));
  }
  return out;
}

// How the controller says that the run ended; without its word it was ended itself. `dirty`: it
// left something that nobody has undone.
struct RunEnd {
  std::string how;
  std::string reason;
};
RunEnd HowItEnded(const ObservedEvidence& observed, bool dirty) {
  if (const Damage* damage = observed.Unreadable("observed.jsonl")) {
    return {"vanished", damage->what};
  }
  const Event* ended = observed.First(events::kRunEnded);
  if (ended == nullptr) {
    return {"vanished", std::string("the controller ended without saying how") +
                            (dirty ? "; run `shakedown clean`" : "")};
  }
  return {StringField(ended->fields, "how").value_or("unknown"),
          StringField(ended->fields, "reason").value_or("")};
}

const CheckResult* FirstWith(const RunVerdict& v, CheckStatus status) {
  for (const CheckResult& c : v.checks) {
    if (c.finding.status == status && c.waived.empty()) return &c;
  }
  return nullptr;
}

// Every check is not judged: the run was cut short, and what is missing is not the job's doing.
void NotJudged(RunVerdict* v, const std::string& reason) {
  for (CheckResult& c : v->checks) {
    Finding finding;
    finding.status = CheckStatus::kNotJudged;
    finding.reason = "not judged: " + reason;
    finding.least = 0;
    c.finding = std::move(finding);
  }
}

// Why evidence that gives no check a reason to complain does not carry a PASS; "" when it does.
std::string WhyNotTrusted(const CheckInput& in) {
  if (!in.seal.present) return "the evidence is not sealed: " + in.seal.problem;
  if (!in.seal.run_sealed) return "the evidence is not sealed: seal.json has no part for the run";
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    if (in.seal.sealed_attempts.contains(attempt.attempt)) continue;
    return "the evidence is not sealed: seal.json has no part for attempt " +
           std::to_string(attempt.attempt);
  }
  if (const auto tampered = in.seal.Tampered(); !tampered.empty()) {
    return "evidence was changed: " + in.seal.Describe(tampered.front());
  }
  if (!in.secret.damage.empty()) {
    const Damage& damage = in.secret.damage.front();
    return "evidence is damaged: " + damage.where.file +
           (damage.where.line > 0 ? ":" + std::to_string(damage.where.line) : "") + ": " +
           damage.what;
  }
  return "";
}

void Weigh(const CheckInput& in, const RunEnd& end, const JudgeOptions& options, RunVerdict* v) {
  if (options.harness_error || end.how == "failed") {
    v->verdict = Verdict::kError;
    v->reason = "Shakedown failed: " + options.harness_error.value_or(end.reason);
    return NotJudged(v, v->reason);
  }
  if (!in.secret.plan) {
    v->verdict = Verdict::kInconclusive;
    v->reason = in.secret.plan_problem;
    return;
  }
  if (end.how == "interrupted") {
    v->verdict = Verdict::kInconclusive;
    v->reason = "interrupted" + (end.reason.empty() ? "" : ": " + end.reason);
    return NotJudged(v, v->reason);
  }
  if (end.how == "vanished") {
    v->verdict = Verdict::kInconclusive;
    v->reason = end.reason;
    return NotJudged(v, v->reason);
  }
  const auto decide = [&](Verdict verdict, CheckStatus status) {
    const CheckResult* decisive = FirstWith(*v, status);
    if (decisive == nullptr) return false;
    v->verdict = verdict;
    v->reason = decisive->finding.status == CheckStatus::kInconclusive
                    ? decisive->check + ": " + decisive->finding.reason
                    : decisive->finding.reason;
    return true;
  };
  if (decide(Verdict::kInvalid, CheckStatus::kInvalid)) return;
  if (decide(Verdict::kFail, CheckStatus::kFail)) return;
  if (decide(Verdict::kInconclusive, CheckStatus::kInconclusive)) return;
  if (const std::string why = WhyNotTrusted(in); !why.empty()) {
    v->verdict = Verdict::kInconclusive;
    v->reason = why;
    return;
  }
  v->verdict = Verdict::kPass;
  v->reason = in.no_fault() ? "no fault, no alarm, every promise kept" : "every promise kept";
}

// Why the run is not what the scenario expects; "" when it is.
std::string WhyNotAsExpected(const Expectation& expect, const RunVerdict& v) {
  if (v.dirty) return "something could not be undone";
  if (ToString(v.verdict) != expect.verdict) {
    return "the verdict is " + std::string(ToString(v.verdict)) + ", expected is " +
           expect.verdict + ": " + v.reason;
  }
  for (const CheckResult& c : v.checks) {
    const CheckStatus status = c.finding.status;
    const bool broken = status == CheckStatus::kFail || status == CheckStatus::kInvalid;
    const bool named = expect.check == c.check;
    if (named && !broken) {
      return c.check + " is " + std::string(ToString(status)) +
             "; it was expected to break: " + c.finding.reason;
    }
    if (named && expect.reason && c.finding.reason.find(*expect.reason) == std::string::npos) {
      return c.check + " broke for another reason than '" + *expect.reason +
             "': " + c.finding.reason;
    }
    const bool listed = std::find(expect.also_fails.begin(), expect.also_fails.end(), c.check) !=
                        expect.also_fails.end();
    if (broken && !named && !listed && c.waived.empty()) {
      return c.check + " broke beside what was expected: " + c.finding.reason;
    }
  }
  // Only a run in which the fault acted has something to be diagnosed.
  if (v.diagnosis_right == false && v.verdict != Verdict::kInvalid) {
    return "the diagnosis is " + v.diagnosis.mechanism + " of " +
           DescribeCulprits(v.diagnosis.culprits) + ", expected is " + expect.diagnosis.mechanism +
           " of " + DescribeCulprits(expect.diagnosis.culprits);
  }
  return "";
}

bool SameCulprits(const std::vector<Culprit>& a, const std::vector<Culprit>& b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

// Unknown where the scenario says unknown is right: it says why it must be.
std::optional<bool> DiagnosisRight(const Expectation& expect, const RunVerdict& v) {
  if (v.verdict == Verdict::kError || v.verdict == Verdict::kInvalid) return std::nullopt;
  return v.diagnosis.mechanism == expect.diagnosis.mechanism &&
         SameCulprits(v.diagnosis.culprits, expect.diagnosis.culprits);
}

Diagnosis DiagnoseRun(const RunDir& run, const ObservedEvidence& observed) {
  if (Result<Diagnosis> isolated = DiagnoseIsolated(run)) return *isolated;
  return Diagnose(observed);
}

// What is pending was not undone when the journals were written; the reaper or `clean` add to
// undone.jsonl, so that a later undo clears it. A damaged record may hide a step.
bool IsDirty(const SecretEvidence& secret, const JudgeOptions& options) {
  return options.dirty || !secret.journal.pending.empty() || !secret.journal.damaged_lines.empty();
}

}  // namespace

Result<RunVerdict> Judge(const RunDir& run, const JudgeOptions& options) {
  const Result<ObservedEvidence> observed = LoadObserved(run);
  if (!observed) return tl::unexpected<Error>(observed.error());
  const SecretEvidence secret = LoadSecret(run);
  const ReferenceEvidence reference = LoadReference(run, *observed, secret.run);
  const SealReport seal = VerifySeal(run);
  const Timeline timeline = BuildTimeline(*observed, secret);
  const LoadReport load = MeasureLoad(*observed);
  const CheckInput input{*observed, secret, reference, seal, timeline, load};

  RunVerdict v;
  std::error_code error;
  v.run_dir = std::filesystem::absolute(run.root(), error).lexically_normal().native();
  v.dirty = IsDirty(secret, options);
  v.overloaded = load.overloaded;
  v.diagnosis = DiagnoseRun(run, *observed);
  for (Checked& checked : RunChecks(input)) {
    CheckResult result{std::string(checked.check->name), std::move(checked.finding), ""};
    if (secret.plan) result.waived = WaivedBecause(*secret.plan, result.check, options.today);
    v.checks.push_back(std::move(result));
  }
  v.times = Times(input);
  v.attempts = Attempts(input);
  if (timeline.zero) {
    if (const auto notice = OwnNotice(*observed, *timeline.zero)) {
      v.noticed_ms = ToMs(notice->at - *timeline.zero);
    }
  }
  Weigh(input, HowItEnded(*observed, v.dirty), options, &v);
  if (!secret.plan) {
    v.not_as_expected = v.reason;
    return v;
  }
  v.scenario = secret.plan->scenario.name;
  v.seed = secret.plan->seed;
  v.plan_digest = secret.plan->digest;
  v.injections = Injections(input);
  v.diagnosis_right = DiagnosisRight(secret.plan->scenario.expect, v);
  v.not_as_expected = WhyNotAsExpected(secret.plan->scenario.expect, v);
  v.as_expected = v.not_as_expected.empty();
  return v;
}

}  // namespace shakedown
