// Laying out text for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace shakedown::report {

// Columns that `text` takes: code points, which is right for what we print.
int Columns(std::string_view text);

// `text` and blanks up to `columns`; longer text stays whole.
std::string PadRight(std::string_view text, int columns);
std::string PadLeft(std::string_view text, int columns);

// Breaks at blanks so that no line is longer than `width`, but for a word that is. The first line
// stands after what the caller has printed in `first` columns; the others begin with `indent`
// blanks. No newline at the end.
std::string Wrap(std::string_view text, int width, int first, int indent);

// "12 ms", "1.25 s", "3 min 5 s".
std::string HumanMs(double ms);

}  // namespace shakedown::report
