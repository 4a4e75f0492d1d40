// What a person reads. Every function returns text that ends with a newline, for stdout; nothing in
// it can move a cursor or change a colour but our own sequences: whatever came from the job is
// escaped (harness/base/text.h).
#pragma once

#include <string>
#include <string_view>

#include "analysis/report/report.h"

namespace shakedown::report {

struct Style {
  int width = 80;      // columns; less than 40 counts as 40
  bool color = false;  // ANSI colours; only for a terminal without NO_COLOR
};

// One run: verdict and reason, injections, checks, diagnosis beside what was stated, times, what to
// do next.
std::string RunText(const RunVerdict& run, const Style& style);
// One line per verdict with its count, the spread of the times, and where the runs lie.
std::string RepeatText(const RepeatResult& repeat, const Style& style);
// One row per scenario, then counts and levels.
std::string SuiteText(const SuiteResult& suite, const Style& style);
// `shakedown diagnose`.
std::string DiagnosisText(const Diagnosis& diagnosis, const Style& style);

// The row of one run without its header, for suites that print as they go.
std::string SuiteRow(const RunVerdict& run, const Style& style);
std::string SuiteHeader(const Style& style);

// A line on a terminal that is written over again and again, for stderr. On anything that is no
// terminal, each text is a line of its own and repeated texts are left out.
class ProgressLine {
 public:
  // `fd` stays the caller's and must outlive the line.
  ProgressLine(int fd, bool is_terminal, int width);
  // Ends the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows `text`, escaped, cut to the width on a terminal.
  void Show(std::string_view text);
  // Removes what is shown (terminal), so that other output may follow.
  void Clear();

 private:
  void Write(std::string_view bytes);

  int fd_;
  bool is_terminal_;
  int width_;
  std::string shown_;
};

}  // namespace shakedown::report
