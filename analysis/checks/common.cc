#include "analysis/checks/common.h"

#include <algorithm>
#include <cmath>

#include "harness/wire/log_events.h"

namespace shakedown {

Finding Pass(std::string reason, int64_t compared, int64_t least) {
  Finding finding;
  finding.status = CheckStatus::kPass;
  finding.reason = std::move(reason);
  finding.compared = compared;
  finding.least = least;
  return finding;
}

Finding Broke(std::string_view check, const std::string& what, std::vector<Where> where) {
  Finding finding;
  finding.status = CheckStatus::kFail;
  finding.reason = "broke " + std::string(check) + ": " + what;
  finding.where = std::move(where);
  finding.compared = 1;
  return finding;
}

Finding NotKept(std::string_view check, const std::string& what, std::vector<Where> where) {
  Finding finding = Broke(check, what, std::move(where));
  finding.status = CheckStatus::kInvalid;
  return finding;
}

Finding Unclear(std::string reason, std::vector<Where> where) {
  Finding finding;
  finding.status = CheckStatus::kInconclusive;
  finding.reason = std::move(reason);
  finding.where = std::move(where);
  return finding;
}

Finding NotApplicable(std::string reason) {
  Finding finding;
  finding.status = CheckStatus::kNotApplicable;
  finding.reason = std::move(reason);
  finding.least = 0;
  return finding;
}

std::string RankName(int rank) { return "rank " + std::to_string(rank); }

std::string Ms(Nanoseconds duration) {
  return std::to_string(std::llround(ToMs(duration))) + " ms";
}

std::string JoinNumbers(const std::vector<int>& numbers) {
  std::string out;
  for (const int number : numbers) out += (out.empty() ? "" : ", ") + std::to_string(number);
  return out;
}

const LogLine* FindLine(const AttemptEvidence& attempt, std::optional<int> writer,
                        std::string_view event, std::string_view level, const LineFilter& wanted) {
  const std::vector<LogLine>* lines = &attempt.launcher;
  if (writer) {
    const ProcessEvidence* process = attempt.rank(*writer);
    if (process == nullptr) return nullptr;
    lines = &process->log;
  }
  for (const LogLine& line : *lines) {
    if (line.event == event && line.level == level && (!wanted || wanted(line))) return &line;
  }
  return nullptr;
}

const ProcessExit* FindExit(const ObservedEvidence& observed, int attempt, int rank) {
  for (const ProcessExit& exit : observed.exits) {
    if (exit.role == "rank" && exit.attempt == attempt && exit.rank == rank) return &exit;
  }
  return nullptr;
}

const LogLine* FindLauncherExit(const AttemptEvidence& attempt, int rank) {
  for (const LogLine& line : attempt.launcher) {
    if (line.event == log_events::kRankExited && line.rank == rank) return &line;
  }
  return nullptr;
}

Where LedgerRow(const ProcessEvidence& process, uint64_t step) {
  Where where{process.folder + "/" + kRankLedger, 0};
  if (!process.ledger) return where;
  for (size_t i = 0; i < process.ledger->steps.size(); ++i) {
    if (process.ledger->steps[i].step == step) where.line = static_cast<int>(i + 1);
  }
  return where;
}

std::vector<Stretch> EffectiveHistory(const ObservedEvidence& observed) {
  std::vector<Stretch> stretches;
  uint64_t wanted = UINT64_MAX;  // last step still to be explained
  for (auto it = observed.attempts.rbegin(); it != observed.attempts.rend(); ++it) {
    const ProcessEvidence* process = it->rank(0);
    if (process == nullptr || !process->ledger || !process->ledger->start) continue;
    const uint64_t start = process->ledger->start->step;
    const auto& steps = process->ledger->steps;
    const uint64_t end = steps.empty() ? start : steps.back().step;
    if (stretches.empty() && it == observed.attempts.rbegin()) wanted = end;
    // An attempt that began at or behind the wanted step, or never reached it, is not on the way.
    if (wanted == UINT64_MAX || start >= wanted || end < wanted) continue;
    stretches.push_back({&*it, start + 1, wanted});
    wanted = start;
    if (wanted == 0) break;
  }
  if (wanted != 0) return {};
  std::reverse(stretches.begin(), stretches.end());
  return stretches;
}

const CheckpointRecord* InventoryAtStart(const ObservedEvidence& observed, int attempt) {
  const CheckpointRecord* found = nullptr;
  if (!observed.checkpoints) return nullptr;
  for (const CheckpointRecord& record : *observed.checkpoints) {
    if (record.attempt == attempt && record.reason == "attempt_start") found = &record;
  }
  return found;
}

}  // namespace shakedown
