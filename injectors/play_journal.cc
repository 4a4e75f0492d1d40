#include "injectors/play_journal.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <iterator>

#include "harness/base/file.h"
#include "harness/base/time.h"
#include "harness/wire/journal_record.h"
#include "injectors/undo.h"

namespace shakedown {
namespace {

// Missing is empty.
Result<std::string> ReadIfThere(const std::filesystem::path& path) {
  Result<std::string> text = ReadFile(path);
  if (!text && text.error().code == ENOENT) return std::string();
  return text;
}

Result<LineWriter> OpenUndone(const RunDir& run) {
  const Result<std::string> before = ReadIfThere(run.undone());
  if (!before) return tl::unexpected(before.error());
  Result<LineWriter> file = LineWriter::Open(run.undone());
  if (!file) return file;
  // A reaper that was killed while writing left half a record; the next one needs a line of its
  // own.
  if (!before->empty() && before->back() != '\n') SHAKEDOWN_TRY(file->Append(""));
  return file;
}

Json UndoneRecord(uint64_t seq, const Status& played, std::string_view by) {
  return Json{{"seq", seq},
              {"undone", played.has_value()},
              {"error", played ? Json() : Json(played.error().message)},
              {"by", by},
              {"t_ns", MonoNow().ns}};
}

Status PlayRecorded(const Json& record) {
  const Result<UndoStep> step = UndoStepFromJson(record);
  if (!step) return tl::unexpected(step.error());
  return PlayUndo(*step);
}

}  // namespace

Result<PlayedJournal> PlayJournal(const RunDir& run, std::string_view by) {
  PlayedJournal played;
  const UniqueFd lock(::open(run.journal().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!lock && errno == ENOENT) return played;
  if (!lock) return FailErrno("open the undo journal", run.journal().native());
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return FailErrno("play (another process does, or hangs while doing) the undo journal",
                     run.journal().native());
  }
  const Result<std::string> journal_text = ReadFile(run.journal());
  if (!journal_text) return tl::unexpected(journal_text.error());
  const Result<std::string> undone_text = ReadIfThere(run.undone());
  if (!undone_text) return tl::unexpected(undone_text.error());

  const Journal journal = ParseJournal(*journal_text, *undone_text);
  for (const int line : journal.damaged_lines) {
    played.remains.push_back("line " + std::to_string(line) + " of '" + run.journal().native() +
                             "' is damaged: what it says how to undo is lost; read it and see what "
                             "is left by hand");
  }
  if (journal.pending.empty()) return played;
  // Without a place to write down what was done, undoing still comes first.
  Result<LineWriter> undone = OpenUndone(run);
  if (!undone) played.remains.push_back(undone.error().message);
  for (auto step = journal.pending.rbegin(); step != journal.pending.rend(); ++step) {
    const Status result = PlayRecorded(step->step);
    result ? void(++played.undone) : played.remains.push_back(result.error().message);
    if (!undone) continue;
    const Status written =
        undone->Append(EncodeRecord(UndoneRecord(step->seq, result, by)), Durability::kFsync);
    if (!written) played.remains.push_back(written.error().message);
  }
  return played;
}

Status NoteInUndone(const RunDir& run, std::string_view by, std::string_view event) {
  Result<LineWriter> undone = OpenUndone(run);
  if (!undone) return tl::unexpected(undone.error());
  return undone->Append(EncodeRecord({{"event", event}, {"by", by}, {"t_ns", MonoNow().ns}}),
                        Durability::kFsync);
}

}  // namespace shakedown
