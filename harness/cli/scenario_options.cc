#include "harness/cli/scenario_options.h"

#include <CLI/CLI.hpp>

#include "harness/scenario/library.h"

namespace shakedown::cli {

void ScenarioOptions::Declare(CLI::App& app) {
  app.add_option("--job", job, "a job file instead of the scenario's own job")->type_name("FILE");
  app.add_option("--set", sets,
                 "change one value: dotted keys, list indices from 0, VALUE as YAML "
                 "(faults.0.at.rank=2); may be repeated")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->take_all();
  app.add_option("--seed", seed, "for everything that is drawn; one seed, one plan (default: 1)")
      ->type_name("N");
}

ParseOptions ScenarioOptions::parse_options() const {
  ParseOptions options;
  if (!job.empty()) options.job_file = job;
  options.sets = sets;
  return options;
}

ParsedScenario LoadScenario(const std::string& argument, const ScenarioOptions& options) {
  const auto file = FindScenario(argument);
  if (file) return ParseScenarioFile(*file, options.parse_options());
  ParsedScenario out;
  out.problems.push_back(file.error());
  return out;
}

}  // namespace shakedown::cli
