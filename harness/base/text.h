// Text for people: made harmless for a terminal, wrapped paragraphs and aligned tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shakedown {

// The one way in which text that is not our own (of a scenario, a log, a job, a command line) gets
// to a terminal: control characters and bytes that are not UTF-8 as \xNN, newlines and tabs as \n
// and \t, so that one text stays on one line and cannot act on the terminal. What has been escaped
// stays as it is when it is escaped once more.
std::string Escape(std::string_view text);
// The same for text of several lines, whose ends stay.
std::string EscapeLines(std::string_view text);

// Breaks at spaces so that no line is longer than `width` characters where a word is not. Each line
// but the first begins with `indent` spaces; the first is taken to stand behind as many. No newline
// at the end.
std::string Wrap(std::string_view text, int indent, int width);

// Columns aligned by spaces, two apart; the last one wraps at `width`. The first row is the
// heading. Each line ends with a newline. REQUIRES: rows have the same number of cells, at least
// one.
std::string Table(const std::vector<std::vector<std::string>>& rows, int width);

}  // namespace shakedown
