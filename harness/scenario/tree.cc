#include "harness/scenario/tree.h"

#include <charconv>

namespace shakedown {

const Node* Node::Get(std::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) return &items[i];
  }
  return nullptr;
}

Node* Node::Get(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->Get(key));
}

namespace {

const Node* Child(const Node& node, std::string_view name) {
  if (node.is(Node::Kind::kMap)) return node.Get(name);
  if (!node.is(Node::Kind::kList)) return nullptr;
  size_t index = 0;
  const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (ec != std::errc() || end != name.data() + name.size()) return nullptr;
  return index < node.items.size() ? &node.items[index] : nullptr;
}

}  // namespace

const Node& Locate(const Node& root, std::string_view path, bool* found) {
  const Node* at = &root;
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const Node* next = Child(*at, path.substr(0, dot));
    if (next == nullptr) break;
    at = next;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  if (found != nullptr) *found = path.empty();
  return *at;
}

Problem ProblemAt(const std::vector<Source>& sources, const Node& node, std::string message) {
  Problem problem;
  problem.file = sources[static_cast<size_t>(node.source)].label;
  problem.line = node.line;
  problem.column = node.column;
  if (node.is(Node::Kind::kScalar)) problem.text = node.text;
  problem.message = std::move(message);
  return problem;
}

std::string DescribeValue(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a group of keys";
    case Node::Kind::kScalar:
      break;
  }
  constexpr size_t kShown = 60;
  return "'" + (node.text.size() > kShown ? node.text.substr(0, kShown) + "..." : node.text) + "'";
}

}  // namespace shakedown
