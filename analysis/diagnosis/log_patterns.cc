// What the job's own logs say, read by patterns.def: which line begins something, which only
// follows, which cleans up.
#include <algorithm>
#include <map>

#include "analysis/diagnosis/detector.h"
#include "analysis/diagnosis/patterns.h"
#include "analysis/diagnosis/stall.h"
#include "harness/base/file.h"
#include "harness/wire/exit_code.h"
#include "harness/wire/log_events.h"

namespace shakedown::diagnosis {
namespace {

constexpr EventPattern kEventPatterns[] = {
#define SHAKEDOWN_EVENT(event, field, values, role, mechanism, culprit, percent, guard, sentence) \
  {event,   field,        values,  ChainRole::role, mechanism, CulpritForm::culprit,              \
   percent, Guard::guard, sentence},
#define SHAKEDOWN_TEXT(text, role, mechanism, culprit, percent, sentence)
#include "analysis/diagnosis/patterns.def"
#undef SHAKEDOWN_EVENT
#undef SHAKEDOWN_TEXT
};

constexpr TextPattern kTextPatterns[] = {
#define SHAKEDOWN_EVENT(event, field, values, role, mechanism, culprit, percent, guard, sentence)
#define SHAKEDOWN_TEXT(text, role, mechanism, culprit, percent, sentence) \
  {text, ChainRole::role, mechanism, CulpritForm::culprit, percent, sentence},
#include "analysis/diagnosis/patterns.def"
#undef SHAKEDOWN_EVENT
#undef SHAKEDOWN_TEXT
};

// A number or a word as text; "" when absent or something else.
std::string FieldText(const Json& fields, std::string_view key) {
  if (const auto number = IntField(fields, key)) return std::to_string(*number);
  return StringField(fields, key).value_or("");
}

bool OneOf(std::string_view values, std::string_view value) {
  if (values == "*") return true;
  while (!values.empty()) {
    const size_t bar = values.find('|');
    if (values.substr(0, bar) == value) return true;
    values = bar == std::string_view::npos ? "" : values.substr(bar + 1);
  }
  return false;
}

bool Matches(const EventPattern& pattern, const LogLine& line) {
  if (line.event != pattern.event) return false;
  if (pattern.field.empty()) return true;
  const std::string value = FieldText(line.fields, pattern.field);
  return !value.empty() && OneOf(pattern.values, value);
}

std::string Speaker(const LogLine& line) {
  return line.writer ? "rank " + std::to_string(*line.writer) : "the launcher";
}

std::string Describe(const LogLine& line) {
  std::string text = Speaker(line) + " " + line.event;
  if (line.step) text += " in step " + std::to_string(*line.step);
  return text + ": " + Shorten(line.message);
}

std::vector<Culprit> Culprits(CulpritForm form, std::optional<int> writer, const Json& fields) {
  switch (form) {
    case CulpritForm::kRank:
      if (writer) return {RankCulprit(*writer)};
      return {};
    case CulpritForm::kWorker: {
      const auto worker = IntField(fields, "worker");
      if (!writer || !worker || *worker < 0 || *worker > INT32_MAX) return {};
      return {{"data", *writer, static_cast<int>(*worker), ""}};
    }
    case CulpritForm::kStorage:
      return {{"storage", std::nullopt, std::nullopt, "checkpoint"}};
    case CulpritForm::kMissing: {
      std::vector<Culprit> culprits;
      const Json& missing = Field(fields, "missing");
      if (!missing.is_array()) return {};
      for (const Json& rank : missing) {
        if (rank.is_number_integer()) culprits.push_back(RankCulprit(rank.get<int>()));
      }
      return culprits;
    }
    case CulpritForm::kNobody:
      return {};
  }
  return {};
}

class LogPatterns {
 public:
  explicit LogPatterns(const ObservedEvidence& evidence) : evidence_(evidence) {}

  Findings Run() {
    const auto lines = evidence_.AllLines();
    for (const LogLine* line : lines) {
      Read(*line, lines);
    }
    for (const AttemptEvidence& attempt : evidence_.attempts) {
      for (const ProcessEvidence& rank : attempt.ranks) {
        ReadText(rank, rank.stdout_text, kRankStdout);
        ReadText(rank, rank.stderr_text, kRankStderr);
      }
    }
    for (auto& [key, hypothesis] : hypotheses_) {
      findings_.hypotheses.push_back(std::move(hypothesis));
    }
    return std::move(findings_);
  }

 private:
  using Key = std::pair<int, std::pair<std::string, std::string>>;  // attempt, mechanism, culprits

  void Read(const LogLine& line, const std::vector<const LogLine*>& lines) {
    if (line.event == log_events::kRankExited) return;  // read by exits
    for (const EventPattern& pattern : kEventPatterns) {
      if (!Matches(pattern, line)) continue;
      const bool root = pattern.role == ChainRole::kRoot;
      const auto culprits = Culprits(pattern.culprit, line.writer, line.fields);
      if (root && !culprits.empty() && Allows(pattern.guard, line, lines)) {
        return Blame(pattern, line, culprits);
      }
      return Follow(root ? ChainRole::kCascade : pattern.role, line);
    }
    if (line.alarming()) {
      findings_.unexplained.push_back({line.level + " of " + Describe(line), line.where});
    }
  }

