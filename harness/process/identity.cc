#include "harness/process/identity.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "harness/base/file.h"

namespace shakedown {
namespace {

std::string Describe(const ProcessIdentity& identity) {
  return "process " + std::to_string(identity.pid) + " (start time " +
         std::to_string(identity.start_time) + ")";
}

}  // namespace

Result<ProcessStat> ReadProcessStat(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const Result<std::string> text = ReadFile(path);
  if (!text) {
    // The file is gone, or was opened while the process still had it (ESRCH from read).
    const int code = text.error().code == ENOENT ? ESRCH : text.error().code;
    return Fail("cannot look at process " + std::to_string(pid) + ": " + text.error().message,
                code);
  }
  // The second field is the name in parentheses, and may itself hold spaces and parentheses.
  const size_t name_begin = text->find('(');
  const size_t name_end = text->rfind(')');
  if (name_begin == std::string::npos || name_end == std::string::npos || name_end < name_begin) {
    return Fail("cannot read '" + path + "': no process name in it");
  }
  ProcessStat stat;
  stat.name = text->substr(name_begin + 1, name_end - name_begin - 1);
  std::istringstream rest(text->substr(name_end + 1));
  rest >> stat.state >> stat.parent >> stat.group >> stat.session;
  std::string skipped;
  for (int field = 7; field < 22; ++field) rest >> skipped;
  rest >> stat.start_time;
  if (!rest) return Fail("cannot read '" + path + "': fewer fields than expected");
  return stat;
}

Result<ProcessIdentity> IdentityOf(pid_t pid) {
  const Result<ProcessStat> stat = ReadProcessStat(pid);
  if (!stat) return tl::unexpected(stat.error());
  return ProcessIdentity{pid, stat->start_time, BootId()};
}

std::string BootId() {
  static const std::string kBootId = [] {
    Result<std::string> text = ReadFile("/proc/sys/kernel/random/boot_id");
    // Without /proc nothing of Shakedown works; IdentityOf says so first.
    if (!text) return std::string("unknown");
    while (!text->empty() && text->back() == '\n') text->pop_back();
    return *text;
  }();
  return kBootId;
}

Result<UniqueFd> OpenPidfd(const ProcessIdentity& identity) {
  if (identity.pid <= 0 || identity.boot_id != BootId()) {
    return FailErrno("find", Describe(identity), ESRCH);
  }
  // By number: sys/pidfd.h of glibc 2.36 cannot be used from C++ (no extern "C").
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, identity.pid, 0)));
  if (!pidfd) return FailErrno("open a pidfd of", Describe(identity));
  // Read after the pidfd was taken: had the pid changed hands before, the start time differs now.
  const Result<ProcessStat> stat = ReadProcessStat(identity.pid);
  if (!stat) return tl::unexpected(stat.error());
  if (stat->start_time != identity.start_time) return FailErrno("find", Describe(identity), ESRCH);
  return pidfd;
}

Status SignalPidfd(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) != 0) {
    return FailErrno("send signal " + std::to_string(signal) + " through", "pidfd");
  }
  return {};
}

Json ToJson(const ProcessIdentity& identity) {
  return Json{
      {"pid", identity.pid}, {"start_time", identity.start_time}, {"boot_id", identity.boot_id}};
}

Result<ProcessIdentity> IdentityFromJson(const Json& json) {
  const std::optional<int64_t> pid = IntField(json, "pid");
  const std::optional<int64_t> start_time = IntField(json, "start_time");
  const std::optional<std::string> boot_id = StringField(json, "boot_id");
  if (!pid || *pid <= 0 || *pid > INT32_MAX || !start_time || *start_time < 0 || !boot_id) {
    return Fail("not a process identity {pid, start_time, boot_id}: " + DumpJson(json));
  }
  return ProcessIdentity{static_cast<pid_t>(*pid), static_cast<uint64_t>(*start_time), *boot_id};
}

}  // namespace shakedown
