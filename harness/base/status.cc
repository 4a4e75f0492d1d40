#include "harness/base/status.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace shakedown {

std::string DescribeErrno(int code) {
  const char* text = ::strerrordesc_np(code);
  const char* name = ::strerrorname_np(code);
  return std::string(text ? text : "unknown error") + " (" + (name ? name : std::to_string(code)) +
         ")";
}

tl::unexpected<Error> FailErrno(std::string_view tried, std::string_view on, int code) {
  if (code < 0) code = errno;
  return Fail("cannot " + std::string(tried) + " '" + std::string(on) + "': " + DescribeErrno(code),
              code);
}

void AssertFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "shakedown: bug: assertion '%s' failed at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace shakedown
