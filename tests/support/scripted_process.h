// A test's end of tests/victims/scripted: a process that passes points when it is told to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/time.h"
#include "harness/process/spawn.h"

namespace shakedown::test_support {

class ScriptedProcess {
 public:
  // `environment`: NAME=value, in addition to nothing.
  static Result<std::unique_ptr<ScriptedProcess>> Start(std::vector<std::string> environment);
  ~ScriptedProcess();  // ends it

  Status Tell(const std::string& command);
  // The next line that it says, or that the process has ended.
  Result<std::string> Hear();
  // Whether it says nothing within `period`.
  bool IsSilentFor(Nanoseconds period);
  // Tells and hears.
  std::string Ask(const std::string& command);

  Status Signal(int signal) { return SignalPidfd(process_.pidfd.get(), signal); }
  // Blocks until it has ended.
  Result<WaitStatus> Wait();
  const ProcessIdentity& identity() const { return process_.identity; }
  // All that it wrote to stderr. REQUIRES: it has ended.
  std::string Errors();

 private:
  ScriptedProcess() = default;

  SpawnedProcess process_;
  UniqueFd commands_;
  UniqueFd answers_;
  UniqueFd errors_;
  std::string heard_;
  bool ended_ = false;
};

}  // namespace shakedown::test_support
