#include "harness/scenario/check_scenario.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "harness/base/quantity.h"
#include "harness/scenario/bind.h"
#include "harness/scenario/vocabulary.h"
#include "harness/wire/progress_page.h"
#include "injectors/catalog.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;

// Samples that an IDX file of labels says it has: two zero bytes, type, rank, then the sizes, big
// endian (LeCun's description of the format). nullopt: it is none.
std::optional<int64_t> IdxSamples(const fs::path& labels) {
  std::ifstream file(labels, std::ios::binary);
  std::array<unsigned char, 8> head{};
  if (!file.read(reinterpret_cast<char*>(head.data()), head.size())) return std::nullopt;
  if (head[0] != 0 || head[1] != 0 || head[2] != 0x08 || head[3] != 1) return std::nullopt;
  return int64_t{head[4]} << 24 | int64_t{head[5]} << 16 | int64_t{head[6]} << 8 | head[7];
}

// Ranks that a target may come to be; `any` may be each of them.
std::set<int> RanksOf(const Target& target, int ranks) {
  std::set<int> out;
  if (target.kind == Target::Kind::kList) {
    out.insert(target.ranks.begin(), target.ranks.end());
  } else {
    for (int r = target.kind == Target::Kind::kLast ? ranks - 1 : 0; r < ranks; ++r) out.insert(r);
  }
  return out;
}

bool SamePlace(const FaultSpec& a, const FaultSpec& b, int ranks) {
  if (std::tie(a.attempt, a.step, a.point, a.occurrence, a.target.worker) !=
      std::tie(b.attempt, b.step, b.point, b.occurrence, b.target.worker)) {
    return false;
  }
  const auto of_b = RanksOf(b.target, ranks);
  return std::ranges::any_of(RanksOf(a.target, ranks), [&](int r) { return of_b.contains(r); });
}

class Checker {
 public:
  Checker(const std::vector<Source>& sources, const Node& root, Scenario* scenario,
          std::vector<Problem>* problems, std::vector<Problem>* warnings)
      : sources_(sources),
        root_(root),
        scenario_(*scenario),
        job_(scenario->job),
        problems_(problems),
        warnings_(warnings) {}

  void All() {
    CheckData();
    for (size_t i = 0; i < scenario_.faults.size(); ++i) CheckFault(i);
    CheckExclusions();
    CheckRoom();
    CheckExpectation();
    CheckDiagnosis();
  }

 private:
  // Whether what stands at `path` has a problem already: what is bound there is then a default, and
  // not judged again.
  bool Broken(std::string_view path) const {
    bool found = false;
    const Node& node = Locate(root_, path, &found);
    if (!found) return node.bad || !node.is(Node::Kind::kMap);
    return node.bad || std::ranges::any_of(*problems_, [&](const Problem& p) {
             return p.line == node.line && p.column == node.column &&
                    p.file == sources_[static_cast<size_t>(node.source)].label;
           });
  }
  bool Has(std::string_view path) const {
    bool found = false;
    Locate(root_, path, &found);
    return found;
  }
  void Report(std::string_view path, std::string message,
              std::optional<std::string> nearest = std::nullopt) {
    if (Broken(path)) return;
    problems_->push_back(ProblemAt(sources_, Locate(root_, path), std::move(message)));
    problems_->back().nearest = std::move(nearest);
  }
  void Warn(std::string_view path, std::string message) {
    if (Broken(path)) return;
    warnings_->push_back(
        ProblemAt(sources_, Locate(root_, path), std::move(message) + "; a run would be INVALID"));
  }

  void CheckData();
  void CheckFault(size_t index);
  void CheckPoint(const Fault& fault, FaultSpec* spec, const std::string& at);
  void CheckTarget(const Fault& fault, FaultSpec* spec, const std::string& at);
  void CheckReach(const FaultSpec& spec, const std::string& at);
  void CheckExclusions();
  void CheckRoom();
  void CheckExpectation();
  void CheckDiagnosis();
  void CheckRank(int rank, const std::string& path);
  std::string RankLimits() const {
    return "the job has " + std::to_string(job_.ranks) +
           (job_.ranks == 1 ? " rank, 0" : " ranks, 0 to " + std::to_string(job_.ranks - 1));
  }

  const std::vector<Source>& sources_;
  const Node& root_;
  Scenario& scenario_;
  JobConfig& job_;
  std::vector<Problem>* problems_;
  std::vector<Problem>* warnings_;
};

