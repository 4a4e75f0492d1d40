// A tree and the declarations of its keys to a structure: types, units, limits, names, unknown and
// duplicate and missing keys. What concerns more than one key is in check_scenario.h.
#pragma once

#include <span>
#include <vector>

#include "harness/scenario/keys.h"
#include "harness/scenario/problem.h"
#include "harness/scenario/tree.h"
#include "injectors/fault.h"

namespace shakedown {

// Stores what is right into `object` and appends a problem for everything that is not. `path` names
// the group in messages ("job.checkpoint"; empty at the top).
void BindKeys(const std::vector<Source>& sources, const Node& map, std::span<const Key> keys,
              void* object, std::string_view path, std::vector<Problem>* problems);

// The parameters of one fault, completed with its defaults. `with` may be nullptr: none were
// written; a required one that is missing is then reported at `fault`.
Params BindParams(const std::vector<Source>& sources, const Node* with, const Node& fault,
                  std::span<const ParamSpec> specs, std::string_view path,
                  std::vector<Problem>* problems);

// Duplicate keys anywhere below `node`.
void FindDuplicateKeys(const std::vector<Source>& sources, const Node& node,
                       std::vector<Problem>* problems);

}  // namespace shakedown
