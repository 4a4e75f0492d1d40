#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/report/console.h"
#include "analysis/report/json.h"
#include "harness/cli/command.h"

namespace shakedown::cli {
namespace {

int DiagnoseRun(const std::string& path, const Output& output) {
  Result<Diagnosis> diagnosis = DiagnoseIsolated(RunDir(path));
  if (!diagnosis) return ReportError(output, diagnosis.error(), kExitUsage);
  if (output.json) {
    PrintJson(report::DiagnosisJson(*diagnosis));
  } else {
    std::fputs(report::DiagnosisText(*diagnosis, {output.width, output.color}).c_str(), stdout);
  }
  return diagnosis->mechanism == "unknown" ? kExitInconclusive : kExitPass;
}

}  // namespace

Command commands::diagnose() {
  return {
      "diagnose", "name the culprit and the cause, from what an operator could see",
      "RUN is a run directory. What knows the plan (run.json, injected.jsonl, the journals, the\n"
      "verdict) is not read: where the kernel has Landlock, the process that reads cannot even\n"
      "open it; the last line (with --json: isolation) says which.\n\n"
      "Examples:\n"
      "  shakedown diagnose runs/rank_killed-20261130T194514-a1b2c3\n"
      "  shakedown diagnose --json RUN | jq '{culprits, mechanism, missing}'\n\n"
      "Exit status: 0 named or nothing wrong, 2 RUN is no run directory, 4 unknown.\n",
      [](CLI::App& app) -> Action {
        auto run = std::make_shared<std::string>();
        app.add_option("RUN", *run, "a run directory")->required();
        return [run](const Output& output) { return DiagnoseRun(*run, output); };
      }};
}

}  // namespace shakedown::cli
