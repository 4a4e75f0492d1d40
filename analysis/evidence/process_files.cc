#include "analysis/evidence/process_files.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "analysis/evidence/sane.h"
#include "harness/base/file.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

std::string Hex64(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

template <typename T>
T At(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

constexpr const char* kLaneNames[kLanes] = {"main", "autograd", "writer"};

// A number of the page that no real job reaches would overflow what follows; it is damage then.
int64_t Bounded(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, kMaxStep));
}

}  // namespace

std::optional<std::string> ReadOptional(const EvidenceFolder& folder, const fs::path& path,
                                        int64_t limit_bytes, std::vector<Damage>* damage) {
  Result<std::string> text = folder.Read(path, limit_bytes);
  if (text) return std::move(*text);
  if (text.error().code != ENOENT) {
    damage->push_back({{folder.Relative(path), 0}, text.error().message});
  }
  return std::nullopt;
}

std::optional<RankLedger> ReadRankLedger(const EvidenceFolder& folder, const fs::path& path,
                                         std::vector<Damage>* damage) {
  const auto bytes = ReadOptional(folder, path, kMaxLedgerBytes, damage);
  if (!bytes) return std::nullopt;
  const Where where{folder.Relative(path), 0};
  Result<Ledger> decoded = DecodeLedger(*bytes);
  if (!decoded) {
    damage->push_back({where, decoded.error().message});
    return std::nullopt;
  }
  RankLedger ledger;
  ledger.header = decoded->header;
  ledger.torn_tail = decoded->torn_tail;
  ledger.where = where;
  for (LedgerRecord& record : decoded->records) {
    const bool sane = std::visit(
        [](auto& r) {
          r.t_ns = SaneTime(r.t_ns).ns;
          return r.step <= static_cast<uint64_t>(kMaxStep);
        },
        record);
    if (!sane) {
      damage->push_back({where, "a record of an impossible step"});
      return std::nullopt;
    }
    if (ledger.end) {
      damage->push_back({where, "a record after the end of the ledger"});
      return std::nullopt;
    }
    if (auto* start = std::get_if<LedgerStart>(&record)) {
      if (ledger.start || !ledger.steps.empty()) {
        damage->push_back({where, "a second start in one ledger"});
        return std::nullopt;
      }
      ledger.start = std::move(*start);
    } else if (auto* step = std::get_if<LedgerStep>(&record)) {
      ledger.steps.push_back(std::move(*step));
    } else if (auto* saved = std::get_if<LedgerCheckpoint>(&record)) {
      ledger.checkpoints.push_back(*saved);
    } else {
      ledger.end = std::get<LedgerEnd>(record);
    }
  }
  return ledger;
}

std::optional<WeightsDump> ReadWeights(const EvidenceFolder& folder, const fs::path& path,
                                       std::vector<Damage>* damage) {
  auto bytes = ReadOptional(folder, path, kMaxWeightsBytes, damage);
  if (!bytes) return std::nullopt;
  if (bytes->empty()) {
    damage->push_back({{folder.Relative(path), 0}, "a dump of the weights without a byte"});
    return std::nullopt;
  }
  const Digest128 digest = Xxh3Of(*bytes);
  return WeightsDump{std::move(*bytes), digest};
}

std::optional<PageSample> ReadPage(const EvidenceFolder& folder, const fs::path& path,
                                   std::vector<Damage>* damage) {
  const auto bytes = ReadOptional(folder, path, kPageBytes, damage);
  if (!bytes) return std::nullopt;
  const Where where{folder.Relative(path), 0};
  if (bytes->size() < sizeof(PageObserved) ||
      At<uint32_t>(*bytes, offsetof(PageObserved, magic)) != kPageMagic ||
      At<uint32_t>(*bytes, offsetof(PageObserved, version)) != kPageVersion) {
    damage->push_back({where, "no progress page of this version"});
    return std::nullopt;
  }
  PageSample page;
  page.where = where;
  page.final = true;
  page.rank = At<int32_t>(*bytes, offsetof(PageObserved, rank));
  const auto worker = At<int32_t>(*bytes, offsetof(PageObserved, worker));
  if (worker >= 0) page.worker = worker;
  for (size_t i = 0; i < kLanes; ++i) {
    const auto word = At<uint64_t>(*bytes, offsetof(PageObserved, lanes) + i * sizeof(uint64_t));
    if (word == 0) continue;
    const Progress progress = Unpack(word);
    page.attempt = progress.attempt;
    page.lanes[kLaneNames[i]] = {std::string(PointName(progress.point)), progress.step,
                                 progress.count};
  }
  page.last_step = Bounded(At<uint64_t>(*bytes, offsetof(PageObserved, last_step)));
  page.last_step_ns = SaneTime(At<int64_t>(*bytes, offsetof(PageObserved, last_step_ns))).ns;
  page.collectives_entered =
      Bounded(At<uint64_t>(*bytes, offsetof(PageObserved, collectives_entered)));
  page.collectives_enqueued =
      Bounded(At<uint64_t>(*bytes, offsetof(PageObserved, collectives_enqueued)));
  page.committed_step = Bounded(At<uint64_t>(*bytes, offsetof(PageObserved, committed_step)));
  const auto error = At<uint64_t>(*bytes, offsetof(PageObserved, checkpoint_error));
  if (error != 0) {
    page.checkpoint_error = PageSample::CheckpointError{static_cast<int64_t>(error >> 32),
                                                        static_cast<int64_t>(error & 0xFFFFFFFF)};
  }
  return page;
}

std::vector<LogLine> ReadLog(const EvidenceFolder& folder, const fs::path& path, int attempt,
                             std::optional<int> writer, std::vector<Damage>* damage,
                             std::vector<std::string>* hashes) {
  std::vector<LogLine> out;
  const auto text = ReadOptional(folder, path, kMaxLogBytes, damage);
  if (!text) return out;
  const std::string file = folder.Relative(path);
  int number = 0;
  for (const std::string_view line : SplitLines(*text).complete) {
    ++number;
    const Result<Json> json = ParseJson(line);
    const auto event = json ? StringField(*json, "event") : std::nullopt;
    const auto level = json ? StringField(*json, "level") : std::nullopt;
    if (!event || !level) {
      damage->push_back({{file, number}, "no log record: event or level is missing"});
      continue;
    }
    LogLine record;
    record.attempt = attempt;
    record.writer = writer;
    record.where = {file, number};
    record.t = SaneTime(IntField(*json, "t_ns").value_or(0));
    record.level = *level;
    record.event = *event;
    if (const auto rank = IntField(*json, "rank")) record.rank = static_cast<int>(*rank);
    record.step = IntField(*json, "step");
    record.message = StringField(*json, "message").value_or("");
    record.fields = *json;
    out.push_back(std::move(record));
    hashes->push_back(Hex64(Xxh3Of64(line)));
  }
  return out;
}

}  // namespace shakedown
