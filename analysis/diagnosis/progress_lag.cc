// Where each rank stood when the job stood still, and who was behind.
//
// Ranks that wait for a peer have handed over the collective that it is missing from; the one that
// they wait for has handed over fewer. Which point it passed last tells why: at the door
// (collective.enter: called, nothing contributed), inside (collective.enqueued: contributed, the
// call did not come back while its peers, served, already wait in the next), or before.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "analysis/diagnosis/detector.h"
#include "analysis/diagnosis/stall.h"
#include "harness/wire/log_events.h"

namespace shakedown::diagnosis {
namespace {

using std::chrono::milliseconds;

// Longer than any pause that ranks make for other reasons: whoever observes with the same probe may
// hold a rank at a point for up to 100 ms (design: fault points).
constexpr Nanoseconds kShortestStall = milliseconds(200);

struct Position {
  int rank = 0;
  const PageSample* page = nullptr;  // the last before the stall was noticed
  MonoTime moved;                    // when its training thread was last seen to move
  std::string point;
  int64_t step = 0;
  int64_t entered() const { return Sane(page->collectives_entered); }
  int64_t handed_over() const { return Sane(page->collectives_enqueued); }
  // Pages are untrusted: no number that arithmetic could overflow on.
  static int64_t Sane(int64_t count) { return std::clamp<int64_t>(count, 0, int64_t{1} << 62); }
};

// The lane that trains: backward may run in a thread of its own.
const LaneSample* TrainingLane(const PageSample& page) {
  const LaneSample* autograd = page.lane("autograd");
  if (autograd != nullptr && autograd->point.starts_with("collective.")) return autograd;
  return page.lane("main");
}

bool SameProgress(const PageSample& a, const PageSample& b) {
  for (const char* name : {"main", "autograd"}) {
    const LaneSample* x = a.lane(name);
    const LaneSample* y = b.lane(name);
    if ((x == nullptr) != (y == nullptr)) return false;
    if (x != nullptr && (x->count != y->count || x->point != y->point || x->step != y->step)) {
      return false;
    }
  }
  return a.collectives_entered == b.collectives_entered &&
         a.collectives_enqueued == b.collectives_enqueued;
}

std::map<int, Position> PositionsAt(const ObservedEvidence& evidence, int attempt, MonoTime t) {
  std::map<int, Position> positions;
  for (const PageSample& page : evidence.pages) {
    if (page.attempt != attempt || page.worker || page.rank < 0 || page.t > t) continue;
    Position& position = positions[page.rank];
    position.rank = page.rank;
    if (position.page == nullptr || !SameProgress(*position.page, page)) position.moved = page.t;
    position.page = &page;
    const LaneSample* lane = TrainingLane(page);
    position.point = lane == nullptr ? "" : lane->point;
    position.step = lane == nullptr ? 0 : lane->step;
  }
  return positions;
}

std::string Ranks(const std::vector<const Position*>& positions) {
  std::string text = positions.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(positions[i]->rank);
  }
  return text;
}

std::string Ms(Nanoseconds d) {
  return std::to_string(std::chrono::duration_cast<milliseconds>(d).count()) + " ms";
}

enum class Stands { kAtTheDoor, kInside, kAtData, kAtStorage, kBefore };

Stands StandsAt(const Position& p) {
  if (p.point == "collective.enter" && p.entered() == p.handed_over() + 1) {
    return Stands::kAtTheDoor;
  }
  if (p.point == "collective.enqueued" && p.entered() == p.handed_over()) return Stands::kInside;
  if (p.point == "data.next") return Stands::kAtData;
  if (p.point.starts_with("checkpoint.") || p.point.starts_with("resume.")) {
    return Stands::kAtStorage;
  }
  return Stands::kBefore;
}

std::string Describe(const Position& p) {
  const std::string rank = "rank " + std::to_string(p.rank);
  const std::string n = std::to_string(p.handed_over());
  switch (StandsAt(p)) {
    case Stands::kAtTheDoor:
      return rank + " stands at the door of collective " + std::to_string(p.entered()) +
             " in step " + std::to_string(p.step) +
             " (collective.enter): it called it and contributed nothing";
    case Stands::kInside:
      return rank + " contributed to collective " + n + " in step " + std::to_string(p.step) +
             " and the call has not come back (collective.enqueued); that one was served, and it "
             "is missing from the next";
    default:
      return rank + " passed " + (p.point.empty() ? "no point" : p.point) + " in step " +
             std::to_string(p.step) + " last and handed over " + n + " collectives";
  }
}

// The controller's own timer came too late to tell a stuck rank from a machine that was.
bool Overloaded(const ObservedEvidence& evidence, MonoTime from, MonoTime to) {
  for (const Event* load : evidence.Named(events::kLoadSampled)) {
    if (load->t < from || load->t > to) continue;
    if (NumberField(load->fields, "slip_ms").value_or(0) > ToMs(to - from) / 2) return true;
  }
  return false;
}

class ProgressLag {
 public:
  explicit ProgressLag(const ObservedEvidence& evidence) : evidence_(evidence) {}

