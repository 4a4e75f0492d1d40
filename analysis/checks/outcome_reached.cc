// The job ended as the scenario says.
#include "analysis/checks/common.h"

namespace shakedown::checks {
extern const CheckInfo outcome_reached;
namespace {

constexpr std::string_view kName = "outcome_reached";
constexpr Need kNeeds[] = {Need::kPlan,  Need::kJob,     Need::kObserved,
                           Need::kExits, Need::kLedgers, Need::kCheckpoints};
constexpr CheckParameter kParameters[] = {
    {"expect.outcome",
     "unaffected and degrades: one attempt; recovers: another attempt, and all "
     "planned steps done; stops_cleanly: a failure status, all ranks ended",
     "unaffected"}};

std::string Status(const Event& exited) {
  if (const auto signal = StringField(exited.fields, "signal")) return *signal;
  const auto code = IntField(exited.fields, "code");
  return code ? "exit status " + std::to_string(*code) : "an unknown status";
}

// All planned steps on one rank, by its ledger and by its page.
std::optional<Finding> Incomplete(const CheckInput& in, const AttemptEvidence& last, int rank) {
  const auto steps = static_cast<uint64_t>(in.job().steps);
  const ProcessEvidence* process = last.rank(rank);
  const std::string name = RankName(rank);
  if (process == nullptr || !process->ledger || !process->ledger->start) {
    return Broke(kName, name + " left no ledger in the last attempt");
  }
  const RankLedger& ledger = *process->ledger;
  uint64_t next = ledger.start->step + 1;
  for (const LedgerStep& row : ledger.steps) {
    if (row.step != next) {
      return Broke(kName,
                   name + " did step " + std::to_string(row.step) + " where step " +
                       std::to_string(next) + " was due",
                   {LedgerRow(*process, row.step)});
    }
    ++next;
  }
  if (next != steps + 1) {
    return Broke(
        kName,
        name + " ended after step " + std::to_string(next - 1) + " of " + std::to_string(steps),
        {{process->folder + "/" + kRankLedger, static_cast<int>(ledger.steps.size())}});
  }
  if (!ledger.end || ledger.end->step != steps || ledger.end->exit_code != 0) {
    return Broke(kName,
                 name + " did not record a successful end after step " + std::to_string(steps),
                 {ledger.where});
  }
  int64_t seen = 0;
  for (const PageSample& page : in.observed.pages) {
    if (page.attempt == last.attempt && page.rank == rank && !page.worker) {
      seen = std::max(seen, page.last_step);
    }
  }
  if (seen < in.job().steps) {
    return Broke(kName, name + " says that it did " + std::to_string(steps) +
                            " steps; its page was last seen at step " + std::to_string(seen));
  }
  return std::nullopt;
}

// Steps that leave the weights as they were are no training. Two at least: the schedule may begin
// with a rate of zero.
std::optional<Finding> NothingLearned(const AttemptEvidence& last, int rank) {
  const ProcessEvidence& process = *last.rank(rank);
  const RankLedger& ledger = *process.ledger;
  if (ledger.steps.size() < 2) return std::nullopt;
  const LedgerStep& end = ledger.steps.back();
  if (end.state.weights != ledger.start->state.weights) return std::nullopt;
  return Broke(kName,
               RankName(rank) + " has the same weights after step " + std::to_string(end.step) +
                   " as after step " + std::to_string(ledger.start->step) + ": nothing was learned",
               {LedgerRow(process, end.step)});
}

std::optional<Finding> FinalCheckpointMissing(const CheckInput& in) {
  const int every = in.job().checkpoint.every;
  if (every == 0 || in.job().steps % every != 0) return std::nullopt;
  if (in.observed.checkpoints->empty()) return Broke(kName, "there was never a checkpoint");
  const CheckpointRecord& last = in.observed.checkpoints->back();
  const auto* checkpoint = last.Find(in.job().steps);
  if (checkpoint != nullptr && checkpoint->verified) return std::nullopt;
  const auto newest = last.NewestVerified();
  return Broke(kName,
               "the final checkpoint is of step " +
                   (newest ? std::to_string(*newest) : std::string("none")) + ", not of step " +
                   std::to_string(in.job().steps),
               {last.where});
}

Finding Stopped(const Event& exited) {
  if (IntField(exited.fields, "code").value_or(1) == 0 && !StringField(exited.fields, "signal")) {
    return Broke(kName, "the job ended with status 0 although it was to stop",
                 {ObservedEvidence::At(exited)});
  }
  // Ended by a signal of its own is no clean stop.
  if (StringField(exited.fields, "signal")) {
    return Broke(kName, "the job ended by " + Status(exited), {ObservedEvidence::At(exited)});
  }
  return Pass("the job stopped with " + Status(exited), 1, 1);
}

Finding Check(const CheckInput& in) {
  const Event* ended = in.observed.First(events::kRunEnded);
  const Event* exited = in.observed.First(events::kJobExited);
  if (exited == nullptr) {
    if (ended != nullptr && StringField(ended->fields, "how") == "timed_out") {
      return Broke(
          kName,
          "the job did not end by itself: " + StringField(ended->fields, "reason").value_or(""),
          {ObservedEvidence::At(*ended)});
    }
    return Unclear("the end of the job was not seen");
  }
  const Outcome outcome = in.expect().outcome;
  if (outcome == Outcome::kStopsCleanly) return Stopped(*exited);

  if (IntField(exited->fields, "code") != 0) {
    return Broke(kName, "the job ended by " + Status(*exited), {ObservedEvidence::At(*exited)});
  }
  if (in.observed.attempts.empty()) return Broke(kName, "there was no attempt");
  const auto attempts = static_cast<int64_t>(in.observed.attempts.size());
  if (outcome == Outcome::kRecovers && attempts < 2) {
    return Broke(kName, "the job never restarted");
  }
  if (outcome != Outcome::kRecovers && attempts != 1) {
    return Broke(kName, "the job restarted " + std::to_string(attempts - 1) + " times");
  }
  const AttemptEvidence& last = in.observed.attempts.back();
  for (int r = 0; r < in.job().ranks; ++r) {
    if (auto bad = Incomplete(in, last, r)) return *bad;
    if (auto bad = NothingLearned(last, r)) return *bad;
  }
  if (EffectiveHistory(in.observed).empty()) {
    return Broke(kName,
                 "the attempts together do not cover steps 1 to " + std::to_string(in.job().steps));
  }
  if (auto bad = FinalCheckpointMissing(in)) return *bad;
  Finding finding = Pass("all ranks did all planned steps", in.job().ranks, in.job().ranks);
  finding.expected = in.job().steps;
  finding.observed = in.job().steps;
  finding.unit = "steps";
  return finding;
}

}  // namespace

const CheckInfo outcome_reached = {
    .name = kName,
    .promise =
        "The job ended as expected: all planned steps on all ranks, weights that changed, a final "
        "checkpoint of that step, the right status.",
    .check_class = CheckClass::kRecovery,
    .evidence = kNeeds,
    .parameters = kParameters,
    .by_time = false,
    .depends_on_fault = true,
    .function = Check};

}  // namespace shakedown::checks
