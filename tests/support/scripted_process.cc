#include "tests/support/scripted_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "harness/base/file.h"
#include "tests/support/await.h"

namespace shakedown::test_support {
namespace {

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};
Pipe MakePipe() {
  int ends[2];
  SHAKEDOWN_ASSERT(::pipe2(ends, O_CLOEXEC) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Result<std::unique_ptr<ScriptedProcess>> ScriptedProcess::Start(
    std::vector<std::string> environment) {
  Pipe commands = MakePipe();
  Pipe answers = MakePipe();
  Pipe errors = MakePipe();
  SpawnOptions options;
  options.argv = {SHAKEDOWN_BINARY_DIR "/tests/victims/victim-scripted"};
  options.environment = std::move(environment);
  options.descriptors = {
      {commands.reader.get(), 0}, {answers.writer.get(), 1}, {errors.writer.get(), 2}};
  Result<SpawnedProcess> process = Spawn(options);
  if (!process) return tl::unexpected(process.error());
  std::unique_ptr<ScriptedProcess> scripted(new ScriptedProcess);
  scripted->process_ = *std::move(process);
  scripted->commands_ = std::move(commands.writer);
  scripted->answers_ = std::move(answers.reader);
  scripted->errors_ = std::move(errors.reader);
  return scripted;
}

ScriptedProcess::~ScriptedProcess() {
  if (ended_) return;
  (void)Signal(SIGKILL);
  (void)Wait();
}

Status ScriptedProcess::Tell(const std::string& command) {
  return WriteAll(commands_.get(), command + "\n", "the scripted process");
}

Result<std::string> ScriptedProcess::Hear() {
  while (true) {
    if (const size_t end = heard_.find('\n'); end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    if (!AwaitReadable(answers_.get())) return Fail("the scripted process says nothing");
    char buffer[512];
    const ssize_t n = ::read(answers_.get(), buffer, sizeof buffer);
    if (n <= 0) return Fail("the scripted process has ended");
    heard_.append(buffer, static_cast<size_t>(n));
  }
}

bool ScriptedProcess::IsSilentFor(Nanoseconds period) {
  return heard_.empty() && !AwaitReadable(answers_.get(), period);
}

std::string ScriptedProcess::Ask(const std::string& command) {
  if (Status told = Tell(command); !told) return told.error().message;
  Result<std::string> heard = Hear();
  return heard ? *heard : heard.error().message;
}

Result<WaitStatus> ScriptedProcess::Wait() {
  Result<WaitStatus> status = shakedown::Wait(process_.pidfd.get());
  if (status) ended_ = true;
  return status;
}

std::string ScriptedProcess::Errors() {
  std::string text;
  char buffer[512];
  for (ssize_t n = 0; (n = ::read(errors_.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace shakedown::test_support
