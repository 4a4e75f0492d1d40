#include "harness/cli/repeat_command.h"

#include <unistd.h>

#include "harness/base/file.h"

namespace shakedown::cli {
namespace {

// For a POSIX shell.
std::string Quote(const std::string& text) {
  if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-./=:,@%+") == std::string::npos &&
      !text.empty()) {
    return text;
  }
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string RepeatCommand(const std::string& command, const ScenarioOptions& options) {
  std::string out = "shakedown " + command + " --seed " + std::to_string(options.seed);
  if (!options.job.empty()) out += " --job " + Quote(options.job);
  for (const std::string& set : options.sets) out += " --set " + Quote(set);
  return out;
}

Status CheckOutputFolder(const std::filesystem::path& folder) {
  if (Status made = MakeDirectories(std::filesystem::absolute(folder)); !made) {
    return Fail(made.error().message + "; name another folder with --out", made.error().code);
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    tl::unexpected<Error> error = FailErrno("write into", folder.native());
    return Fail(error.value().message + "; name another folder with --out", error.value().code);
  }
  return {};
}

}  // namespace shakedown::cli
