#include "harness/process/process_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <map>
#include <memory>
#include <optional>

#include "harness/base/file.h"

namespace shakedown {
namespace {

constexpr size_t kCommandBytes = 200;

struct CloseDirectory {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

std::optional<pid_t> AsPid(std::string_view name) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

}  // namespace

Result<ProcessTree> ProcessesBelow(pid_t root) {
  const std::unique_ptr<DIR, CloseDirectory> proc(::opendir("/proc"));
  if (!proc) return FailErrno("read directory", "/proc");
  ProcessTree tree;
  std::multimap<pid_t, TreeProcess> children;  // by parent
  while (const dirent* entry = ::readdir(proc.get())) {
    const std::optional<pid_t> pid = AsPid(entry->d_name);
    if (!pid) continue;
    const Result<ProcessStat> stat = ReadProcessStat(*pid);
    if (!stat) {
      if (stat.error().code != ESRCH) return tl::unexpected(stat.error());
      tree.settled = false;
      continue;
    }
    children.emplace(stat->parent, TreeProcess{{*pid, stat->start_time, BootId()},
                                               stat->parent,
                                               stat->group,
                                               stat->session,
                                               stat->state});
  }
  // A parent that ended while /proc was read can make a chain look closed; each process is taken
  // out of `children` once, so that the walk ends all the same.
  std::vector<pid_t> unvisited{root};
  for (size_t i = 0; i < unvisited.size(); ++i) {
    const auto [begin, end] = children.equal_range(unvisited[i]);
    for (auto child = begin; child != end; ++child) {
      unvisited.push_back(child->second.identity.pid);
      tree.processes.push_back(std::move(child->second));
    }
    children.erase(begin, end);
  }
  return tree;
}

bool IsBelow(pid_t pid, pid_t root) {
  // Deeper than any real chain: a chain that closes on itself, read while processes come and go,
  // must end.
  constexpr int kMaxDepth = 1000;
  for (int depth = 0; pid > 1 && depth < kMaxDepth; ++depth) {
    if (pid == root) return true;
    const Result<ProcessStat> stat = ReadProcessStat(pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

void KillRound(const std::vector<TreeProcess>& processes) {
  for (const TreeProcess& process : processes) {
    const Result<UniqueFd> pidfd = OpenPidfd(process.identity);
    if (!pidfd) continue;  // gone meanwhile, which is what is wanted
    // A child that only we can reap keeps its group's number from being given to others, even when
    // it has ended already.
    const bool pinned = process.parent == ::getpid();
    if (pinned && process.group != ::getpgrp()) (void)::kill(-process.group, SIGKILL);
    (void)SignalPidfd(pidfd->get(), SIGKILL);
  }
}

std::string CommandOf(pid_t pid) {
  Result<std::string> text = ReadFile("/proc/" + std::to_string(pid) + "/cmdline");
  if (!text) return "";
  while (!text->empty() && text->back() == '\0') text->pop_back();
  if (text->empty()) {
    const Result<ProcessStat> stat = ReadProcessStat(pid);
    return stat ? "[" + stat->name + "]" : "";
  }
  std::replace(text->begin(), text->end(), '\0', ' ');
  if (text->size() > kCommandBytes) text->resize(kCommandBytes);
  return *text;
}

}  // namespace shakedown
