// How the ranks ended: whose end came from outside, whose from itself, and who only followed.
#include <algorithm>
#include <map>

#include "analysis/diagnosis/detector.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/log_events.h"

namespace shakedown::diagnosis {
namespace {

// Signals that a process gets for what it did itself. Somebody may send them from outside too;
// nothing in the evidence tells the two apart, so they speak less surely.
bool IsCrash(std::string_view signal) {
  for (const std::string_view crash : {"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"}) {
    if (signal == crash) return true;
  }
  return false;
}

struct RankEnd {
  const ProcessExit* exit;
  const LogLine* launcher;  // rank.exited; nullptr when the launcher says nothing
  std::string by() const {
    return launcher == nullptr ? "" : StringField(launcher->fields, "by").value_or("");
  }
};

std::string HowEnded(const ProcessExit& exit) {
  if (!exit.signal.empty()) return "ended by " + exit.signal;
  return "exited with " + (exit.code ? std::to_string(*exit.code) : "an unknown status");
}

// The launcher's words contradict the kernel's.
bool Contradicts(const RankEnd& end) {
  if (end.launcher == nullptr) return false;
  const auto signal = StringField(end.launcher->fields, "signal").value_or("");
  const auto code = IntField(end.launcher->fields, "code");
  if (signal.empty() && !code) return false;
  return signal != end.exit->signal || (code && end.exit->code && *code != *end.exit->code);
}

std::vector<RankEnd> EndsOf(const ObservedEvidence& evidence, const AttemptEvidence& attempt) {
  std::vector<RankEnd> ends;
  for (const ProcessExit& exit : evidence.exits) {
    if (exit.attempt != attempt.attempt || exit.role != "rank" || !exit.failed()) continue;
    RankEnd end{&exit, nullptr};
    for (const LogLine& line : attempt.launcher) {
      if (line.event != log_events::kRankExited || line.rank != exit.rank) continue;
      const auto pid = IntField(line.fields, "pid");
      if (!pid || exit.pid == 0 || *pid == exit.pid) end.launcher = &line;
    }
    ends.push_back(end);
  }
  return ends;  // by time, as evidence.exits
}

struct OwnCode {
  int code;
  std::string_view mechanism;
  double confidence;
  std::string_view meaning;
};
// What a rank's own exit code says by itself. The reference trainer's contract is
// harness/wire/exit_code.h; other jobs use other codes, which are only "exited".
constexpr OwnCode kOwnCodes[] = {
    {kRankUsage, "environment", 0.5, "it did not accept its configuration or a file is missing"},
    {kRankOutOfMemory, "out_of_memory_device", 0.7, "it ran out of device memory"},
    {kRankData, "bad_data", 0.65, "it could not read its data"},
    {kRankCheckpoint, "checkpoint_bad", 0.5, "it could not load or save a checkpoint"},
    {kRankNotFinite, "numeric", 0.5, "its values were not finite"},
    {kRankException, "exception", 0.7, "it ended by an exception of its own"},
};

bool IsVictimCode(const ProcessExit& exit) {
  return exit.code == kRankPeerLost || exit.code == kRankCollectiveTimeout;
}
// Told to stop, or lost its controller: neither a cause nor a victim of a peer.
bool IsObedientCode(const ProcessExit& exit) {
  return exit.code == kRankTerminated || exit.code == kRankControlLost;
}

std::vector<Culprit> CulpritsOfCode(std::string_view mechanism, int rank) {
  Culprit culprit = RankCulprit(rank);
  if (mechanism == "bad_data") culprit.kind = "data";
  if (mechanism == "checkpoint_bad")
    culprit = {"storage", std::nullopt, std::nullopt, "checkpoint"};
  return {culprit};
}

class Exits {
 public:
  explicit Exits(const ObservedEvidence& evidence) : evidence_(evidence) {}

  Findings Run() {
    FindJobEnd();
    for (const AttemptEvidence& attempt : evidence_.attempts) Look(attempt);
    return std::move(findings_);
  }

 private:
  void FindJobEnd() {
    if (const Event* job = evidence_.First(events::kJobExited)) job_exited_ = job;
    if (const Event* end = evidence_.First(events::kRunEnded)) {
      completed_ = StringField(end->fields, "how") == "completed";
    }
  }

  bool IsLast(const AttemptEvidence& attempt) const {
    return attempt.attempt == evidence_.attempts.back().attempt;
  }

  // Signals in the last attempt of a run that the harness broke off may be the harness's own, and
  // those after the launcher's end are whoever cleans up.
  bool MayBeCleanUp(const AttemptEvidence& attempt, const ProcessExit& exit) const {
    if (!IsLast(attempt)) return false;
    return !completed_ || (job_exited_ != nullptr && job_exited_->t <= exit.t);
  }

