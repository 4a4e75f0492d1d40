// DiagnoseIsolated: a child that gives up everything but the observed files, and its answer.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/landlock.h"
#include "harness/base/file.h"
#include "harness/base/unique_fd.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Far above any diagnosis of a run; a child that would write more is broken.
constexpr size_t kMostAnswerBytes = 64u << 20;

// An attempt's folder holds what its processes wrote, and nothing that knows the plan.
diagnosis::ReadableFiles ObservedFiles(const RunDir& run) {
  diagnosis::ReadableFiles files;
  files.list = {run.root()};
  files.read = {run.observed(), run.checkpoints(), run.job_config(), run.launcher_stdout(),
                run.launcher_stderr()};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run.root(), error)) {
    if (entry.path().filename().native().starts_with("attempt-"))
      files.read.push_back(entry.path());
  }
  return files;
}

Json Answer(const Result<Diagnosis>& diagnosis) {
  if (diagnosis) return {{"diagnosis", ToJson(*diagnosis)}};
  return {{"error", diagnosis.error().message}, {"code", diagnosis.error().code}};
}

Result<Diagnosis> ReadAndDiagnose(const RunDir& run) {
  Result<ObservedEvidence> evidence = LoadObserved(run);
  if (!evidence) return tl::unexpected<Error>(evidence.error());
  if (!evidence->has_observed) {
    const Damage* const unread = evidence->Unreadable("observed.jsonl");
    return Fail("nothing to diagnose in '" + run.root().native() +
                "': " + (unread ? unread->what : "observed.jsonl does not begin with run.started"));
  }
  return Diagnose(*evidence);
}

Result<Diagnosis> InProcess(const RunDir& run, const std::string& why) {
  Result<Diagnosis> diagnosis = ReadAndDiagnose(run);
  if (diagnosis) diagnosis->isolation = "in process: " + why;
  return diagnosis;
}

void CloseAllBut(int fd) {
  if (fd > 3) ::syscall(SYS_close_range, 3, fd - 1, 0);
  ::syscall(SYS_close_range, fd + 1, ~0u, 0);
}

// The child: a copy of the caller with one thread, which never returns into the caller's code.
[[noreturn]] void ChildMain(const RunDir& run, int answer_fd, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  // Descriptors that are open already are not subject to Landlock: the caller may have a secret
  // file open.
  CloseAllBut(answer_fd);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  Json answer;
  if (Status restricted = diagnosis::RestrictReading(ObservedFiles(run)); restricted) {
    answer = Answer(ReadAndDiagnose(run));
  } else {
    answer = {{"unrestricted", restricted.error().message}};
  }
  const Status written = WriteAll(answer_fd, DumpJson(answer), "the diagnosis");
  ::_exit(written ? 0 : 1);
}

// Whatever arrives until the other end is closed. nullopt: the time is up, or too much came.
std::optional<std::string> ReadUntilClosed(int fd, Clock::time_point deadline) {
  std::string text;
  char buffer[1 << 16];
  while (text.size() <= kMostAnswerBytes) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return std::nullopt;
    pollfd ready{fd, POLLIN, 0};
    const int n = ::poll(&ready, 1, static_cast<int>(left));
    if (n < 0 && errno != EINTR) return std::nullopt;
    if (n <= 0) continue;
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
  return std::nullopt;
}

Result<Diagnosis> Understand(const RunDir& run, const std::optional<std::string>& text,
                             int limit_ms) {
  const std::string on = " of '" + run.root().native() + "'";
  if (!text) {
    return Fail("the diagnosis" + on + " did not end within " + std::to_string(limit_ms) +
                " ms and was ended");
  }
  Result<Json> answer = ParseJson(*text);
  if (!answer) return Fail("the process that diagnoses" + on + " ended without an answer");
  if (const auto why = StringField(*answer, "unrestricted")) return InProcess(run, *why);
  if (const auto error = StringField(*answer, "error")) {
    return Fail(*error, static_cast<int>(IntField(*answer, "code").value_or(0)));
  }
  Result<Diagnosis> diagnosis = DiagnosisFromJson(Field(*answer, "diagnosis"));
  if (diagnosis) diagnosis->isolation = "landlock";
  return diagnosis;
}

}  // namespace

Result<Diagnosis> DiagnoseIsolated(const RunDir& run, int limit_ms) {
  if (diagnosis::LandlockVersion() == 0) return InProcess(run, "the kernel has no Landlock");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return InProcess(run, FailErrno("make", "a pipe").value().message);
  UniqueFd from_child(ends[0]);
  UniqueFd to_parent(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return InProcess(run, FailErrno("fork", "a process").value().message);
  if (child == 0) ChildMain(run, to_parent.get(), parent);
  // A caller that reaps all children may be faster than we are; then the pidfd tells.
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  to_parent.Reset();
  const auto deadline = Clock::now() + std::chrono::milliseconds(limit_ms);
  const std::optional<std::string> text = ReadUntilClosed(from_child.get(), deadline);
  if (!text && pidfd) ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
  siginfo_t info{};
  while (pidfd &&
         ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd.get()), &info, WEXITED) <
             0 &&
         errno == EINTR) {
  }
  return Understand(run, text, limit_ms);
}

}  // namespace shakedown
