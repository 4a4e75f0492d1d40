#include "analysis/report/console.h"
#include "analysis/report/text.h"
#include "harness/base/file.h"
#include "harness/base/text.h"

namespace shakedown::report {
namespace {

// Carriage return, then erase to the end of the line (ECMA-48 EL).
constexpr char kStartOver[] = "\r\x1b[K";

std::string Cut(std::string text, int columns) {
  if (Columns(text) <= columns) return text;
  while (!text.empty() && Columns(text) > columns - 3) text.pop_back();
  // Not in the middle of a character.
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
  if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
  return text + "...";
}

}  // namespace

ProgressLine::ProgressLine(int fd, bool is_terminal, int width)
    : fd_(fd), is_terminal_(is_terminal), width_(width) {}

ProgressLine::~ProgressLine() {
  if (is_terminal_ && !shown_.empty()) Write("\n");
}

void ProgressLine::Show(std::string_view text) {
  std::string line = Escape(text);
  // The last column stays free: a full line makes some terminals wrap.
  if (is_terminal_) line = Cut(std::move(line), width_ - 1);
  if (line == shown_) return;
  Write(is_terminal_ ? kStartOver + line : line + "\n");
  shown_ = std::move(line);
}

void ProgressLine::Clear() {
  if (is_terminal_ && !shown_.empty()) Write(kStartOver);
  if (is_terminal_) shown_.clear();
}

void ProgressLine::Write(std::string_view bytes) {
  // Nobody is told when the terminal is gone: progress is a courtesy.
  (void)WriteAll(fd_, bytes, "progress");
}

}  // namespace shakedown::report
