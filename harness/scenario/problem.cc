#include "harness/scenario/problem.h"

#include <algorithm>

namespace shakedown {
namespace {

// Restricted Damerau-Levenshtein distance: the slips of a keyboard each count as one.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Describe(const Problem& problem) {
  std::string out = problem.file;
  if (problem.line > 0) {
    out += ':' + std::to_string(problem.line) + ':' + std::to_string(problem.column);
  } else if (problem.column > 0) {
    out += ", character " + std::to_string(problem.column);
  }
  out += ": " + problem.message;
  if (problem.nearest) out += " (did you mean '" + *problem.nearest + "'?)";
  return out;
}

Json ToJson(const Problem& problem) {
  Json out = {{"file", problem.file.empty() ? Json(nullptr) : Json(problem.file)}};
  out["line"] = problem.line > 0 ? Json(problem.line) : Json(nullptr);
  out["column"] = problem.column > 0 ? Json(problem.column) : Json(nullptr);
  out["text"] = problem.text.empty() ? Json(nullptr) : Json(problem.text);
  out["message"] = problem.message;
  out["nearest"] = problem.nearest ? Json(*problem.nearest) : Json(nullptr);
  return out;
}

std::optional<std::string> NearestName(std::string_view text,
                                       const std::vector<std::string>& names) {
  constexpr size_t kLongestName = 64;  // bounds the work on hostile input
  if (text.empty() || text.size() > kLongestName) return std::nullopt;
  // Below a third of the characters it is a slip; beyond, another word.
  size_t best = std::max<size_t>(1, text.size() / 3) + 1;
  std::optional<std::string> nearest;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(text, name);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace shakedown
