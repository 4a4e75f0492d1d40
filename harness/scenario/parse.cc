#include "harness/scenario/parse.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <tuple>

#include "harness/base/file.h"
#include "harness/scenario/bind.h"
#include "harness/scenario/check_scenario.h"
#include "harness/scenario/keys.h"
#include "harness/scenario/suite_file.h"
#include "harness/scenario/tree.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;

// A scenario is a page or two. The limits keep a hostile or mistaken file from costing time, and
// are checked while the text is read, before a tree of that size exists.
constexpr int64_t kLargestFile = 1 << 20;
constexpr size_t kMostNodes = 20'000;
constexpr size_t kDeepest = 32;

// Bytes that do not continue a UTF-8 sequence.
int CharactersIn(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// Columns in characters from the library's columns in bytes. Goes on from the last place where it
// can: nodes come in order, and a hostile file may have all of them in one line.
class ColumnCounter {
 public:
  explicit ColumnCounter(const std::vector<std::string_view>& lines) : lines_(lines) {}
  // From 1. `line` and `bytes` count from 0.
  int Column(int line, int bytes) {
    if (line < 0 || static_cast<size_t>(line) >= lines_.size() || bytes < 0) return 1;
    const std::string_view text = lines_[static_cast<size_t>(line)];
    const size_t end = std::min(static_cast<size_t>(bytes), text.size());
    if (line != line_ || end < bytes_) {
      line_ = line;
      bytes_ = 0;
      characters_ = 0;
    }
    characters_ += CharactersIn(text.substr(bytes_, end - bytes_));
    bytes_ = end;
    return 1 + characters_;
  }

 private:
  const std::vector<std::string_view>& lines_;
  int line_ = -1;
  size_t bytes_ = 0;
  int characters_ = 0;
};

// --- Text to tree

// Builds our tree from the library's events. Aliases never get expanded: each is a problem.
class TreeBuilder : public YAML::EventHandler {
 public:
  // `lines`: of the file. With `behind` the text is what follows the first so many bytes of an
  // option, which is `lines` as one line.
  TreeBuilder(const std::vector<Source>& sources, int source,
              const std::vector<std::string_view>& lines, std::optional<size_t> behind,
              std::vector<Problem>* problems)
      : sources_(sources), source_(source), behind_(behind), columns_(lines), problems_(problems) {}

  // Thrown through the library when there is nothing more to be said about a text.
  struct Stop {};

  Node root() && { return std::move(root_); }
  Problem At(const YAML::Mark& mark, std::string message) {
    return ProblemAt(sources_, NodeAt(mark, Node::Kind::kNull), std::move(message));
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    problems_->push_back(At(mark, "a second document: one file, one scenario"));
    throw Stop();
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Add(NodeAt(mark, Node::Kind::kNull));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    problems_->push_back(At(mark, alias_reported_
                                      ? "an alias too: write it out"
                                      : "an alias ('*name'): aliases and merge keys are not "
                                        "accepted, since a short file could expand without end; "
                                        "write it out"));
    alias_reported_ = true;
    Node node = NodeAt(mark, Node::Kind::kNull);
    node.bad = true;
    Add(std::move(node));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    Node node = NodeAt(mark, Node::Kind::kScalar);
    node.text = value;
    node.quoted = tag == "!";
    RefuseTag(tag, mark, &node);
    Add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, Node::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, Node::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  Node NodeAt(const YAML::Mark& mark, Node::Kind kind) {
    last_ = mark;
    Node node;
    node.kind = kind;
    node.source = source_;
    if (behind_) {
      // At the beginning of the value the option as a whole says where.
      if (mark.pos > 0) node.column = columns_.Column(0, static_cast<int>(*behind_) + mark.pos);
      return node;
    }
    node.line = mark.line + 1;
    node.column = columns_.Column(mark.line, mark.column);
    return node;
  }
  void RefuseTag(const std::string& tag, const YAML::Mark& mark, Node* node) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    problems_->push_back(At(mark, "a type tag ('" + tag + "'): tags are not accepted"));
    node->bad = true;
  }
  void Open(const YAML::Mark& mark, const std::string& tag, Node::Kind kind) {
    Node node = NodeAt(mark, kind);
    RefuseTag(tag, mark, &node);
    if (open_.size() >= kDeepest) {
      throw YAML::ParserException(mark, "nested more deeply than any scenario is (" +
                                            std::to_string(kDeepest) + " levels)");
    }
    open_.push_back(std::move(node));
  }
  void Close() {
    Node node = std::move(open_.back());
    open_.pop_back();
    Add(std::move(node));
  }
  // Values of a map come after their keys: a map with more keys than values waits for a value.
  void Add(Node node) {
    if (++nodes_ > kMostNodes) {
      throw YAML::ParserException(
          last_, "more than " + std::to_string(kMostNodes) + " values: this is not a scenario");
    }
    if (open_.empty()) {
      if (documents_ == 1) root_ = std::move(node);
      return;
    }
    Node& parent = open_.back();
    if (parent.is(Node::Kind::kList) || parent.keys.size() > parent.items.size()) {
      // The library places a value that is not there at what follows it.
      if (parent.is(Node::Kind::kMap) && node.is(Node::Kind::kNull)) {
        node.line = parent.keys.back().line;
        node.column = parent.keys.back().column;
      }
      parent.items.push_back(std::move(node));
      return;
    }
    if (!node.is(Node::Kind::kScalar) && !node.bad) {
      problems_->push_back(
          ProblemAt(sources_, node, "a key must be a word, not " + DescribeValue(node)));
      node.bad = true;
    }
    parent.keys.push_back(std::move(node));
  }

  const std::vector<Source>& sources_;
  const int source_;
  const std::optional<size_t> behind_;
  ColumnCounter columns_;
  std::vector<Problem>* problems_;
  std::vector<Node> open_;
  Node root_;
  YAML::Mark last_;  // of the node that was read last
  size_t nodes_ = 0;
  int documents_ = 0;
  bool alias_reported_ = false;
};

std::vector<std::string_view> LinesOf(std::string_view text) {
  Lines lines = SplitLines(text);
  if (!lines.torn.empty()) lines.complete.push_back(lines.torn);
  return std::move(lines.complete);
}

// Length of the UTF-8 sequence that begins `text`; 0 when there is none (RFC 3629; surrogates and
// overlong forms are let through: they harm nothing here).
size_t Utf8Length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

struct Place {
  int line = 0;
  int column = 0;
};

// The first byte that text cannot contain. The YAML library guesses at other encodings and stops
// silently at some control characters, so such input never reaches it.
std::optional<Place> FindBinary(const std::vector<std::string_view>& lines) {
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string_view rest = lines[i];
    for (int column = 1; !rest.empty(); ++column) {
      const size_t length = Utf8Length(rest);
      const auto c = static_cast<unsigned char>(rest[0]);
      const bool control = (c < 0x20 && c != '\t' && c != '\r') || c == 0x7F;
      if (length == 0 || control) return Place{static_cast<int>(i) + 1, column};
      rest.remove_prefix(length);
    }
  }
  return std::nullopt;
}

