// A save that failed is reported before the next one, and never recorded as a success.
#include <algorithm>
#include <map>

#include "analysis/checks/common.h"
#include "harness/wire/log_events.h"

namespace shakedown::checks {
extern const CheckInfo save_errors_surface;
namespace {

namespace e = log_events;

constexpr std::string_view kName = "save_errors_surface";
constexpr Need kNeeds[] = {Need::kPlan,    Need::kJob,      Need::kObserved,   Need::kPages,
                           Need::kLedgers, Need::kRankLogs, Need::kCheckpoints};

// Arrival is later than writing, and the ledger's time is that of writing.
constexpr Nanoseconds kArrivalSlack = std::chrono::milliseconds(250);

// A save that failed: the witness beside the rank's own log.
struct FailedSave {
  int attempt = 0;
  int64_t step = 0;
  int64_t code = 0;         // errno; 0: not known
  std::optional<int> rank;  // whose save; nullopt: anybody's
  std::string witness;
  Where where;
};

using Bad = std::optional<Finding>;

bool IsStorageFault(std::string_view mechanism) { return mechanism.starts_with("storage_"); }

std::vector<FailedSave> FailedSaves(const CheckInput& in) {
  std::map<std::pair<int, int64_t>, FailedSave> failed;
  for (const Injection& injection : in.plan().injections) {
    const InjectedRecord* injected = in.secret.Injected(injection.id);
    if (injected == nullptr || !IsStorageFault(injected->mechanism)) continue;
    failed[{injection.attempt, injection.step}] = {
        injection.attempt, injection.step, 0, injection.rank, injection.fault + " acted on it",
        injected->where};
  }
  for (const PageSample& page : in.observed.pages) {
    if (!page.checkpoint_error || page.worker) continue;
    const auto key = std::pair(page.attempt, page.checkpoint_error->step);
    if (failed.contains(key) && failed[key].code != 0) continue;
    failed[key] = {page.attempt,
                   page.checkpoint_error->step,
                   page.checkpoint_error->code,
                   page.rank,
                   "the page of " + RankName(page.rank) + " shows errno " +
                       std::to_string(page.checkpoint_error->code),
                   page.where};
  }
  std::vector<FailedSave> out;
  for (auto& [key, save] : failed) out.push_back(std::move(save));
  return out;
}

const LogLine* Report(const AttemptEvidence& attempt, const FailedSave& save) {
  for (const ProcessEvidence& process : attempt.ranks) {
    if (save.rank && process.rank != *save.rank) continue;
    const LogLine* line =
        FindLine(attempt, process.rank, e::kCheckpointFailed, "ERROR",
                 [&](const LogLine& l) { return IntField(l.fields, "checkpoint") == save.step; });
    if (line != nullptr) return line;
  }
  return nullptr;
}

Bad ReportedLate(const CheckInput& in, const AttemptEvidence& attempt, const FailedSave& save,
                 const LogLine& report) {
  for (const ProcessEvidence& process : attempt.ranks) {
    const LogLine* later = FindLine(
        attempt, process.rank, e::kCheckpointSaved, "INFO",
        [&](const LogLine& l) { return IntField(l.fields, "checkpoint").value_or(0) > save.step; });
    if (later != nullptr && later->t < report.t) {
      return Broke(kName,
                   "that checkpoint " + std::to_string(save.step) +
                       " failed was logged only after a later one was saved",
                   {report.where, later->where});
    }
    const uint64_t next = static_cast<uint64_t>(save.step + in.job().checkpoint.every);
    const LedgerStep* row = process.ledger ? process.ledger->Find(next) : nullptr;
    if (row != nullptr && report.when().ns > row->t_ns + kArrivalSlack.count()) {
      return Broke(kName,
                   "that checkpoint " + std::to_string(save.step) +
                       " failed was logged only after the next save had begun",
                   {report.where, LedgerRow(process, next)});
    }
  }
  return std::nullopt;
}

bool SeenComplete(const CheckInput& in, int attempt, int64_t step) {
  return std::any_of(in.observed.checkpoints->begin(), in.observed.checkpoints->end(),
                     [&](const CheckpointRecord& record) {
                       const auto* c = record.Find(step);
                       return record.attempt == attempt && c != nullptr && c->verified;
                     });
}

// Success claimed for a checkpoint that no reader ever saw complete in that attempt.
Bad ClaimedAsSuccess(const CheckInput& in, const AttemptEvidence& attempt, int64_t step) {
  if (SeenComplete(in, attempt.attempt, step)) return std::nullopt;
  for (const ProcessEvidence& process : attempt.ranks) {
    const LogLine* saved =
        FindLine(attempt, process.rank, e::kCheckpointSaved, "INFO",
                 [&](const LogLine& l) { return IntField(l.fields, "checkpoint") == step; });
    if (saved != nullptr) {
      return Broke(kName,
                   RankName(process.rank) + " logged checkpoint " + std::to_string(step) +
                       " as saved, which failed",
                   {saved->where});
    }
    if (!process.ledger) continue;
    for (const LedgerCheckpoint& claim : process.ledger->checkpoints) {
      if (std::cmp_equal(claim.step, step)) {
        return Broke(kName,
                     RankName(process.rank) + " recorded checkpoint " + std::to_string(step) +
                         " as published, which failed",
                     {process.ledger->where});
      }
    }
  }
  return std::nullopt;
}

// A save that was due and left no trace, neither a checkpoint nor a report: the quietest failure.
Bad SilentlySkipped(const CheckInput& in, const AttemptEvidence& attempt, int64_t* compared) {
  const int every = in.job().checkpoint.every;
  const AttemptTimeline* timeline = in.timeline.attempt(attempt.attempt);
  if (timeline == nullptr) return std::nullopt;
  const int64_t last = timeline->CompletedByAll();
  const bool finished = last == in.job().steps;
  for (int64_t step = every; step <= last; step += every) {
    if (step <= timeline->ResumedFrom().value_or(0)) continue;
    // The last ones may still have been on their way when the attempt was ended.
    if (!finished && step + every > last) break;
    ++*compared;
    if (SeenComplete(in, attempt.attempt, step)) continue;
    FailedSave any;
    any.step = step;
    if (Report(attempt, any) != nullptr) continue;
    return Broke(kName, "checkpoint " + std::to_string(step) + " was due in attempt " +
                            std::to_string(attempt.attempt) +
                            "; it was neither saved nor reported as failed");
  }
  return std::nullopt;
}

Finding Check(const CheckInput& in) {
  if (in.job().checkpoint.every == 0) return NotApplicable("the job saves no checkpoints");
  int64_t compared = 0;
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    if (auto bad = SilentlySkipped(in, attempt, &compared)) return *bad;
  }
  const std::vector<FailedSave> failed = FailedSaves(in);
  if (failed.empty()) return NotApplicable("no save failed");
  std::vector<Where> where;
  for (const FailedSave& save : failed) {
    const AttemptEvidence* attempt = in.observed.attempt(save.attempt);
    if (attempt == nullptr) continue;
    if (auto bad = ClaimedAsSuccess(in, *attempt, save.step)) return *bad;
    const LogLine* report = Report(*attempt, save);
    if (report == nullptr) {
      return Broke(kName,
                   "checkpoint " + std::to_string(save.step) + " failed (" + save.witness +
                       ") and no ERROR checkpoint.failed says so",
                   {save.where});
    }
    if (save.code != 0 && IntField(report->fields, "errno") != save.code) {
      return Broke(kName,
                   "checkpoint " + std::to_string(save.step) + " failed with errno " +
                       std::to_string(save.code) + " and was reported with another",
                   {report->where, save.where});
    }
    if (auto bad = ReportedLate(in, *attempt, save, *report)) return *bad;
    where.push_back(report->where);
  }
  Finding finding = Pass("each failed save was reported before the next",
                         static_cast<int64_t>(where.size()), static_cast<int64_t>(failed.size()));
  finding.where = std::move(where);
  finding.unit = "failed saves";
  return finding;
}

}  // namespace

const CheckInfo save_errors_surface = {
    .name = kName,
    .promise =
        "A failed save, asynchronous too, is reported before the next one and never recorded "
        "as a success.",
    .check_class = CheckClass::kReaction,
    .evidence = kNeeds,
    .parameters = {},
    .by_time = false,
    .depends_on_fault = false,
    .function = Check};

}  // namespace shakedown::checks
