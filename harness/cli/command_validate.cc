#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/scenario/library.h"
#include "harness/scenario/parse.h"
#include "harness/wire/run_dir.h"

namespace shakedown::cli {
namespace {

ParsedScenario Parse(const std::string& argument) {
  const auto file = FindScenario(argument);
  if (file) return ParseScenarioFile(*file);
  ParsedScenario out;
  out.problems.push_back(file.error());
  return out;
}

int Validate(const std::vector<std::string>& files, const Output& output) {
  std::vector<Problem> problems;
  Json results = Json::array();
  for (const std::string& file : files) {
    const ParsedScenario parsed = Parse(file);
    problems.insert(problems.end(), parsed.problems.begin(), parsed.problems.end());
    Json warnings = Json::array();
    for (const Problem& warning : parsed.warnings) warnings.push_back(ToJson(warning));
    ReportWarnings(output, parsed.warnings);
    results.push_back({{"file", file},
                       {"name", parsed.scenario ? Json(parsed.scenario->name) : Json(nullptr)},
                       {"valid", parsed.scenario.has_value()},
                       {"warnings", std::move(warnings)}});
    if (!output.json && parsed.scenario) std::printf("%s: valid\n", Escape(file).c_str());
  }
  if (!problems.empty()) return ReportProblems(output, problems);
  if (output.json) PrintJson({{"schema_version", kSchemaVersion}, {"files", std::move(results)}});
  return kExitPass;
}

}  // namespace

Command commands::validate() {
  return {"validate", "check scenario files",
          "Reports all problems of all files at once, with file, line and column. A step or an\n"
          "occurrence that is never reached is a warning here, and makes a run INVALID.\n\n"
          "Examples:\n"
          "  shakedown validate my_scenario.yaml\n"
          "  shakedown validate scenarios/smoke/*.yaml --json\n\n"
          "Exit status: 0 all are valid, 2 some is not.\n",
          [](CLI::App& app) -> Action {
            auto files = std::make_shared<std::vector<std::string>>();
            app.add_option("FILE", *files, "scenario files, or listed names")->required();
            return [files](const Output& output) { return Validate(*files, output); };
          }};
}

}  // namespace shakedown::cli
