#include "harness/wire/journal_record.h"

#include <fcntl.h>

#include <cerrno>
#include <set>

#include "harness/base/digest.h"

namespace shakedown {
namespace {

constexpr std::string_view kSumField = ",\"sum\":\"";
constexpr std::string_view kEnd = "\"}";
constexpr size_t kSumDigits = 16;
constexpr size_t kTailBytes = kSumField.size() + kSumDigits + kEnd.size();

std::string Hex64(uint64_t value) {
  std::string text(kSumDigits, '0');
  for (size_t i = kSumDigits; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 0xF];
  return text;
}

// The sequence number of an undone mark, as both files write it.
std::optional<uint64_t> UndoneSeq(const Json& record) {
  const std::optional<int64_t> seq = IntField(record, "seq");
  if (!seq || *seq < 1 || !BoolField(record, "undone").value_or(false)) return std::nullopt;
  return static_cast<uint64_t>(*seq);
}

std::optional<JournalStep> AsStep(const Json& record) {
  const std::optional<int64_t> seq = IntField(record, "seq");
  const Json& step = Field(record, "step");
  if (!seq || *seq < 1 || !step.is_object()) return std::nullopt;
  JournalStep result{static_cast<uint64_t>(*seq), std::nullopt, step};
  if (const std::optional<int64_t> injection = IntField(record, "injection")) {
    result.injection = static_cast<int>(*injection);
  }
  return result;
}

// A line of journal.jsonl, taken into `journal`; false when it is no record of ours.
bool TakeLine(std::string_view line, Journal& journal, std::set<uint64_t>& undone) {
  const Result<Json> record = DecodeRecord(line);
  if (!record) return false;
  if (const std::optional<uint64_t> seq = UndoneSeq(*record)) {
    undone.insert(*seq);
  } else if (std::optional<JournalStep> step = AsStep(*record)) {
    journal.pending.push_back(*std::move(step));
  } else if (Field(*record, "controller").is_object()) {
    journal.header = *record;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string EncodeRecord(const Json& record) {
  SHAKEDOWN_ASSERT(record.is_object() && !record.empty() && !record.contains("sum"));
  std::string text = DumpJson(record);
  const std::string sum = Hex64(Xxh3Of64(text));
  text.pop_back();
  return text.append(kSumField).append(sum).append(kEnd);
}

Result<Json> DecodeRecord(std::string_view line) {
  if (line.size() <= kTailBytes) return Fail("not a record: too short");
  const std::string_view tail = line.substr(line.size() - kTailBytes);
  if (!tail.starts_with(kSumField) || !tail.ends_with(kEnd)) {
    return Fail("not a record: it does not end with a checksum");
  }
  std::string text(line.substr(0, line.size() - kTailBytes));
  text += '}';
  if (tail.substr(kSumField.size(), kSumDigits) != Hex64(Xxh3Of64(text))) {
    return Fail("damaged record: the checksum does not match");
  }
  return ParseJson(text);
}

Journal ParseJournal(std::string_view journal_text, std::string_view undone_text) {
  Journal journal;
  std::set<uint64_t> undone;
  const Lines lines = SplitLines(journal_text);
  int number = 0;
  for (const std::string_view line : lines.complete) {
    ++number;
    if (!TakeLine(line, journal, undone)) journal.damaged_lines.push_back(number);
  }
  if (!lines.torn.empty()) journal.torn_tail = !TakeLine(lines.torn, journal, undone);

  const Lines undone_lines = SplitLines(undone_text);
  for (const std::string_view line : undone_lines.complete) {
    const Result<Json> record = DecodeRecord(line);
    if (!record) continue;
    if (const std::optional<uint64_t> seq = UndoneSeq(*record)) undone.insert(*seq);
  }
  std::erase_if(journal.pending,
                [&](const JournalStep& step) { return undone.contains(step.seq); });
  return journal;
}

Result<JournalWriter> JournalWriter::Open(const std::filesystem::path& path) {
  // Created exclusively: a second writer would make the records of both unreadable.
  const UniqueFd created(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!created) return FailErrno("create the undo journal", path.native());
  Result<LineWriter> file = LineWriter::Open(path);
  if (!file) return tl::unexpected(file.error());
  SHAKEDOWN_TRY(FsyncDirectory(path.parent_path()));
  JournalWriter writer;
  writer.file_ = *std::move(file);
  return writer;
}

Status JournalWriter::Header(const Json& controller, const Json& reaper,
                             const std::string& run_dir) {
  return file_.Append(
      EncodeRecord(
          {{"seq", 0}, {"controller", controller}, {"reaper", reaper}, {"run_dir", run_dir}}),
      Durability::kFsync);
}

Result<uint64_t> JournalWriter::AppendStep(const Json& step, std::optional<int> injection) {
  const uint64_t seq = ++last_seq_;
  const Json record{
      {"seq", seq}, {"injection", injection ? Json(*injection) : Json()}, {"step", step}};
  SHAKEDOWN_TRY(file_.Append(EncodeRecord(record), Durability::kFsync));
  return seq;
}

Status JournalWriter::MarkUndone(uint64_t seq) {
  return file_.Append(EncodeRecord({{"seq", seq}, {"undone", true}}), Durability::kFsync);
}

}  // namespace shakedown
