// YAML to Scenario. Everything is checked before anything starts; all problems of a file are
// reported together, sorted by position. The only part that knows a YAML library.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/problem.h"
#include "harness/wire/scenario.h"

namespace shakedown {

struct ParseOptions {
  // --job FILE: this job instead of the scenario's own.
  std::optional<std::filesystem::path> job_file;
  // --set PATH=VALUE, applied in order to the tree before it is checked: dotted keys, list indices
  // from 0, values as YAML ("faults.0.at.rank=2"). A missing key is added, a missing list element
  // is a problem.
  std::vector<std::string> sets;
};

struct ParsedScenario {
  std::optional<Scenario> scenario;  // when there is no problem
  std::vector<Problem> problems;
  // What may be meant but will make a run INVALID: a step or occurrence that is never reached.
  std::vector<Problem> warnings;
};

// Reads a regular file of at most 1 MiB. `job: {file: ...}` is relative to it.
ParsedScenario ParseScenarioFile(const std::filesystem::path& path,
                                 const ParseOptions& options = {});
// `path` stands in problems and is what `job: {file: ...}` is relative to; nothing is read from it.
ParsedScenario ParseScenario(std::string_view text, const std::filesystem::path& path,
                             const ParseOptions& options = {});

}  // namespace shakedown