// Whether some line is indented with a tab, which YAML forbids and whose error from the library
// points elsewhere.
std::optional<Place> FindTab(const std::vector<std::string_view>& lines) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t tab = lines[i].find_first_not_of(' ');
    if (tab == std::string_view::npos || lines[i][tab] != '\t') continue;
    const size_t content = lines[i].find_first_not_of(" \t\r");
    if (content == std::string_view::npos || lines[i][content] == '#') continue;
    return Place{static_cast<int>(i) + 1, static_cast<int>(tab) + 1};
  }
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::vector<Problem>* problems) : problems_(problems) {}

  const std::vector<Source>& sources() const { return sources_; }
  int AddSource(std::string label, fs::path directory) {
    sources_.push_back({std::move(label), std::move(directory)});
    return static_cast<int>(sources_.size()) - 1;
  }

  // The tree of a text, or nullopt when it has none; problems say why.
  std::optional<Node> ReadText(std::string_view text, int source);
  // The same of what follows the first `behind` bytes of an option.
  std::optional<Node> ReadValue(const std::string& option, size_t behind, int source);
  std::optional<Node> ReadFileText(const fs::path& path, int source);

  void Report(int source, Place place, std::string message) {
    problems_->push_back({sources_[static_cast<size_t>(source)].label,
                          place.line,
                          place.column,
                          {},
                          std::move(message),
                          std::nullopt});
  }

 private:
  std::optional<Node> Build(const std::string& text, int source,
                            const std::vector<std::string_view>& lines,
                            std::optional<size_t> behind = std::nullopt);

  std::vector<Source> sources_;
  std::vector<Problem>* problems_;
};

