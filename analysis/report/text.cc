#include "analysis/report/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace shakedown::report {

int Columns(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string PadRight(std::string_view text, int columns) {
  const int blanks = std::max(0, columns - Columns(text));
  return std::string(text) + std::string(static_cast<size_t>(blanks), ' ');
}

std::string PadLeft(std::string_view text, int columns) {
  const int blanks = std::max(0, columns - Columns(text));
  return std::string(static_cast<size_t>(blanks), ' ') + std::string(text);
}

std::string Wrap(std::string_view text, int width, int first, int indent) {
  std::string out;
  int column = first;
  bool line_empty = true;
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    text = blank == std::string_view::npos ? "" : text.substr(blank + 1);
    if (word.empty()) continue;
    const int columns = Columns(word);
    if (!line_empty && column + 1 + columns > width) {
      out += '\n' + std::string(static_cast<size_t>(indent), ' ');
      column = indent;
      line_empty = true;
    }
    if (!line_empty) {
      out += ' ';
      ++column;
    }
    out += word;
    column += columns;
    line_empty = false;
  }
  return out;
}

std::string HumanMs(double ms) {
  if (!std::isfinite(ms)) return "?";
  char text[64];
  if (ms < 10) {
    std::snprintf(text, sizeof text, "%.1f ms", ms);
  } else if (ms < 1000) {
    std::snprintf(text, sizeof text, "%.0f ms", ms);
  } else if (ms < 120'000) {
    std::snprintf(text, sizeof text, "%.2f s", ms / 1000);
  } else {
    std::snprintf(text, sizeof text, "%.0f min %.0f s", std::floor(ms / 60'000),
                  std::floor(std::fmod(ms, 60'000) / 1000));
  }
  return text;
}

}  // namespace shakedown::report
