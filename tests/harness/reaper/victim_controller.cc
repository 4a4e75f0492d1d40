// victim-controller REAPER RUN BALLAST_BYTES SCRIPT
// A controller to be killed: starts a reaper, provisions a private filesystem at RUN/checkpoint
// (when BALLAST_BYTES is not 0) with a ballast in it, journals its undo and that of a temporary
// tree, hands a page over, starts SCRIPT in a shell as the job, prints "ready HOLDER_PID JOB_PID
// REAPER_PID", and waits to be killed, or, at the end of its stdin, drops the reaper and exits.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "harness/base/file.h"
#include "harness/reaper/client.h"
#include "harness/wire/journal_record.h"
#include "harness/wire/progress_page.h"
#include "harness/wire/run_dir.h"
#include "injectors/undo.h"

namespace shakedown {
namespace {

template <typename T>
T Must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "victim-controller: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

void MakeBallast(const PrivateFilesystem& filesystem, int64_t bytes) {
  const UniqueFd ballast(
      ::openat(filesystem.root.get(), ".shakedown-ballast", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  if (!ballast || ::posix_fallocate(ballast.get(), 0, bytes) != 0) {
    Must<void>(FailErrno("allocate", "the ballast"));
  }
}

UniqueFd MakePage() {
  UniqueFd page(::memfd_create("page", MFD_CLOEXEC));
  Must(WriteAll(
      page.get(),
      std::string(kPageObservedBytes, 'o') + std::string(kPageBytes - kPageObservedBytes, 's'),
      "page"));
  return page;
}

int Main(char** argv) {
  const RunDir run(argv[2]);
  const int64_t ballast_bytes = std::atoll(argv[3]);
  ReaperClient reaper = Must(ReaperClient::Start(argv[1], run));
  JournalWriter journal = Must(JournalWriter::Open(run.journal()));
  Must(journal.Header(ToJson(Must(IdentityOf(::getpid()))), ToJson(reaper.identity()),
                      run.root().native()));

  PrivateFilesystem filesystem;
  if (ballast_bytes > 0) {
    filesystem = Must(reaper.ProvisionPrivateFilesystem(run.checkpoint_dir(), 2 * ballast_bytes));
    Must(journal.Append(UndoStep{UndoVerb::kRemoveBallast,
                                 run.checkpoint_dir() / ".shakedown-ballast", filesystem.holder},
                        1));
    MakeBallast(filesystem, ballast_bytes);
  }
  Must(journal.Append(UndoStep{UndoVerb::kRemoveTree, run.root() / "shakedown-tree", std::nullopt},
                      std::nullopt));
  Must(MakeDirectories(run.root() / "shakedown-tree" / "inner"));
  Must(reaper.KeepPage("attempt-0/rank-0/page.bin", MakePage().get()));

  JobRequest job;
  job.argv = {"/bin/sh", "-c", argv[4]};
  job.environment = {"PATH=/usr/bin:/bin"};
  job.directory = run.root();
  job.stdout_fd = job.stderr_fd = STDERR_FILENO;
  job.in_private_fs = ballast_bytes > 0;
  const StartedJob started = Must(reaper.StartJob(job));
  std::printf("ready %d %d %d\n", filesystem.holder.pid, started.process.pid,
              reaper.identity().pid);
  std::fflush(stdout);
  char byte = 0;
  return ::read(STDIN_FILENO, &byte, 1) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace shakedown

int main(int argc, char** argv) { return argc == 5 ? shakedown::Main(argv) : 2; }
