// How a process ended, from siginfo or an exit status word; never from a shell's 128+n.
#pragma once

#include <csignal>
#include <string>

#include "harness/wire/json.h"

namespace shakedown {

class WaitStatus {
 public:
  static WaitStatus Exited(int code) { return WaitStatus(false, code); }
  static WaitStatus Signaled(int signal) { return WaitStatus(true, signal); }
  // From waitid's si_code (CLD_EXITED, CLD_KILLED, CLD_DUMPED) and si_status.
  static WaitStatus FromSiginfo(const siginfo_t& info);
  // From a status word as waitpid, PIDFD_GET_INFO and the process connector give it.
  static WaitStatus FromWord(int word);

  bool signaled() const { return signaled_; }
  int code() const { return signaled_ ? -1 : value_; }   // -1 when ended by a signal
  int signal() const { return signaled_ ? value_ : 0; }  // 0 when it exited
  bool ok() const { return !signaled_ && value_ == 0; }
  // "exit 3", "SIGKILL".
  std::string ToString() const;
  // Adds "code" or "signal" (a name, "SIGKILL") to a record.
  void AddTo(Json& record) const;
  bool operator==(const WaitStatus&) const = default;

 private:
  WaitStatus(bool signaled, int value) : signaled_(signaled), value_(value) {}
  bool signaled_;
  int value_;
};

// "SIGKILL" for 9; "signal 64" where there is no name. SignalNumber is its inverse and also takes
// "KILL"; 0 when unknown.
std::string SignalName(int signal);
int SignalNumber(std::string_view name);

}  // namespace shakedown