  Findings Run() {
    for (const AttemptEvidence& attempt : evidence_.attempts) {
      if (const auto stall = FindStall(evidence_, attempt)) Look(attempt, *stall);
      LookAtWorkers(attempt);
    }
    return std::move(findings_);
  }

 private:
  void Look(const AttemptEvidence& attempt, const Stall& stall) {
    const auto positions = PositionsAt(evidence_, attempt.attempt, stall.noticed);
    int64_t most = 0;
    int64_t least = INT64_MAX;
    for (const auto& [rank, p] : positions) {
      most = std::max(most, p.handed_over());
      least = std::min(least, p.handed_over());
    }
    std::vector<const Position*> behind;
    std::vector<const Position*> waiting;
    for (const auto& [rank, p] : positions) {
      (p.handed_over() == least ? behind : waiting).push_back(&p);
    }
    if (positions.empty()) {
      findings_.missing.push_back("progress pages of attempt " + std::to_string(attempt.attempt));
    } else if (waiting.empty()) {
      Unexplained(stall, "nobody is behind: every rank has handed over " + std::to_string(most) +
                             " collectives");
      findings_.missing.push_back(
          "the flight recorder and the network's counters: all ranks wait alike");
    } else {
      Weigh(attempt, stall, behind, waiting);
    }
  }

  void Weigh(const AttemptEvidence& attempt, const Stall& stall,
             const std::vector<const Position*>& behind,
             const std::vector<const Position*>& waiting) {
    MonoTime peers_stopped{0};
    for (const Position* p : waiting) peers_stopped = std::max(peers_stopped, p->moved);
    const Nanoseconds waited = stall.noticed - peers_stopped;
    if (waited < kShortestStall) {
      return Unexplained(stall, "peers had waited only " + Ms(waited) + ", too short to tell");
    }
    // Several laggards are named together only where each was seen to call the collective.
    const bool all_at_the_door = std::all_of(behind.begin(), behind.end(), [](const Position* p) {
      return StandsAt(*p) == Stands::kAtTheDoor;
    });
    if (behind.size() > waiting.size() && !all_at_the_door) {
      findings_.missing.push_back("which collective each rank is in (flight recorder)");
      return Unexplained(stall, Ranks(behind) + " stand behind " + Ranks(waiting) +
                                    ": more ranks are behind than wait");
    }
    for (const Position* p : behind) {
      if (stall.noticed - p->moved < waited / 2) {
        return Unexplained(stall, Ranks({p}) + " is behind but was moving until " +
                                      Ms(stall.noticed - p->moved) + " before: slow, not stuck");
      }
      if (StandsAt(*p) == Stands::kAtData) {
        findings_.missing.push_back("why " + Ranks({p}) +
                                    " got no data (its workers' pages, data.slow)");
        return Unexplained(stall, Describe(*p) + ": it waits for its data worker");
      }
      if (StandsAt(*p) == Stands::kAtStorage) {
        findings_.missing.push_back("what the storage under the checkpoints does");
        return Unexplained(stall, Describe(*p) + ": it waits for storage");
      }
    }
    Accuse(attempt, stall, behind, waiting, waited);
  }

