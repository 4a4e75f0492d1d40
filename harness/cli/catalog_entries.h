// Everything that has a name: what `list` shows in a line and `explain` in full, read from the
// declarations.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/wire/scenario.h"

namespace shakedown::cli {

// One named thing. Fields that its kind lacks are empty.
struct Entry {
  std::string kind;  // "fault", "scenario", "check", ...
  std::string name;
  std::string path;     // of a file that is it
  std::string summary;  // a sentence
  bool available = true;
  std::string why_not;
  std::string level;   // of a fault, with the means that this machine has
  std::string better;  // what would make a better means available
  std::vector<std::string> classes;
  // Everything else, in the order of printing: label and text.
  std::vector<std::pair<std::string, std::string>> details;
};

// Available when this machine has means for each of its faults.
Entry ScenarioEntry(const Scenario& scenario);

struct Listing {
  std::string_view plural;  // as in `list faults`
  std::vector<Entry> (*entries)();
};

// In the order in which `explain` looks a name up.
const std::vector<Listing>& Listings();

}  // namespace shakedown::cli
