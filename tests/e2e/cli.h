// Runs build/shakedown as a person would and reads what it prints.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/process/child.h"
#include "harness/wire/json.h"

namespace shakedown {

struct CliResult {
  int status = -1;  // exit status; -1 when ended by a signal
  Json json;        // of stdout, null when it is none
  std::string out, err;
};

inline std::string Program(const std::string& name) {
  return std::string(SHAKEDOWN_BINARY_DIR) + "/" + name;
}

inline CliResult Cli(std::vector<std::string> arguments,
                     std::vector<std::string> environment = {}) {
  std::vector<std::string> argv = {Program("shakedown")};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const Result<HelperResult> run = RunHelper(
      {.argv = argv, .environment = std::move(environment), .deadline = Milliseconds(580'000)});
  CliResult out;
  if (!run) {
    ADD_FAILURE() << run.error().message;
    return out;
  }
  out.status = run->status.code();
  out.out = run->out;
  out.err = run->err;
  if (Result<Json> json = ParseJson(run->out)) out.json = std::move(*json);
  return out;
}

// A folder for run directories, removed when the test passed; a failed test keeps it and says so.
class RunsFolder {
 public:
  RunsFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "shakedown-e2e-XXXXXX").native();
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~RunsFolder() {
    if (::testing::Test::HasFailure()) {
      std::fprintf(stderr, "run directories are kept in %s\n", path_.c_str());
      return;
    }
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string str() const { return path_.native(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The finding of one check in a `run` object; null when the check is not there.
inline Json CheckOf(const Json& run, const std::string& name) {
  for (const Json& check : Field(run, "checks")) {
    if (StringField(check, "check") == name) return check;
  }
  return nullptr;
}
inline std::string StatusOf(const Json& run, const std::string& name) {
  return StringField(CheckOf(run, name), "status").value_or("(no such check)");
}

}  // namespace shakedown
