#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "harness/cli/command.h"
#include "harness/cli/scenario_options.h"
#include "harness/plan/make_plan.h"
#include "harness/plan/print_plan.h"

namespace shakedown::cli {
namespace {

struct Options {
  std::string scenario;
  ScenarioOptions common;
};

int ShowPlan(const Options& options, const Output& output) {
  const ParsedScenario parsed = LoadScenario(options.scenario, options.common);
  if (!parsed.scenario) return ReportProblems(output, parsed.problems);
  ReportWarnings(output, parsed.warnings);
  const Result<Plan> plan = MakePlan(*parsed.scenario, options.common.seed, DetectMachine());
  if (!plan) return ReportError(output, plan.error(), kExitError);
  if (output.json) {
    PrintJson(PlanJson(*plan));
  } else {
    std::fputs(PlanText(*plan, output.width).c_str(), stdout);
  }
  return kExitPass;
}

}  // namespace

Command commands::plan() {
  return {"plan", "show what a run would touch, where, for how long; start nothing",
          "SCENARIO is a file or a listed name. One seed gives one plan; its digest is the same\n"
          "wherever the scenario's file lies.\n\n"
          "Examples:\n"
          "  shakedown plan rank_killed\n"
          "  shakedown plan smoke/disk_full --json\n"
          "  shakedown plan rank_killed --set faults.0.at.rank=any --seed 7\n\n"
          "Exit status: 0, 2 scenario error, 5 this machine has no means for a fault.\n",
          [](CLI::App& app) -> Action {
            auto options = std::make_shared<Options>();
            app.add_option("SCENARIO", options->scenario, "a file or a listed name")->required();
            options->common.Declare(app);
            return [options](const Output& output) { return ShowPlan(*options, output); };
          }};
}

}  // namespace shakedown::cli
