#include "harness/run/clean.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <optional>
#include <utility>

#include "harness/base/file.h"
#include "harness/wire/journal_record.h"
#include "harness/wire/run_dir.h"
#include "injectors/play_journal.h"

namespace shakedown {
namespace {
namespace fs = std::filesystem;

// A reaper gives up after a minute on processes that hang in the kernel; undo steps have deadlines
// of their own before that.
constexpr Milliseconds kReaperDeadline{90'000};

// Whether it ends in time. What is gone has ended.
Result<bool> AwaitEnd(const ProcessIdentity& process, Milliseconds within) {
  const Result<UniqueFd> pidfd = OpenPidfd(process);
  if (!pidfd && pidfd.error().code == ESRCH) return true;
  if (!pidfd) return tl::unexpected(pidfd.error());
  const MonoTime deadline = MonoNow() + within;
  while (true) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - MonoNow()).count();
    pollfd ended{pidfd->get(), POLLIN, 0};
    const int n = ::poll(&ended, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX)));
    if (n == 1) return true;
    if (n == 0) return false;
    if (errno != EINTR) return FailErrno("wait for process", std::to_string(process.pid));
  }
}

struct RunState {
  Journal journal;
  std::optional<ProcessIdentity> controller;
  std::optional<ProcessIdentity> reaper;
};

std::optional<ProcessIdentity> IdentityIn(const Json& header, std::string_view key) {
  Result<ProcessIdentity> identity = IdentityFromJson(Field(header, key));
  return identity ? std::optional(*std::move(identity)) : std::nullopt;
}

Result<RunState> ReadState(const RunDir& run) {
  const Result<std::string> journal = ReadFile(run.journal());
  if (!journal) return tl::unexpected(journal.error());
  const Result<std::string> undone = ReadFile(run.undone());
  if (!undone && undone.error().code != ENOENT) return tl::unexpected(undone.error());
  RunState state;
  state.journal = ParseJournal(*journal, undone.value_or(""));
  state.controller = IdentityIn(state.journal.header, "controller");
  state.reaper = IdentityIn(state.journal.header, "reaper");
  return state;
}

bool NothingToUndo(const Journal& journal) {
  return journal.pending.empty() && journal.damaged_lines.empty();
}

// Empty when its journal may be played by us.
std::string WhyNotOurs(const RunDir& run) {
  struct stat st {};
  if (::lstat(run.journal().c_str(), &st) != 0) {
    return FailErrno("look at", run.journal().native()).value().message;
  }
  if (!S_ISREG(st.st_mode)) return "'" + run.journal().native() + "' is not a regular file";
  if (st.st_uid == ::geteuid()) return "";
  return "'" + run.journal().native() + "' belongs to user " + std::to_string(st.st_uid) +
         "; clean it as that user";
}

// Plays what a dead run left. REQUIRES: its controller is dead.
CleanedRun CleanDeadRun(const RunDir& run, const RunState& state) {
  CleanedRun cleaned{run.root().native(), 0, {}};
  if (state.reaper) {
    const Result<bool> ended = AwaitEnd(*state.reaper, kReaperDeadline);
    if (!ended || !*ended) {
      cleaned.remains.push_back("the run's reaper (process " + std::to_string(state.reaper->pid) +
                                ") is still undoing; see what it hangs in and clean again");
      return cleaned;
    }
  }
  const Result<PlayedJournal> played = PlayJournal(run, "clean");
  if (!played) {
    cleaned.remains.push_back(played.error().message);
    return cleaned;
  }
  cleaned.undone = played->undone;
  cleaned.remains = played->remains;
  return cleaned;
}

void CleanRun(const RunDir& run, CleanReport& report) {
  const auto remains = [&](std::string why) {
    report.runs.push_back({run.root().native(), 0, {std::move(why)}});
  };
  if (std::string why = WhyNotOurs(run); !why.empty()) return remains(std::move(why));
  const Result<RunState> state = ReadState(run);
  if (!state) return remains(state.error().message);
  // One that has ended and was not reaped yet lives no more.
  const Result<bool> dead =
      state->controller ? AwaitEnd(*state->controller, {}) : Result<bool>(true);
  if (!dead) return remains(dead.error().message);
  if (!*dead) {
    report.live.push_back({run.root().native(), *state->controller});
    return;
  }
  if (NothingToUndo(state->journal)) return;
  if (!state->controller) {
    return remains("the first line of '" + run.journal().native() +
                   "' does not say which controller wrote it, so it may be at work; read the "
                   "journal and undo by hand");
  }
  report.runs.push_back(CleanDeadRun(run, *state));
}

