#include "harness/run/reference.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "harness/base/digest.h"
#include "harness/base/file.h"
#include "harness/process/child.h"
#include "harness/process/identity.h"
#include "harness/run/numerics.h"
#include "harness/wire/environment.h"
#include "harness/wire/journal_record.h"
#include "harness/wire/ledger.h"
#include "harness/wire/run_dir.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

// What changes no bit of the result: when and how often the job saves, waits, gives up or restarts.
constexpr const char* kIrrelevant[] = {
    "step_time_ns",    "data_dir",           "worker_deadline_ns",   "slow_data_warning_ns",
    "workers",         "prefetch",           "checkpoint_every",     "checkpoint_mode",
    "checkpoint_keep", "watchdog_ns",        "restart_policy",       "max_restarts",
    "term_grace_ns",   "startup_timeout_ns", "collective_timeout_ns"};

// The digest of a file that is read once per version: LibTorch alone is 450 MB.
Result<std::string> RememberedDigest(const fs::path& path, const fs::path& cache) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return FailErrno("stat", path.native());
  const std::string version = path.native() + "|" + std::to_string(st.st_dev) + "|" +
                              std::to_string(st.st_ino) + "|" + std::to_string(st.st_size) + "|" +
                              std::to_string(st.st_mtim.tv_sec) + "." +
                              std::to_string(st.st_mtim.tv_nsec);
  const fs::path memo = cache / "digests" / ToHex(Xxh3Of(version));
  if (Result<std::string> known = ReadFile(memo); known && ParseDigest128(*known)) return *known;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("open", path.native());
  Xxh3 hash;
  std::string buffer(1 << 20, '\0');
  for (ssize_t n; (n = ::read(fd.get(), buffer.data(), buffer.size())) != 0;) {
    if (n < 0) return FailErrno("read", path.native());
    hash.Update(buffer.data(), static_cast<size_t>(n));
  }
  Result<Digest128> digest = hash.Finish();
  if (!digest) return Wrap("cannot digest '" + path.native() + "'", digest.error());
  const std::string hex = ToHex(*digest);
  SHAKEDOWN_TRY(MakeDirectories(memo.parent_path()));
  SHAKEDOWN_TRY(PublishFile(memo, hex, Durability::kBuffered));
  return hex;
}

// Paths of the shared libraries that the trainer loads, as the dynamic linker says (ld.so(8):
// LD_TRACE_LOADED_OBJECTS).
Result<std::vector<fs::path>> LibrariesOf(const fs::path& program) {
  Result<HelperResult> traced = RunHelper({.argv = {program.native()},
                                           .environment = {"LD_TRACE_LOADED_OBJECTS=1"},
                                           .deadline = std::chrono::seconds(10)});
  if (!traced) return Wrap("cannot list the libraries of the trainer", traced.error());
  std::set<fs::path> paths;
  std::istringstream lines(traced->out);
  for (std::string line; std::getline(lines, line);) {
    const size_t slash = line.find('/');
    const size_t end = line.find(" (", slash);
    if (slash == std::string::npos || end == std::string::npos) continue;
    if (line.find("not found") != std::string::npos) continue;
    paths.insert(line.substr(slash, end - slash));
  }
  return std::vector<fs::path>(paths.begin(), paths.end());
}

// Times differ from run to run, and so do the bytes of a checkpoint's archive.
LedgerRecord WithoutTimes(LedgerRecord record) {
  std::visit([](auto& r) { r.t_ns = 0; }, record);
  if (auto* start = std::get_if<LedgerStart>(&record)) start->file.clear();
  if (auto* saved = std::get_if<LedgerCheckpoint>(&record)) saved->file_digest = {};
  return record;
}

Result<std::vector<std::string>> LedgerText(const fs::path& path) {
  Result<std::string> bytes = ReadFile(path);
  if (!bytes) return tl::unexpected<Error>(bytes.error());
  Result<Ledger> ledger = DecodeLedger(*bytes);
  if (!ledger) return Wrap(path.native(), ledger.error());
  std::vector<std::string> out;
  for (const LedgerRecord& record : ledger->records) {
    // An asynchronous save is recorded when it is done, which is no matter of bits.
    if (std::holds_alternative<LedgerCheckpoint>(record)) continue;
    out.push_back(EncodeLedgerRecord(WithoutTimes(record)));
  }
  return out;
}