std::optional<Node> Parser::Build(const std::string& text, int source,
                                  const std::vector<std::string_view>& lines,
                                  std::optional<size_t> behind) {
  TreeBuilder builder(sources_, source, lines, behind, problems_);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const TreeBuilder::Stop&) {
    // What came before is judged all the same.
  } catch (const YAML::Exception& e) {
    problems_->push_back(builder.At(e.mark, "not YAML: " + e.msg));
    return std::nullopt;
  } catch (const std::exception& e) {
    Report(source, {}, std::string("cannot be read as YAML: ") + e.what());
    return std::nullopt;
  }
  return std::move(builder).root();
}

std::optional<Node> Parser::ReadText(std::string_view text, int source) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // UTF-8 byte order mark
  const auto lines = LinesOf(text);
  if (const auto binary = FindBinary(lines)) {
    Report(source, *binary, "not a text file in UTF-8: a scenario is YAML");
    return std::nullopt;
  }
  if (const auto tab = FindTab(lines)) {
    Report(source, *tab, "a tab in the indentation: YAML wants spaces");
    return std::nullopt;
  }
  auto root = Build(std::string(text), source, lines);
  if (root && root->is(Node::Kind::kNull) && !root->bad) {
    Report(source, {}, "the file is empty; a scenario has at least name, summary and expect");
    return std::nullopt;
  }
  return root;
}

std::optional<Node> Parser::ReadValue(const std::string& option, size_t behind, int source) {
  if (FindBinary(LinesOf(option))) {
    Report(source, {}, "the value is not text in UTF-8");
    return std::nullopt;
  }
  return Build(option.substr(behind), source, {option}, behind);
}

std::optional<Node> Parser::ReadFileText(const fs::path& path, int source) {
  const auto text = ReadFile(path, kLargestFile);
  if (!text) {
    Report(source, {}, text.error().message);
    return std::nullopt;
  }
  return ReadText(*text, source);
}

// --- Sources other than the file

Node EmptyMap(int source) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.source = source;
  return node;
}

void Put(Node* map, std::string_view name, int source, Node value) {
  if (Node* existing = map->Get(name)) {
    *existing = std::move(value);
    return;
  }
  Node key;
  key.kind = Node::Kind::kScalar;
  key.text = name;
  key.source = source;
  map->keys.push_back(std::move(key));
  map->items.push_back(std::move(value));
}

// Keys of `over` replace those of `base`, group by group.
void Overlay(Node* base, Node over) {
  if (!base->is(Node::Kind::kMap) || !over.is(Node::Kind::kMap)) {
    *base = std::move(over);
    return;
  }
  for (size_t i = 0; i < over.keys.size(); ++i) {
    if (Node* existing = base->Get(over.keys[i].text)) {
      Overlay(existing, std::move(over.items[i]));
    } else {
      base->keys.push_back(std::move(over.keys[i]));
      base->items.push_back(std::move(over.items[i]));
    }
  }
}

// The element of a list that `name` is the index of; nullptr when it is none.
Node* Element(Node* list, std::string_view name) {
  size_t index = 0;
  const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool is_index = ec == std::errc() && end == name.data() + name.size();
  return is_index && index < list->items.size() ? &list->items[index] : nullptr;
}

// Replaces what stands at `path`; groups that are missing are made. Returns what is wrong, or "".
std::string SetAt(Node* root, std::string_view path, int source, Node value) {
  Node* at = root;
  std::string_view rest = path;
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view name = rest.substr(0, dot);
    const bool last = dot == std::string_view::npos;
    if (name.empty()) return "an empty key in '" + std::string(path) + "'";
    if (at->is(Node::Kind::kList)) {
      Node* const element = Element(at, name);
      if (element == nullptr) {
        return "no element '" + std::string(name) + "': the list has " +
               std::to_string(at->items.size()) + ", counted from 0";
      }
      if (last) {
        *element = std::move(value);
        return "";
      }
      at = element;
    } else {
      if (!at->is(Node::Kind::kMap)) {
        if (!at->is(Node::Kind::kNull)) {
          return "there is no key '" + std::string(name) + "' below " + DescribeValue(*at);
        }
        *at = EmptyMap(source);
      }
      if (last) {
        Put(at, name, source, std::move(value));
        return "";
      }
      if (at->Get(name) == nullptr) Put(at, name, source, EmptyMap(source));
      at = at->Get(name);
    }
    rest = rest.substr(dot + 1);
  }
}

void ApplySet(Parser* parser, const std::string& set, Node* root) {
  const int source = parser->AddSource("--set " + set, {});
  const size_t equals = set.find('=');
  if (equals == std::string::npos || equals == 0) {
    parser->Report(source, {}, "must be PATH=VALUE, like job.steps=20 or faults.0.at.rank=2");
    return;
  }
  auto value = parser->ReadValue(set, equals + 1, source);
  if (!value) return;
  const std::string wrong =
      SetAt(root, std::string_view(set).substr(0, equals), source, std::move(*value));
  if (!wrong.empty()) parser->Report(source, {}, wrong);
}