void Checker::CheckData() {
  const std::string path = "job.data";
  const auto listed = DataSetNames();
  fs::path folder = DataSetFolder(job_.data);
  if (std::ranges::find(listed, job_.data) == listed.end()) {
    const Node& node = Locate(root_, path);
    folder = sources_[static_cast<size_t>(node.source)].directory / job_.data;
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) {
      if (job_.data == JobConfig().data) {
        return Report(path, "the data set '" + job_.data + "' is not in " +
                                folder.parent_path().string() +
                                ": it belongs to the source tree; check it out again");
      }
      return Report(path,
                    "unknown data set '" + job_.data + "', and no directory of that name either",
                    NearestName(job_.data, listed));
    }
  }
  folder = fs::absolute(folder).lexically_normal();
  for (const char* name : {"images-idx3-ubyte", "labels-idx1-ubyte"}) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / name, ignored)) continue;
    return Report(path, "the data set in " + folder.string() + " has no file " + name);
  }
  const auto samples = IdxSamples(folder / "labels-idx1-ubyte");
  if (!samples) {
    return Report(path, (folder / "labels-idx1-ubyte").string() + " is not an IDX file of labels");
  }
  if (job_.global_batch() > *samples) {
    Report("job", "a step needs " + std::to_string(job_.global_batch()) +
                      " samples (ranks x micro_batch x accumulation), and the data set has " +
                      std::to_string(*samples));
  }
  job_.data_dir = folder;
}

void Checker::CheckFault(size_t index) {
  FaultSpec& spec = scenario_.faults[index];
  const std::string path = "faults." + std::to_string(index);
  const Fault* fault = FindFault(spec.inject);
  if (fault == nullptr) return;  // its name was reported
  const Node& node = Locate(root_, path);
  const size_t before = problems_->size();
  spec.with =
      BindParams(sources_, node.Get("with"), node, fault->params, path + ".with", problems_);
  if (fault->conflict != nullptr && problems_->size() == before) {
    const std::string conflict = fault->conflict(spec.with);
    if (!conflict.empty()) Report(path + ".with", path + ".with: " + conflict);
  }
  CheckPoint(*fault, &spec, path + ".at");
  CheckTarget(*fault, &spec, path + ".at");
  if (spec.until && !spec.duration) {
    Report(path + ".until", path + ".until needs `for` beside it: the latest moment of the undo");
  }
  if (fault->ends == Ends::kWithProcess && (spec.duration || spec.until)) {
    Report(path + (spec.duration ? ".for" : ".until"),
           spec.inject + " ends with the process that it acts on; it cannot be undone earlier");
  }
  if (fault->needs_hold && spec.hold == HoldMode::kNone) {
    Report(path + ".hold", path + ".hold: " + spec.inject +
                               " acts from outside while its target is held at the point; with "
                               "none it would do nothing");
  }
  CheckReach(spec, path + ".at");
}

void Checker::CheckPoint(const Fault& fault, FaultSpec* spec, const std::string& at) {
  SHAKEDOWN_ASSERT(!fault.points.empty());
  if (!Has(at + ".point")) {
    spec->point = fault.points.front();
    return;
  }
  if (spec->point == Point::kNone) return;  // its name was reported
  if (std::ranges::find(fault.points, spec->point) != fault.points.end()) return;
  std::string message = spec->inject + " cannot be injected at " +
                        std::string(PointName(spec->point)) + " (`shakedown explain " +
                        spec->inject + "` lists its points)";
  std::vector<std::string> names;
  for (const Point point : fault.points) names.emplace_back(PointName(point));
  Report(at + ".point", std::move(message), NearestName(PointName(spec->point), names));
}

void Checker::CheckTarget(const Fault& fault, FaultSpec* spec, const std::string& at) {
  Target& target = spec->target;
  for (size_t i = 0; i < target.ranks.size(); ++i) {
    const bool is_list = Locate(root_, at + ".rank").is(Node::Kind::kList);
    CheckRank(target.ranks[i], at + ".rank" + (is_list ? "." + std::to_string(i) : std::string()));
    if (std::count(target.ranks.begin(), target.ranks.begin() + static_cast<long>(i),
                   target.ranks[i]) > 0) {
      Report(at + ".rank." + std::to_string(i),
             at + ".rank: rank " + std::to_string(target.ranks[i]) + " stands there twice");
    }
  }
  if (fault.target == TargetKind::kRank) {
    if (target.worker) {
      Report(at + ".worker", spec->inject + " acts on a rank, not on one of its data workers");
    }
    return;
  }
  if (!target.worker) target.worker = 0;
  if (*target.worker >= job_.workers) {
    Report(at + ".worker", "worker " + std::to_string(*target.worker) +
                               " is outside the job: a rank has " + std::to_string(job_.workers) +
                               " (job.workers), from 0");
  }
}

