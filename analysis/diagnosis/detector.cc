#include "analysis/diagnosis/detector.h"

namespace shakedown::diagnosis {

#define SHAKEDOWN_DETECTOR(name)   \
  namespace name {                 \
  extern const Detector kDetector; \
  }
#include "analysis/diagnosis/catalog.def"
#undef SHAKEDOWN_DETECTOR

std::span<const Detector* const> Detectors() {
  static constexpr const Detector* kDetectors[] = {
#define SHAKEDOWN_DETECTOR(name) &name::kDetector,
#include "analysis/diagnosis/catalog.def"
#undef SHAKEDOWN_DETECTOR
  };
  return kDetectors;
}

double MsSinceStart(const ObservedEvidence& evidence, MonoTime t) {
  return evidence.events.empty() ? 0 : ToMs(t - evidence.events.front().t);
}

ChainLink Link(const ObservedEvidence& evidence, ChainRole role, int attempt,
               std::optional<int> rank, MonoTime t, std::string what, Where where) {
  return {MsSinceStart(evidence, t), role, attempt, rank, std::move(what), std::move(where)};
}

Culprit RankCulprit(int rank) {
  Culprit culprit;
  culprit.kind = "rank";
  culprit.rank = rank;
  return culprit;
}

std::string Shorten(std::string_view text, size_t limit_bytes) {
  if (text.size() <= limit_bytes) return std::string(text);
  // Not in the middle of a character.
  while (limit_bytes > 0 && (static_cast<unsigned char>(text[limit_bytes]) & 0xC0) == 0x80) {
    --limit_bytes;
  }
  return std::string(text.substr(0, limit_bytes)) + "...";
}

}  // namespace shakedown::diagnosis
