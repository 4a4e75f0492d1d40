#include "analysis/diagnosis/combine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <set>

#include "analysis/diagnosis/stall.h"

namespace shakedown::diagnosis {
namespace {

// Two roots that begin within this time of one another cannot be put in order: the controller
// learns of an exit within a few milliseconds, and of a line when it is flushed.
constexpr Nanoseconds kSameTime = std::chrono::milliseconds(50);
// From here on nothing more is asked for than what the hypothesis itself lacks.
constexpr double kSure = 0.9;
// No source is beyond doubt.
constexpr double kMostConfidence = 0.98;
constexpr size_t kMostLinks = 200;

// The particular cause takes in the general one: the same thing seen by a source that sees less.
struct TakesIn {
  std::string_view particular;
  std::string_view general;
};
constexpr TakesIn kTakesIn[] = {
    {"stopped", "not_joined"},
    {"out_of_memory_device", "exited"},
    {"out_of_memory_device", "exception"},
    {"storage_full", "checkpoint_bad"},
    {"storage_error", "checkpoint_bad"},
};

struct PageOf {
  std::string_view mechanism;
  std::string_view page;
};
constexpr PageOf kPages[] = {
    {"killed", "rank_killed.md"},         {"not_joined", "not_joined.md"},
    {"stopped", "not_joined.md"},         {"out_of_memory_device", "device_out_of_memory.md"},
    {"slow_data", "slow_data_worker.md"}, {"storage_full", "storage_full.md"},
};

std::string Cite(const Reason& reason) {
  std::string text = reason.text + " (" + reason.where.file;
  if (reason.where.line > 0) text += ":" + std::to_string(reason.where.line);
  return text + ")";
}

std::string Percent(double confidence) {
  return std::to_string(std::lround(confidence * 100)) + " %";
}

std::string NameOf(const Hypothesis& h) {
  return h.culprits.empty() ? h.mechanism : DescribeCulprits(h.culprits) + " " + h.mechanism;
}

bool SameName(const Hypothesis& a, const Hypothesis& b) {
  return a.mechanism == b.mechanism && a.culprits == b.culprits;
}

bool CulpritLess(const Culprit& a, const Culprit& b) {
  return std::tie(a.kind, a.rank, a.worker, a.name) < std::tie(b.kind, b.rank, b.worker, b.name);
}

template <typename T>
void AppendNew(std::vector<T>& to, const std::vector<T>& from) {
  for (const T& item : from) {
    if (std::find(to.begin(), to.end(), item) == to.end()) to.push_back(item);
  }
}

void TakeWords(Hypothesis& to, const Hypothesis& from) {
  to.t = std::min(to.t, from.t);
  to.ends_attempt = to.ends_attempt || from.ends_attempt;
  to.reasons.insert(to.reasons.end(), from.reasons.begin(), from.reasons.end());
  to.roots.insert(to.roots.end(), from.roots.begin(), from.roots.end());
  AppendNew(to.missing, from.missing);
  if (to.runbook.empty()) to.runbook = from.runbook;
}

// Independent sources that say the same are surer together.
void Agree(Hypothesis& a, const Hypothesis& b) {
  TakeWords(a, b);
  a.confidence = std::min(kMostConfidence, 1 - (1 - a.confidence) * (1 - b.confidence));
}

std::vector<Hypothesis> Merge(const std::vector<Findings>& findings) {
  std::vector<Hypothesis> merged;
  for (const Findings& one : findings) {
    for (Hypothesis h : one.hypotheses) {
      std::sort(h.culprits.begin(), h.culprits.end(), CulpritLess);
      const auto same = std::find_if(merged.begin(), merged.end(), [&](const Hypothesis& other) {
        return other.attempt == h.attempt && SameName(other, h);
      });
      if (same == merged.end()) {
        merged.push_back(std::move(h));
      } else {
        Agree(*same, h);
      }
    }
  }
  return merged;
}

bool AboutTheSame(const Hypothesis& a, const Hypothesis& b) {
  if (a.attempt != b.attempt) return false;
  const auto only_rank = [](const Hypothesis& h) {
    return h.culprits.size() == 1 && h.culprits.front().kind == "rank" ? h.culprits.front().rank
                                                                       : std::nullopt;
  };
  if (a.culprits == b.culprits) return true;
  return only_rank(a) && only_rank(a) == only_rank(b);
}

void TakeIn(std::vector<Hypothesis>& hypotheses) {
  for (Hypothesis& particular : hypotheses) {
    if (particular.confidence < kRival) continue;
    for (Hypothesis& general : hypotheses) {
      const bool taken =
          std::any_of(std::begin(kTakesIn), std::end(kTakesIn), [&](const TakesIn& row) {
            return row.particular == particular.mechanism && row.general == general.mechanism;
          });
      if (!taken || general.confidence == 0 || !AboutTheSame(particular, general)) continue;
      TakeWords(particular, general);
      general.confidence = 0;
    }
  }
  std::erase_if(hypotheses, [](const Hypothesis& h) { return h.confidence == 0; });
}

class Combiner {
 public:
  Combiner(const ObservedEvidence& evidence, std::vector<Findings> findings)
      : evidence_(evidence), findings_(std::move(findings)), hypotheses_(Merge(findings_)) {
    TakeIn(hypotheses_);
    std::stable_sort(hypotheses_.begin(), hypotheses_.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.t < b.t; });
    for (const AttemptEvidence& attempt : evidence_.attempts) {
      if (AttemptFailed(evidence_, attempt)) failed_.push_back(attempt.attempt);
    }
  }

