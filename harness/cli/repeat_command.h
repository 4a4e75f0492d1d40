// What a person types to repeat a run, and the folder where runs go.
#pragma once

#include <filesystem>
#include <string>

#include "harness/base/status.h"
#include "harness/cli/scenario_options.h"

namespace shakedown::cli {

// "shakedown run --seed 7 --set 'a=b'": without the scenario's name.
std::string RepeatCommand(const std::string& command, const ScenarioOptions& options);

// Makes the folder and proves that something can be made inside.
Status CheckOutputFolder(const std::filesystem::path& folder);

}  // namespace shakedown::cli
