// From the first publish on there was always a complete checkpoint of the right content, and only
// such a one was ever chosen.
#include <algorithm>

#include "analysis/checks/common.h"

namespace shakedown::checks {
extern const CheckInfo checkpoint_safe;
namespace {

constexpr std::string_view kName = "checkpoint_safe";
constexpr Need kNeeds[] = {Need::kPlan, Need::kJob, Need::kObserved, Need::kLedgers,
                           Need::kCheckpoints};

using Bad = std::optional<Finding>;
using Checkpoint = CheckpointRecord::Checkpoint;

// "" when the checkpoint holds the state of this row; else what differs.
std::string Difference(const Checkpoint& c, const StateDigests& state, int rank) {
  if (c.weights != ToHex(state.weights.digest)) return "weights";
  if (c.optimizer != ToHex(state.optimizer.digest)) return "optimizer state";
  const auto index = static_cast<size_t>(rank);
  if (index >= c.rng.size() || c.rng[index] != ToHex(state.rng.digest)) return "generator's state";
  return "";
}

// Content of a checkpoint that verifies: on every rank the state after the step that it names, by
// the rank's own ledger of one of the attempts up to now.
Bad WrongContent(const CheckInput& in, const CheckpointRecord& record, const Checkpoint& c,
                 int64_t* compared) {
  const std::string name = "checkpoint " + std::to_string(c.step);
  const auto step = static_cast<uint64_t>(c.step);
  bool found = false;
  for (int r = 0; r < in.job().ranks; ++r) {
    std::string difference;
    std::vector<Where> where = {record.where};
    bool matches = false;
    for (const AttemptEvidence& attempt : in.observed.attempts) {
      const ProcessEvidence* process = attempt.rank(r);
      if (attempt.attempt > record.attempt || process == nullptr || !process->ledger) continue;
      const LedgerStep* row = process->ledger->Find(step);
      if (row == nullptr) continue;
      found = true;
      difference = Difference(c, row->state, r);
      matches = matches || difference.empty();
      where.push_back(LedgerRow(*process, step));
    }
    if (where.size() > 1 && !matches) {
      return Broke(kName,
                   name + " does not hold the " + difference + " that " + RankName(r) +
                       " had after that step",
                   std::move(where));
    }
    *compared += matches ? 1 : 0;
  }
  if (!found) return Broke(kName, name + " is of a step that no rank did", {record.where});
  return std::nullopt;
}

Bad NeverWithout(const CheckInput& in, int64_t* compared) {
  bool published = false;
  for (const CheckpointRecord& record : *in.observed.checkpoints) {
    const auto newest = record.NewestVerified();
    if (published && !newest) {
      return Broke(kName,
                   "no complete checkpoint existed at '" + record.reason + "' of attempt " +
                       std::to_string(record.attempt) + ", after one had been published",
                   {record.where});
    }
    published = published || newest.has_value();
    for (const Checkpoint& c : record.checkpoints) {
      if (!c.verified && !c.published) continue;
      if (!c.verified) {
        return Broke(kName,
                     "checkpoint " + std::to_string(c.step) +
                         " was published, but is not complete" +
                         (c.why.empty() ? "" : ": " + c.why),
                     {record.where});
      }
      if (auto bad = WrongContent(in, record, c, compared)) return bad;
    }
  }
  int64_t reached = 0;
  for (const AttemptTimeline& attempt : in.timeline.attempts) {
    reached = std::max(reached, attempt.CompletedByAll());
  }
  // One interval later the first save was due to be over even when it is asynchronous.
  if (!published && in.job().checkpoint.every > 0 && reached >= 2 * in.job().checkpoint.every) {
    return Broke(kName, "no complete checkpoint was ever seen, although the job reached step " +
                            std::to_string(reached));
  }
  return std::nullopt;
}

// What a rank claims to have published was seen complete, with the same bytes.
Bad ClaimedNotSeen(const CheckInput& in, int64_t* compared) {
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    for (const ProcessEvidence& process : attempt.ranks) {
      if (!process.ledger) continue;
      for (const LedgerCheckpoint& claim : process.ledger->checkpoints) {
        const std::string bytes = ToHex(claim.file_digest);
        const bool seen =
            std::any_of(in.observed.checkpoints->begin(), in.observed.checkpoints->end(),
                        [&](const CheckpointRecord& record) {
                          const Checkpoint* c = record.Find(static_cast<int64_t>(claim.step));
                          return c != nullptr && c->verified && c->file_xxh3 == bytes;
                        });
        if (!seen) {
          return Broke(kName,
                       RankName(process.rank) + " recorded checkpoint " +
                           std::to_string(claim.step) +
                           " as published; it was never seen complete with these bytes",
                       {process.ledger->where});
        }
        ++*compared;
      }
    }
  }
  return std::nullopt;
}

// What an attempt loaded against what lay there when it began.
Bad BadChoice(const CheckInput& in, const AttemptEvidence& attempt, int64_t* compared) {
  const CheckpointRecord* inventory = InventoryAtStart(in.observed, attempt.attempt);
  for (const ProcessEvidence& process : attempt.ranks) {
    if (!process.ledger || !process.ledger->start) continue;
    const LedgerStart& start = *process.ledger->start;
    const std::string who =
        RankName(process.rank) + " of attempt " + std::to_string(attempt.attempt);
    if (inventory == nullptr) {
      if (start.step == 0 && attempt.attempt == 0) continue;
      return Unclear("there is no inventory of the checkpoints at the start of attempt " +
                     std::to_string(attempt.attempt));
    }
    const auto newest = inventory->NewestVerified();
    const std::vector<Where> where = {process.ledger->where, inventory->where};
    if (start.step == 0) {
      if (!newest) continue;
      return Broke(kName,
                   who + " silently started from step 0 although checkpoint " +
                       std::to_string(*newest) + " was complete",
                   where);
    }
    const Checkpoint* chosen = inventory->Find(static_cast<int64_t>(start.step));
    if (chosen == nullptr || !chosen->verified) {
      return Broke(kName,
                   who + " chose checkpoint " + std::to_string(start.step) +
                       ", which was not complete" + (chosen == nullptr ? "" : ": " + chosen->why),
                   where);
    }
    if (chosen->file_xxh3 != ToHex(start.file_digest)) {
      return Broke(
          kName, who + " read other bytes than checkpoint " + std::to_string(start.step) + " holds",
          where);
    }
    ++*compared;
  }
  return std::nullopt;
}

Finding Check(const CheckInput& in) {
  if (in.job().checkpoint.every == 0) return NotApplicable("the job saves no checkpoints");
  int64_t compared = 0;
  // A wrong choice first: it says more than what follows from it.
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    if (auto bad = BadChoice(in, attempt, &compared)) return *bad;
  }
  if (auto bad = NeverWithout(in, &compared)) return *bad;
  if (auto bad = ClaimedNotSeen(in, &compared)) return *bad;
  Finding finding =
      Pass("a complete checkpoint of the right content always existed", compared, in.job().ranks);
  finding.unit = "contents and choices";
  return finding;
}

}  // namespace

const CheckInfo checkpoint_safe = {
    .name = kName,
    .promise =
        "From the first publish on, a complete, verifiable checkpoint of the right content "
        "exists at every instant; an incomplete one is never published nor chosen; never a silent "
        "start "
        "from step 0.",
    .check_class = CheckClass::kContinuity,
    .evidence = kNeeds,
    .parameters = {},
    .by_time = false,
    .depends_on_fault = false,
    .function = Check};

}  // namespace shakedown::checks
