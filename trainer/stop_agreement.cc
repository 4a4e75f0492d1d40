#include "trainer/stop_agreement.h"

#include <unistd.h>

#include <cerrno>

namespace shakedown {

StopAgreement::StopAgreement(const std::filesystem::path& store_file)
    : mark_(store_file.native() + ".stop") {}

Result<bool> StopAgreement::StopsAfter(int64_t step, bool requested) const {
  char text[32];
  ssize_t size = ::readlink(mark_.c_str(), text, sizeof text);
  if (size < 0 && requested) {
    if (::symlink(std::to_string(step + 1).c_str(), mark_.c_str()) != 0 && errno != EEXIST) {
      return FailErrno("mark the step to stop at in", mark_);
    }
    size = ::readlink(mark_.c_str(), text, sizeof text);
  }
  return size > 0 && std::string_view(text, static_cast<size_t>(size)) == std::to_string(step);
}

void StopAgreement::Remove() const { ::unlink(mark_.c_str()); }

}  // namespace shakedown
