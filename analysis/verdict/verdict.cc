#include "analysis/verdict/verdict.h"

#include <algorithm>
#include <map>

#include "harness/wire/run_dir.h"

namespace shakedown {
namespace {

struct VerdictName {
  Verdict verdict;
  std::string_view name;
};
constexpr VerdictName kNames[] = {
    {Verdict::kSkipped, "SKIPPED"},
    {Verdict::kPass, "PASS"},
    {Verdict::kInconclusive, "INCONCLUSIVE"},
    {Verdict::kInvalid, "INVALID"},
    {Verdict::kError, "ERROR"},
    {Verdict::kFail, "FAIL"},
};

constexpr CheckStatus kStatuses[] = {CheckStatus::kPass,      CheckStatus::kFail,
                                     CheckStatus::kInvalid,   CheckStatus::kInconclusive,
                                     CheckStatus::kNotJudged, CheckStatus::kNotApplicable};

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json ToJson(const InjectionResult& i) {
  Json out = {{"fault", i.fault}, {"id", i.id}, {"rank", i.rank}};
  out["worker"] = OrNull(i.worker);
  out["step"] = i.step;
  out["point"] = i.point;
  out["attempt"] = i.attempt;
  out["level"] = i.level;
  out["means"] = i.means;
  out["hold_ms"] = OrNull(i.hold_ms);
  out["proven"] = i.proven;
  return out;
}

Json ToJson(const CheckResult& c) {
  Json out = {{"check", c.check},
              {"status", std::string(ToString(c.finding.status))},
              {"reason", c.finding.reason}};
  out["expected"] = c.finding.expected;
  out["observed"] = c.finding.observed;
  out["unit"] = c.finding.unit;
  out["compared"] = c.finding.compared;
  out["least"] = c.finding.least;
  out["where"] = Json::array();
  for (const Where& where : c.finding.where) {
    out["where"].push_back({{"file", where.file}, {"line", where.line}});
  }
  out["waived"] = c.waived.empty() ? Json(nullptr) : Json(c.waived);
  return out;
}

Json ToJson(const RunTimes& t) {
  Json out = Json::object();
  out["detected_ms"] = OrNull(t.detected_ms);
  out["timeout_ms"] = OrNull(t.timeout_ms);
  out["first_new_step_ms"] = OrNull(t.first_new_step_ms);
  out["lost_steps"] = OrNull(t.lost_steps);
  out["rework_ms"] = OrNull(t.rework_ms);
  out["wall_ms"] = OrNull(t.wall_ms);
  return out;
}

Json ToJson(const AttemptSummary& a) {
  Json out = {{"attempt", a.attempt}};
  out["started_ms"] = OrNull(a.started_ms);
  out["ended_ms"] = OrNull(a.ended_ms);
  out["resumed_from"] = OrNull(a.resumed_from);
  out["last_step"] = OrNull(a.last_step);
  out["exits"] = Json::array();
  for (const AttemptSummary::Exit& exit : a.exits) {
    Json e = {{"rank", exit.rank}};
    e["code"] = OrNull(exit.code);
    e["signal"] = exit.signal.empty() ? Json(nullptr) : Json(exit.signal);
    e["source"] = exit.source;
    out["exits"].push_back(std::move(e));
  }
  return out;
}

std::optional<int> OptInt(const Json& json, std::string_view key) {
  const auto value = IntField(json, key);
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

InjectionResult InjectionFromJson(const Json& json) {
  InjectionResult i;
  i.fault = StringField(json, "fault").value_or("");
  i.id = OptInt(json, "id").value_or(0);
  i.rank = OptInt(json, "rank").value_or(0);
  i.worker = OptInt(json, "worker");
  i.step = IntField(json, "step").value_or(0);
  i.point = StringField(json, "point").value_or("");
  i.attempt = OptInt(json, "attempt").value_or(0);
  i.level = StringField(json, "level").value_or("");
  i.means = StringField(json, "means").value_or("");
  i.hold_ms = NumberField(json, "hold_ms");
  i.proven = BoolField(json, "proven").value_or(false);
  return i;
}

CheckResult CheckFromJson(const Json& json) {
  CheckResult c;
  c.check = StringField(json, "check").value_or("");
  const std::string status = StringField(json, "status").value_or("");
  for (const CheckStatus candidate : kStatuses) {
    if (ToString(candidate) == status) c.finding.status = candidate;
  }
  c.finding.reason = StringField(json, "reason").value_or("");
  c.finding.expected = Field(json, "expected");
  c.finding.observed = Field(json, "observed");
  c.finding.unit = StringField(json, "unit").value_or("");
  c.finding.compared = IntField(json, "compared").value_or(0);
  c.finding.least = IntField(json, "least").value_or(0);
  for (const Json& where : Field(json, "where")) {
    c.finding.where.push_back(
        {StringField(where, "file").value_or(""), OptInt(where, "line").value_or(0)});
  }
  c.waived = StringField(json, "waived").value_or("");
  return c;
}

RunTimes TimesFromJson(const Json& json) {
  return {NumberField(json, "detected_ms"),       NumberField(json, "timeout_ms"),
          NumberField(json, "first_new_step_ms"), IntField(json, "lost_steps"),
          NumberField(json, "rework_ms"),         NumberField(json, "wall_ms")};
}

AttemptSummary AttemptFromJson(const Json& json) {
  AttemptSummary a;
  a.attempt = OptInt(json, "attempt").value_or(0);
  a.started_ms = NumberField(json, "started_ms");
  a.ended_ms = NumberField(json, "ended_ms");
  a.resumed_from = IntField(json, "resumed_from");
  a.last_step = IntField(json, "last_step");
  for (const Json& exit : Field(json, "exits")) {
    a.exits.push_back({OptInt(exit, "rank").value_or(0), OptInt(exit, "code"),
                       StringField(exit, "signal").value_or(""),
                       StringField(exit, "source").value_or("")});
  }
  return a;
}

}  // namespace

std::string_view ToString(Verdict verdict) {
  for (const VerdictName& entry : kNames) {
    if (entry.verdict == verdict) return entry.name;
  }
  return "ERROR";
}

std::optional<Verdict> ParseVerdict(std::string_view text) {
  for (const VerdictName& entry : kNames) {
    if (entry.name == text) return entry.verdict;
  }
  return std::nullopt;
}

ExitCode ExitCodeOf(Verdict verdict, bool dirty) {
  if (dirty) return kExitDirty;
  switch (verdict) {
    case Verdict::kPass:
      return kExitPass;
    case Verdict::kFail:
      return kExitFail;
    case Verdict::kInvalid:
      return kExitInvalid;
    case Verdict::kInconclusive:
      return kExitInconclusive;
    case Verdict::kError:
      return kExitError;
    case Verdict::kSkipped:
      return kExitSkipped;
  }
  return kExitError;
}

Json ToJson(const RunVerdict& v) {
  Json out = {{"schema_version", kSchemaVersion},
              {"scenario", v.scenario},
              {"verdict", std::string(ToString(v.verdict))},
              {"as_expected", v.as_expected}};
  out["not_as_expected"] = v.not_as_expected.empty() ? Json(nullptr) : Json(v.not_as_expected);
  out["dirty"] = v.dirty;
  out["reason"] = v.reason;
  out["run_dir"] = v.run_dir;
  out["seed"] = v.seed;
  out["plan_digest"] = v.plan_digest;
  out["overloaded"] = v.overloaded;
  out["injections"] = Json::array();
  for (const InjectionResult& i : v.injections) out["injections"].push_back(ToJson(i));
  out["checks"] = Json::array();
  for (const CheckResult& c : v.checks) out["checks"].push_back(ToJson(c));
  out["diagnosis"] = ToJson(v.diagnosis);
  out["quality"] = Json::object();
  out["quality"]["noticed_ms"] = OrNull(v.noticed_ms);
  out["quality"]["diagnosis_right"] = OrNull(v.diagnosis_right);
  out["times"] = ToJson(v.times);
  out["attempts"] = Json::array();
  for (const AttemptSummary& a : v.attempts) out["attempts"].push_back(ToJson(a));
  return out;
}

Result<RunVerdict> RunVerdictFromJson(const Json& json) {
  RunVerdict v;
  const auto verdict = ParseVerdict(StringField(json, "verdict").value_or(""));
  if (!verdict) return Fail("not a verdict: the field 'verdict' is absent or unknown");
  v.verdict = *verdict;
  v.scenario = StringField(json, "scenario").value_or("");
  v.as_expected = BoolField(json, "as_expected").value_or(false);
  v.not_as_expected = StringField(json, "not_as_expected").value_or("");
  v.dirty = BoolField(json, "dirty").value_or(false);
  v.reason = StringField(json, "reason").value_or("");
  v.run_dir = StringField(json, "run_dir").value_or("");
  v.seed = static_cast<uint64_t>(IntField(json, "seed").value_or(0));
  v.plan_digest = StringField(json, "plan_digest").value_or("");
  v.overloaded = BoolField(json, "overloaded").value_or(false);
  for (const Json& i : Field(json, "injections")) v.injections.push_back(InjectionFromJson(i));
  for (const Json& c : Field(json, "checks")) v.checks.push_back(CheckFromJson(c));
  Result<Diagnosis> diagnosis = DiagnosisFromJson(Field(json, "diagnosis"));
  if (!diagnosis) return Wrap("verdict", diagnosis.error());
  v.diagnosis = *diagnosis;
  const Json& quality = Field(json, "quality");
  v.noticed_ms = NumberField(quality, "noticed_ms");
  v.diagnosis_right = BoolField(quality, "diagnosis_right");
  v.times = TimesFromJson(Field(json, "times"));
  for (const Json& a : Field(json, "attempts")) v.attempts.push_back(AttemptFromJson(a));
  return v;
}

}  // namespace shakedown
