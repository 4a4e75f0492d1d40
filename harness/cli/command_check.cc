#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "analysis/report/console.h"
#include "analysis/report/json.h"
#include "analysis/verdict/verdict.h"
#include "harness/base/file.h"
#include "harness/cli/command.h"

namespace shakedown::cli {
namespace {

struct CheckOptions {
  std::string run;
  bool write = false;
};

int Check(const CheckOptions& options, const Output& output) {
  std::error_code ignored;
  const std::filesystem::path root = std::filesystem::weakly_canonical(options.run, ignored);
  const RunDir run(root.empty() ? std::filesystem::path(options.run) : root);
  Result<RunVerdict> verdict = Judge(run);
  if (!verdict) return ReportError(output, verdict.error(), kExitUsage);
  const Json json = report::RunJson(*verdict);
  if (options.write) {
    if (Status written = PublishFile(run.verdict(), DumpPretty(json) + "\n"); !written) {
      return ReportError(output, written.error(), kExitError);
    }
  }
  if (output.json) {
    PrintJson(json);
  } else {
    std::fputs(report::RunText(*verdict, {output.width, output.color}).c_str(), stdout);
  }
  return ExitCodeOf(verdict->verdict, verdict->dirty);
}

}  // namespace

Command commands::check() {
  return {
      "check", "judge a run again, from its evidence alone",
      "RUN is a run directory, of today or of years ago. Nothing is started and, without\n"
      "--write, nothing is changed. Evidence that is missing or was changed after it was sealed\n"
      "makes the checks that need it INCONCLUSIVE.\n\n"
      "Examples:\n"
      "  shakedown check runs/rank_killed-20261130T194514-a1b2c3\n"
      "  shakedown check --json RUN | jq '.checks[] | select(.status != \"PASS\")'\n\n"
      "Exit status: 0 PASS, 1 FAIL, 2 RUN is no run directory, 3 INVALID, 4 INCONCLUSIVE,\n"
      "5 ERROR, 6 DIRTY, 77 SKIPPED.\n",
      [](CLI::App& app) -> Action {
        auto options = std::make_shared<CheckOptions>();
        app.add_option("RUN", options->run, "a run directory")->required();
        app.add_flag("--write", options->write, "replace RUN/verdict.json by the new verdict");
        return [options](const Output& output) { return Check(*options, output); };
      }};
}

}  // namespace shakedown::cli
