// The options that every command with a SCENARIO or SUITE has: --job, --set, --seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/scenario/parse.h"

namespace CLI {
class App;
}

namespace shakedown::cli {

struct ScenarioOptions {
  std::string job;                // empty: the scenario's own
  std::vector<std::string> sets;  // "PATH=VALUE"
  uint64_t seed = 1;

  // REQUIRES: *this outlives the parsing of the command line.
  void Declare(CLI::App& app);
  ParseOptions parse_options() const;
};

// --out of the commands that run something; an empty name is refused. REQUIRES: *out outlives the
// parsing of the command line.
void DeclareOut(CLI::App& app, std::string* out);

// Finds and parses `argument` (a file or a listed name). Without a scenario there are problems.
ParsedScenario LoadScenario(const std::string& argument, const ScenarioOptions& options);

}  // namespace shakedown::cli
