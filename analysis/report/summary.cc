#include "analysis/report/summary.h"

namespace shakedown::report {

Counts CountVerdicts(const std::vector<RunVerdict>& runs) {
  constexpr std::pair<Verdict, const char*> kNames[] = {{Verdict::kPass, "pass"},
                                                        {Verdict::kFail, "fail"},
                                                        {Verdict::kError, "error"},
                                                        {Verdict::kInvalid, "invalid"},
                                                        {Verdict::kInconclusive, "inconclusive"},
                                                        {Verdict::kSkipped, "skipped"}};
  Counts counts;
  for (const auto& [verdict, name] : kNames) {
    int count = 0;
    for (const RunVerdict& run : runs) count += CountsAs(run) == verdict ? 1 : 0;
    counts.emplace_back(name, count);
  }
  return counts;
}

Counts CountLevels(const std::vector<RunVerdict>& runs) {
  Counts counts = {{"real", 0}, {"real effect", 0}, {"simulated", 0}, {"not proven", 0}};
  for (const RunVerdict& run : runs) {
    for (const InjectionResult& injection : run.injections) {
      const std::string level = injection.proven ? injection.level : "not proven";
      for (auto& [name, count] : counts) count += name == level ? 1 : 0;
    }
  }
  return counts;
}

}  // namespace shakedown::report
