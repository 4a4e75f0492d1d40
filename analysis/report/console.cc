#include "analysis/report/console.h"

#include <algorithm>

#include "analysis/checks/catalog.h"
#include "analysis/report/summary.h"
#include "analysis/report/text.h"
#include "harness/base/text.h"

namespace shakedown::report {
namespace {

constexpr int kNarrowest = 40;
// From here on a suite's row holds diagnosis and reason too.
constexpr int kWide = 120;

enum class Paint { kNone, kGood, kBad, kDoubtful, kTitle };

std::string Painted(std::string_view text, Paint paint, const Style& style) {
  if (!style.color || paint == Paint::kNone) return std::string(text);
  const char* code = "1";
  if (paint == Paint::kGood) code = "32";
  if (paint == Paint::kBad) code = "31";
  if (paint == Paint::kDoubtful) code = "33";
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

Paint PaintOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return Paint::kGood;
    case Verdict::kFail:
    case Verdict::kError:
      return Paint::kBad;
    case Verdict::kSkipped:
      return Paint::kNone;
    default:
      return Paint::kDoubtful;
  }
}

Paint PaintOf(CheckStatus status) {
  switch (status) {
    case CheckStatus::kPass:
      return Paint::kGood;
    case CheckStatus::kFail:
      return Paint::kBad;
    case CheckStatus::kNotApplicable:
      return Paint::kNone;
    default:
      return Paint::kDoubtful;
  }
}

int Width(const Style& style) { return std::max(style.width, kNarrowest); }

// A paragraph at `indent`, escaped and wrapped; further lines stand two further in.
std::string Paragraph(std::string_view text, int indent, const Style& style) {
  return std::string(static_cast<size_t>(indent), ' ') +
         Wrap(Escape(text), Width(style), indent, indent + 2) + "\n";
}

// For what people copy: never broken.
std::string Verbatim(std::string_view text, int indent) {
  return std::string(static_cast<size_t>(indent), ' ') + Escape(text) + "\n";
}

// A line without blanks at its end.
std::string Trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Title(std::string_view text, const Style& style) {
  return Painted(text, Paint::kTitle, style) + "\n";
}

// Who names nothing is sure of nothing.
std::string Confidence(const Diagnosis& diagnosis) {
  if (diagnosis.mechanism == "unknown") return "";
  return ", " + std::to_string(static_cast<int>(diagnosis.confidence * 100 + 0.5)) + " %";
}

std::string Named(const Diagnosis& diagnosis) {
  if (diagnosis.culprits.empty()) return diagnosis.mechanism;
  return DescribeCulprits(diagnosis.culprits) + " " + diagnosis.mechanism;
}

// Beside what the scenario states; nothing where it states nothing.
std::string Compared(const RunVerdict& run) {
  if (!run.diagnosis_right) return "";
  return *run.diagnosis_right ? ", right" : ", WRONG";
}

std::string Where(const InjectionResult& injection) {
  std::string text = injection.worker ? "worker " + std::to_string(*injection.worker) + " of rank "
                                      : std::string("rank ");
  text += std::to_string(injection.rank);
  if (injection.attempt > 0) text += ", attempt " + std::to_string(injection.attempt);
  return text + ", step " + std::to_string(injection.step) + ", " + injection.point;
}

std::string InjectionsText(const RunVerdict& run, const Style& style) {
  if (run.injections.empty()) return "";
  std::string out = "\n" + Title("Injected", style);
  for (const InjectionResult& injection : run.injections) {
    std::string text = std::to_string(injection.id) + " " + injection.fault + " at " +
                       Where(injection) + ": " + injection.level + " (" + injection.means + ")";
    if (injection.hold_ms) text += ", held " + HumanMs(*injection.hold_ms);
    text += injection.proven ? ", proven" : ", NOT PROVEN";
    out += Paragraph(text, 2, style);
  }
  return out;
}

std::string CheckLine(const CheckResult& result, int name_columns, const Style& style) {
  constexpr int kStatusColumns = 14;
  const std::string_view status = ToString(result.finding.status);
  std::string reason = result.finding.reason;
  if (reason.empty()) {
    if (const CheckInfo* info = FindCheck(result.check)) reason = std::string(info->promise);
  }
  for (const shakedown::Where& where : result.finding.where) {
    if (result.finding.status != CheckStatus::kFail) break;
    reason += " [" + where.file + (where.line > 0 ? ":" + std::to_string(where.line) : "") + "]";
  }
  if (!result.waived.empty()) reason += " (waived: " + result.waived + ")";
  std::string out =
      "  " + Painted(PadRight(status, kStatusColumns), PaintOf(result.finding.status), style) +
      " " + PadRight(Escape(result.check), name_columns);
  const int column = 2 + kStatusColumns + 1 + name_columns + 2;
  if (Width(style) - column < 30) {
    return Trimmed(out) + "    " + Wrap(Escape(reason), Width(style), 4, 4) + "\n";
  }
  return out + "  " + Wrap(Escape(reason), Width(style), column, column) + "\n";
}

std::string ChecksText(const RunVerdict& run, const Style& style) {
  if (run.checks.empty()) return "";
  int name_columns = 0;
  for (const CheckResult& result : run.checks) {
    name_columns = std::max(name_columns, Columns(result.check));
  }
  std::string out = "\n" + Title("Checks", style);
  for (const CheckResult& result : run.checks) out += CheckLine(result, name_columns, style);
  return out;
}

std::string DiagnosisLines(const Diagnosis& diagnosis, const Style& style) {
  std::string out;
  for (const std::string& reason : diagnosis.reasons) out += Paragraph("- " + reason, 2, style);
  for (const AlsoFound& also : diagnosis.also) {
    out += Paragraph("also: " + DescribeCulprits(also.culprits) + " " + also.mechanism + ": " +
                         also.what + " (" + also.where.file + ":" +
                         std::to_string(also.where.line) + ")",
                     2, style);
  }
  for (const Suffered& suffered : diagnosis.cascade) {
    out += Paragraph("suffered: rank " + std::to_string(suffered.rank) + ", attempt " +
                         std::to_string(suffered.attempt) + ": " + suffered.what,
                     2, style);
  }
  for (const std::string& missing : diagnosis.missing) {
    out += Paragraph("would settle it: " + missing, 2, style);
  }
  if (!diagnosis.runbook.empty()) {
    out += Verbatim("runbook: analysis/runbooks/" + diagnosis.runbook, 2);
  }
  return out;
}

std::string TimesText(const RunVerdict& run, const Style& style) {
  std::string out;
  const auto row = [&](const std::string& value, const char* what) {
    out += PadLeft(value, 12) + "  " + what + "\n";
  };
  const auto time = [&](const std::optional<double>& ms, const char* what) {
    if (ms) row(HumanMs(*ms), what);
  };
  time(run.noticed_ms, "until Shakedown noticed");
  time(run.times.detected_ms, "until the job noticed");
  time(run.times.timeout_ms, "until its own limit fired");
  time(run.times.first_new_step_ms, "until the first new step");
  time(run.times.rework_ms, "of work done again");
  if (run.times.lost_steps) row(std::to_string(*run.times.lost_steps), "steps lost");
  time(run.times.wall_ms, "job");
  if (out.empty()) return "";
  if (run.overloaded) out += Paragraph("The machine was overloaded.", 2, style);
  return "\n" + Title("Times after the injection", style) + out;
}

std::string AttemptsText(const RunVerdict& run, const Style& style) {
  if (run.attempts.empty()) return "";
  std::string out = "\n" + Title("Attempts", style);
  for (const AttemptSummary& attempt : run.attempts) {
    std::string text = std::to_string(attempt.attempt) + ":";
    if (attempt.resumed_from) {
      text += *attempt.resumed_from == 0
                  ? " fresh start"
                  : " from checkpoint " + std::to_string(*attempt.resumed_from);
    }
    if (attempt.last_step) text += ", last step " + std::to_string(*attempt.last_step);
    for (const AttemptSummary::Exit& exit : attempt.exits) {
      if (exit.signal.empty() && exit.code == 0) continue;
      text += ", rank " + std::to_string(exit.rank) + " ";
      text += exit.signal.empty()
                  ? "exit " + (exit.code ? std::to_string(*exit.code) : std::string("?"))
                  : exit.signal;
    }
    out += Paragraph(text, 2, style);
  }
  return out;
}

std::string NextText(const RunVerdict& run, const Style& style) {
  if (run.run_dir.empty()) return "";
  std::string out = "\n" + Title("Next", style);
  out += Verbatim("shakedown check " + run.run_dir, 2);
  out += Verbatim("shakedown diagnose " + run.run_dir, 2);
  for (const CheckResult& result : run.checks) {
    if (result.finding.status != CheckStatus::kFail) continue;
    out += Verbatim("shakedown explain " + result.check, 2);
  }
  if (!run.injections.empty()) {
    out += Verbatim("shakedown explain " + run.injections.front().fault, 2);
  }
  if (run.dirty) out += Verbatim("shakedown clean " + run.run_dir, 2);
  return out;
}

// What decided, seen from what was wanted.
std::string Expectation(const RunVerdict& run) {
  if (run.verdict == Verdict::kSkipped) return "";
  if (run.as_expected) return run.verdict == Verdict::kPass ? "" : "as expected";
  return "not as expected" + (run.not_as_expected.empty() ? "" : ": " + run.not_as_expected);
}

std::string Head(const RunVerdict& run, const Style& style) {
  std::string out = Painted(Escape(run.scenario), Paint::kTitle, style) + ": " +
                    Painted(ToString(run.verdict), PaintOf(CountsAs(run)), style);
  if (run.dirty) out += Painted(" DIRTY", Paint::kBad, style);
  out += "\n";
  if (!run.reason.empty()) out += Paragraph(run.reason, 2, style);
  if (const std::string text = Expectation(run); !text.empty()) out += Paragraph(text, 2, style);
  return out;
}

std::string Cell(const std::optional<double>& ms) { return ms ? HumanMs(*ms) : "-"; }

struct Column {
  const char* title;
  int columns;
};
constexpr Column kScenario{"scenario", 20};
constexpr Column kVerdict{"verdict", 12};
constexpr Column kDetected{"detected", 9};
constexpr Column kNewStep{"new step", 9};
constexpr Column kLost{"lost", 4};
constexpr Column kWall{"job", 9};
constexpr Column kDiagnosis{"diagnosis", 30};

std::string CountsText(const Counts& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
  }
  return text.empty() ? "none" : text;
}

