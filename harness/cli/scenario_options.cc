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
  // The option parser would take -1 for the largest number.
  const auto in_range = [](const std::string& text) -> std::string {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return digits && text.size() <= 18 ? "" : "'" + text + "' is not a number from 0 to 10^18 - 1";
  };
  app.add_option("--seed", seed, "for everything that is drawn; one seed, one plan (default: 1)")
      ->check(in_range)
      ->type_name("N");
}

ParseOptions ScenarioOptions::parse_options() const {
  ParseOptions options;
  if (!job.empty()) options.job_file = job;
  options.sets = sets;
  return options;
}

void DeclareOut(CLI::App& app, std::string* out) {
  app.add_option("--out", *out, "where run directories go (default: $SHAKEDOWN_RUNS, else ./runs)")
      ->check([](const std::string& folder) -> std::string {
        return folder.empty() ? "the name of the folder is empty" : "";
      });
}

ParsedScenario LoadScenario(const std::string& argument, const ScenarioOptions& options) {
  const auto file = FindScenario(argument);
  if (file) return ParseScenarioFile(*file, options.parse_options());
  ParsedScenario out;
  out.problems.push_back(file.error());
  return out;
}

}  // namespace shakedown::cli
