#include "harness/cli/live_view.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "analysis/report/console.h"

namespace shakedown::cli {
namespace {

int Width(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string Text(const RunProgress& p) {
  switch (p.what) {
    case RunProgress::What::kStarting:
      return p.text.empty() ? "starting" : p.text;
    case RunProgress::What::kAttempt:
      return "attempt " + std::to_string(p.attempt);
    case RunProgress::What::kStep:
      return "attempt " + std::to_string(p.attempt) + ", step " + std::to_string(p.step) + " of " +
             std::to_string(p.steps);
    case RunProgress::What::kInjected:
      return "injected: " + p.text;
    case RunProgress::What::kNoticed:
      return "noticed: " + p.text;
    case RunProgress::What::kEnding:
      return "collecting evidence";
  }
  return "";
}

}  // namespace

std::function<void(const RunProgress&)> LiveView(const std::string& title) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  auto line = std::make_shared<report::ProgressLine>(STDERR_FILENO, terminal, Width(STDERR_FILENO));
  return [title, terminal, line](const RunProgress& progress) {
    // Step by step is for a terminal, which writes over it; a log would only fill up.
    if (!terminal && progress.what == RunProgress::What::kStep) return;
    line->Show(title + ": " + Text(progress));
  };
}

}  // namespace shakedown::cli
