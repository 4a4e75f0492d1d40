// Text for people: wrapped paragraphs and aligned tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shakedown {

// Breaks at spaces so that no line is longer than `width` characters where a word is not. Each line
// but the first begins with `indent` spaces; the first is taken to stand behind as many. No newline
// at the end.
std::string Wrap(std::string_view text, int indent, int width);

// Columns aligned by spaces, two apart; the last one wraps at `width`. The first row is the
// heading. Each line ends with a newline. REQUIRES: rows have the same number of cells, at least
// one.
std::string Table(const std::vector<std::vector<std::string>>& rows, int width);

}  // namespace shakedown