  void Look(const AttemptEvidence& attempt) {
    const std::vector<RankEnd> ends = EndsOf(evidence_, attempt);
    std::vector<RankEnd> signalled;
    bool cause_seen = LauncherKilled(attempt, ends);
    for (const RankEnd& end : ends) {
      if (end.by() == "launcher") {
        Teardown(attempt, end);
      } else if (!end.exit->signal.empty()) {
        if (IsCrash(end.exit->signal)) {
          if (!cause_seen && signalled.empty()) Crash(attempt, end);
        } else {
          signalled.push_back(end);
        }
        cause_seen = true;
      } else if (IsVictimCode(*end.exit) || cause_seen || !signalled.empty()) {
        Suffer(attempt, end);
      } else if (!IsObedientCode(*end.exit)) {
        OwnExit(attempt, end);
        cause_seen = true;
      }
    }
    if (!signalled.empty()) {
      Killed(attempt, signalled, FirstOther(ends, signalled.front().exit->t));
    }
    ToldToStop(attempt);
  }

  // End of the first rank that no signal ended. The kernel closes the sockets of a process before
  // its end is seen (do_exit: exit_files before exit_notify), so a rank that lost a peer may be
  // seen to end a moment before that peer.
  static std::optional<MonoTime> FirstOther(const std::vector<RankEnd>& ends, MonoTime killed) {
    constexpr Nanoseconds kMoment = std::chrono::milliseconds(500);
    for (const RankEnd& end : ends) {
      if (!end.exit->signal.empty()) continue;
      const MonoTime t = end.exit->t;
      if (end.exit->code == kRankPeerLost && t <= killed && killed - t <= kMoment) continue;
      return t;
    }
    return std::nullopt;
  }

  bool LauncherKilled(const AttemptEvidence& attempt, const std::vector<RankEnd>& ends) {
    if (job_exited_ == nullptr || !IsLast(attempt) || !completed_) return false;
    const auto signal = StringField(job_exited_->fields, "signal");
    if (!signal || (!ends.empty() && ends.front().exit->t < job_exited_->t)) return false;
    Hypothesis h = Begin("killed", {{"service", std::nullopt, std::nullopt, "launcher"}}, attempt,
                         job_exited_->t, 0.8);
    Say(h, "the launcher ended by " + *signal + " before any rank did",
        ObservedEvidence::At(*job_exited_), attempt, std::nullopt, job_exited_->t);
    findings_.hypotheses.push_back(std::move(h));
    return true;
  }

  // Each end by an outside signal is a root of its own, as no rank sends signals to its peers; but
  // only until the first rank failed in another way, since from then on anybody may be cleaning up.
  void Killed(const AttemptEvidence& attempt, std::vector<RankEnd> ends,
              std::optional<MonoTime> first_other) {
    const bool first_of_all = !first_other || ends.front().exit->t <= *first_other;
    if (first_of_all && first_other) {
      std::erase_if(ends, [&](const RankEnd& end) { return end.exit->t > *first_other; });
    }
    std::vector<Culprit> culprits;
    double confidence = first_of_all ? 0.99 : 0.5;
    for (const RankEnd& end : ends) {
      culprits.push_back(RankCulprit(end.exit->rank));
      confidence = std::min(confidence, KillConfidence(attempt, end));
    }
    Hypothesis h = Begin("killed", culprits, attempt, ends.front().exit->t, confidence);
    for (const RankEnd& end : ends) ExplainKill(h, attempt, end);
    if (!first_of_all) h.missing.push_back("why other ranks failed before it");
    if (ends.front().exit->signal == "SIGKILL") {
      h.missing.push_back(
          "the kernel log: an end by the host's out-of-memory killer looks the same");
    }
    findings_.hypotheses.push_back(std::move(h));
  }

  double KillConfidence(const AttemptEvidence& attempt, const RankEnd& end) const {
    if (Contradicts(end)) return 0.3;
    if (MayBeCleanUp(attempt, *end.exit)) return 0.3;
    if (end.by() == "itself") return end.exit->independent() ? 0.9 : 0.75;
    // Without the launcher's word the signal may be its own.
    return end.exit->independent() ? 0.5 : 0.3;
  }

  void ExplainKill(Hypothesis& h, const AttemptEvidence& attempt, const RankEnd& end) {
    const ProcessExit& exit = *end.exit;
    const std::string rank = "rank " + std::to_string(exit.rank);
    Say(h, rank + " " + HowEnded(exit) + " (" + exit.source + ")", exit.where, attempt, exit.rank,
        exit.t);
    if (Contradicts(end)) {
      h.reasons.push_back({"the launcher tells another end of " + rank, end.launcher->where});
      h.missing.push_back("one exit status of " + rank + " that kernel and launcher agree on");
    } else if (end.by() == "itself") {
      h.reasons.push_back(
          {"the launcher did not end " + rank + " (by: itself)", end.launcher->where});
    } else {
      h.missing.push_back("the launcher's record of how " + rank + " ended (rank.exited)");
    }
    if (MayBeCleanUp(attempt, exit)) {
      h.missing.push_back("a run that was not broken off: the signal to " + rank +
                          " may be the clean-up's");
    }
  }

