// Turns what a run tells (RunProgress) into lines on stderr.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "harness/cli/command.h"
#include "harness/run/controller.h"

namespace shakedown::cli {

// `title` stands before each line. The callback keeps what it needs alive.
std::function<void(const RunProgress&)> LiveView(const std::string& title);

}  // namespace shakedown::cli
