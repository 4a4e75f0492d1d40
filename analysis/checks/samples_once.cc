// Within an epoch every sample of the declared set is used exactly once, across restarts.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "analysis/checks/common.h"

namespace shakedown::checks {
extern const CheckInfo samples_once;
namespace {

constexpr std::string_view kName = "samples_once";
constexpr Need kNeeds[] = {Need::kJob, Need::kObserved, Need::kLedgers};

using Bad = std::optional<Finding>;

// An order of so many samples is 64 MiB; a larger set needs another way to tell.
constexpr uint64_t kMaxSamples = 1U << 24;

// The order of an epoch, from the description in harness/wire/schedule.h and the published
// algorithms, with none of the trainer's code: SplitMix64 (Steele, Lea, Flood 2014) seeded with the
// job's seed and then, byte by byte, with the stream's name; a Fisher-Yates shuffle from the end;
// draws below a bound by Lemire's multiplication.
class SplitMix {
 public:
  SplitMix(uint64_t seed, const std::string& stream) : state_(seed) {
    for (const char c : stream) state_ = Finalize(state_ ^ static_cast<uint8_t>(c));
  }
  uint64_t Draw(uint64_t bound) {
    state_ += 0x9E3779B97F4A7C15U;
    return High(Finalize(state_), bound);
  }

 private:
  static uint64_t Finalize(uint64_t z) {
    z ^= z >> 30;
    z *= 0xBF58476D1CE4E5B9U;
    z ^= z >> 27;
    z *= 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  // High half of the 128-bit product, from four 64-bit ones.
  static uint64_t High(uint64_t a, uint64_t b) {
    const uint64_t al = a & 0xFFFFFFFF, ah = a >> 32, bl = b & 0xFFFFFFFF, bh = b >> 32;
    const uint64_t low = (al * bl) >> 32;
    const uint64_t m1 = ah * bl + low;
    const uint64_t m2 = al * bh + (m1 & 0xFFFFFFFF);
    return ah * bh + (m1 >> 32) + (m2 >> 32);
  }
  uint64_t state_;
};

std::vector<uint32_t> ExpectedOrder(uint64_t seed, uint64_t epoch, uint32_t samples) {
  std::vector<uint32_t> order(samples);
  for (uint32_t i = 0; i < samples; ++i) order[i] = i;
  SplitMix draws(seed, "epoch/" + std::to_string(epoch));
  for (uint32_t i = samples; i-- > 1;) std::swap(order[i], order[draws.Draw(uint64_t{i} + 1)]);
  return order;
}

struct Geometry {
  uint64_t samples, batch, per_rank, steps_per_epoch;
};

Bad DigestsWrong(const ProcessEvidence& process, const LedgerStep& row) {
  uint64_t sum = 0;
  for (const uint32_t id : row.ids) {
    char bytes[sizeof id];
    std::memcpy(bytes, &id, sizeof id);
    sum += Xxh3Of64({bytes, sizeof bytes});
  }
  const std::string_view all(reinterpret_cast<const char*>(row.ids.data()),
                             row.ids.size() * sizeof(uint32_t));
  if (!row.ids.empty() && row.ids_digest == Xxh3Of(all) && row.ids_sum == sum) return std::nullopt;
  return Broke(kName,
               RankName(process.rank) + ", step " + std::to_string(row.step) +
                   ": the digests are not those of the samples that it names",
               {LedgerRow(process, row.step)});
}

// One step on one rank: the right ones of the epoch's order, in order.
Bad OrderWrong(const ProcessEvidence& process, const LedgerStep& row, const Geometry& g,
               const std::vector<uint32_t>& order) {
  const uint64_t k = (row.step - 1) % g.steps_per_epoch;
  const std::string at = RankName(process.rank) + ", step " + std::to_string(row.step);
  const uint64_t epoch = (row.step - 1) / g.steps_per_epoch;
  if (row.epoch != epoch || row.position != (k + 1) * g.batch) {
    return Broke(kName,
                 at + " is at position " + std::to_string(row.position) + " of epoch " +
                     std::to_string(row.epoch) + ", due was position " +
                     std::to_string((k + 1) * g.batch) + " of epoch " + std::to_string(epoch),
                 {LedgerRow(process, row.step)});
  }
  const uint64_t from = k * g.batch + static_cast<uint64_t>(process.rank) * g.per_rank;
  if (row.ids.size() == g.per_rank &&
      std::equal(row.ids.begin(), row.ids.end(), order.begin() + static_cast<ptrdiff_t>(from))) {
    return std::nullopt;
  }
  return Broke(kName, at + ": the samples are not those of the declared order",
               {LedgerRow(process, row.step)});
}

// Counts over the effective history: independent of any order.
class Usage {
 public:
  Bad Add(const ProcessEvidence& process, const LedgerStep& row, const Geometry& g) {
    const uint64_t epoch = (row.step - 1) / g.steps_per_epoch;
    for (const uint32_t id : row.ids) {
      const std::string name = "sample " + std::to_string(id);
      if (id >= g.samples) {
        return Broke(kName, name + " does not exist", {LedgerRow(process, row.step)});
      }
      if (!used_[epoch].insert(id).second) {
        return Broke(kName,
                     name + " was used twice in epoch " + std::to_string(epoch) + ", again by " +
                         RankName(process.rank) + " in step " + std::to_string(row.step),
                     {LedgerRow(process, row.step)});
      }
    }
    return std::nullopt;
  }

