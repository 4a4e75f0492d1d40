#include "harness/process/wait_status.h"

#include <sys/wait.h>

#include <charconv>
#include <cstring>

namespace shakedown {
namespace {

constexpr std::string_view kNumbered = "signal ";
constexpr int kLastSignal = 64;

}  // namespace

WaitStatus WaitStatus::FromSiginfo(const siginfo_t& info) {
  SHAKEDOWN_ASSERT(info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
                   info.si_code == CLD_DUMPED);
  return info.si_code == CLD_EXITED ? Exited(info.si_status) : Signaled(info.si_status);
}

WaitStatus WaitStatus::FromWord(int word) {
  return WIFSIGNALED(word) ? Signaled(WTERMSIG(word)) : Exited(WEXITSTATUS(word));
}

std::string WaitStatus::ToString() const {
  return signaled_ ? SignalName(value_) : "exit " + std::to_string(value_);
}

void WaitStatus::AddTo(Json& record) const {
  if (signaled_) {
    record["signal"] = SignalName(value_);
  } else {
    record["code"] = value_;
  }
}

std::string SignalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  if (name == nullptr) return std::string(kNumbered) + std::to_string(signal);
  return std::string("SIG") + name;
}

int SignalNumber(std::string_view name) {
  if (name.starts_with(kNumbered)) {
    name.remove_prefix(kNumbered.size());
    int number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const bool whole = error == std::errc() && end == name.data() + name.size();
    return whole && number >= 1 && number <= kLastSignal ? number : 0;
  }
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (int signal = 1; signal <= kLastSignal; ++signal) {
    const char* known = ::sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  return 0;
}

}  // namespace shakedown