void Checker::CheckRank(int rank, const std::string& path) {
  if (rank >= job_.ranks && !Broken("job.ranks")) {
    Report(path, "rank " + std::to_string(rank) + " is outside the job: " + RankLimits());
  }
}

// Whether the place is reached at all, as far as the configuration tells. What it does not tell is
// found out by the run.
void Checker::CheckReach(const FaultSpec& spec, const std::string& at) {
  const std::string_view phase = PointPhase(spec.point);
  const bool before_steps = phase == "init" || phase == "resume" || phase == "teardown";
  const std::string step = std::to_string(spec.step);
  if (spec.step == 0 && !before_steps && Has(at + ".step")) {
    Report(at + ".step", at + ".step: 0 is too small: steps, checkpoints and batches count from 1");
  }
  const int64_t batches = int64_t{1} * job_.steps * job_.accumulation;
  if (phase == "worker" && spec.step > batches) {
    Warn(at + ".step", "batch " + step + " is never read: a rank uses " + std::to_string(batches));
  } else if (phase != "worker" && spec.step > job_.steps) {
    Warn(at + ".step",
         "step " + step + " is never reached: the job ends with " + std::to_string(job_.steps));
  } else if (phase == "checkpoint" && job_.checkpoint.every == 0) {
    Warn(at + ".step", "the job saves no checkpoint (job.checkpoint.every is 0)");
  } else if (phase == "checkpoint" && spec.step % job_.checkpoint.every != 0 &&
             spec.step != job_.steps) {
    Warn(at + ".step", "there is no checkpoint of step " + step + ": one is saved every " +
                           std::to_string(job_.checkpoint.every) + " steps");
  }
  const bool per_micro_batch = phase == "forward" || phase == "backward" || phase == "data";
  const bool once = phase == "step" || phase == "optimizer" || phase == "worker";
  if ((per_micro_batch && spec.occurrence > job_.accumulation) || (once && spec.occurrence > 1)) {
    Warn(at + ".occurrence",
         "occurrence " + std::to_string(spec.occurrence) + " of " +
             std::string(PointName(spec.point)) + " is never reached: a step passes it " +
             (once ? "once" : std::to_string(job_.accumulation) + " times (job.accumulation)"));
  }
  const int attempts = job_.restart_policy == RestartPolicy::kNone ? 1 : job_.max_restarts + 1;
  if (spec.attempt >= attempts) {
    Warn(at + ".attempt", "attempt " + std::to_string(spec.attempt) +
                              " is never started: job.restart allows " + std::to_string(attempts));
  }
  if (!spec.committed) return;
  const int every = job_.checkpoint.every;
  if (every == 0 || *spec.committed % every != 0 || *spec.committed > spec.step) {
    Warn(at + ".committed", "no checkpoint of step " + std::to_string(*spec.committed) +
                                " is published before step " + step);
  }
}

void Checker::CheckExclusions() {
  for (size_t i = 0; i < scenario_.faults.size(); ++i) {
    const Fault* fault = FindFault(scenario_.faults[i].inject);
    if (fault == nullptr) continue;
    for (const FaultSpec& other : scenario_.faults) {
      if (std::ranges::find(fault->excludes, other.inject) == fault->excludes.end()) continue;
      Report("faults." + std::to_string(i) + ".inject",
             fault->full_name() + " cannot be combined with " + other.inject);
    }
  }
}

// Whether the progress page holds all arms of an attempt (a decoy takes as much room as the fault
// that it imitates), and whether each has its place to itself: at one pass of one point one arm
// acts.
void Checker::CheckRoom() {
  std::map<int, size_t> arms;  // by attempt
  for (size_t i = 0; i < scenario_.faults.size(); ++i) {
    const FaultSpec& spec = scenario_.faults[i];
    const std::string path = "faults." + std::to_string(i);
    size_t& taken = arms[spec.attempt];
    const bool had_room = taken <= kArms;
    taken += spec.target.kind == Target::Kind::kAll    ? static_cast<size_t>(job_.ranks)
             : spec.target.kind == Target::Kind::kList ? spec.target.ranks.size()
                                                       : 1;
    if (had_room && taken > kArms) {
      Report(path, "attempt " + std::to_string(spec.attempt) + " has " + std::to_string(taken) +
                       " injections with this fault; there is room for " + std::to_string(kArms));
    }
    for (size_t j = 0; j < i; ++j) {
      if (!SamePlace(spec, scenario_.faults[j], job_.ranks)) continue;
      Report(path + ".at", "the same place as that of faults." + std::to_string(j) +
                               ": one pass of a point, one fault");
    }
  }
}

