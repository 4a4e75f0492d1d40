// What is wrong with a scenario, and where. Parsing goes on after a problem, so that a person sees
// all of them at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/wire/json.h"

namespace shakedown {

struct Problem {
  std::string file;  // path as given, or "--set faults.0.at.rank=7" for an override
  int line = 0;      // from 1; 0: the file as a whole, or an option
  int column = 0;    // from 1, in characters; of an option in its PATH=VALUE; 0: all of it
  std::string text;  // the offending text as written; may be empty
  std::string message;
  std::optional<std::string> nearest;  // a valid name close to `text`
};

// "file:3:5: unknown key 'stepz' (did you mean 'steps'?)";
// "--set job={stepz: 3}, character 6: unknown key 'stepz' (did you mean 'steps'?)".
std::string Describe(const Problem& problem);
// {file, line, column, text, message, nearest}; what is absent is null.
Json ToJson(const Problem& problem);

// The name closest to `text` by edit distance (insert, delete, replace, swap of neighbours), when
// it is close enough that a slip is likely; nullopt otherwise.
std::optional<std::string> NearestName(std::string_view text,
                                       const std::vector<std::string>& names);

}  // namespace shakedown