  void Crash(const AttemptEvidence& attempt, const RankEnd& end) {
    const double confidence = Contradicts(end) || MayBeCleanUp(attempt, *end.exit) ? 0.3
                              : end.by() == "itself"                               ? 0.7
                                                                                   : 0.5;
    Hypothesis h =
        Begin("exception", {RankCulprit(end.exit->rank)}, attempt, end.exit->t, confidence);
    ExplainKill(h, attempt, end);
    h.missing.push_back("a core dump: the same signal may have been sent from outside");
    findings_.hypotheses.push_back(std::move(h));
  }

  void OwnExit(const AttemptEvidence& attempt, const RankEnd& end) {
    const ProcessExit& exit = *end.exit;
    OwnCode known{exit.code.value_or(-1), "exited", 0.65, "a failure of its own"};
    for (const OwnCode& own : kOwnCodes) {
      if (own.code == exit.code) known = own;
    }
    const double confidence = !exit.code || Contradicts(end) ? 0.3 : known.confidence;
    Hypothesis h = Begin(std::string(known.mechanism), CulpritsOfCode(known.mechanism, exit.rank),
                         attempt, exit.t, confidence);
    Say(h,
        "rank " + std::to_string(exit.rank) + " was the first to end: it " + HowEnded(exit) + " (" +
            std::string(known.meaning) + ")",
        exit.where, attempt, exit.rank, exit.t);
    findings_.hypotheses.push_back(std::move(h));
  }

  void ToldToStop(const AttemptEvidence& attempt) {
    if (job_exited_ == nullptr || !IsLast(attempt)) return;
    if (IntField(job_exited_->fields, "code") != kLaunchStopped) return;
    Hypothesis h = Begin("preempted", {}, attempt, job_exited_->t, 0.8);
    for (const ProcessEvidence& rank : attempt.ranks) {
      for (const LogLine& line : rank.log) {
        if (line.event == log_events::kTermReceived) h.t = std::min(h.t, line.when());
      }
    }
    Say(h, "the launcher says by its exit status that it was told to stop",
        ObservedEvidence::At(*job_exited_), attempt, std::nullopt, h.t);
    findings_.hypotheses.push_back(std::move(h));
  }

  void Teardown(const AttemptEvidence& attempt, const RankEnd& end) {
    const ProcessExit& exit = *end.exit;
    const std::string what = HowEnded(exit) + ", by the launcher";
    findings_.links.push_back(Link(evidence_, ChainRole::kTeardown, attempt.attempt, exit.rank,
                                   exit.t, what, end.launcher->where));
    findings_.suffered.push_back({attempt.attempt, exit.rank, what, end.launcher->where});
  }

  void Suffer(const AttemptEvidence& attempt, const RankEnd& end) {
    const ProcessExit& exit = *end.exit;
    std::string what = HowEnded(exit);
    if (exit.code == kRankPeerLost) what += " (a peer is lost)";
    if (exit.code == kRankCollectiveTimeout) what += " (a collective did not complete)";
    findings_.links.push_back(
        Link(evidence_, ChainRole::kCascade, attempt.attempt, exit.rank, exit.t, what, exit.where));
    findings_.suffered.push_back({attempt.attempt, exit.rank, what, exit.where});
  }

  static Hypothesis Begin(std::string mechanism, std::vector<Culprit> culprits,
                          const AttemptEvidence& attempt, MonoTime t, double confidence) {
    Hypothesis h;
    h.mechanism = std::move(mechanism);
    h.culprits = std::move(culprits);
    h.attempt = attempt.attempt;
    h.t = t;
    h.ends_attempt = true;
    h.confidence = confidence;
    return h;
  }

  void Say(Hypothesis& h, const std::string& text, const Where& where,
           const AttemptEvidence& attempt, std::optional<int> rank, MonoTime t) {
    h.reasons.push_back({text, where});
    h.roots.push_back(Link(evidence_, ChainRole::kRoot, attempt.attempt, rank, t, text, where));
  }

  const ObservedEvidence& evidence_;
  const Event* job_exited_ = nullptr;
  bool completed_ = false;
  Findings findings_;
};

Findings Detect(const ObservedEvidence& evidence) { return Exits(evidence).Run(); }

}  // namespace

namespace exits {
extern const Detector kDetector{"exits", "process.exited, job.exited, the launcher's rank.exited",
                                "Who ended first, by what, and whether somebody of the job did it.",
                                Detect};
}  // namespace exits

}  // namespace shakedown::diagnosis
