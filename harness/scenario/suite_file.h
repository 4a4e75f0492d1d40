// suite.yaml: what a folder of scenarios says about itself as a suite.
#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "harness/scenario/problem.h"

namespace shakedown {

struct SuiteFile {
  std::vector<std::string> require;  // names of scenarios that must have run
};

tl::expected<SuiteFile, std::vector<Problem>> ParseSuiteFile(const std::filesystem::path& path);

}  // namespace shakedown
