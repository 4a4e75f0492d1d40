// All ranks hold the same weights and optimizer state, and each draws random numbers of its own.
#include <map>

#include "analysis/checks/common.h"

namespace shakedown::checks {
extern const CheckInfo replicas_equal;
namespace {

constexpr std::string_view kName = "replicas_equal";
constexpr Need kNeeds[] = {Need::kJob, Need::kObserved, Need::kLedgers, Need::kWeights};

using Bad = std::optional<Finding>;

// The first rank that has a state at a step of an attempt, and what it held.
struct Holder {
  const ProcessEvidence* process = nullptr;
  const StateDigests* state = nullptr;
};

bool Same(const SizedDigest& a, const SizedDigest& b) { return a.bytes != 0 && a == b; }

// Weights and optimizer by step over the ranks of one attempt; step 0 stands for the start. Weights
// alone are not enough: DDP broadcasts those of rank 0 when it begins, whatever the others loaded.
Bad DigestsDiffer(const AttemptEvidence& attempt, int64_t* compared) {
  std::map<uint64_t, Holder> first;
  for (const ProcessEvidence& process : attempt.ranks) {
    if (!process.ledger) continue;
    const auto differs = [&](uint64_t key, const StateDigests& state) -> Bad {
      const auto [it, fresh] = first.try_emplace(key, Holder{&process, &state});
      if (fresh) return std::nullopt;
      ++*compared;
      const Holder& other = it->second;
      const bool weights = Same(state.weights, other.state->weights);
      if (weights && Same(state.optimizer, other.state->optimizer)) return std::nullopt;
      return Broke(
          kName,
          RankName(other.process->rank) + " and " + RankName(process.rank) + " hold different " +
              (weights ? "optimizer state " : "weights ") +
              (key == 0 ? std::string("at the start") : "after step " + std::to_string(key)) +
              " of attempt " + std::to_string(attempt.attempt),
          {LedgerRow(*other.process, key), LedgerRow(process, key)});
    };
    if (process.ledger->start) {
      if (auto bad = differs(0, process.ledger->start->state)) return bad;
    }
    for (const LedgerStep& row : process.ledger->steps) {
      if (auto bad = differs(row.step, row.state)) return bad;
    }
  }
  return std::nullopt;
}

// Ranks that draw the same numbers drop the same units: they train less than they seem to.
Bad GeneratorsEqual(const AttemptEvidence& attempt, int64_t* compared) {
  std::map<std::pair<uint64_t, std::string>, const ProcessEvidence*> holder;
  for (const ProcessEvidence& process : attempt.ranks) {
    if (!process.ledger) continue;
    for (const LedgerStep& row : process.ledger->steps) {
      const auto [it, fresh] =
          holder.try_emplace({row.step, ToHex(row.state.rng.digest)}, &process);
      if (!fresh) {
        return Broke(kName,
                     RankName(it->second->rank) + " and " + RankName(process.rank) +
                         " have the same generator state after step " + std::to_string(row.step) +
                         " of attempt " + std::to_string(attempt.attempt),
                     {LedgerRow(*it->second, row.step), LedgerRow(process, row.step)});
      }
      ++*compared;
    }
  }
  return std::nullopt;
}

// The dump that we digest ourselves against what the rank wrote into its ledger.
Bad DumpDiffers(const ProcessEvidence& process, const char* file,
                const std::optional<WeightsDump>& dump, const SizedDigest* stated) {
  const Where where{process.folder + "/" + file, 0};
  if (!dump) return Broke(kName, RankName(process.rank) + " left no " + file, {where});
  if (stated == nullptr) {
    return Broke(kName, RankName(process.rank) + " has no ledger that " + file + " belongs to",
                 {where});
  }
  if (dump->digest != stated->digest || dump->bytes.size() != stated->bytes) {
    return Broke(kName,
                 RankName(process.rank) + ": " + file + " is not what its ledger says it held",
                 {where, {process.folder + "/" + kRankLedger, 0}});
  }
  return std::nullopt;
}

Bad DumpsDiffer(const CheckInput& in, const AttemptEvidence& last, int64_t* compared) {
  const ProcessEvidence* first = nullptr;
  for (int r = 0; r < in.job().ranks; ++r) {
    const ProcessEvidence* process = last.rank(r);
    if (process == nullptr) return Broke(kName, RankName(r) + " left nothing in the last attempt");
    const bool started = process->ledger && process->ledger->start;
    const SizedDigest* start = started ? &process->ledger->start->state.weights : nullptr;
    const SizedDigest* end = start;
    if (started && !process->ledger->steps.empty()) {
      end = &process->ledger->steps.back().state.weights;
    }
    if (auto bad = DumpDiffers(*process, kRankWeightsStart, process->weights_start, start)) {
      return bad;
    }
    if (auto bad = DumpDiffers(*process, kRankWeightsEnd, process->weights_end, end)) return bad;
    if (first == nullptr) {
      first = process;
      continue;
    }
    const bool same = process->weights_start->bytes == first->weights_start->bytes &&
                      process->weights_end->bytes == first->weights_end->bytes;
    if (!same) {
      return Broke(kName,
                   RankName(first->rank) + " and " + RankName(r) + " dumped different weights",
                   {{first->folder, 0}, {process->folder, 0}});
    }
    ++*compared;
  }
  return std::nullopt;
}

// An attempt that was ended in the middle has no final dump, and owes none.
bool EndedByItself(const AttemptEvidence& attempt) {
  for (const ProcessEvidence& process : attempt.ranks) {
    if (process.ledger && process.ledger->end && process.ledger->end->exit_code == 0) return true;
  }
  return false;
}

Finding Check(const CheckInput& in) {
  if (in.job().ranks < 2) return NotApplicable("the job has one rank");
  int64_t compared = 0;
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    if (auto bad = DigestsDiffer(attempt, &compared)) return *bad;
    if (auto bad = GeneratorsEqual(attempt, &compared)) return *bad;
  }
  const AttemptEvidence& last = in.observed.attempts.back();
  int64_t least = in.job().ranks - 1;
  if (EndedByItself(last)) {
    if (auto bad = DumpsDiffer(in, last, &compared)) return *bad;
    const RankTimeline* rank = nullptr;
    if (const AttemptTimeline* t = in.timeline.attempt(last.attempt); t && !t->ranks.empty()) {
      rank = &t->ranks.front();
    }
    const int64_t steps = rank == nullptr ? 0 : std::ssize(rank->steps);
    // Start and each step of the last attempt, and the dumps, of every rank with the first; and the
    // generator of each rank at each step.
    least = least * (steps + 2) + in.job().ranks * steps;
  }
  Finding finding =
      Pass("all ranks hold the same state after each load and each step", compared, least);
  finding.unit = "comparisons";
  return finding;
}

}  // namespace

const CheckInfo replicas_equal = {
    .name = kName,
    .promise =
        "All ranks hold the same weights and optimizer state, after each load and at each step, "
        "and their dumps "
        "are what their ledgers say; no two draw the same random numbers.",
    .check_class = CheckClass::kContinuity,
    .evidence = kNeeds,
    .parameters = {},
    .by_time = false,
    .depends_on_fault = false,
    .function = Check};

}  // namespace shakedown::checks