  void Accuse(const AttemptEvidence& attempt, const Stall& stall,
              const std::vector<const Position*>& behind,
              const std::vector<const Position*>& waiting, Nanoseconds waited) {
    Hypothesis h;
    h.mechanism = "not_joined";
    h.attempt = attempt.attempt;
    h.ends_attempt = true;
    h.confidence = behind.size() == 1 ? 0.85 : 0.65;
    h.t = stall.noticed;
    for (const Position* p : behind) {
      h.culprits.push_back(RankCulprit(p->rank));
      h.t = std::min(h.t, p->moved);
      if (StandsAt(*p) == Stands::kBefore) h.confidence -= 0.15;
      if (StandsAt(*p) == Stands::kInside) h.runbook = "collective_never_returns.md";
      const std::string what =
          Describe(*p) + "; alive and unmoved for " + Ms(stall.noticed - p->moved);
      h.reasons.push_back({what, p->page->where});
      h.roots.push_back(Link(evidence_, ChainRole::kRoot, attempt.attempt, p->rank, p->moved, what,
                             p->page->where));
    }
    h.reasons.push_back({Ranks(waiting) + " handed over " +
                             std::to_string(waiting.front()->handed_over()) + " and had waited " +
                             Ms(waited) + " when it was noticed",
                         waiting.front()->page->where});
    h.reasons.push_back(stall.noticed_by);
    Doubt(h, attempt, stall, behind, waiting, waited);
    findings_.hypotheses.push_back(std::move(h));
  }

  // What speaks against it.
  void Doubt(Hypothesis& h, const AttemptEvidence& attempt, const Stall& stall,
             const std::vector<const Position*>& behind,
             const std::vector<const Position*>& waiting, Nanoseconds waited) {
    const size_t world = WorldSize(attempt.attempt);
    if (world > behind.size() + waiting.size()) {
      h.confidence -= 0.3;
      h.missing.push_back("the progress pages of all " + std::to_string(world) + " ranks");
    }
    if (!AttemptFailed(evidence_, attempt)) {
      h.confidence -= 0.3;
      h.missing.push_back("why the stand-still went away by itself");
    }
    if (Overloaded(evidence_, stall.noticed - waited, stall.noticed)) {
      h.confidence -= 0.3;
      h.missing.push_back("the same on a machine that is not overloaded");
    }
    std::set<int> named;
    for (const Position* p : behind) named.insert(p->rank);
    CompareWithWatchdog(h, attempt, named);
    CompareWithTimeouts(h, attempt, behind);
    h.confidence = std::max(h.confidence, 0.05);
  }

  void CompareWithWatchdog(Hypothesis& h, const AttemptEvidence& attempt,
                           const std::set<int>& named) {
    for (const LogLine& line : attempt.launcher) {
      const Json& list = Field(line.fields, "behind");
      if (line.event != log_events::kWatchdogFired || !list.is_array() || list.empty()) continue;
      std::set<int> said;
      for (const Json& rank : list) {
        if (rank.is_number_integer()) said.insert(rank.get<int>());
      }
      if (std::includes(said.begin(), said.end(), named.begin(), named.end())) continue;
      h.confidence -= 0.3;
      h.reasons.push_back(
          {"against it: the launcher's watchdog says that others are behind", line.where});
    }
  }

  // A survivor gives up on the collective that somebody is missing from. One that the culprit did
  // hand over cannot be it.
  void CompareWithTimeouts(Hypothesis& h, const AttemptEvidence& attempt,
                           const std::vector<const Position*>& behind) {
    for (const ProcessEvidence& rank : attempt.ranks) {
      for (const LogLine& line : rank.log) {
        if (line.event != log_events::kCollectiveTimeout) continue;
        const auto number = IntField(line.fields, "collective");
        const std::string who = "rank " + std::to_string(rank.rank) + " gave up on collective " +
                                (number ? std::to_string(*number) : "(not said)");
        if (number && *number <= behind.front()->handed_over()) {
          h.confidence -= 0.3;
          h.reasons.push_back({"against it: " + who + ", which was handed over", line.where});
        } else {
          h.reasons.push_back({who, line.where});
        }
        break;
      }
    }
  }

