// What a person reads: golden texts at three widths, and nothing of the job's that could act.
#include "analysis/report/console.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "analysis/report/text.h"
#include "harness/base/text.h"
#include "tests/analysis/report/sample_runs.h"

namespace shakedown::report {
namespace {

using test_support::FailedRun;
using test_support::KilledRun;
using test_support::SampleSuite;
using test_support::SkippedRun;
using ::testing::HasSubstr;
using ::testing::Not;

// Compares with tests/golden/report/<name>. With SHAKEDOWN_UPDATE_GOLDEN=1 the file is written
// instead, and the test fails, so that nobody updates by accident.
void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(SHAKEDOWN_SOURCE_DIR) + "/tests/golden/report/" + name;
  if (std::getenv("SHAKEDOWN_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    FAIL() << path << " was written: read it, commit it, and run again without the variable";
  }
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

int LongestLine(const std::string& text) {
  int longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, Columns(line));
  return longest;
}

TEST(Console, RunAt80Columns) { ExpectGolden("run_80.txt", RunText(KilledRun(), {80, false})); }
TEST(Console, RunAt140Columns) { ExpectGolden("run_140.txt", RunText(KilledRun(), {140, false})); }
TEST(Console, RunAt50Columns) { ExpectGolden("run_50.txt", RunText(KilledRun(), {50, false})); }
TEST(Console, FailedRunAt80Columns) {
  ExpectGolden("failed_80.txt", RunText(FailedRun(), {80, false}));
}
TEST(Console, SuiteAt80Columns) {
  ExpectGolden("suite_80.txt", SuiteText(SampleSuite(), {80, false}));
}
TEST(Console, SuiteAt160Columns) {
  ExpectGolden("suite_160.txt", SuiteText(SampleSuite(), {160, false}));
}
TEST(Console, DiagnosisAt80Columns) {
  ExpectGolden("diagnosis_80.txt", DiagnosisText(KilledRun().diagnosis, {80, false}));
}
TEST(Console, RepeatAt80Columns) {
  ExpectGolden("repeat_80.txt", RepeatText(test_support::SampleRepeat(), {80, false}));
}

TEST(Console, NoLineIsWiderThanTheTerminal) {
  RunVerdict run = KilledRun();
  run.run_dir = "/r";  // paths stay whole, so that they can be copied
  for (const int width : {50, 80, 100, 120, 200}) {
    EXPECT_LE(LongestLine(RunText(run, {width, false})), width);
    // A place in the evidence is one word of up to 30 columns, beside 22 of time and role.
    if (width >= 80) {
      EXPECT_LE(LongestLine(DiagnosisText(run.diagnosis, {width, false})), width);
      EXPECT_LE(LongestLine(SuiteText(SampleSuite(), {width, false})), width);
    }
  }
}

TEST(Console, AbsurdWidthsAreSurvived) {
  for (const int width : {-5, 0, 1, 1'000'000}) {
    EXPECT_THAT(RunText(KilledRun(), {width, false}), HasSubstr("rank_killed"));
    EXPECT_THAT(SuiteText(SampleSuite(), {width, false}), HasSubstr("rank_killed"));
  }
}

TEST(Console, ColoursOnlyWhereAskedFor) {
  EXPECT_THAT(RunText(KilledRun(), {80, false}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(SuiteText(SampleSuite(), {80, false}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(RunText(KilledRun(), {80, true}), HasSubstr("\x1b[32mPASS"));
  EXPECT_THAT(RunText(FailedRun(), {80, true}), HasSubstr("\x1b[31mFAIL"));
}

TEST(Console, HostileTextOfTheJobIsEscapedEverywhere) {
  const std::string hostile = "\x1b]0;owned\x07\x1b[2J\r\nroot# \xc2\x9b\x31m \xff";
  RunVerdict run = FailedRun();
  run.scenario += hostile;
  run.reason = run.not_as_expected = run.run_dir = hostile;
  for (CheckResult& check : run.checks) {
    check.check += hostile;
    check.finding.reason = check.waived = hostile;
    check.finding.where = {{hostile, 3}};
  }
  for (InjectionResult& injection : run.injections) {
    injection.fault = injection.point = injection.level = injection.means = hostile;
  }
  Diagnosis& d = run.diagnosis;
  d.mechanism = d.runbook = d.isolation = hostile;
  d.reasons = d.missing = {hostile};
  d.culprits = {{hostile, 1, std::nullopt, hostile}};
  d.also = {{d.culprits, hostile, hostile, {hostile, 1}}};
  d.cascade = {{0, 1, hostile, {hostile, 1}}};
  d.chain = {{1, ChainRole::kRoot, 0, 1, hostile, {hostile, 1}}};
  for (AttemptSummary& attempt : run.attempts) {
    for (AttemptSummary::Exit& exit : attempt.exits) exit.signal = hostile;
  }
  SuiteResult suite = SampleSuite();
  suite.suite = hostile;
  suite.runs = {run};
  RepeatResult repeat;
  repeat.runs = {run};
  repeat.merged.spread = {{hostile, {{"min", 1}}}};
  for (const int width : {50, 80, 200}) {
    const Style style{width, false};
    for (const std::string& text : {RunText(run, style), DiagnosisText(d, style),
                                    SuiteText(suite, style), RepeatText(repeat, style)}) {
      for (const char c : text) {
        EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << int{c};
        EXPECT_NE(c, '\x7f');
      }
      EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
      EXPECT_THAT(text, Not(HasSubstr("\nroot#")));
    }
  }
}

TEST(Console, WhoNamesNothingIsNotShownAsSure) {
  RunVerdict run = KilledRun();
  run.diagnosis = Diagnosis();
  run.diagnosis.confidence = 1;  // of a verdict.json that says so
  EXPECT_THAT(DiagnosisText(run.diagnosis, {80, false}), Not(HasSubstr("%")));
  EXPECT_THAT(RunText(run, {80, false}), HasSubstr("Diagnosis (blind): unknown"));
  EXPECT_THAT(RunText(run, {80, false}), Not(HasSubstr("%")));
}

TEST(Console, SimulatedAndUnprovenAreCountedApart) {
  const std::string text = SuiteText(SampleSuite(), {160, false});
  EXPECT_THAT(text, HasSubstr("1 real, 1 simulated, 1 not proven"));
}

TEST(Console, SkippedIsNotCountedAsPass) {
  SuiteResult suite;
  suite.suite = "s";
  suite.runs = {SkippedRun()};
  EXPECT_THAT(SuiteText(suite, {80, false}), HasSubstr("1 skipped"));
  EXPECT_THAT(SuiteText(suite, {80, false}), Not(HasSubstr("pass")));
}

TEST(Escape, PlainTextAndUnicodeStay) {
  EXPECT_EQ(Escape("rank 1: größer, 日本"), "rank 1: größer, 日本");
}

TEST(Escape, ControlsBadBytesAndDirectionAreSpelledOut) {
  EXPECT_EQ(Escape("a\nb\tc\x1b\x07\x7f"), "a\\nb\\tc\\x1b\\x07\\x7f");
  EXPECT_EQ(Escape("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(Escape("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(Escape("\xc2\x9b"), "\\u009b");              // CSI in one byte
  EXPECT_EQ(Escape("\xe2\x80\xae"), "\\u202e");          // right to left
  EXPECT_EQ(Escape(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(Escape("\xe2\x80"), "\\xe2\\x80");  // cut off
}

TEST(Escape, WhatHasBeenEscapedStaysAndSoDoTheEndsOfLines) {
  EXPECT_EQ(Escape(Escape("\x1b\xff\n")), "\\x1b\\xff\\n");
  EXPECT_EQ(EscapeLines("a\x1b\nb\t\r\nc"), "a\\x1b\nb\\t\\x0d\nc");
  EXPECT_EQ(EscapeLines("\n\n"), "\n\n");
}

TEST(Text, WrapBreaksAtBlanksAndKeepsLongWords) {
  EXPECT_EQ(Wrap("one two three", 7, 0, 2), "one two\n  three");
  EXPECT_EQ(Wrap("a longerthanwidth b", 8, 0, 1), "a\n longerthanwidth\n b");
  EXPECT_EQ(Wrap("", 8, 0, 1), "");
  EXPECT_EQ(Wrap("  a   b ", 80, 0, 1), "a b");
}

TEST(Text, TimesAreReadable) {
  EXPECT_EQ(HumanMs(3.14), "3.1 ms");
  EXPECT_EQ(HumanMs(312.4), "312 ms");
  EXPECT_EQ(HumanMs(5011), "5.01 s");
  EXPECT_EQ(HumanMs(185'000), "3 min 5 s");
}

// Both ends of a pipe; what was written comes back.
std::string Captured(bool terminal, int width, const std::function<void(ProgressLine&)>& use) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  {
    ProgressLine line(ends[0], terminal, width);
    use(line);
  }
  ::close(ends[0]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[1], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  ::close(ends[1]);
  return text;
}

TEST(ProgressLine, OverwritesOnATerminalAndCutsToTheWidth) {
  const std::string text = Captured(true, 12, [](ProgressLine& line) {
    line.Show("step 1");
    line.Show("a long text indeed");
  });
  EXPECT_EQ(text, "\r\x1b[Kstep 1\r\x1b[Ka long t...\n");
}

TEST(ProgressLine, PrintsEachTextOnceElsewhere) {
  const std::string text = Captured(false, 12, [](ProgressLine& line) {
    line.Show("a long text indeed");
    line.Show("a long text indeed");
    line.Show("two\x1b[2J");
  });
  EXPECT_EQ(text, "a long text indeed\ntwo\\x1b[2J\n");
}

}  // namespace
}  // namespace shakedown::report
