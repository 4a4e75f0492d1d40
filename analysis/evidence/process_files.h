// Readers of the files of one process, shared by the run's evidence and by its reference.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/evidence/folder.h"
#include "analysis/evidence/observed.h"

namespace shakedown {

// Far above what a run of the largest reference model writes; refuses what damage has made up.
inline constexpr int64_t kMaxLogBytes = int64_t{64} << 20;
inline constexpr int64_t kMaxEventBytes = int64_t{512} << 20;
inline constexpr int64_t kMaxLedgerBytes = int64_t{256} << 20;
inline constexpr int64_t kMaxWeightsBytes = int64_t{512} << 20;

// Absent is nullopt without damage: whether absence matters is the seal's and the check's business.
std::optional<std::string> ReadOptional(const EvidenceFolder& folder,
                                        const std::filesystem::path& path, int64_t limit_bytes,
                                        std::vector<Damage>* damage);
std::optional<RankLedger> ReadRankLedger(const EvidenceFolder& folder,
                                         const std::filesystem::path& path,
                                         std::vector<Damage>* damage);
std::optional<WeightsDump> ReadWeights(const EvidenceFolder& folder,
                                       const std::filesystem::path& path,
                                       std::vector<Damage>* damage);
// The observed half of a progress page.
std::optional<PageSample> ReadPage(const EvidenceFolder& folder, const std::filesystem::path& path,
                                   std::vector<Damage>* damage);
// Structured lines; `arrived` is not filled in.
std::vector<LogLine> ReadLog(const EvidenceFolder& folder, const std::filesystem::path& path,
                             int attempt, std::optional<int> writer, std::vector<Damage>* damage,
                             std::vector<std::string>* hashes);

}  // namespace shakedown