// `--job FILE` in place of the scenario's own job.
void ReplaceJob(Parser* parser, const fs::path& file, Node* root) {
  const int source = parser->AddSource(file.string(), file.parent_path());
  if (auto job = parser->ReadFileText(file, source)) {
    Put(root, "job", source, std::move(*job));
  }
}

// `job: {file: ...}`: the file's keys, under those that stand beside `file`.
void ResolveJobFile(Parser* parser, Node* root) {
  Node* const job = root->is(Node::Kind::kMap) ? root->Get("job") : nullptr;
  Node* const file = job != nullptr && job->is(Node::Kind::kMap) ? job->Get("file") : nullptr;
  if (file == nullptr || !file->is(Node::Kind::kScalar) || file->text.empty()) return;
  const fs::path path = parser->sources()[static_cast<size_t>(file->source)].directory / file->text;
  const int source = parser->AddSource(path.string(), path.parent_path());
  const auto text = ReadFile(path, kLargestFile);
  if (!text) {
    parser->Report(file->source, {file->line, file->column},
                   "the job file cannot be read: " + text.error().message);
    return;
  }
  auto base = parser->ReadText(*text, source);
  if (!base) return;
  if (const Node* nested = base->Get("file")) {
    parser->Report(source, {nested->line, nested->column}, "a job file cannot name another one");
    return;
  }
  Overlay(&*base, std::move(*job));
  *job = std::move(*base);
}

void SortProblems(const std::vector<Source>& sources, std::vector<Problem>* problems) {
  const auto rank_of = [&](const Problem& problem) {
    return std::ranges::find(sources, problem.file, &Source::label) - sources.begin();
  };
  std::ranges::stable_sort(
      *problems, {}, [&](const Problem& p) { return std::tuple(rank_of(p), p.line, p.column); });
}

ParsedScenario Finish(Parser* parser, std::optional<Node> root, const fs::path& path,
                      const ParseOptions& options, std::vector<Problem>* problems) {
  ParsedScenario out;
  if (root) {
    if (options.job_file) ReplaceJob(parser, *options.job_file, &*root);
    for (const std::string& set : options.sets) ApplySet(parser, set, &*root);
    ResolveJobFile(parser, &*root);
    FindDuplicateKeys(parser->sources(), *root, problems);
    Scenario scenario;
    scenario.path = path;
    BindKeys(parser->sources(), *root, ScenarioKeys(), &scenario, "", problems);
    if (root->is(Node::Kind::kMap)) {
      CheckScenario(parser->sources(), *root, &scenario, problems, &out.warnings);
    }
    if (problems->empty()) out.scenario = std::move(scenario);
  }
  SortProblems(parser->sources(), problems);
  SortProblems(parser->sources(), &out.warnings);
  out.problems = std::move(*problems);
  // Of a scenario with a problem they might only be its consequence.
  if (!out.problems.empty()) out.warnings.clear();
  return out;
}

}  // namespace

ParsedScenario ParseScenarioFile(const fs::path& path, const ParseOptions& options) {
  std::vector<Problem> problems;
  Parser parser(&problems);
  const int source = parser.AddSource(path.string(), path.parent_path());
  auto root = parser.ReadFileText(path, source);
  return Finish(&parser, std::move(root), path, options, &problems);
}

ParsedScenario ParseScenario(std::string_view text, const fs::path& path,
                             const ParseOptions& options) {
  std::vector<Problem> problems;
  Parser parser(&problems);
  const int source = parser.AddSource(path.string(), path.parent_path());
  auto root = parser.ReadText(text, source);
  return Finish(&parser, std::move(root), path, options, &problems);
}

tl::expected<SuiteFile, std::vector<Problem>> ParseSuiteFile(const fs::path& path) {
  std::vector<Problem> problems;
  Parser parser(&problems);
  const int source = parser.AddSource(path.string(), path.parent_path());
  const auto root = parser.ReadFileText(path, source);
  SuiteFile suite;
  if (root) {
    FindDuplicateKeys(parser.sources(), *root, &problems);
    BindKeys(parser.sources(), *root, SuiteKeys(), &suite, "", &problems);
  }
  SortProblems(parser.sources(), &problems);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return suite;
}

}  // namespace shakedown