std::string Rerun(const RunVerdict& run) { return run.run_dir.empty() ? "" : " " + run.run_dir; }

}  // namespace

std::string RunText(const RunVerdict& run, const Style& style) {
  std::string out = Head(run, style) + InjectionsText(run, style) + ChecksText(run, style);
  out += "\n" + Painted("Diagnosis (blind)", Paint::kTitle, style) + ": " +
         Escape(Named(run.diagnosis)) + Confidence(run.diagnosis) +
         Painted(Compared(run), run.diagnosis_right.value_or(true) ? Paint::kNone : Paint::kBad,
                 style) +
         "\n";
  out += DiagnosisLines(run.diagnosis, style);
  return out + TimesText(run, style) + AttemptsText(run, style) + NextText(run, style);
}

std::string DiagnosisText(const Diagnosis& diagnosis, const Style& style) {
  std::string out = Painted(Escape(Named(diagnosis)), Paint::kTitle, style) +
                    Confidence(diagnosis) + "\n" + DiagnosisLines(diagnosis, style);
  if (!diagnosis.chain.empty()) out += "\n" + Title("What happened", style);
  for (const ChainLink& link : diagnosis.chain) {
    const std::string t = PadLeft(HumanMs(link.t_ms), 10);
    std::string who = link.rank ? "rank " + std::to_string(*link.rank) + ": " : "";
    if (link.what.starts_with("rank ") || link.what.starts_with("the launcher")) who.clear();
    std::string role(ToString(link.role));
    const std::string line = t + "  " + PadRight(role, 9);
    const int column = Columns(line) + 1;
    out += line + " " +
           Wrap(Escape(who + link.what + " (" + link.where.file + ":" +
                       std::to_string(link.where.line) + ")"),
                Width(style), column, column) +
           "\n";
  }
  if (!diagnosis.isolation.empty()) {
    out += "\n" + Paragraph("read under: " + diagnosis.isolation, 0, style);
  }
  return out;
}

