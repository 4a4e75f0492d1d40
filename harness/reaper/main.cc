// shakedown-reaper --run DIR              started by the controller, which passes descriptors
// shakedown-reaper --hold DIR BYTES       started by the reaper: the holder of a private filesystem
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "harness/base/log.h"
#include "harness/reaper/holder.h"
#include "harness/reaper/reaper.h"
#include "harness/wire/exit_code.h"

namespace shakedown {
namespace {

int ReapFor(const std::string& run) {
  // So that the reaper keeps no filesystem busy; everything that it is told is absolute.
  if (::chdir("/") != 0) LogWarning(FailErrno("change to directory", "/").value().message);
  Result<Reaper> reaper =
      Reaper::Make(RunDir(run), UniqueFd(kReaperSocketFd), UniqueFd(kReaperControllerPidfd));
  if (!reaper) {
    LogError(reaper.error().message);
    return 1;
  }
  return reaper->Run();
}

int Main(int argc, char** argv) {
  InitLog("shakedown-reaper");
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "--run" && argc == 3) return ReapFor(argv[2]);
  if (mode == "--hold" && argc == 4) {
    int64_t bytes = 0;
    const std::string_view text = argv[3];
    std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (bytes > 0) return HoldPrivateFilesystem(argv[2], bytes);
  }
  std::fputs("shakedown-reaper is started by shakedown, not by hand\n", stderr);
  return 2;
}

}  // namespace
}  // namespace shakedown

int main(int argc, char** argv) { return shakedown::Main(argc, argv); }
