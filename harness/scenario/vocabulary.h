// The closed lists of names that a scenario may use, each read from its one declaration.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shakedown {

struct NamedSentence {
  std::string_view name;
  std::string_view sentence;
};

std::span<const NamedSentence> FailureClasses();  // classes.def
std::span<const NamedSentence> Mechanisms();      // harness/wire/mechanisms.def

std::vector<std::string> FaultNames();  // injectors/catalog.def, "rank.kill"
std::vector<std::string> PointNames();  // harness/wire/points.def
std::vector<std::string> CheckNames();  // analysis/checks/catalog.def
std::vector<std::string> ClassNames();
std::vector<std::string> MechanismNames();

// Data sets that ship with the project: folders of trainer/data with an IDX pair.
std::vector<std::string> DataSetNames();
// The folder of a listed data set.
std::string DataSetFolder(std::string_view name);

}  // namespace shakedown
