#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "analysis/report/console.h"
#include "analysis/report/json.h"
#include "harness/base/time.h"
#include "harness/cli/command.h"
#include "harness/cli/live_view.h"
#include "harness/cli/repeat_command.h"
#include "harness/cli/scenario_options.h"
#include "harness/suite/runner.h"

namespace shakedown::cli {
namespace {

struct Options {
  std::string scenario;
  ScenarioOptions common;
  std::string out;
  int repeat = 1;
};

int Interrupted(int signal) { return 128 + signal; }

int RunOnce(const Scenario& scenario, const RunnerOptions& runner, const Output& output) {
  const RunnerResult result = RunScenario(scenario, runner);
  if (output.json) {
    PrintJson(report::RunJson(result.verdict));
  } else {
    std::fputs(report::RunText(result.verdict, {output.width, output.color}).c_str(), stdout);
  }
  if (result.interrupted_by != 0) return Interrupted(result.interrupted_by);
  return ExitCodeOf(result.verdict.verdict, result.verdict.dirty);
}

int RunRepeatedly(const Scenario& scenario, const RunnerOptions& runner, int times,
                  const Output& output) {
  RepeatResult repeat;
  const MonoTime began = MonoNow();
  int interrupted = 0;
  for (int i = 0; i < times && interrupted == 0; ++i) {
    RunnerOptions once = runner;
    once.progress =
        LiveView(scenario.name + " " + std::to_string(i + 1) + "/" + std::to_string(times));
    RunnerResult result = RunScenario(scenario, once);
    interrupted = result.interrupted_by;
    repeat.runs.push_back(std::move(result.verdict));
  }
  repeat.merged = MergeRepeats(repeat.runs);
  repeat.wall_ms = ToMs(MonoNow() - began);
  if (output.json) {
    PrintJson(report::RepeatJson(repeat));
  } else {
    std::fputs(report::RepeatText(repeat, {output.width, output.color}).c_str(), stdout);
  }
  if (interrupted != 0) return Interrupted(interrupted);
  return ExitCodeOf(repeat.merged.verdict, repeat.merged.dirty);
}

int Run(const Options& options, const Output& output) {
  ParsedScenario parsed = LoadScenario(options.scenario, options.common);
  if (!parsed.scenario) return ReportProblems(output, parsed.problems);
  RunnerOptions runner;
  runner.out = options.out.empty() ? DefaultRunsFolder() : std::filesystem::path(options.out);
  runner.seed = options.common.seed;
  runner.command = RepeatCommand("run", options.common) + " " + options.scenario;
  if (Status writable = CheckOutputFolder(runner.out); !writable) {
    return ReportError(output, writable.error(), kExitUsage);
  }
  if (options.repeat > 1) return RunRepeatedly(*parsed.scenario, runner, options.repeat, output);
  runner.progress = LiveView(parsed.scenario->name);
  return RunOnce(*parsed.scenario, runner, output);
}

}  // namespace

Command commands::run() {
  return {
      "run", "run one scenario and judge it",
      "Starts the job, injects the scenario's faults, and says whether the job recovered. The\n"
      "run directory keeps all evidence; `shakedown check RUN` judges it again.\n\n"
      "Examples:\n"
      "  shakedown run rank_killed\n"
      "  shakedown run rank_killed --set faults.0.at.rank=2 --seed 7\n"
      "  shakedown run smoke/disk_full --out /scratch/runs --json\n"
      "  shakedown run rank_killed --repeat 20\n\n"
      "Exit status: 0 PASS, 1 FAIL, 2 usage or scenario error (nothing was started), 3 INVALID,\n"
      "4 INCONCLUSIVE, 5 ERROR, 6 DIRTY, 77 SKIPPED, 128+N ended by signal N.\n",
      [](CLI::App& app) -> Action {
        auto options = std::make_shared<Options>();
        app.add_option("SCENARIO", options->scenario, "a file or a listed name")->required();
        DeclareOut(app, &options->out);
        app.add_option("--repeat", options->repeat, "run so often; the worst verdict counts")
            ->check(CLI::Range(1, 100000));
        options->common.Declare(app);
        return [options](const Output& output) { return Run(*options, output); };
      }};
}

}  // namespace shakedown::cli
