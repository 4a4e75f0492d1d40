// Where each rank's main thread stood in its own code while the job stood still.
//
// The observer's own frames are taken off before anything else is looked at: that a thread stands
// in the probe says who watches, not what is wrong. Stacks of a moment say little alone, so they
// support or doubt a name that another source brought, and name by themselves only a process that
// is stopped, which the kernel says.
#include <algorithm>

#include "analysis/diagnosis/detector.h"
#include "analysis/diagnosis/stack_text.h"
#include "analysis/diagnosis/stall.h"

namespace shakedown::diagnosis {
namespace {

constexpr size_t kShownFrames = 6;

struct RankStack {
  int rank = 0;
  Where where;
  char state = 0;
  std::vector<StackFrame> frames;
  bool waits = false;
};

// Between two frames that mean something to a person stand those of the operator dispatcher.
bool IsPlumbing(std::string_view name) {
  return name.starts_with("c10::impl::") || name.starts_with("std::") ||
         name.find("c10::BoxedKernel") != std::string_view::npos;
}

std::string Show(const std::vector<StackFrame>& frames) {
  std::string text;
  size_t shown = 0;
  for (const StackFrame& frame : frames) {
    const std::string name = FunctionName(frame);
    if (name.empty() || IsPlumbing(name)) continue;
    text += (shown > 0 ? " < " : "") + Shorten(name, 80);
    if (++shown == kShownFrames) break;
  }
  return text;
}

std::vector<RankStack> StacksOf(const AttemptEvidence& attempt) {
  std::vector<RankStack> all;
  for (const ProcessEvidence& rank : attempt.ranks) {
    const ProcessStacks stacks = ParseStacks(rank.stacks);
    if (stacks.threads.empty() && stacks.state == 0) continue;
    RankStack one{rank.rank, {rank.folder + "/" + kRankStacks, 0}, stacks.state, {}, false};
    if (!stacks.threads.empty()) {
      // The first thread listed is the main thread.
      one.frames = JobFrames(stacks.threads.front());
      one.where.line = one.frames.empty() ? stacks.threads.front().line : one.frames.front().line;
      one.waits = WaitsForPeers(one.frames);
    }
    all.push_back(std::move(one));
  }
  return all;
}

// Stacks that were taken while ranks were already ending show the end and not the stall.
bool TakenInTime(const ObservedEvidence& evidence, int attempt) {
  const auto dead = FirstFailedExit(evidence, attempt);
  bool taken = false;
  for (const Event* event : evidence.Named(events::kStacksCollected)) {
    if (IntField(event->fields, "attempt") != attempt) continue;
    if (dead && *dead <= event->t) return false;
    taken = true;
  }
  return taken;
}

void Look(const ObservedEvidence& evidence, const AttemptEvidence& attempt, const Stall& stall,
          Findings& findings) {
  const std::vector<RankStack> stacks = StacksOf(attempt);
  if (stacks.empty()) {
    findings.missing.push_back("stacks of the ranks of attempt " + std::to_string(attempt.attempt));
    return;
  }
  if (!TakenInTime(evidence, attempt.attempt)) {
    findings.missing.push_back("stacks taken before the first rank ended");
    return;
  }
  std::vector<const RankStack*> elsewhere;
  for (const RankStack& one : stacks) {
    if (!one.waits && !one.frames.empty()) elsewhere.push_back(&one);
    if (!one.frames.empty()) {
      findings.notes.push_back(
          {attempt.attempt,
           one.rank,
           {"stack of rank " + std::to_string(one.rank) + ": " + Show(one.frames), one.where}});
    }
  }
  const auto add = [&](const RankStack& one, const char* mechanism, double confidence,
                       const std::string& what) {
    Hypothesis h;
    h.mechanism = mechanism;
    h.culprits = {RankCulprit(one.rank)};
    h.attempt = attempt.attempt;
    h.t = stall.noticed;
    h.ends_attempt = true;
    h.confidence = confidence;
    h.reasons.push_back({what, one.where});
    h.roots.push_back(Link(evidence, ChainRole::kRoot, attempt.attempt, one.rank, stall.noticed,
                           what, one.where));
    findings.hypotheses.push_back(std::move(h));
  };
  for (const RankStack& one : stacks) {
    if (one.state == 'T') {
      add(one, "stopped", 0.8,
          "rank " + std::to_string(one.rank) + " is stopped (state T of /proc)");
    }
  }
  if (stacks.size() >= 2 && elsewhere.size() == 1) {
    add(*elsewhere.front(), "not_joined", 0.4,
        "the main thread of rank " + std::to_string(elsewhere.front()->rank) +
            " is the only one that does not wait for its peers");
  }
}

Findings Detect(const ObservedEvidence& evidence) {
  Findings findings;
  for (const AttemptEvidence& attempt : evidence.attempts) {
    if (const auto stall = FindStall(evidence, attempt)) Look(evidence, attempt, *stall, findings);
  }
  return findings;
}

}  // namespace

namespace stacks {
extern const Detector kDetector{"stacks", "stacks.txt, stacks.collected, progress.stopped",
                                "Whose main thread stood where, without the observer's frames.",
                                Detect};
}  // namespace stacks

}  // namespace shakedown::diagnosis
