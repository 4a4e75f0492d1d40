// The scenarios that come with Shakedown, and how the words SCENARIO and SUITE on a command line
// are understood.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "harness/scenario/problem.h"

namespace shakedown {

// The folder scenarios/ of the source tree that this binary was built from.
std::filesystem::path ScenarioFolder();

// All scenario files below `folder`, sorted by path: every *.yaml but suite.yaml and job.yaml.
std::vector<std::filesystem::path> ScenarioFiles(const std::filesystem::path& folder);

// The name by which a file is listed: its path below ScenarioFolder() without .yaml
// ("smoke/rank_killed"); the path itself for a file that lies elsewhere.
std::string ListedName(const std::filesystem::path& file);

// `argument` is a file or a listed name ("smoke/rank_killed", or "rank_killed" where only one
// folder has it). A name that several folders have is a problem that lists them.
tl::expected<std::filesystem::path, Problem> FindScenario(const std::string& argument);

// A suite is a folder of scenarios, with an optional suite.yaml.
struct Suite {
  std::string name;  // of the folder
  std::filesystem::path folder;
  std::vector<std::filesystem::path> files;  // control.yaml first, then sorted by name
  // Names of scenarios that must have run (not been skipped) for the suite to pass; each is one of
  // the suite's files.
  std::vector<std::string> require;
};

// `argument` is a folder, or the name of one below ScenarioFolder(). A folder without a scenario is
// a problem. The scenarios themselves are not read.
tl::expected<Suite, std::vector<Problem>> LoadSuite(const std::string& argument);

}  // namespace shakedown
