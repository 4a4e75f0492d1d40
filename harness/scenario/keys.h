// Every key of a scenario file, declared once: the parser, the JSON Schema and the table in
// scenarios/README.md are all made from these declarations. A default is not written here but read
// from the structure that the key is stored in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/base/time.h"
#include "harness/wire/scenario.h"

namespace shakedown {

enum class KeyType {
  kText,
  kName,   // a word; one of names() when there is such a list
  kNames,  // a list of such words
  kInteger,
  kIntegers,  // a list of whole numbers, not empty
  kNumber,
  kDuration,       // "250ms"
  kDurationOrOff,  // or "off"
  kBytes,          // "64KiB"
  kDate,           // YYYY-MM-DD
  kRanks,          // a number, a list of numbers, or any, last, all
  kParams,         // the fault's own parameters
  kMap,            // keys below it
  kMaps,           // a list of such
};

struct Off {};  // a duration that is switched off
using Value = std::variant<int64_t, double, std::string, Nanoseconds, Off, std::vector<int64_t>,
                           std::vector<std::string>, Target>;

struct Key {
  std::string_view name;
  KeyType type;
  std::string_view sentence;
  // Where it goes. `object` is what the group of keys is stored in: Scenario at the top, then what
  // `enter` of the group returns.
  void (*store)(void* object, const Value& value) = nullptr;
  // The default as it would be written in YAML; empty: none. nullptr: required.
  std::string (*show_default)(const void* object) = nullptr;
  std::string_view minimum;  // as in YAML; empty: none
  std::string_view maximum;
  std::string_view what;  // kName, kNames: what the words name, for messages: "fault"
  std::vector<std::string> (*names)() = nullptr;
  std::span<const Key> keys;  // kMap, kMaps
  // kMap: what its keys are stored in. kMaps: appends an element and returns it; the pointer is
  // valid until the next call.
  void* (*enter)(void* object) = nullptr;
  bool required = false;
};

// Keys at the top of a scenario file, stored in a Scenario.
std::span<const Key> ScenarioKeys();
// Keys of `job:`, stored in a JobConfig; also the keys at the top of a job file.
std::span<const Key> JobKeys();
// Keys of suite.yaml, stored in a SuiteFile.
std::span<const Key> SuiteKeys();

}  // namespace shakedown
