#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/run/clean.h"

namespace shakedown::cli {
namespace {

int Abort(const std::string& path, const Output& output) {
  Result<AbortReport> report = AbortRun(path);
  if (!report) return ReportError(output, report.error(), kExitUsage);
  if (output.json) {
    PrintJson(ToJson(*report));
  } else {
    std::fputs(EscapeLines(Describe(*report)).c_str(), stdout);
  }
  return report->remains.empty() ? kExitPass : kExitDirty;
}

}  // namespace

Command commands::abort() {
  return {"abort", "stop a run from anywhere and undo its faults",
          "RUN is a run directory. The controller is told to stop (it undoes its faults, ends the\n"
          "job and keeps the evidence); where it is gone already, what it left is undone.\n\n"
          "Example:\n"
          "  shakedown abort runs/rank_killed-20261130T194514-a1b2c3\n\n"
          "Exit status: 0 stopped and undone, 2 no such run, 6 something remains.\n",
          [](CLI::App& app) -> Action {
            auto run = std::make_shared<std::string>();
            app.add_option("RUN", *run, "a run directory")->required();
            return [run](const Output& output) { return Abort(*run, output); };
          }};
}

}  // namespace shakedown::cli
