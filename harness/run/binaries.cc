#include "harness/run/binaries.h"

#include <unistd.h>

#include <cstdlib>

#include "harness/wire/environment.h"

namespace shakedown {
namespace fs = std::filesystem;

Result<Binaries> FindBinaries() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return Fail("cannot find my own program (/proc/self/exe): " + error.message());
  const fs::path folder = self.parent_path();
  Binaries out{folder / "shakedown-reaper", folder / "shakedown-launch",
               folder / "shakedown-trainer", folder / "shakedown-data-worker"};
  if (const char* other = std::getenv(env::kTrainer); other != nullptr && *other != '\0') {
    out.trainer = other;
  }
  if (const char* other = std::getenv(env::kLauncher); other != nullptr && *other != '\0') {
    out.launcher = other;
  }
  for (const fs::path& program : {out.reaper, out.launcher, out.trainer, out.data_worker}) {
    if (::access(program.c_str(), X_OK) == 0) continue;
    return Fail("cannot start a job: '" + program.native() +
                "' is missing or not executable; build it with ./dev build");
  }
  return out;
}

}  // namespace shakedown