Result<bool> SameBits(const RunDir& a, const RunDir& b, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    Result<std::vector<std::string>> first = LedgerText(a.rank(0, r) / kRankLedger);
    if (!first) return tl::unexpected<Error>(first.error());
    Result<std::vector<std::string>> second = LedgerText(b.rank(0, r) / kRankLedger);
    if (!second) return tl::unexpected<Error>(second.error());
    if (*first != *second) return false;
  }
  return true;
}

Status Keep(const RunDir& run, int ranks, const fs::path& to, const Json& key) {
  for (int r = 0; r < ranks; ++r) {
    const fs::path folder = to / ("rank-" + std::to_string(r));
    SHAKEDOWN_TRY(MakeDirectories(folder));
    for (const char* name : {kRankLedger, kRankWeightsEnd}) {
      std::error_code error;
      fs::copy_file(run.rank(0, r) / name, folder / name, error);
      if (error) {
        return Fail("cannot keep '" + (run.rank(0, r) / name).native() + "': " + error.message());
      }
    }
  }
  return PublishFile(to / "key.json", DumpPretty(key) + "\n");
}

// What the job itself said when the reference did not complete: the last lines of its launcher.
std::string JobsWord(const RunDir& run) {
  const Result<std::string> text = ReadFile(run.launcher_stderr());
  if (!text || text->empty()) return "";
  const Lines lines = SplitLines(*text);
  std::string out;
  const size_t n = lines.complete.size();
  for (size_t i = n > 4 ? n - 4 : 0; i < n; ++i) out += " | " + std::string(lines.complete[i]);
  return out;
}

std::string CompleteProblem(const RunDir& run, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    if (!fs::exists(run.rank(0, r) / kRankWeightsEnd)) {
      return "the undisturbed job did not complete: rank " + std::to_string(r) +
             " wrote no final weights" + JobsWord(run);
    }
  }
  return "";
}

// The two runs of a reference, inside its scratch folder.
constexpr const char* kScratchRuns[] = {"first", "second"};

struct Scratch {
  fs::path path;
  ~Scratch() {
    std::error_code error;
    if (!path.empty()) fs::remove_all(path, error);
  }
};

constexpr char kScratchName[] = ".making";

// Whether the controller that made this scratch folder still runs. Each of its runs names it in the
// first record of its journal; a folder without a run yet is given some time.
bool InUse(const fs::path& scratch) {
  bool any = false;
  for (const char* name : kScratchRuns) {
    const Result<std::string> text = ReadFile(RunDir(scratch / name).journal());
    if (!text) continue;
    any = true;
    const Journal journal = ParseJournal(*text, "");
    const Result<ProcessIdentity> controller =
        IdentityFromJson(Field(journal.header, "controller"));
    if (controller && OpenPidfd(*controller)) return true;
  }
  if (any) return false;
  std::error_code error;
  const auto made = fs::last_write_time(scratch, error);
  return error || fs::file_time_type::clock::now() - made < std::chrono::minutes(10);
}

// What controllers that were killed while they made a reference left in the cache.
void RemoveAbandoned(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().native();
    if (!name.starts_with(std::string(kScratchName) + "-") || InUse(entry.path())) continue;
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

Json Reference::ToJson() const {
  return {{"key", key}, {"cached", cached}, {"equal", equal}, {"made_ms", made_ms}};
}

Result<fs::path> CacheDirectory() {
  if (const char* own = std::getenv(env::kCache); own != nullptr && *own != '\0') {
    return fs::path(own);
  }
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg == '/') {
    return fs::path(xdg) / "shakedown";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return fs::path(home) / ".cache" / "shakedown";
  }
  return Fail("no place for reference runs: set SHAKEDOWN_CACHE to a folder that can be written");
}

