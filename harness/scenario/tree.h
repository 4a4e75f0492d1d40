// A YAML document as a tree that knows where each piece was written. Our own and not the YAML
// library's: a scenario is put together from several sources (its file, a job file, --set), every
// problem has to say which, and duplicate keys have to survive until they are reported.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/problem.h"

namespace shakedown {

// Where a node was written. Indices into it are stable; order is the order of reports.
struct Source {
  std::string label;                // Problem::file
  std::filesystem::path directory;  // what a relative path in it is relative to; empty: the current
};

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text;     // kScalar
  bool quoted = false;  // kScalar: a text whatever it looks like
  // Reported already: what is below is not to be judged once more.
  bool bad = false;
  int source = 0;
  int line = 0;  // as in Problem
  int column = 0;
  std::vector<Node> keys;   // kMap: scalars, in order, duplicates included
  std::vector<Node> items;  // kMap: the value of each key; kList: the elements

  bool is(Kind k) const { return kind == k; }
  // The value of the first such key, nullptr when there is none.
  const Node* Get(std::string_view key) const;
  Node* Get(std::string_view key);
};

// The node at a dotted path with list indices from 0 ("faults.0.at.rank"), or, when there is none,
// the deepest node on the way to it. `found` (may be null) says which.
const Node& Locate(const Node& root, std::string_view path, bool* found = nullptr);

// Problem at a node. `text` is the node's own when it is a scalar.
Problem ProblemAt(const std::vector<Source>& sources, const Node& node, std::string message);

// "a list", "nothing", "'abc'": for messages.
std::string DescribeValue(const Node& node);

}  // namespace shakedown
