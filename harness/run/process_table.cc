#include "harness/run/process_table.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "harness/process/spawn.h"

namespace shakedown {
namespace {

Result<ProgressPage*> MakePage(const HelloMessage& hello, UniqueFd* fd) {
  fd->Reset(::memfd_create("shakedown-page", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!*fd) return FailErrno("create", "a progress page (memfd_create)");
  if (::ftruncate(fd->get(), kPageBytes) != 0) return FailErrno("size", "a progress page");
  // Without the seals a rank could shrink the page under us and end us by SIGBUS.
  if (::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return FailErrno("seal", "a progress page");
  }
  void* memory = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
  if (memory == MAP_FAILED) return FailErrno("map", "a progress page");
  auto* page = new (memory) ProgressPage{};
  page->observed.magic = kPageMagic;
  page->observed.version = kPageVersion;
  page->observed.rank = -1;
  page->observed.pid = hello.pid;
  page->observed.worker = hello.role == Role::kWorker ? hello.worker_hint : -1;
  return page;
}

// Whether pidfds tell the exit status of processes that are not our children (Linux 6.15). Measured
// on a child of ours that is reaped already: what counts is what the kernel does, not its version.
bool PidfdsTellExits() {
  static const bool tells = [] {
    const Result<SpawnedProcess> child = Spawn({.argv = {"true"}, .environment = {}});
    if (!child || !Wait(child->pidfd.get())) return false;
    return ExitFromPidfd(child->pidfd.get()).has_value();
  }();
  return tells;
}

}  // namespace

TrackedProcess::~TrackedProcess() {
  if (page != nullptr) ::munmap(page, kPageBytes);
}

std::string TrackedProcess::Describe() const {
  const std::string name = "rank " + std::to_string(rank);
  return worker ? "data worker " + std::to_string(*worker) + " of " + name : name;
}

bool HasEnded(const TrackedProcess& process) {
  if (process.dead) return true;
  pollfd poll{process.pidfd.get(), POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

ProcessTable::ProcessTable(EventLoop& loop, Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  SHAKEDOWN_ASSERT(epoll_.valid());
  loop_.WatchReadable(epoll_.get(), [this] { OnEpoll(); });
  if (PidfdsTellExits()) return;
  if (Result<ProcConnector> connector = ProcConnector::Open()) {
    connector_ = std::move(*connector);
    loop_.WatchReadable(connector_->fd(), [this] { OnConnector(); });
  }
}

ProcessTable::~ProcessTable() {
  loop_.Unwatch(epoll_.get());
  if (connector_) loop_.Unwatch(connector_->fd());
}

Result<TrackedProcess*> ProcessTable::Add(pid_t pid, const HelloMessage& hello) {
  auto process = std::make_unique<TrackedProcess>();
  Result<ProcessIdentity> identity = IdentityOf(pid);
  if (!identity) return tl::unexpected<Error>(identity.error());
  process->identity = *identity;
  Result<UniqueFd> pidfd = OpenPidfd(*identity);
  if (!pidfd) return tl::unexpected<Error>(pidfd.error());
  process->pidfd = std::move(*pidfd);
  process->role = hello.role;
  process->rank = hello.rank_hint;
  process->attempt = hello.attempt_hint < 0 ? 0 : hello.attempt_hint;
  if (hello.role == Role::kWorker) process->worker = hello.worker_hint;
  process->incarnation = hello.incarnation;
  Result<ProgressPage*> page = MakePage(hello, &process->page_fd);
  if (!page) return tl::unexpected<Error>(page.error());
  process->page = *page;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = process.get();
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, process->pidfd.get(), &event) != 0) {
    return FailErrno("watch", "a pidfd");
  }
  processes_.push_back(std::move(process));
  return processes_.back().get();
}

void ProcessTable::OnEpoll() {
  epoll_event events[64];
  const int n = ::epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < n; ++i) {
    auto& process = *static_cast<TrackedProcess*>(events[i].data.ptr);
    if (!process.dead) {
      process.dead = true;
      process.died = MonoNow();
      handlers_.died(process);
    }
    if (process.exit) continue;
    if (const auto status = ExitFromPidfd(process.pidfd.get())) {
      SetExit(process, *status, "pidfd");
    }
  }
}

void ProcessTable::OnConnector() {
  for (const ProcExit& exit : connector_->Read()) {
    for (const auto& process : processes_) {
      if (process->identity.pid != exit.pid || process->exit) continue;
      SetExit(*process, exit.status, "connector");
    }
  }
}

void ProcessTable::SetExit(TrackedProcess& process, WaitStatus status, const char* source) {
  if (!process.dead) {
    process.dead = true;
    process.died = MonoNow();
    handlers_.died(process);
  }
  process.exit = status;
  process.exit_source = source;
  handlers_.exited(process);
}

void ProcessTable::LauncherSaid(int attempt, int rank, pid_t pid, WaitStatus status) {
  for (const auto& process : processes_) {
    if (process->attempt != attempt || process->rank != rank || process->worker ||
        process->identity.pid != pid || process->exit) {
      continue;
    }
    // The kernel may be about to tell: its word is worth more.
    if (const auto kernel = ExitFromPidfd(process->pidfd.get())) {
      SetExit(*process, *kernel, "pidfd");
    } else {
      SetExit(*process, status, "launcher");
    }
  }
}

std::vector<TrackedProcess*> ProcessTable::All() const {
  std::vector<TrackedProcess*> all;
  for (const auto& process : processes_) all.push_back(process.get());
  return all;
}

std::vector<TrackedProcess*> ProcessTable::OfAttempt(int attempt) const {
  std::vector<TrackedProcess*> found;
  for (const auto& process : processes_) {
    if (process->attempt == attempt) found.push_back(process.get());
  }
  return found;
}

TrackedProcess* ProcessTable::Find(int attempt, int rank, std::optional<int> worker) const {
  for (auto it = processes_.rbegin(); it != processes_.rend(); ++it) {
    TrackedProcess& p = **it;
    if (p.attempt == attempt && p.rank == rank && p.worker == worker) return &p;
  }
  return nullptr;
}

std::string ProcessTable::ExitSource() const { return connector_ ? "connector" : "launcher"; }

}  // namespace shakedown
