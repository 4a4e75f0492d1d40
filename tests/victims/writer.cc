// A rank that saves after each step: file first, manifest last, the two newest kept.
//   writer IGNORED RANKS DIRECTORY
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "injectors/probe/probe.h"
#include "tests/victims/victim.h"

namespace {

using shakedown::ArmAction;
using shakedown::Point;
namespace probe = shakedown::probe;

constexpr size_t kCheckpointBytes = 64 << 10;

std::string Name(const std::string& directory, uint32_t step, const char* suffix) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08u%s", step, suffix);
  return directory + "/" + name;
}

// errno of the first thing that failed, 0 when all of `bytes` is there.
int WriteFile(const std::string& path, const std::vector<char>& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  int error = 0;
  for (size_t done = 0; done < bytes.size() && error == 0;) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0) {
      error = errno;
    } else {
      done += static_cast<size_t>(n);
    }
  }
  ::close(fd);
  return error;
}

int Save(const std::string& directory, uint32_t step) {
  const std::string temporary = directory + "/.tmp-" + std::to_string(step);
  const probe::Verdict verdict = probe::Pass(Point::kCheckpointWrite, step);
  int error = verdict.action == ArmAction::kIoError
                  ? static_cast<int>(verdict.argument)
                  : WriteFile(temporary, std::vector<char>(kCheckpointBytes, 'w'));
  if (error == 0) {
    probe::Pass(Point::kCheckpointRename, step);
    if (::rename(temporary.c_str(), Name(directory, step, ".pt").c_str()) != 0) error = errno;
  }
  if (error == 0) {
    probe::Pass(Point::kCheckpointPublish, step);
    error = WriteFile(Name(directory, step, ".json"), {'{', '}'});
  }
  ::unlink(temporary.c_str());
  return error;
}

}  // namespace

int main(int argc, char** argv) {
  shakedown::victims::DieWithParent();
  if (argc < 4) return 64;
  const std::string directory = argv[3];
  probe::Joined(shakedown::victims::RankFromEnvironment(), std::atoi(argv[2]));
  for (uint32_t step = 1;; ++step) {
    probe::Pass(Point::kStepBegin, step);
    shakedown::victims::Compute();
    probe::StepEnded(step);
    if (const int error = Save(directory, step); error != 0) {
      probe::CheckpointFailed(step, error);
      continue;
    }
    probe::Committed(step);
    if (step > 2) {
      ::unlink(Name(directory, step - 2, ".json").c_str());
      ::unlink(Name(directory, step - 2, ".pt").c_str());
    }
  }
}
