#include "trainer/termination.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace shakedown {
namespace {

sigset_t OnlySigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return set;
}

[[noreturn]] void DieBySigterm() {
  std::signal(SIGTERM, SIG_DFL);
  const sigset_t set = OnlySigterm();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::kill(::getpid(), SIGTERM);
  while (true) ::pause();
}

}  // namespace

Result<std::unique_ptr<Termination>> Termination::Watch(Nanoseconds patience,
                                                        std::function<void()> overdue) {
  const sigset_t set = OnlySigterm();
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return FailErrno("block", "SIGTERM", error);
  }
  UniqueFd signals(::signalfd(-1, &set, SFD_CLOEXEC));
  if (!signals) return FailErrno("make a signalfd for", "SIGTERM");
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop) return FailErrno("make", "an eventfd");
  return std::unique_ptr<Termination>(
      new Termination(patience, std::move(overdue), std::move(signals), std::move(stop)));
}

Termination::Termination(Nanoseconds patience, std::function<void()> overdue, UniqueFd signals,
                         UniqueFd stop)
    : patience_(patience),
      overdue_(std::move(overdue)),
      signals_(std::move(signals)),
      stop_(std::move(stop)),
      thread_([this] { Run(); }) {}

Termination::~Termination() {
  Acting();
  const uint64_t one = 1;
  SHAKEDOWN_ASSERT(::write(stop_.get(), &one, sizeof one) == sizeof one);
  thread_.join();
}

void Termination::Acting() {
  const std::lock_guard lock(mutex_);
  acting_ = true;
  changed_.notify_all();
}

void Termination::Run() {
  pollfd waits[] = {{signals_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  while (::poll(waits, 2, -1) < 0) SHAKEDOWN_ASSERT(errno == EINTR);
  if (waits[0].revents == 0) return;
  requested_.store(true, std::memory_order_release);
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, patience_, [this] { return acting_; })) return;
  lock.unlock();
  overdue_();
  DieBySigterm();
}

}  // namespace shakedown
