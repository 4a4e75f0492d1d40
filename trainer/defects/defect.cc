#include "trainer/defects/defect.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace shakedown {

// Weak: the definition in planted.cc wins.
extern const Defect kDefect __attribute__((weak)) = Defect::kNone;

namespace internal {

void NoteDefectActed() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path file = self.parent_path() / ".acted";
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;  // the test will miss it
  (void)!::write(fd, "x", 1);
  ::close(fd);
}

}  // namespace internal
}  // namespace shakedown
