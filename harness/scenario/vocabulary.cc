#include "harness/scenario/vocabulary.h"

#include <algorithm>
#include <filesystem>

#include "harness/wire/points.h"

namespace shakedown {
namespace {

constexpr NamedSentence kClasses[] = {
#define SHAKEDOWN_CLASS(name, sentence) {#name, sentence},
#include "harness/scenario/classes.def"
#undef SHAKEDOWN_CLASS
};

constexpr NamedSentence kMechanisms[] = {
#define SHAKEDOWN_MECHANISM(name, sentence) {#name, sentence},
#include "harness/wire/mechanisms.def"
#undef SHAKEDOWN_MECHANISM
};

std::vector<std::string> NamesOf(std::span<const NamedSentence> list) {
  std::vector<std::string> names;
  for (const NamedSentence& entry : list) names.emplace_back(entry.name);
  return names;
}

}  // namespace

std::span<const NamedSentence> FailureClasses() { return kClasses; }
std::span<const NamedSentence> Mechanisms() { return kMechanisms; }

// The lists themselves and not the catalogs built from them: names are all that is needed, and the
// checks' code is not.
std::vector<std::string> FaultNames() {
  return {
#define SHAKEDOWN_FAULT(family, name) #family "." #name,
#include "injectors/catalog.def"
#undef SHAKEDOWN_FAULT
  };
}
std::vector<std::string> CheckNames() {
  return {
#define SHAKEDOWN_CHECK(name) #name,
#include "analysis/checks/catalog.def"
#undef SHAKEDOWN_CHECK
  };
}
std::vector<std::string> ClassNames() { return NamesOf(kClasses); }
std::vector<std::string> MechanismNames() { return NamesOf(kMechanisms); }
std::vector<std::string> PointNames() {
  std::vector<std::string> names;
  for (const PointInfo& point : kPoints) names.emplace_back(point.name);
  return names;
}

std::vector<std::string> DataSetNames() {
  std::vector<std::string> names;
  std::error_code ignored;  // without the folder there are no data sets
  for (const auto& entry : std::filesystem::directory_iterator(SHAKEDOWN_DATA_FOLDER, ignored)) {
    if (std::filesystem::exists(entry.path() / "images-idx3-ubyte", ignored)) {
      names.push_back(entry.path().filename());
    }
  }
  std::ranges::sort(names);
  return names;
}

std::string DataSetFolder(std::string_view name) {
  return std::filesystem::path(SHAKEDOWN_DATA_FOLDER) / name;
}

}  // namespace shakedown