// Runs at or below `folder`. Links are not followed.
std::vector<RunDir> FindRuns(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(RunDir(folder).journal(), error)) return {RunDir(folder)};
  std::vector<RunDir> runs;
  const auto skip = fs::directory_options::skip_permission_denied;
  for (auto entry = fs::recursive_directory_iterator(folder, skip, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_symlink(error) || !entry->is_directory(error)) continue;
    if (!fs::exists(RunDir(entry->path()).journal(), error)) continue;
    runs.emplace_back(entry->path());
    entry.disable_recursion_pending();
  }
  std::sort(runs.begin(), runs.end(),
            [](const RunDir& a, const RunDir& b) { return a.root() < b.root(); });
  return runs;
}

Result<fs::path> Directory(const fs::path& path) {
  std::error_code error;
  fs::path canonical = fs::canonical(path, error);
  if (error) return FailErrno("find", path.native(), error.value());
  if (!fs::is_directory(canonical, error)) return FailErrno("look into", path.native(), ENOTDIR);
  return canonical;
}

std::string RemainsLines(const std::vector<std::string>& remains) {
  std::string text;
  for (const std::string& what : remains) text += "  remains: " + what + "\n";
  return text;
}

}  // namespace

bool CleanReport::clean() const {
  return std::all_of(runs.begin(), runs.end(),
                     [](const CleanedRun& run) { return run.remains.empty(); });
}

Result<CleanReport> Clean(const fs::path& path) {
  const Result<fs::path> folder = Directory(path);
  if (!folder) return tl::unexpected(folder.error());
  CleanReport report;
  for (const RunDir& run : FindRuns(*folder)) CleanRun(run, report);
  return report;
}

Result<AbortReport> AbortRun(const fs::path& run_dir, Milliseconds deadline) {
  const Result<fs::path> folder = Directory(run_dir);
  if (!folder) return tl::unexpected(folder.error());
  const RunDir run(*folder);
  const Result<RunState> state = ReadState(run);
  if (!state) return Wrap("'" + run.root().native() + "' is no run directory", state.error());
  AbortReport report;
  report.run_dir = run.root().native();
  if (state->controller) {
    const Result<UniqueFd> pidfd = OpenPidfd(*state->controller);
    if (pidfd) {
      report.was_running = true;
      const Status told = SignalPidfd(pidfd->get(), SIGTERM);
      if (!told && told.error().code != ESRCH) return tl::unexpected(told.error());
      const Result<bool> ended = AwaitEnd(*state->controller, deadline);
      if (!ended) return tl::unexpected(ended.error());
      if (!*ended) {
        report.remains.push_back("the controller (process " +
                                 std::to_string(state->controller->pid) + ") did not end within " +
                                 std::to_string(deadline.count()) +
                                 " ms of SIGTERM; SIGKILL it, and its reaper undoes the rest");
        return report;
      }
    }
  }
  CleanReport cleaned;
  CleanRun(run, cleaned);
  for (CleanedRun& only : cleaned.runs) {
    report.undone = only.undone;
    report.remains = std::move(only.remains);
  }
  return report;
}

Json ToJson(const CleanReport& report) {
  Json runs = Json::array();
  for (const CleanedRun& run : report.runs) {
    runs.push_back({{"run_dir", run.run_dir}, {"undone", run.undone}, {"remains", run.remains}});
  }
  Json live = Json::array();
  for (const LiveRun& run : report.live) {
    live.push_back({{"run_dir", run.run_dir}, {"controller", run.controller.pid}});
  }
  return Json{{"schema_version", kSchemaVersion},
              {"clean", report.clean()},
              {"runs", std::move(runs)},
              {"live", std::move(live)}};
}

Json ToJson(const AbortReport& report) {
  return Json{{"schema_version", kSchemaVersion},
              {"run_dir", report.run_dir},
              {"was_running", report.was_running},
              {"undone", report.undone},
              {"remains", report.remains}};
}

std::string Describe(const CleanReport& report) {
  std::string text;
  for (const CleanedRun& run : report.runs) {
    text +=
        run.run_dir + ": " + std::to_string(run.undone) + " undone\n" + RemainsLines(run.remains);
  }
  for (const LiveRun& run : report.live) {
    text += run.run_dir + ": left alone, its controller (process " +
            std::to_string(run.controller.pid) + ") is at work\n";
  }
  if (text.empty()) return "nothing to undo\n";
  return text;
}

std::string Describe(const AbortReport& report) {
  std::string text = report.run_dir + ": ";
  text += report.was_running ? (report.remains.empty() ? "stopped" : "not stopped completely")
                             : "was not running";
  if (report.undone > 0) text += ", " + std::to_string(report.undone) + " undone";
  return text + "\n" + RemainsLines(report.remains);
}

}  // namespace shakedown