std::string SuiteHeader(const Style& style) {
  std::string line = PadRight(kScenario.title, kScenario.columns) + " " +
                     PadRight(kVerdict.title, kVerdict.columns) + " " +
                     PadLeft(kDetected.title, kDetected.columns) + " " +
                     PadLeft(kNewStep.title, kNewStep.columns) + " " +
                     PadLeft(kLost.title, kLost.columns) + " " +
                     PadLeft(kWall.title, kWall.columns);
  if (Width(style) >= kWide) {
    line += "  " + PadRight(kDiagnosis.title, kDiagnosis.columns) + " reason";
  }
  return Painted(line, Paint::kTitle, style) + "\n";
}

std::string SuiteRow(const RunVerdict& run, const Style& style) {
  std::string verdict(ToString(run.verdict));
  if (run.dirty) verdict += "+DIRTY";
  std::string line =
      PadRight(Escape(run.scenario), kScenario.columns) + " " +
      Painted(PadRight(verdict, kVerdict.columns), PaintOf(CountsAs(run)), style) + " " +
      PadLeft(Cell(run.times.detected_ms), kDetected.columns) + " " +
      PadLeft(Cell(run.times.first_new_step_ms), kNewStep.columns) + " " +
      PadLeft(run.times.lost_steps ? std::to_string(*run.times.lost_steps) : "-", kLost.columns) +
      " " + PadLeft(Cell(run.times.wall_ms), kWall.columns);
  const std::string diagnosis = Escape(Named(run.diagnosis) + Compared(run));
  std::string reason = Expectation(run);
  if (!run.reason.empty()) reason += (reason.empty() ? "" : ": ") + run.reason;
  reason = Escape(reason);
  if (Width(style) < kWide) {
    const std::string text = run.verdict == Verdict::kSkipped
                                 ? reason
                                 : diagnosis + (reason.empty() ? "" : ". " + reason);
    return Trimmed(line) + "    " + Wrap(text, Width(style), 4, 4) + "\n";
  }
  constexpr int kReasonColumn = kScenario.columns + kVerdict.columns + kDetected.columns +
                                kNewStep.columns + kLost.columns + kWall.columns +
                                kDiagnosis.columns + 8;
  line += "  " + PadRight(run.verdict == Verdict::kSkipped ? "" : diagnosis, kDiagnosis.columns);
  return Trimmed(line + " " + Wrap(reason, Width(style), kReasonColumn, kReasonColumn));
}

