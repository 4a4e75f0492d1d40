// The job resumed from the checkpoint that it should, and every step equals the undisturbed run.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "analysis/checks/common.h"

namespace shakedown::checks {
extern const CheckInfo resume_equal;
namespace {

constexpr std::string_view kName = "resume_equal";
constexpr Need kNeeds[] = {Need::kPlan,    Need::kJob,         Need::kObserved, Need::kInjected,
                           Need::kLedgers, Need::kCheckpoints, Need::kWeights,  Need::kReference};
constexpr CheckParameter kParameters[] = {
    {"expect.resume.from", "the checkpoint that the first restart resumes from",
     "the newest that verified when the attempt began"},
    {"expect.tolerance.weights", "largest difference of a final weight (outcome degrades)", "0"}};

using Bad = std::optional<Finding>;

// The schedule as harness/wire/schedule.h describes it, computed here anew: linear scaling with the
// global batch, linear warm-up, linear decay.
uint64_t LearningRateBits(const JobConfig& job, uint64_t step) {
  const double batch = static_cast<double>(job.ranks) * job.micro_batch * job.accumulation;
  const double peak = job.learning_rate * batch / 32.0;
  const auto s = static_cast<double>(step);
  const auto warmup = static_cast<double>(job.warmup_steps);
  const auto steps = static_cast<double>(job.steps);
  const double rate = s <= warmup ? peak * s / warmup : peak * (steps - s + 1.0) / (steps - warmup);
  return std::bit_cast<uint64_t>(rate);
}

// Resumed from the newest checkpoint that verified, and from the one that the scenario names.
Bad WrongCheckpoint(const CheckInput& in, const AttemptEvidence& attempt) {
  const CheckpointRecord* inventory = InventoryAtStart(in.observed, attempt.attempt);
  const std::string name = "attempt " + std::to_string(attempt.attempt);
  std::optional<uint64_t> common;
  for (const ProcessEvidence& process : attempt.ranks) {
    if (!process.ledger || !process.ledger->start) continue;
    const uint64_t step = process.ledger->start->step;
    const std::vector<Where> where = {process.ledger->where};
    if (common && *common != step) {
      return Broke(kName,
                   name + ": ranks resumed from steps " + std::to_string(*common) + " and " +
                       std::to_string(step),
                   where);
    }
    common = step;
    if (inventory == nullptr) {
      if (attempt.attempt == 0 && step == 0) continue;
      return Unclear("there is no inventory of the checkpoints at the start of " + name);
    }
    const int64_t newest = inventory->NewestVerified().value_or(0);
    if (std::cmp_not_equal(step, newest)) {
      return Broke(kName,
                   name + ": " + RankName(process.rank) + " resumed from step " +
                       std::to_string(step) + ", the newest complete checkpoint was of step " +
                       std::to_string(newest),
                   {process.ledger->where, inventory->where});
    }
    const auto& stated = in.expect().resume_from;
    if (attempt.attempt == 1 && stated && std::cmp_not_equal(step, *stated)) {
      return Broke(kName,
                   name + " resumed from step " + std::to_string(step) +
                       ", the scenario expects step " + std::to_string(*stated),
                   where);
    }
  }
  return std::nullopt;
}

// The first column in which two rows differ; "" when they are equal. Times may differ.
std::string Difference(const LedgerStep& a, const LedgerStep& b) {
  if (a.epoch != b.epoch) return "epoch";
  if (a.position != b.position) return "position in the epoch";
  if (a.lr_bits != b.lr_bits) return "learning rate";
  if (a.ids_digest != b.ids_digest || a.ids_sum != b.ids_sum || a.ids != b.ids) {
    return "sample order";
  }
  if (a.loss_bits != b.loss_bits) return "loss";
  if (a.grad_norm_bits != b.grad_norm_bits) return "gradient norm";
  if (a.parts != b.parts) return "parts of a micro-batch";
  if (a.state.weights != b.state.weights) return "weights";
  if (a.state.optimizer != b.state.optimizer) return "optimizer state";
  if (a.state.rng != b.state.rng) return "generator's state";
  return "";
}

// What may not differ even where the scenario grants a tolerance.
std::string DifferenceOfOrder(const LedgerStep& a, const LedgerStep& b) {
  if (a.epoch != b.epoch || a.position != b.position) return "position in the epoch";
  if (a.lr_bits != b.lr_bits) return "learning rate";
  if (a.ids != b.ids || a.ids_digest != b.ids_digest) return "sample order";
  return "";
}

bool Undigested(const StateDigests& state) {
  return state.weights.bytes == 0 || state.optimizer.bytes == 0 || state.rng.bytes == 0;
}

// The first step that the scenario allows to differ; none when the outcome is not `degrades`.
uint64_t FirstTolerated(const CheckInput& in) {
  if (in.expect().outcome != Outcome::kDegrades) return UINT64_MAX;
  uint64_t first = UINT64_MAX;
  for (const Injection& injection : in.plan().injections) {
    const int64_t step = injection.worker ? 1 : injection.step;
    first = std::min(first, static_cast<uint64_t>(std::max<int64_t>(step, 1)));
  }
  return first;
}

Bad RowDiffers(const CheckInput& in, const ProcessEvidence& process, const LedgerStep& row,
               uint64_t tolerated) {
  const std::string at = "attempt " + std::to_string(process.attempt) + ", " +
                         RankName(process.rank) + ", step " + std::to_string(row.step);
  const auto here = [&] { return std::vector<Where>{LedgerRow(process, row.step)}; };
  if (row.lr_bits != LearningRateBits(in.job(), row.step)) {
    Finding finding = Broke(kName, at + ": the learning rate is not that of the schedule", here());
    finding.expected = std::bit_cast<double>(LearningRateBits(in.job(), row.step));
    finding.observed = std::bit_cast<double>(row.lr_bits);
    return finding;
  }
  if (Undigested(row.state)) return Broke(kName, at + ": a digest is over no bytes", here());
  const LedgerStep* reference = in.reference.ledger(process.rank)->Find(row.step);
  if (reference == nullptr) return Broke(kName, at + " is not in the undisturbed run", here());
  const std::string difference =
      row.step < tolerated ? Difference(row, *reference) : DifferenceOfOrder(row, *reference);
  if (difference.empty()) return std::nullopt;
  return Broke(kName, at + ": " + difference + " differs from the undisturbed run",
               {LedgerRow(process, row.step),
                {in.reference.ledger(process.rank)->where.file, static_cast<int>(row.step)}});
}

// What an attempt held after loading is what the undisturbed run held after that step.
Bad StartDiffers(const CheckInput& in, const ProcessEvidence& process, uint64_t tolerated) {
  const LedgerStart& start = *process.ledger->start;
  const RankLedger& reference = *in.reference.ledger(process.rank);
  if (start.step >= tolerated) return std::nullopt;
  const StateDigests* expected = nullptr;
  if (start.step == 0 && reference.start) expected = &reference.start->state;
  if (const LedgerStep* row = reference.Find(start.step)) expected = &row->state;
  if (expected == nullptr || start.state == *expected) return std::nullopt;
  return Broke(kName,
               "attempt " + std::to_string(process.attempt) + ", " + RankName(process.rank) +
                   ": the state at the start is not that of the undisturbed run after step " +
                   std::to_string(start.step),
               {process.ledger->where});
}

// Rows follow each other without a gap, from the step behind the start.
Bad Gap(const ProcessEvidence& process) {
  uint64_t next = process.ledger->start->step + 1;
  for (const LedgerStep& row : process.ledger->steps) {
    if (row.step != next) {
      return Broke(kName,
                   "attempt " + std::to_string(process.attempt) + ", " + RankName(process.rank) +
                       ": step " + std::to_string(row.step) + " where step " +
                       std::to_string(next) + " was due",
                   {LedgerRow(process, row.step)});
    }
    ++next;
  }
  return std::nullopt;
}

// Largest difference of two dumps of float32; nullopt when they cannot be compared. Not finite
// counts as infinitely far away.
std::optional<double> LargestDifference(const std::string& a, const std::string& b) {
  if (a.size() != b.size() || a.empty() || a.size() % sizeof(float) != 0) return std::nullopt;
  double largest = 0;
  for (size_t at = 0; at < a.size(); at += sizeof(float)) {
    float x = 0;
    float y = 0;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    const double difference = std::abs(static_cast<double>(x) - static_cast<double>(y));
    if (!std::isfinite(difference)) return HUGE_VAL;
    largest = std::max(largest, difference);
  }
  return largest;
}

Bad FinalWeightsDiffer(const CheckInput& in, int64_t* compared, double* largest) {
  if (in.expect().outcome == Outcome::kStopsCleanly || in.observed.attempts.empty()) {
    return std::nullopt;
  }
  const double tolerance =
      in.expect().outcome == Outcome::kDegrades ? in.expect().weights_tolerance.value_or(0) : 0;
  for (int r = 0; r < in.job().ranks; ++r) {
    const ProcessEvidence* process = in.observed.attempts.back().rank(r);
    if (process == nullptr || !process->weights_end) {
      return Broke(kName, RankName(r) + " left no final weights");
    }
    const auto& reference = in.reference.ranks.at(r).weights_end;
    if (!reference) return Unclear("the reference has no final weights of " + RankName(r));
    const auto difference = LargestDifference(process->weights_end->bytes, reference->bytes);
    const Where where{process->folder + "/" + kRankWeightsEnd, 0};
    if (!difference) {
      return Broke(kName,
                   RankName(r) +
                       ": the final weights have another size than those of the "
                       "undisturbed run",
                   {where});
    }
    *largest = std::max(*largest, *difference);
    const bool equal = process->weights_end->bytes == reference->bytes;
    if (tolerance == 0 ? !equal : *difference > tolerance) {
      Finding finding = Broke(kName,
                              RankName(r) + ": a final weight differs by " +
                                  std::to_string(*difference) + " from the undisturbed run",
                              {where});
      finding.expected = tolerance;
      finding.observed = *difference;
      return finding;
    }
    ++*compared;
  }
  return std::nullopt;
}

int64_t RowsNeeded(const CheckInput& in) {
  if (in.observed.attempts.empty()) return 1;
  const AttemptTimeline* last = in.timeline.attempt(in.observed.attempts.back().attempt);
  if (in.expect().outcome == Outcome::kStopsCleanly || last == nullptr) return 1;
  return (in.job().steps - last->ResumedFrom().value_or(0)) * in.job().ranks + in.job().ranks;
}

Finding Check(const CheckInput& in) {
  const uint64_t tolerated = FirstTolerated(in);
  int64_t compared = 0;
  for (const AttemptEvidence& attempt : in.observed.attempts) {
    if (auto bad = WrongCheckpoint(in, attempt)) return *bad;
    for (const ProcessEvidence& process : attempt.ranks) {
      if (!process.ledger || !process.ledger->start || process.rank >= in.job().ranks) continue;
      if (auto bad = Gap(process)) return *bad;
      if (auto bad = StartDiffers(in, process, tolerated)) return *bad;
      for (const LedgerStep& row : process.ledger->steps) {
        if (auto bad = RowDiffers(in, process, row, tolerated)) return *bad;
        ++compared;
      }
    }
  }
  double largest = 0;
  if (auto bad = FinalWeightsDiffer(in, &compared, &largest)) return *bad;
  const bool degrades = in.expect().outcome == Outcome::kDegrades;
  Finding finding = Pass(degrades ? "the final weights lie within the tolerance"
                                  : "every step equals the undisturbed run, bit for bit",
                         compared, RowsNeeded(in));
  finding.unit = "ledger rows and dumps";
  if (degrades) {
    finding.expected = in.expect().weights_tolerance.value_or(0);
    finding.observed = largest;
    finding.unit = "largest difference of a weight";
  }
  return finding;
}

}  // namespace

const CheckInfo resume_equal = {
    .name = kName,
    .promise =
        "The job resumes from the newest complete checkpoint, and every step equals the "
        "undisturbed run bit for bit, or ends within the stated tolerance.",
    .check_class = CheckClass::kContinuity,
    .evidence = kNeeds,
    .parameters = kParameters,
    .by_time = false,
    .depends_on_fault = false,
    .function = Check};

}  // namespace shakedown::checks