  Diagnosis Run() {
    if (failed_.empty()) {
      ChooseFinding();
    } else {
      ChooseCause(failed_.front());
    }
    if (out_.mechanism == "unknown") ExplainUnknown();
    NameTheRest();
    Chain();
    Cascade();
    return std::move(out_);
  }

 private:
  // What ended the first attempt that failed is the cause; the first to begin, if it can be told.
  void ChooseCause(int attempt) {
    std::vector<const Hypothesis*> causes;
    for (const Hypothesis& h : hypotheses_) {
      if (h.attempt == attempt && h.ends_attempt && h.confidence >= kRival) causes.push_back(&h);
    }
    if (causes.empty()) {
      Doubt("nothing that was seen says why attempt " + std::to_string(attempt) + " ended");
      return;
    }
    const Hypothesis& first = *causes.front();
    for (const Hypothesis* other : causes) {
      if (other == &first) continue;
      if (other->t - first.t <= kSameTime || other->confidence > first.confidence + 0.25) {
        Doubt("the evidence speaks for " + NameOf(first) + " and for " + NameOf(*other));
        return;
      }
    }
    if (first.confidence < kNamed) {
      Doubt("the evidence speaks for " + NameOf(first) + " with " + Percent(first.confidence) +
            " only");
      return;
    }
    Name(first);
  }

  // Nothing ended: the first thing that hurt.
  void ChooseFinding() {
    for (const Hypothesis& h : hypotheses_) {
      if (h.confidence >= kNamed) return Name(h);
    }
    if (!hypotheses_.empty()) {
      const Hypothesis& h = hypotheses_.front();
      return Doubt("the evidence speaks for " + NameOf(h) + " with " + Percent(h.confidence) +
                   " only");
    }
    NothingWrong();
  }

  // "none" is a claim too: it needs a run that was watched to a good end, and no alarm.
  void NothingWrong() {
    const Event* job = evidence_.First(events::kJobExited);
    const Event* end = evidence_.First(events::kRunEnded);
    if (job == nullptr) Doubt("nobody saw the job end (no job.exited)");
    if (end == nullptr || StringField(end->fields, "how") != "completed") {
      Doubt("the run was not watched to its end (run.ended)");
    }
    for (const Findings& one : findings_) {
      for (const Reason& reason : one.unexplained) Doubt(Cite(reason));
    }
    for (const Damage& damage : evidence_.damage) {
      Doubt("evidence is damaged: " + Cite({damage.what, damage.where}));
    }
    if (!out_.reasons.empty()) return;
    out_.mechanism = "none";
    out_.confidence = 0.9;
    out_.reasons.push_back("the job ended by itself with exit 0 (" +
                           Cite({"", ObservedEvidence::At(*job)}).substr(2));
    out_.reasons.push_back("no rank failed, nothing stood still and no line warns");
  }

