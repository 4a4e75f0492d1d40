// Many runs: suites and repeats.
#include <algorithm>
#include <map>

#include "analysis/verdict/verdict.h"

namespace shakedown {
namespace {

Json Spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {{"min", values.front()}, {"median", median}, {"max", values.back()}};
}

}  // namespace

Verdict CountsAs(const RunVerdict& run, SuiteRole role) {
  if (run.verdict == Verdict::kSkipped) return Verdict::kSkipped;
  if (run.as_expected) return Verdict::kPass;
  if (role == SuiteRole::kCanary) return Verdict::kError;
  return run.verdict == Verdict::kPass ? Verdict::kFail : run.verdict;
}

Verdict MergeVerdicts(const std::vector<Verdict>& verdicts) {
  Verdict worst = Verdict::kSkipped;
  for (const Verdict verdict : verdicts) worst = std::max(worst, verdict);
  return worst;
}

RepeatVerdict MergeRepeats(const std::vector<RunVerdict>& runs) {
  RepeatVerdict out;
  std::map<std::string, std::vector<double>> times;
  std::vector<Verdict> verdicts;
  for (const RunVerdict& run : runs) {
    verdicts.push_back(run.verdict);
    out.dirty = out.dirty || run.dirty;
    out.unstable = out.unstable || run.verdict != runs.front().verdict;
    const std::string name(ToString(run.verdict));
    out.counts[name] = IntField(out.counts, name).value_or(0) + 1;
    const auto add = [&](const char* time, std::optional<double> value) {
      if (value) times[time].push_back(*value);
    };
    add("detected_ms", run.times.detected_ms);
    add("timeout_ms", run.times.timeout_ms);
    add("first_new_step_ms", run.times.first_new_step_ms);
    add("rework_ms", run.times.rework_ms);
    add("wall_ms", run.times.wall_ms);
    add("noticed_ms", run.noticed_ms);
    if (run.times.lost_steps) add("lost_steps", static_cast<double>(*run.times.lost_steps));
    for (const InjectionResult& injection : run.injections) add("hold_ms", injection.hold_ms);
  }
  out.verdict = MergeVerdicts(verdicts);
  for (auto& [name, values] : times) out.spread[name] = Spread(std::move(values));
  return out;
}

Json ToJson(const RepeatVerdict& repeat) {
  return {{"verdict", std::string(ToString(repeat.verdict))},
          {"dirty", repeat.dirty},
          {"unstable", repeat.unstable},
          {"counts", repeat.counts},
          {"spread", repeat.spread}};
}

}  // namespace shakedown
