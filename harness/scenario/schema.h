// The format of a scenario file, printed from the declarations that the parser reads (keys.h, the
// fault catalog): nothing is said twice.
#pragma once

#include <string>

#include "harness/wire/json.h"

namespace shakedown {

// JSON Schema, draft 2020-12. Editors complete and check scenarios with it; what concerns more than
// one key (a rank outside the job) only `validate` knows.
Json ScenarioSchema();

// scenarios/README.md's table of keys: one row per key with type, default and meaning.
std::string ScenarioKeyTable();

}  // namespace shakedown