Result<Json> ReferenceKey(const JobConfig& job, const Binaries& binaries) {
  Result<fs::path> cache = CacheDirectory();
  if (!cache) return tl::unexpected<Error>(cache.error());
  Json config = ToJson(job);
  for (const char* field : kIrrelevant) config.erase(field);
  Json files = Json::object();
  const auto add = [&](const std::string& name, const fs::path& path) -> Status {
    Result<std::string> digest = RememberedDigest(path, *cache);
    if (!digest) return tl::unexpected<Error>(digest.error());
    files[name] = *digest;
    return {};
  };
  for (const fs::path& program : {binaries.trainer, binaries.data_worker, binaries.launcher}) {
    SHAKEDOWN_TRY(add(program.filename().native(), program));
  }
  Result<std::vector<fs::path>> libraries = LibrariesOf(binaries.trainer);
  if (!libraries) return tl::unexpected<Error>(libraries.error());
  for (const fs::path& library : *libraries) {
    SHAKEDOWN_TRY(add(library.filename().native(), library));
  }
  std::error_code error;
  std::vector<fs::path> data;
  for (const auto& entry : fs::directory_iterator(job.data_dir, error)) {
    if (entry.path().native().ends_with("-ubyte")) data.push_back(entry.path());
  }
  if (error) return Fail("cannot list the data set '" + job.data_dir + "': " + error.message());
  std::sort(data.begin(), data.end());
  for (const fs::path& file : data) SHAKEDOWN_TRY(add("data/" + file.filename().native(), file));
  return Json{{"schema_version", kSchemaVersion},
              {"job", std::move(config)},
              {"numerics", NumericsRecord()},
              {"files", std::move(files)}};
}

Result<ReferenceOutcome> EnsureReference(const RunRequest& request) {
  ReferenceOutcome out;
  Plan plan = request.plan;
  plan.injections.clear();
  plan.scenario.faults.clear();
  plan.private_fs_bytes.reset();
  JobConfig& job = plan.scenario.job;
  job.step_time = Nanoseconds(0);
  Result<Json> key = ReferenceKey(job, request.binaries);
  if (!key) return tl::unexpected<Error>(key.error());
  Result<fs::path> cache = CacheDirectory();
  if (!cache) return tl::unexpected<Error>(cache.error());
  out.reference.key = ToHex(Xxh3Of(DumpJson(*key)));
  const fs::path kept = *cache / "reference" / out.reference.key;
  if (fs::exists(kept / "key.json")) {
    out.reference.directory = kept;
    out.reference.cached = true;
    return out;
  }
  const MonoTime began = MonoNow();
  RemoveAbandoned(*cache / "reference");
  Result<fs::path> scratch = MakeRunDirectory(*cache / "reference", kScratchName);
  if (!scratch) return tl::unexpected<Error>(scratch.error());
  const Scratch remove{*scratch};
  std::vector<RunDir> runs;
  for (const char* name : kScratchRuns) {
    const fs::path folder = *scratch / name;
    SHAKEDOWN_TRY(MakeDirectories(folder));
    runs.emplace_back(folder);
    RunRequest undisturbed{
        plan, folder, request.binaries, request.machine, request.command, Json::object(), {}, {}};
    out.run = ExecuteRun(undisturbed);
    if (out.run.how == RunOutcome::How::kInterrupted) return out;
    if (out.run.how != RunOutcome::How::kCompleted) {
      return Fail("cannot make the reference run: " + out.run.reason + JobsWord(runs.back()));
    }
    if (std::string problem = CompleteProblem(runs.back(), job.ranks); !problem.empty()) {
      return Fail("cannot make the reference run: " + problem);
    }
  }
  Result<bool> same = SameBits(runs[0], runs[1], job.ranks);
  if (!same) return Wrap("cannot compare the two reference runs", same.error());
  out.reference.equal = *same;
  out.reference.made_ms = ToMs(MonoNow() - began);
  if (!*same) return out;
  const fs::path fresh = *scratch / "kept";
  SHAKEDOWN_TRY(Keep(runs[0], job.ranks, fresh, *key));
  std::error_code error;
  fs::rename(fresh, kept, error);
  // Somebody else may have made the same reference meanwhile: theirs has the same bits.
  if (error && !fs::exists(kept / "key.json")) {
    return Fail("cannot keep the reference run as '" + kept.native() + "': " + error.message());
  }
  out.reference.directory = kept;
  return out;
}

}  // namespace shakedown
