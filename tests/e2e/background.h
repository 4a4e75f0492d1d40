// A run in the background, to be interrupted.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/base/file.h"
#include "harness/base/time.h"
#include "harness/process/process_tree.h"
#include "harness/process/spawn.h"
#include "harness/wire/event.h"
#include "harness/wire/run_dir.h"
#include "tests/e2e/cli.h"

namespace shakedown {

inline std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> out;
  for (char** variable = environ; *variable != nullptr; ++variable) out.emplace_back(*variable);
  return out;
}

// `shakedown run` in the background, in a session of its own.
class Background {
 public:
  // `settings`: NAME=value, before those of our own environment.
  explicit Background(std::vector<std::string> arguments, std::vector<std::string> settings = {}) {
    std::vector<std::string> argv = {Program("shakedown")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    for (std::string& own : OwnEnvironment()) settings.push_back(std::move(own));
    Result<SpawnedProcess> spawned =
        Spawn({.argv = argv, .environment = std::move(settings), .new_session = true});
    EXPECT_TRUE(spawned) << (spawned ? "" : spawned.error().message);
    process_ = std::move(*spawned);
  }
  ~Background() {
    if (!status_) {
      (void)SignalPidfd(process_.pidfd.get(), SIGKILL);
      (void)Wait(process_.pidfd.get());
    }
  }
  void Signal(int signal) { ASSERT_TRUE(SignalPidfd(process_.pidfd.get(), signal)); }
  WaitStatus Await() {
    if (!status_) status_ = Wait(process_.pidfd.get()).value();
    return *status_;
  }
  pid_t pid() const { return process_.pid; }
  bool Ended(Milliseconds within = Milliseconds(0)) const {
    pollfd poll{process_.pidfd.get(), POLLIN, 0};
    return ::poll(&poll, 1, static_cast<int>(within.count())) > 0;
  }

 private:
  SpawnedProcess process_;
  std::optional<WaitStatus> status_;
};

// The run directory below `folder`, once observed.jsonl has `event`.
inline std::optional<RunDir> AwaitEvent(const RunsFolder& folder, const std::string& event,
                                        const Background& run) {
  while (!run.Ended()) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path(), error)) {
      const RunDir dir(entry.path());
      const Result<std::string> text = ReadFile(dir.observed());
      if (text && text->find("\"" + event + "\"") != std::string::npos) return dir;
    }
    std::this_thread::yield();
  }
  return std::nullopt;
}

// Identities of everything below the run, to see later that it is gone.
inline std::vector<ProcessIdentity> Below(pid_t pid) {
  std::vector<ProcessIdentity> out;
  if (Result<ProcessTree> tree = ProcessesBelow(pid)) {
    for (const TreeProcess& process : tree->processes) out.push_back(process.identity);
  }
  return out;
}

// Waits for each to be gone, by its pidfd.
inline void ExpectGone(const std::vector<ProcessIdentity>& processes) {
  for (const ProcessIdentity& process : processes) {
    const Result<UniqueFd> pidfd = OpenPidfd(process);
    if (!pidfd) continue;
    pollfd poll{pidfd->get(), POLLIN, 0};
    EXPECT_EQ(::poll(&poll, 1, 10'000), 1)
        << "still there: " << process.pid << " " << CommandOf(process.pid);
  }
}

}  // namespace shakedown