  void Name(const Hypothesis& h) {
    primary_ = &h;
    out_.mechanism = h.mechanism;
    out_.culprits = h.culprits;
    out_.confidence = std::min(h.confidence, kMostConfidence);
    for (const Reason& reason : h.reasons) AppendNew(out_.reasons, {Cite(reason)});
    for (const Findings& one : findings_) {
      for (const Note& note : one.notes) {
        const bool about =
            note.attempt == h.attempt && std::find(h.culprits.begin(), h.culprits.end(),
                                                   RankCulprit(note.rank)) != h.culprits.end();
        if (about) AppendNew(out_.reasons, {Cite(note.reason)});
      }
    }
    out_.missing = h.missing;
    if (out_.confidence < kSure) {
      for (const Findings& one : findings_) AppendNew(out_.missing, one.missing);
    }
    out_.runbook = h.runbook.empty() ? std::string(RunbookOf(h.mechanism)) : h.runbook;
  }

  void Doubt(std::string reason) { AppendNew(out_.reasons, {std::move(reason)}); }

  void ExplainUnknown() {
    out_.confidence = 0;  // nothing is claimed
    for (const Hypothesis& h : hypotheses_) {
      for (const Reason& reason : h.reasons) {
        AppendNew(out_.reasons, {NameOf(h) + "? " + Cite(reason)});
      }
      AppendNew(out_.missing, h.missing);
    }
    for (const Findings& one : findings_) {
      for (const Reason& reason : one.unexplained) AppendNew(out_.reasons, {Cite(reason)});
      AppendNew(out_.missing, one.missing);
    }
    for (const Damage& damage : evidence_.damage) {
      AppendNew(out_.missing, {"an undamaged record: " + Cite({damage.what, damage.where})});
    }
    if (out_.missing.empty()) {
      out_.missing.push_back("progress pages, exit statuses and logs of the attempt that failed");
    }
  }

  void NameTheRest() {
    for (const Hypothesis& h : hypotheses_) {
      if (&h == primary_ || h.confidence < kNamed) continue;
      if (primary_ != nullptr && SameName(h, *primary_)) continue;
      // Of an attempt whose end nobody can explain, its rivals are no findings.
      if (primary_ == nullptr && h.ends_attempt && h.attempt == failed_.front()) continue;
      out_.also.push_back(
          {h.culprits, h.mechanism, h.reasons.front().text, h.reasons.front().where});
      also_.push_back(&h);
    }
  }

  void Chain() {
    std::vector<const Hypothesis*> named = also_;
    if (primary_ != nullptr) named.insert(named.begin(), primary_);
    for (const Hypothesis* h : named) AppendNew(out_.chain, h->roots);
    for (const Findings& one : findings_) AppendNew(out_.chain, one.links);
    std::stable_sort(out_.chain.begin(), out_.chain.end(),
                     [](const ChainLink& a, const ChainLink& b) { return a.t_ms < b.t_ms; });
    if (out_.chain.size() > kMostLinks) out_.chain.resize(kMostLinks);
  }

  void Cascade() {
    std::set<std::pair<int, int>> seen;  // attempt, rank
    const auto exclude = [&](const Hypothesis& h) {
      for (const Culprit& culprit : h.culprits) {
        if (culprit.kind == "rank" && culprit.rank) seen.insert({h.attempt, *culprit.rank});
      }
    };
    if (primary_ != nullptr) exclude(*primary_);
    for (const Hypothesis* h : also_) exclude(*h);
    for (const Findings& one : findings_) {
      for (const Suffered& suffered : one.suffered) {
        if (seen.insert({suffered.attempt, suffered.rank}).second) {
          out_.cascade.push_back(suffered);
        }
      }
    }
    std::sort(out_.cascade.begin(), out_.cascade.end(), [](const Suffered& a, const Suffered& b) {
      return std::tie(a.attempt, a.rank) < std::tie(b.attempt, b.rank);
    });
  }

  const ObservedEvidence& evidence_;
  const std::vector<Findings> findings_;
  std::vector<Hypothesis> hypotheses_;  // by time
  std::vector<int> failed_;             // attempts
  const Hypothesis* primary_ = nullptr;
  std::vector<const Hypothesis*> also_;
  Diagnosis out_;
};

}  // namespace

std::string_view RunbookOf(std::string_view mechanism) {
  for (const PageOf& row : kPages) {
    if (row.mechanism == mechanism) return row.page;
  }
  return "";
}

Diagnosis Combine(const ObservedEvidence& evidence, std::vector<Findings> findings) {
  return Combiner(evidence, std::move(findings)).Run();
}

}  // namespace shakedown::diagnosis
