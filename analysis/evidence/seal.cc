#include "analysis/evidence/seal.h"

#include <cerrno>
#include <charconv>
#include <optional>

#include "analysis/evidence/folder.h"
#include "analysis/evidence/process_files.h"
#include "harness/base/digest.h"
#include "harness/wire/json.h"

namespace shakedown {
namespace {

// "attempt-3/rank-0/log.jsonl" -> 3; nullopt: belongs to the run's part.
std::optional<int> AttemptOf(std::string_view file) {
  constexpr std::string_view kPrefix = "attempt-";
  if (!file.starts_with(kPrefix)) return std::nullopt;
  file.remove_prefix(kPrefix.size());
  int number = 0;
  const auto [end, ec] = std::from_chars(file.data(), file.data() + file.size(), number);
  if (ec != std::errc() || end == file.data() + file.size() || *end != '/') return std::nullopt;
  return number;
}

SealState Compare(const RunDir& run, const EvidenceFolder& folder, const std::string& name,
                  const Json& sealed, SealReport* report) {
  const Result<std::string> bytes = folder.Read(run.root() / name, kMaxEventBytes);
  if (!bytes && bytes.error().code == ENOENT) return SealState::kGone;
  if (!bytes) {
    report->unread[name] = bytes.error().message;
    return SealState::kChanged;
  }
  const bool same = IntField(sealed, "bytes") == static_cast<int64_t>(bytes->size()) &&
                    StringField(sealed, "sha256") == Sha256Hex(*bytes);
  return same ? SealState::kIntact : SealState::kChanged;
}

// The journal may have grown since: what the seal saw has to be its beginning.
void AddJournal(const RunDir& run, const EvidenceFolder& folder, const Json& sealed,
                SealReport* report) {
  const std::string name = run.journal().filename();
  const Result<std::string> bytes = folder.Read(run.journal(), kMaxEventBytes);
  if (!bytes && bytes.error().code == ENOENT && !sealed.is_object()) return;  // a run without one
  SealState& state = report->files[name];
  state = bytes || bytes.error().code != ENOENT ? SealState::kChanged : SealState::kGone;
  if (!bytes) return;
  const auto length = IntField(sealed, "bytes");
  if (!length || *length < 0 || static_cast<size_t>(*length) > bytes->size()) return;
  const std::string_view beginning(bytes->data(), static_cast<size_t>(*length));
  if (StringField(sealed, "sha256") == Sha256Hex(beginning)) state = SealState::kIntact;
}

// Adds the files of one part of the seal; false when the part is no list of files.
bool AddPart(const RunDir& run, const EvidenceFolder& folder, const Json& part,
             SealReport* report) {
  const Json& files = Field(part, "files");
  if (!files.is_array()) return false;
  for (const Json& file : files) {
    const auto name = StringField(file, "name");
    if (!name || name->empty()) return false;
    report->files[*name] = Compare(run, folder, *name, file, report);
  }
  return true;
}

void AddAppeared(const RunDir& run, const EvidenceFolder& folder, SealReport* report) {
  std::vector<std::string> present;
  const auto add = [&](const std::filesystem::path& below) {
    for (std::string& file : folder.FilesBelow(below)) present.push_back(std::move(file));
  };
  for (const int attempt : report->sealed_attempts) add(run.attempt(attempt));
  if (report->run_sealed) {
    add(run.reference());
    add(run.final_checkpoint());
    // A seal of the run always lists these when they are there: an entry that is missing was
    // removed.
    for (const std::filesystem::path& file :
         {run.observed(), run.injected(), run.checkpoints(), run.job_config(), run.run_json(),
          run.launcher_stdout(), run.launcher_stderr()}) {
      std::error_code error;
      if (std::filesystem::exists(std::filesystem::symlink_status(file, error))) {
        present.push_back(file.filename().native());
      }
    }
  }
  for (std::string& file : present) report->files.try_emplace(std::move(file), SealState::kChanged);
}

}  // namespace

SealReport VerifySeal(const RunDir& run) {
  SealReport report;
  const Result<EvidenceFolder> folder = EvidenceFolder::Open(run.root());
  if (!folder) {
    report.problem = folder.error().message;
    return report;
  }
  const Result<std::string> text = folder->Read(run.seal(), kMaxLogBytes);
  if (!text) {
    report.problem = text.error().message;
    return report;
  }
  const Result<Json> seal = ParseJson(*text);
  if (!seal) {
    report.problem = "seal.json: " + seal.error().message;
    return report;
  }
  report.present = true;
  for (const Json& attempt : Field(*seal, "attempts")) {
    const auto number = IntField(attempt, "attempt");
    if (number && *number >= 0 && *number < 1'000'000 && AddPart(run, *folder, attempt, &report)) {
      report.sealed_attempts.insert(static_cast<int>(*number));
    }
  }
  report.run_sealed = AddPart(run, *folder, Field(*seal, "run"), &report);
  if (report.run_sealed) AddJournal(run, *folder, Field(*seal, "journal"), &report);
  AddAppeared(run, *folder, &report);
  return report;
}

SealState SealReport::StateOf(const std::string& file) const {
  if (const auto it = files.find(file); it != files.end()) return it->second;
  const auto attempt = AttemptOf(file);
  const bool sealed = attempt ? sealed_attempts.contains(*attempt) : run_sealed;
  return sealed ? SealState::kAbsentAtSeal : SealState::kUnsealed;
}

std::string SealReport::Describe(const std::string& file) const {
  std::string text = file + " " + std::string(shakedown::Describe(StateOf(file)));
  if (const auto it = unread.find(file); it != unread.end()) text += ": " + it->second;
  return text;
}

std::vector<std::string> SealReport::Tampered() const {
  std::vector<std::string> out;
  for (const auto& [file, state] : files) {
    if (state == SealState::kChanged || state == SealState::kGone) out.push_back(file);
  }
  return out;
}

std::string_view Describe(SealState state) {
  switch (state) {
    case SealState::kIntact:
      return "is as it was sealed";
    case SealState::kAbsentAtSeal:
      return "was not there at the seal";
    case SealState::kChanged:
      return "is not what was sealed";
    case SealState::kGone:
      return "was sealed and is gone";
    case SealState::kUnsealed:
      return "is covered by no seal";
  }
  return "";
}

}  // namespace shakedown
