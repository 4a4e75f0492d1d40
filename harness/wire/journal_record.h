// The undo journal: journal.jsonl, written by the controller before each fault goes in, and
// undone.jsonl, written by whoever undoes for a controller that is gone. Every record ends with a
// checksum of its own text, so that a reader can replay the intact records of a damaged file and
// name the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/file.h"
#include "harness/base/status.h"
#include "harness/wire/json.h"

namespace shakedown {

// The text of a record with "sum", the XXH3-64 of the text without it, as its last field. REQUIRES:
// an object that is not empty and has no "sum".
std::string EncodeRecord(const Json& record);
// The record without its sum. An Error when the sum is absent or does not match.
Result<Json> DecodeRecord(std::string_view line);

// A recipe's step as it stands in the journal. The verbs are injectors/undo.h's.
struct JournalStep {
  uint64_t seq = 0;
  std::optional<int> injection;
  Json step;
};

struct Journal {
  // First record: {"controller": identity, "reaper": identity or null, "run_dir"}. Null when it is
  // missing or damaged.
  Json header;
  // In the order of the file, those without a record that they are undone.
  std::vector<JournalStep> pending;
  // Lines, from 1, that are no records. What they said is lost.
  std::vector<int> damaged_lines;
  // The last line has no newline and is no record: a writer was killed before the step that it
  // announces was taken, so nothing is lost.
  bool torn_tail = false;
};

// `undone_text` is the content of undone.jsonl, empty when there is none. Its damaged lines only
// mean that a step is played once more, which is harmless.
Journal ParseJournal(std::string_view journal_text, std::string_view undone_text);

// Writes journal.jsonl. One per run, in the controller. Every record is on disk when its call
// returns.
class JournalWriter {
 public:
  // Creates the file; one that is there already belongs to another run, and is refused.
  static Result<JournalWriter> Open(const std::filesystem::path& path);

  // First of all. Identities as harness/process/identity.h writes them; `reaper` may be null.
  Status Header(const Json& controller, const Json& reaper, const std::string& run_dir);

  // Announces a step (anything with a ToJson) before the fault that it undoes goes in. Returns its
  // number.
  template <typename Step>
  Result<uint64_t> Append(const Step& step, std::optional<int> injection) {
    return AppendStep(ToJson(step), injection);
  }
  Result<uint64_t> AppendStep(const Json& step, std::optional<int> injection);

  Status MarkUndone(uint64_t seq);

 private:
  LineWriter file_;
  uint64_t last_seq_ = 0;
};

}  // namespace shakedown
