#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/run/clean.h"
#include "harness/run/reference.h"
#include "harness/suite/runner.h"

namespace shakedown::cli {
namespace {

int CleanUp(const std::string& path, const Output& output) {
  const std::filesystem::path folder =
      path.empty() ? DefaultRunsFolder() : std::filesystem::path(path);
  // Nothing has ever run here, which is as clean as can be; a folder that was named must exist.
  const bool none = path.empty() && !std::filesystem::exists(folder);
  Result<CleanReport> report = none ? Result<CleanReport>(CleanReport{}) : Clean(folder);
  // Reference runs are made in the cache, and their controllers can be killed too.
  if (const Result<std::filesystem::path> cache = CacheDirectory();
      report && cache && std::filesystem::exists(*cache / "reference")) {
    if (const Result<CleanReport> more = Clean(*cache / "reference")) {
      report->runs.insert(report->runs.end(), more->runs.begin(), more->runs.end());
      report->live.insert(report->live.end(), more->live.begin(), more->live.end());
    }
  }
  if (!report) return ReportError(output, report.error(), kExitUsage);
  if (output.json) {
    PrintJson(ToJson(*report));
  } else {
    std::fputs(EscapeLines(Describe(*report)).c_str(), stdout);
  }
  return report->clean() ? kExitPass : kExitDirty;
}

}  // namespace

Command commands::clean() {
  return {
      "clean", "undo what earlier runs left behind",
      "PATH is a run directory, or a folder with run directories. Only runs whose controller is\n"
      "gone are touched, and only what their undo journal names.\n\n"
      "Examples:\n"
      "  shakedown clean\n"
      "  shakedown clean /scratch/runs --json\n\n"
      "Exit status: 0 nothing is left, 2 no such folder, 6 something remains (it says what to "
      "do).\n",
      [](CLI::App& app) -> Action {
        auto path = std::make_shared<std::string>();
        app.add_option(
            "PATH", *path,
            "a run directory or a folder of them (default: $SHAKEDOWN_RUNS, else ./runs)");
        return [path](const Output& output) { return CleanUp(*path, output); };
      }};
}

}  // namespace shakedown::cli