std::string SuiteText(const SuiteResult& suite, const Style& style) {
  std::string out = SuiteHeader(style);
  for (const RunVerdict& run : suite.runs) out += SuiteRow(run, style);
  out += "\n" + Painted(Escape(suite.suite), Paint::kTitle, style) + ": " +
         Painted(ToString(suite.verdict), PaintOf(suite.verdict), style) +
         (suite.dirty ? Painted(" DIRTY", Paint::kBad, style) : "") + ", " +
         std::to_string(suite.runs.size()) + " runs in " + HumanMs(suite.wall_ms) + ": " +
         CountsText(CountVerdicts(suite.runs)) + "\n";
  out += Paragraph("injections: " + CountsText(CountLevels(suite.runs)), 0, style);
  for (const RunVerdict& run : suite.runs) {
    const Verdict counts_as = CountsAs(run);
    if (counts_as == Verdict::kPass || counts_as == Verdict::kSkipped) continue;
    out += Verbatim("  shakedown check" + Rerun(run), 0);
  }
  return out;
}

std::string RepeatText(const RepeatResult& repeat, const Style& style) {
  const std::string name = repeat.runs.empty() ? "" : repeat.runs.front().scenario;
  std::string out =
      Painted(Escape(name), Paint::kTitle, style) + ": " +
      Painted(ToString(repeat.merged.verdict), PaintOf(repeat.merged.verdict), style) +
      (repeat.merged.dirty ? Painted(" DIRTY", Paint::kBad, style) : "") +
      (repeat.merged.unstable ? Painted(" unstable", Paint::kBad, style) : "") + ", " +
      std::to_string(repeat.runs.size()) + " runs in " + HumanMs(repeat.wall_ms) + ": " +
      CountsText(CountVerdicts(repeat.runs)) + "\n";
  out += Paragraph("injections: " + CountsText(CountLevels(repeat.runs)), 0, style);
  if (repeat.merged.spread.is_object() && !repeat.merged.spread.empty()) {
    out += "\n" + Title(PadRight("spread", 22) + PadLeft("min", 12) + PadLeft("median", 12) +
                            PadLeft("max", 12),
                        style);
    for (const auto& [what, values] : repeat.merged.spread.items()) {
      std::string line = PadRight(Escape(what), 22);
      for (const char* key : {"min", "median", "max"}) {
        const auto value = NumberField(values, key);
        const std::string text = !value ? "-"
                                 : what.ends_with("_ms")
                                     ? HumanMs(*value)
                                     : std::to_string(static_cast<int64_t>(*value));
        line += PadLeft(text, 12);
      }
      out += Trimmed(line);
    }
  }
  for (const RunVerdict& run : repeat.runs) {
    if (CountsAs(run) == Verdict::kPass) continue;
    out += "\n" + Head(run, style) + Verbatim("  shakedown check" + Rerun(run), 0);
  }
  return out;
}

}  // namespace shakedown::report