  // `last_step`: where the history ends; an epoch that it leaves unfinished owes nothing.
  Bad Missing(const Geometry& g, uint64_t last_step) const {
    for (uint64_t epoch = 0; epoch < last_step / g.steps_per_epoch; ++epoch) {
      const auto it = used_.find(epoch);
      const uint64_t used = it == used_.end() ? 0 : it->second.size();
      if (used != g.steps_per_epoch * g.batch) {
        return Broke(kName, "epoch " + std::to_string(epoch) + " used " + std::to_string(used) +
                                " of " + std::to_string(g.steps_per_epoch * g.batch) + " samples");
      }
    }
    return std::nullopt;
  }

 private:
  std::map<uint64_t, std::set<uint32_t>> used_;
};

Finding Check(const CheckInput& in) {
  const JobConfig& job = in.job();
  Geometry g{};
  g.samples = static_cast<uint64_t>(in.observed.samples);
  g.per_rank = static_cast<uint64_t>(job.micro_batch) * static_cast<uint64_t>(job.accumulation);
  g.batch = g.per_rank * static_cast<uint64_t>(job.ranks);
  if (g.samples == 0 || g.batch == 0 || g.samples / g.batch == 0 || g.samples > kMaxSamples) {
    return Unclear(
        "the size of the data set is not known, less than a batch, or more than is recomputed");
  }
  g.steps_per_epoch = g.samples / g.batch;
  const std::vector<Stretch> history = EffectiveHistory(in.observed);
  if (history.empty()) return Unclear("the ledgers do not tell which steps led to the end");

  Usage usage;
  Bad out_of_order;
  std::map<uint64_t, std::vector<uint32_t>> orders;
  int64_t compared = 0;
  for (const Stretch& stretch : history) {
    for (int r = 0; r < job.ranks; ++r) {
      const ProcessEvidence* process = stretch.attempt->rank(r);
      for (uint64_t step = stretch.first; step <= stretch.last; ++step) {
        const LedgerStep* row =
            process == nullptr || !process->ledger ? nullptr : process->ledger->Find(step);
        if (row == nullptr) {
          return Broke(kName, RankName(r) + " has no record of step " + std::to_string(step));
        }
        if (auto bad = DigestsWrong(*process, *row)) return *bad;
        if (auto bad = usage.Add(*process, *row, g)) return *bad;
        const uint64_t epoch = (step - 1) / g.steps_per_epoch;
        auto& order = orders[epoch];
        if (order.empty()) {
          order = ExpectedOrder(job.seed, epoch, static_cast<uint32_t>(g.samples));
        }
        if (!out_of_order) out_of_order = OrderWrong(*process, *row, g, order);
        ++compared;
      }
    }
  }
  // A repeated or a missing sample says more than that the order is another.
  if (auto bad = usage.Missing(g, history.back().last)) return *bad;
  if (out_of_order) return *out_of_order;
  Finding finding =
      Pass("every sample of the declared set was used once per epoch, in the declared order",
           compared, static_cast<int64_t>(history.back().last) * job.ranks);
  finding.unit = "steps of ranks";
  return finding;
}

}  // namespace

const CheckInfo samples_once = {
    .name = kName,
    .promise =
        "Within an epoch every sample of the declared set is used exactly once, in the "
        "declared order, across restarts.",
    .check_class = CheckClass::kContinuity,
    .evidence = kNeeds,
    .parameters = {},
    .by_time = false,
    .depends_on_fault = false,
    .function = Check};

}  // namespace shakedown::checks