  bool Allows(Guard guard, const LogLine& line, const std::vector<const LogLine*>& lines) const {
    if (guard == Guard::kNone) return true;
    const auto concerns = [&](int attempt) {
      return guard == Guard::kFirstOfRun ? attempt <= line.attempt : attempt == line.attempt;
    };
    for (const ProcessExit& exit : evidence_.exits) {
      if (exit.role == "rank" && exit.failed() && concerns(exit.attempt) && exit.t < line.when() &&
          exit.rank != line.writer) {
        return false;
      }
    }
    return std::none_of(lines.begin(), lines.end(), [&](const LogLine* other) {
      return other->level == "ERROR" && concerns(other->attempt) && other->when() < line.when() &&
             (other->writer != line.writer || other->attempt != line.attempt);
    });
  }

  void Blame(const EventPattern& pattern, const LogLine& line,
             const std::vector<Culprit>& culprits) {
    Hypothesis& h = HypothesisOf(line.attempt, pattern.mechanism, culprits, line.when());
    h.confidence = std::max(h.confidence, pattern.percent / 100.0);
    h.ends_attempt = h.ends_attempt || pattern.culprit == CulpritForm::kMissing ||
                     EndedByItself(line.attempt, line.writer);
    Cite(h, Describe(line), line.where, line.attempt, line.writer, line.when(), line.event);
  }

  // One reason per kind of line: a job may repeat itself a thousand times.
  void Cite(Hypothesis& h, const std::string& text, const Where& where, int attempt,
            std::optional<int> rank, MonoTime t, std::string_view kind) {
    std::string& said = said_[&h];
    if (said.find('|' + std::string(kind) + '|') != std::string::npos) return;
    said += '|' + std::string(kind) + '|';
    h.reasons.push_back({text, where});
    h.roots.push_back(Link(evidence_, ChainRole::kRoot, attempt, rank, t, text, where));
  }

  Hypothesis& HypothesisOf(int attempt, std::string_view mechanism,
                           const std::vector<Culprit>& culprits, MonoTime t) {
    const Key key(attempt, {std::string(mechanism), DescribeCulprits(culprits)});
    const auto [it, fresh] = hypotheses_.try_emplace(key);
    Hypothesis& h = it->second;
    if (fresh) {
      h.mechanism = std::string(mechanism);
      h.culprits = culprits;
      h.attempt = attempt;
      h.t = t;
    }
    h.t = std::min(h.t, t);
    return h;
  }

  // The rank that complained ended with a failure of its own: then it may be why the attempt did.
  bool EndedByItself(int attempt, std::optional<int> rank) const {
    if (!rank) return false;
    for (const ProcessExit& exit : evidence_.exits) {
      if (exit.attempt != attempt || exit.role != "rank" || exit.rank != rank) continue;
      if (exit.signal.empty() && exit.failed() && exit.code != kRankPeerLost &&
          exit.code != kRankCollectiveTimeout && exit.code != kRankTerminated) {
        return true;
      }
    }
    return false;
  }

  void Follow(ChainRole role, const LogLine& line) {
    if (!line.alarming()) return;
    const auto rank = line.writer ? line.writer : line.rank;
    findings_.links.push_back(
        Link(evidence_, role, line.attempt, rank, line.when(), Describe(line), line.where));
    if (role == ChainRole::kCascade && line.writer) {
      findings_.suffered.push_back({line.attempt, *line.writer, Describe(line), line.where});
    }
  }

  void ReadText(const ProcessEvidence& rank, const std::string& text, const char* file) {
    int number = 0;
    for (const std::string_view line : SplitLines(text).complete) {
      ++number;
      // A structured line, repeated for a terminal: read where it belongs.
      if (line.starts_with('{')) continue;
      for (const TextPattern& pattern : kTextPatterns) {
        if (line.find(pattern.text) == std::string_view::npos) continue;
        const Where where{rank.folder + "/" + file, number};
        if (pattern.role == ChainRole::kRoot) BlameText(pattern, rank, line, where);
        break;
      }
    }
  }

  void BlameText(const TextPattern& pattern, const ProcessEvidence& rank, std::string_view line,
                 const Where& where) {
    const MonoTime t =
        ArrivalOf(where).value_or(evidence_.attempt(rank.attempt)->started.value_or(MonoTime{0}));
    const auto culprits = Culprits(pattern.culprit, rank.rank, Json::object());
    Hypothesis& h = HypothesisOf(rank.attempt, pattern.mechanism, culprits, t);
    h.confidence = std::max(h.confidence, pattern.percent / 100.0);
    h.ends_attempt = h.ends_attempt || EndedByItself(rank.attempt, rank.rank);
    Cite(h, "rank " + std::to_string(rank.rank) + " printed: " + Shorten(line), where, rank.attempt,
         rank.rank, t, pattern.text);
    if (h.missing.empty()) h.missing.push_back("a structured record of what was printed");
  }

  std::optional<MonoTime> ArrivalOf(const Where& where) const {
    for (const Arrival& arrival : evidence_.arrivals) {
      if (arrival.line == where.line && arrival.file == where.file) return arrival.t;
    }
    return std::nullopt;
  }

  const ObservedEvidence& evidence_;
  std::map<Key, Hypothesis> hypotheses_;
  std::map<const Hypothesis*, std::string> said_;
  Findings findings_;
};

Findings Detect(const ObservedEvidence& evidence) { return LogPatterns(evidence).Run(); }

}  // namespace

std::span<const EventPattern> EventPatterns() { return kEventPatterns; }
std::span<const TextPattern> TextPatterns() { return kTextPatterns; }

namespace log_patterns {
extern const Detector kDetector{
    "log_patterns", "log.jsonl, launcher.jsonl, stdout.log, stderr.log",
    "What the job itself said, and whether it began something, followed, or cleaned up.", Detect};
}  // namespace log_patterns

}  // namespace shakedown::diagnosis
