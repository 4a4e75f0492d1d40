#include "harness/base/time.h"

#include <ctime>

namespace shakedown {
namespace {
int64_t Read(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}
}  // namespace

MonoTime MonoNow() { return MonoTime{Read(CLOCK_MONOTONIC)}; }
WallTime WallNow() { return WallTime{Read(CLOCK_REALTIME)}; }

std::string FormatRfc3339(WallTime time) {
  const std::time_t seconds = static_cast<std::time_t>(time.ns / 1'000'000'000);
  const int ms = static_cast<int>(time.ns / 1'000'000 % 1000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[64];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::string out(text, n);
  const std::string digits = std::to_string(1000 + ms);
  return out + "." + digits.substr(1) + "Z";
}

}  // namespace shakedown