void Checker::CheckExpectation() {
  const Expectation& e = scenario_.expect;
  const bool outcome_known = Has("expect.outcome") && !Broken("expect.outcome");
  const auto only_with = [&](std::string_view path, Outcome outcome) {
    if (outcome_known && Has(path) && e.outcome != outcome) {
      Report(path, std::string(path) + " belongs to the outcome " + std::string(ToString(outcome)) +
                       ", not to " + std::string(ToString(e.outcome)));
    }
  };
  only_with("expect.tolerance", Outcome::kDegrades);
  only_with("expect.resume", Outcome::kRecovers);
  if (outcome_known && e.outcome == Outcome::kDegrades && !Has("expect.tolerance")) {
    Report("expect", "the outcome degrades needs expect.tolerance: how far it may stray");
  }
  if (e.resume_from) {
    const int every = job_.checkpoint.every;
    if (*e.resume_from != 0 &&
        (every == 0 || *e.resume_from % every != 0 || *e.resume_from > job_.steps)) {
      Report("expect.resume.from",
             "there is no checkpoint of step " + std::to_string(*e.resume_from) +
                 (every == 0 ? ": the job saves none"
                             : ": one is saved every " + std::to_string(every) + " steps"));
    }
  }
  if (e.timeout_fires == "watchdog" && !job_.watchdog) {
    Report("expect.timeout.fires", "the watchdog cannot fire: job.watchdog is off");
  }
  if (job_.restart_policy == RestartPolicy::kNone && outcome_known &&
      e.outcome == Outcome::kRecovers) {
    Report("expect.outcome", "the job cannot recover: job.restart.policy is none");
  }
  const bool passes = e.verdict == "PASS";
  for (const char* path : {"expect.check", "expect.reason", "expect.also_fails"}) {
    if (passes && Has(path)) {
      Report(path, std::string(path) + " needs expect.verdict: another verdict than PASS");
    }
  }
  if (e.verdict == "FAIL" && !Has("expect.check")) {
    Report("expect.verdict", "an expected FAIL needs expect.check: which promise is broken");
  }
}

void Checker::CheckDiagnosis() {
  const std::string path = "expect.diagnosis";
  if (Has(path + ".culprit") && Has(path + ".culprits")) {
    Report(path + ".culprits", "culprit and culprits say the same: write one of them");
    return;
  }
  const DiagnosisExpectation& diagnosis = scenario_.expect.diagnosis;
  for (size_t i = 0; i < diagnosis.culprits.size(); ++i) {
    const std::string at =
        Has(path + ".culprit") ? path + ".culprit" : path + ".culprits." + std::to_string(i);
    const Culprit& culprit = diagnosis.culprits[i];
    const Node& node = Locate(root_, at);
    const bool one_kind =
        node.keys.size() == 1 || (culprit.kind == "data" && node.keys.size() == 2);
    if (node.is(Node::Kind::kMap) && (!one_kind || (culprit.worker && !culprit.rank))) {
      Report(at,
             at + " must be one of {rank}, {rank, worker}, {node}, {link}, {storage}, {service}");
    }
    if (culprit.rank) CheckRank(*culprit.rank, at + ".rank");
    if (culprit.worker && *culprit.worker >= job_.workers) {
      Report(at + ".worker", "worker " + std::to_string(*culprit.worker) +
                                 " is outside the job: a rank has " + std::to_string(job_.workers));
    }
  }
  const bool nothing = diagnosis.mechanism == "none";
  if (nothing && !diagnosis.culprits.empty() && !Broken(path + ".mechanism")) {
    Report(path, path + " names a culprit and no mechanism");
  }
}

}  // namespace

void CheckScenario(const std::vector<Source>& sources, const Node& root, Scenario* scenario,
                   std::vector<Problem>* problems, std::vector<Problem>* warnings) {
  Checker(sources, root, scenario, problems, warnings).All();
}

}  // namespace shakedown
