// Result and Error: how every part of Shakedown reports what can go wrong.
//
// Use Result for what can happen (a missing file, a refused mount), assertions for what cannot, and
// exceptions only inside a library that throws them, caught at its border.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace shakedown {

// What was tried, on what, what came back, and what to do: `message` is one sentence that says all
// four. `code` is the errno that caused it, or 0 when no system call failed.
struct Error {
  std::string message;
  int code = 0;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = tl::expected<void, Error>;

inline tl::unexpected<Error> Fail(std::string message, int code = 0) {
  return tl::unexpected<Error>(Error{std::move(message), code});
}

// "cannot open 'x': No such file or directory (ENOENT)". Reads errno at the call unless `code` is
// given.
tl::unexpected<Error> FailErrno(std::string_view tried, std::string_view on, int code = -1);

// "No such file or directory (ENOENT)".
std::string DescribeErrno(int code);

// Puts the stage in front of an error that came from below: "cannot start the job: <message>".
inline tl::unexpected<Error> Wrap(std::string_view stage, const Error& cause) {
  return tl::unexpected<Error>(Error{std::string(stage) + ": " + cause.message, cause.code});
}

}  // namespace shakedown

// Returns the error of a Status or Result from the enclosing function.
#define SHAKEDOWN_TRY(expression)                                                \
  do {                                                                           \
    auto shakedown_try_result = (expression);                                    \
    if (!shakedown_try_result) {                                                 \
      return ::tl::unexpected<::shakedown::Error>(shakedown_try_result.error()); \
    }                                                                            \
  } while (false)

// Assertion that stays on in release builds: for what cannot happen unless Shakedown has a bug.
#define SHAKEDOWN_ASSERT(condition)                                              \
  do {                                                                           \
    if (!(condition)) ::shakedown::AssertFailed(#condition, __FILE__, __LINE__); \
  } while (false)

namespace shakedown {
[[noreturn]] void AssertFailed(const char* condition, const char* file, int line);
}  // namespace shakedown
