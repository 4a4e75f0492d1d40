// Waiting in tests. Pages and /proc tell nobody when they change, so they are looked at every
// millisecond; descriptors are waited for.
#pragma once

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "harness/base/time.h"

namespace shakedown::test_support {

// Long enough for a busy machine under a sanitizer: reached only when a test fails.
inline constexpr Nanoseconds kPatience = std::chrono::seconds(20);

template <typename Condition>
bool Eventually(Condition condition, Nanoseconds patience = kPatience) {
  const MonoTime deadline = MonoNow() + patience;
  while (!condition()) {
    if (MonoNow() > deadline) return false;
    std::this_thread::sleep_for(Milliseconds(1));
  }
  return true;
}

// Whether the condition is true all the time.
template <typename Condition>
bool Throughout(Nanoseconds period, Condition condition) {
  return !Eventually([&] { return !condition(); }, period);
}

inline bool AwaitReadable(int fd, Nanoseconds patience = kPatience) {
  const MonoTime deadline = MonoNow() + patience;
  while (true) {
    const int left_ms = static_cast<int>(ToMs(deadline - MonoNow()));
    if (left_ms < 0) return false;
    pollfd entry{fd, POLLIN, 0};
    const int ready = ::poll(&entry, 1, left_ms);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace shakedown::test_support
