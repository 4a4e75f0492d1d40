#include "harness/cli/command.h"

#include <cstdio>

#include "harness/base/text.h"
#include "harness/wire/run_dir.h"

namespace shakedown::cli {

void PrintJson(const Json& json) { std::puts(DumpPretty(json).c_str()); }

int ReportProblems(const Output& output, const std::vector<Problem>& problems, int exit_code) {
  SHAKEDOWN_ASSERT(!problems.empty());
  if (!output.json) {
    for (const Problem& problem : problems) {
      std::fprintf(stderr, "%s\n", Escape(Describe(problem)).c_str());
    }
    return exit_code;
  }
  Json all = Json::array();
  for (const Problem& problem : problems) all.push_back(ToJson(problem));
  PrintJson({{"schema_version", kSchemaVersion}, {"error", all.at(0)}, {"errors", all}});
  return exit_code;
}

int ReportError(const Output& output, const Error& error, int exit_code) {
  if (output.json) return ReportProblems(output, {{"", 0, 0, "", error.message, {}}}, exit_code);
  std::fprintf(stderr, "shakedown: %s\n", Escape(error.message).c_str());
  return exit_code;
}

void ReportWarnings(const Output& output, const std::vector<Problem>& warnings) {
  if (output.json) return;
  for (const Problem& warning : warnings) {
    std::fprintf(stderr, "warning: %s\n", Escape(Describe(warning)).c_str());
  }
}

}  // namespace shakedown::cli
