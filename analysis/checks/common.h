// What several checks say and look for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/checks/check_input.h"

namespace shakedown {

// Findings. `what` of Broke is what stands behind "broke <check>: ".
Finding Pass(std::string reason, int64_t compared, int64_t least);
Finding Broke(std::string_view check, const std::string& what, std::vector<Where> where = {});
Finding NotKept(std::string_view check, const std::string& what, std::vector<Where> where = {});
Finding Unclear(std::string reason, std::vector<Where> where = {});
Finding NotApplicable(std::string reason);

std::string RankName(int rank);                            // "rank 1"
std::string Ms(Nanoseconds duration);                      // "612 ms"
std::string JoinNumbers(const std::vector<int>& numbers);  // "0, 2"

// A line of the logs of one attempt. `writer`: a rank, or nullopt for the launcher.
using LineFilter = std::function<bool(const LogLine&)>;
const LogLine* FindLine(const AttemptEvidence& attempt, std::optional<int> writer,
                        std::string_view event, std::string_view level,
                        const LineFilter& wanted = nullptr);

// Exit of that rank as the controller saw it; nullptr when it did not.
const ProcessExit* FindExit(const ObservedEvidence& observed, int attempt, int rank);
// The launcher's rank.exited of that rank; nullptr when there is none.
const LogLine* FindLauncherExit(const AttemptEvidence& attempt, int rank);

// "attempt-0/rank-1/ledger.bin", record of that step.
Where LedgerRow(const ProcessEvidence& process, uint64_t step);

// One stretch of the steps that led to the final weights: steps first..last were done in `attempt`.
struct Stretch {
  const AttemptEvidence* attempt = nullptr;
  uint64_t first = 0;
  uint64_t last = 0;
};
// Oldest first. Empty when the last attempt's ledgers do not say where they began and ended.
std::vector<Stretch> EffectiveHistory(const ObservedEvidence& observed);

// The state that an attempt began with: the inventory taken at its start. nullptr when there is
// none.
const CheckpointRecord* InventoryAtStart(const ObservedEvidence& observed, int attempt);

}  // namespace shakedown