  size_t WorldSize(int attempt) const {
    for (const Event* event : evidence_.Named(events::kRankJoined)) {
      const auto world = IntField(event->fields, "world_size");
      if (IntField(event->fields, "attempt") == attempt && world) {
        return static_cast<size_t>(std::clamp<int64_t>(*world, 0, 1 << 20));
      }
    }
    return evidence_.job ? static_cast<size_t>(std::max(evidence_.job->ranks, 0)) : 0;
  }

  void Unexplained(const Stall& stall, std::string text) {
    findings_.unexplained.push_back({std::move(text), stall.noticed_by.where});
  }

  // A worker that stands at its read while its rank waits for a batch holds everybody up.
  void LookAtWorkers(const AttemptEvidence& attempt) {
    const Nanoseconds slow = evidence_.job ? evidence_.job->slow_data_warning : milliseconds(500);
    std::map<std::pair<int, int>, const PageSample*> standing;
    std::set<std::pair<int, int>> named;
    const auto close = [&](const std::pair<int, int>& key, MonoTime until) {
      const PageSample* from = standing[key];
      standing[key] = nullptr;
      if (from == nullptr || until - from->t < slow || named.contains(key)) return;
      const auto positions = PositionsAt(evidence_, attempt.attempt, until - Nanoseconds(1));
      const auto rank = positions.find(key.first);
      if (rank == positions.end() || rank->second.point != "data.next") return;
      if (until - rank->second.moved < slow / 2) return;
      named.insert(key);
      AccuseWorker(attempt, key, *from, until);
    };
    for (const PageSample& page : evidence_.pages) {
      if (page.attempt != attempt.attempt || !page.worker) continue;
      const std::pair key(page.rank, *page.worker);
      close(key, page.t);
      const LaneSample* lane = page.lane("main");
      const bool works =
          lane != nullptr && (lane->point == "worker.read" || lane->point == "worker.decode");
      if (works && !page.final) standing[key] = &page;
    }
    const auto ends = attempt.ended ? attempt.ended : FirstFailedExit(evidence_, attempt.attempt);
    if (!ends) return;
    for (const auto& [key, page] : std::map(standing)) close(key, *ends);
  }

  void AccuseWorker(const AttemptEvidence& attempt, const std::pair<int, int>& key,
                    const PageSample& from, MonoTime until) {
    const LaneSample& lane = *from.lane("main");
    Hypothesis h;
    h.mechanism = "slow_data";
    h.culprits = {{"data", key.first, key.second, ""}};
    h.attempt = attempt.attempt;
    h.t = from.t;
    h.confidence = 0.65;
    const std::string what = "worker " + std::to_string(key.second) + " of rank " +
                             std::to_string(key.first) + " stood at " + lane.point + " of batch " +
                             std::to_string(lane.step) + " for " + Ms(until - from.t) +
                             " while its rank waited (data.next)";
    h.reasons.push_back({what, from.where});
    h.roots.push_back(
        Link(evidence_, ChainRole::kRoot, attempt.attempt, key.first, from.t, what, from.where));
    findings_.hypotheses.push_back(std::move(h));
  }

  const ObservedEvidence& evidence_;
  Findings findings_;
};

Findings Detect(const ObservedEvidence& evidence) { return ProgressLag(evidence).Run(); }

}  // namespace

namespace progress_lag {
extern const Detector kDetector{
    "progress_lag", "page.sampled, progress.stopped, collective.timeout, watchdog.fired",
    "Which rank or worker stood behind when the job stood still.", Detect};
}  // namespace progress_lag

}  // namespace shakedown::diagnosis
