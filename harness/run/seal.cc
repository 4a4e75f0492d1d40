#include "harness/run/seal.h"

#include <algorithm>

#include "harness/base/digest.h"
#include "harness/base/file.h"
#include "harness/base/time.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

bool CountsRecords(const fs::path& path) {
  return path.extension() == ".jsonl" || path.extension() == ".log";
}

Result<Json> SealFile(const RunDir& run, const fs::path& path) {
  int64_t bytes = 0;
  Json out = {{"name", path.lexically_relative(run.root()).native()}};
  if (CountsRecords(path)) {
    Result<std::string> text = ReadFile(path);
    if (!text) return tl::unexpected<Error>(text.error());
    out["bytes"] = text->size();
    out["records"] = std::count(text->begin(), text->end(), '\n');
    out["sha256"] = Sha256Hex(*text);
    return out;
  }
  Result<std::string> digest = Sha256OfFile(path, &bytes);
  if (!digest) return tl::unexpected<Error>(digest.error());
  out["bytes"] = bytes;
  out["records"] = nullptr;
  out["sha256"] = *digest;
  return out;
}

}  // namespace

Result<Json> SealFiles(const RunDir& run, const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    if (it->symlink_status(error).type() == fs::file_type::regular) files.push_back(it->path());
  }
  if (error && fs::exists(directory)) {
    return Fail("cannot list '" + directory.native() + "' for the seal: " + error.message());
  }
  std::sort(files.begin(), files.end());
  Json out = Json::array();
  for (const fs::path& file : files) {
    Result<Json> sealed = SealFile(run, file);
    if (!sealed) return sealed;
    out.push_back(std::move(*sealed));
  }
  return out;
}

Status Seal::Attempt(int attempt) {
  Result<Json> files = SealFiles(run_, run_.attempt(attempt));
  if (!files) return tl::unexpected<Error>(files.error());
  attempts_.push_back(
      {{"attempt", attempt}, {"sealed_ns", MonoNow().ns}, {"files", std::move(*files)}});
  return {};
}

Status Seal::Run() {
  Json files = Json::array();
  for (const fs::path& path :
       {run_.observed(), run_.injected(), run_.checkpoints(), run_.job_config(), run_.run_json(),
        run_.launcher_stdout(), run_.launcher_stderr()}) {
    if (!fs::exists(path)) continue;
    Result<Json> sealed = SealFile(run_, path);
    if (!sealed) return tl::unexpected<Error>(sealed.error());
    files.push_back(std::move(*sealed));
  }
  for (const fs::path& directory : {run_.reference(), run_.final_checkpoint()}) {
    if (!fs::exists(directory)) continue;
    Result<Json> sealed = SealFiles(run_, directory);
    if (!sealed) return tl::unexpected<Error>(sealed.error());
    for (Json& file : *sealed) files.push_back(std::move(file));
  }
  // Undoing goes on after the seal: what was written by now stays, and more may follow.
  Result<Json> journal = Json(nullptr);
  if (fs::exists(run_.journal())) journal = SealFile(run_, run_.journal());
  if (!journal) return tl::unexpected<Error>(journal.error());
  const Json seal = {{"schema_version", kSchemaVersion},
                     {"attempts", attempts_},
                     {"run", {{"files", std::move(files)}}},
                     {"journal", std::move(*journal)}};
  return PublishFile(run_.seal(), DumpPretty(seal) + "\n");
}

}  // namespace shakedown
