// The rows of patterns.def, which explains the columns.
#pragma once

#include <span>
#include <string_view>

#include "analysis/diagnosis/diagnosis.h"

namespace shakedown::diagnosis {

enum class CulpritForm { kRank, kWorker, kStorage, kMissing, kNobody };
enum class Guard { kNone, kFirst, kFirstOfRun };

struct EventPattern {
  std::string_view event;
  std::string_view field;
  std::string_view values;
  ChainRole role;
  std::string_view mechanism;
  CulpritForm culprit;
  int percent;
  Guard guard;
  std::string_view sentence;
};

struct TextPattern {
  std::string_view text;
  ChainRole role;
  std::string_view mechanism;
  CulpritForm culprit;
  int percent;
  std::string_view sentence;
};

std::span<const EventPattern> EventPatterns();
std::span<const TextPattern> TextPatterns();

}  // namespace shakedown::diagnosis
