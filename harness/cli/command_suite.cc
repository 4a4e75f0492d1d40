#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "analysis/report/console.h"
#include "analysis/report/json.h"
#include "harness/cli/command.h"
#include "harness/cli/live_view.h"
#include "harness/cli/repeat_command.h"
#include "harness/cli/scenario_options.h"
#include "harness/suite/suite.h"

namespace shakedown::cli {
namespace {

struct Options {
  std::string suite;
  ScenarioOptions common;
  std::string out;
};

int RunSuiteCommand(const Options& options, const Output& output) {
  tl::expected<Suite, std::vector<Problem>> suite = LoadSuite(options.suite);
  if (!suite) return ReportProblems(output, suite.error());
  std::vector<Scenario> scenarios;
  std::vector<Problem> problems;
  for (const std::filesystem::path& file : suite->files) {
    ParsedScenario parsed = LoadScenario(file.native(), options.common);
    problems.insert(problems.end(), parsed.problems.begin(), parsed.problems.end());
    if (parsed.scenario) scenarios.push_back(std::move(*parsed.scenario));
  }
  if (!problems.empty()) return ReportProblems(output, problems);

  SuiteOptions run;
  run.runner.out = options.out.empty() ? DefaultRunsFolder() : std::filesystem::path(options.out);
  run.runner.seed = options.common.seed;
  run.runner.command = RepeatCommand("run", options.common);
  run.runner.progress = LiveView(suite->name);
  if (Status writable = CheckOutputFolder(run.runner.out); !writable) {
    return ReportError(output, writable.error(), kExitUsage);
  }
  const report::Style style{output.width, output.color};
  // Where the table goes to a file, each row is shown as soon as its run is judged.
  const bool rows = !output.json && ::isatty(STDOUT_FILENO) == 0;
  run.finished = [&](const RunVerdict& verdict) {
    if (rows) std::fputs(report::SuiteRow(verdict, style).c_str(), stderr);
  };
  const SuiteOutcome outcome = RunSuite(*suite, scenarios, run);
  if (output.json) {
    PrintJson(report::SuiteJson(outcome.result));
  } else {
    std::fputs(report::SuiteText(outcome.result, style).c_str(), stdout);
  }
  if (outcome.interrupted_by != 0) return 128 + outcome.interrupted_by;
  return ExitCodeOf(outcome.result.verdict, outcome.result.dirty);
}

}  // namespace

Command commands::suite() {
  return {
      "suite", "run many scenarios, the control first",
      "SUITE is a folder of scenarios or the name of one that comes with Shakedown.\n\n"
      "Examples:\n"
      "  shakedown suite smoke\n"
      "  shakedown suite my-scenarios --out /scratch/runs --json\n\n"
      "Exit status: as `shakedown run`, for the worst run: FAIL, ERROR, INVALID, INCONCLUSIVE,\n"
      "PASS. A run that ends as its scenario expects counts as PASS. 77: all were skipped.\n",
      [](CLI::App& app) -> Action {
        auto options = std::make_shared<Options>();
        app.add_option("SUITE", options->suite, "a folder, or a listed suite")->required();
        DeclareOut(app, &options->out);
        options->common.Declare(app);
        return [options](const Output& output) { return RunSuiteCommand(*options, output); };
      }};
}

}  // namespace shakedown::cli
