#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "harness/cli/command.h"
#include "harness/scenario/schema.h"

namespace shakedown::cli {
namespace {

int PrintSchema(bool markdown, const Output& output) {
  if (markdown && !output.json) {
    std::fputs(ScenarioKeyTable().c_str(), stdout);
  } else {
    PrintJson(ScenarioSchema());
  }
  return kExitPass;
}

}  // namespace

Command commands::schema() {
  return {
      "schema", "print the JSON Schema of scenario files",
      "Made from the declarations that the parser reads. For completion in an editor:\n"
      "  shakedown schema > scenario.schema.json\n"
      "and, as first line of a scenario, # yaml-language-server: $schema=scenario.schema.json\n\n"
      "  shakedown schema --markdown       the table of keys in scenarios/README.md\n\n"
      "Exit status: 0.\n",
      [](CLI::App& app) -> Action {
        auto markdown = std::make_shared<bool>(false);
        app.add_flag("--markdown", *markdown, "a table of all keys instead");
        return [markdown](const Output& output) { return PrintSchema(*markdown, output); };
      }};
}

}  // namespace shakedown::cli
