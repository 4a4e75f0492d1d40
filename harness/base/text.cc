#include "harness/base/text.h"

#include <algorithm>

#include "harness/base/status.h"

namespace shakedown {
namespace {

constexpr int kNarrowestColumn = 20;

// Characters, not bytes: continuation bytes of UTF-8 take no room.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string Wrap(std::string_view text, int indent, int width) {
  const auto room = static_cast<size_t>(std::max(width - indent, kNarrowestColumn));
  const std::string next_line = "\n" + std::string(static_cast<size_t>(indent), ' ');
  std::string out;
  size_t used = 0;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (used > 0 && used + 1 + Width(word) > room) {
      out += next_line;
      used = 0;
    } else if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += Width(word);
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
  }
  return out;
}

std::string Table(const std::vector<std::vector<std::string>>& rows, int width) {
  SHAKEDOWN_ASSERT(!rows.empty() && !rows.front().empty());
  const size_t columns = rows.front().size();
  std::vector<size_t> widths(columns, 0);
  for (const auto& row : rows) {
    SHAKEDOWN_ASSERT(row.size() == columns);
    for (size_t c = 0; c < columns; ++c) widths[c] = std::max(widths[c], Width(row[c]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    int indent = 0;
    for (size_t c = 0; c + 1 < columns; ++c) {
      line += row[c] + std::string(widths[c] - Width(row[c]) + 2, ' ');
      indent += static_cast<int>(widths[c]) + 2;
    }
    line += Wrap(row.back(), indent, width);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace shakedown
