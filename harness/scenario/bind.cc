#include "harness/scenario/bind.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>

#include "harness/base/quantity.h"

namespace shakedown {
namespace {

// What is wrong with a value, without its place.
struct Complaint {
  std::string message;
  std::optional<std::string> nearest;
};
template <typename T>
using Read = tl::expected<T, Complaint>;

tl::unexpected<Complaint> Complain(std::string message) {
  return tl::unexpected<Complaint>(Complaint{std::move(message), std::nullopt});
}

tl::unexpected<Complaint> Expected(std::string_view what, const Node& node) {
  return Complain("must be " + std::string(what) + ", not " + DescribeValue(node));
}

Read<std::string> ReadText(const Node& node) {
  if (!node.is(Node::Kind::kScalar)) return Expected("text", node);
  if (node.text.empty()) return Complain("must not be empty");
  return node.text;
}

Read<int64_t> ReadInteger(const Node& node) {
  constexpr std::string_view kWhat = "a whole number";
  if (!node.is(Node::Kind::kScalar) || node.quoted) return Expected(kWhat, node);
  int64_t number = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [stop, ec] = std::from_chars(node.text.data(), end, number);
  if (ec == std::errc::result_out_of_range) return Complain(node.text + " is too large");
  if (ec != std::errc() || stop != end) return Expected(kWhat, node);
  return number;
}

Read<double> ReadNumber(const Node& node) {
  constexpr std::string_view kWhat = "a number";
  if (!node.is(Node::Kind::kScalar) || node.quoted) return Expected(kWhat, node);
  double number = 0;
  const char* const end = node.text.data() + node.text.size();
  const auto [stop, ec] = std::from_chars(node.text.data(), end, number);
  if (ec == std::errc::result_out_of_range) return Complain(node.text + " is out of range");
  if (ec != std::errc() || stop != end || !std::isfinite(number)) return Expected(kWhat, node);
  return number;
}

template <typename T>
Read<T> ReadQuantity(const Node& node, std::string_view what,
                     Result<T> (*parse)(std::string_view)) {
  if (!node.is(Node::Kind::kScalar)) return Expected(what, node);
  const Result<T> quantity = parse(node.text);
  if (!quantity) return Complain(quantity.error().message);
  return *quantity;
}

Read<Nanoseconds> ReadDuration(const Node& node) {
  return ReadQuantity(node, "a duration like 250ms", &ParseDuration);
}

Read<int64_t> ReadBytes(const Node& node) {
  return ReadQuantity(node, "a size like 64KiB", &ParseBytes);
}

bool IsWord(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

Read<std::string> ReadName(const Node& node, std::string_view what,
                           const std::vector<std::string>& names) {
  if (!node.is(Node::Kind::kScalar)) return Expected("a name", node);
  if (names.empty()) {
    if (IsWord(node.text)) return node.text;
    return Complain(DescribeValue(node) +
                    " is not a name: letters, digits, '_', '-' and '.', at most 64");
  }
  if (std::ranges::find(names, node.text) != names.end()) return node.text;
  Complaint complaint{"unknown " + std::string(what) + " " + DescribeValue(node),
                      NearestName(node.text, names)};
  if (!complaint.nearest && names.size() <= 6) {
    complaint.message += ": it is one of";
    for (const std::string& name : names) {
      complaint.message += (name == names.front() ? " " : ", ") + name;
    }
  }
  return tl::unexpected<Complaint>(std::move(complaint));
}

Read<std::string> ReadDate(const Node& node) {
  int year = 0;
  int month = 0;
  int day = 0;
  int used = 0;
  const bool shaped =
      node.is(Node::Kind::kScalar) && node.text.size() == 10 &&
      std::sscanf(node.text.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &used) == 3 &&
      used == 10;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!shaped || !date.ok()) return Expected("a date like 2027-01-31", node);
  return node.text;
}

// A limit in the words of the declaration, compared with what was read.
template <typename T>
Read<T> Within(const T& value, const Node& node, std::string_view minimum, std::string_view maximum,
               Read<T> (*read)(const Node&)) {
  const auto limit = [read](std::string_view text) {
    Node written;
    written.kind = Node::Kind::kScalar;
    written.text = text;
    const Read<T> parsed = read(written);
    SHAKEDOWN_ASSERT(parsed.has_value());  // a declaration of ours
    return *parsed;
  };
  if (!minimum.empty() && value < limit(minimum)) {
    return Complain(node.text + " is too small: it must be at least " + std::string(minimum));
  }
  if (!maximum.empty() && value > limit(maximum)) {
    return Complain(node.text + " is too large: it must be at most " + std::string(maximum));
  }
  return value;
}

template <typename T>
Read<T> ReadWithin(const Node& node, std::string_view minimum, std::string_view maximum,
                   Read<T> (*read)(const Node&)) {
  const Read<T> value = read(node);
  return value ? Within(*value, node, minimum, maximum, read) : value;
}

// YAML 1.1 reads a bare `off` as false, and editors rewrite one into the other.
bool IsOff(const Node& node) {
  return node.is(Node::Kind::kScalar) && (node.text == "off" || node.text == "false");
}

class Binder {
 public:
  Binder(const std::vector<Source>& sources, std::vector<Problem>* problems)
      : sources_(sources), problems_(problems) {}

  void Map(const Node& map, std::span<const Key> keys, void* object, std::string_view path);
  Params Parameters(const Node* with, const Node& fault, std::span<const ParamSpec> specs,
                    std::string_view path);

 private:
  void Report(const Node& node, std::string message,
              std::optional<std::string> nearest = std::nullopt) {
    problems_->push_back(ProblemAt(sources_, node, std::move(message)));
    problems_->back().nearest = std::move(nearest);
  }
  void ReportUnknownKey(const Node& key, std::vector<std::string> known, std::string_view path);
  bool CheckIsMap(const Node& node, std::string_view path);
  void One(const Node& node, const Key& key, void* object, const std::string& path);
  void Elements(const Node& node, const Key& key, void* object, const std::string& path);
  template <typename T>
  void Keep(const Read<T>& read, const Node& node, const Key& key, void* object,
            const std::string& path);
  template <typename T, typename ReadOne>
  std::optional<std::vector<T>> List(const Node& node, const std::string& path, ReadOne read_one);
  void Ranks(const Node& node, const Key& key, void* object, const std::string& path);
  std::optional<ParamValue> Parameter(const Node& node, const ParamSpec& spec,
                                      const std::string& path);

  const std::vector<Source>& sources_;
  std::vector<Problem>* problems_;
};

std::string Join(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : std::string(path) + "." + std::string(name);
}

void Binder::ReportUnknownKey(const Node& key, std::vector<std::string> known,
                              std::string_view path) {
  Report(key,
         "unknown key '" + key.text + "'" +
             (path.empty() ? std::string() : " in " + std::string(path)),
         NearestName(key.text, known));
}

bool Binder::CheckIsMap(const Node& node, std::string_view path) {
  if (node.bad) return false;
  if (node.is(Node::Kind::kMap)) return true;
  const std::string what = path.empty() ? "a scenario" : std::string(path);
  if (node.is(Node::Kind::kNull)) {
    Report(node, what + " has no value");
  } else {
    Report(node, what + " must be a group of keys, not " + DescribeValue(node));
  }
  return false;
}

void Binder::Map(const Node& map, std::span<const Key> keys, void* object, std::string_view path) {
  if (!CheckIsMap(map, path)) return;
  for (size_t i = 0; i < map.keys.size(); ++i) {
    const Node& written = map.keys[i];
    if (written.bad || map.Get(written.text) != &map.items[i]) continue;  // a duplicate: reported
    const auto key = std::ranges::find(keys, written.text, &Key::name);
    if (key != keys.end()) {
      One(map.items[i], *key, object, Join(path, key->name));
      continue;
    }
    std::vector<std::string> known;
    for (const Key& k : keys) known.emplace_back(k.name);
    ReportUnknownKey(written, std::move(known), path);
  }
  for (const Key& key : keys) {
    if (!key.required || map.Get(key.name) != nullptr) continue;
    Report(map, "the key '" + std::string(key.name) + "' is missing" +
                    (path.empty() ? std::string() : " in " + std::string(path)));
    problems_->back().text = key.name;
  }
}

template <typename T>
void Binder::Keep(const Read<T>& read, const Node& node, const Key& key, void* object,
                  const std::string& path) {
  if (read) {
    key.store(object, Value(*read));
  } else {
    Report(node, path + ": " + read.error().message, read.error().nearest);
  }
}

void Binder::One(const Node& node, const Key& key, void* object, const std::string& path) {
  if (node.bad) return;
  if (node.is(Node::Kind::kNull)) return Report(node, path + " has no value");
  switch (key.type) {
    case KeyType::kText:
      return Keep(ReadText(node), node, key, object, path);
    case KeyType::kName: {
      const auto names = key.names == nullptr ? std::vector<std::string>() : key.names();
      return Keep(ReadName(node, key.what, names), node, key, object, path);
    }
    case KeyType::kInteger:
      return Keep(ReadWithin(node, key.minimum, key.maximum, &ReadInteger), node, key, object,
                  path);
    case KeyType::kNumber:
      return Keep(ReadWithin(node, key.minimum, key.maximum, &ReadNumber), node, key, object, path);
    case KeyType::kDurationOrOff:
      if (IsOff(node)) return key.store(object, Off{});
      [[fallthrough]];
    case KeyType::kDuration:
      return Keep(ReadWithin(node, key.minimum, key.maximum, &ReadDuration), node, key, object,
                  path);
    case KeyType::kBytes:
      return Keep(ReadWithin(node, key.minimum, key.maximum, &ReadBytes), node, key, object, path);
    case KeyType::kDate:
      return Keep(ReadDate(node), node, key, object, path);
    case KeyType::kRanks:
      return Ranks(node, key, object, path);
    case KeyType::kParams:
      CheckIsMap(node, path);
      return;  // its keys depend on the fault
    case KeyType::kMap:
      return Map(node, key.keys, key.enter(object), path);
    case KeyType::kMaps:
      return Elements(node, key, object, path);
    case KeyType::kNames: {
      const auto names = key.names == nullptr ? std::vector<std::string>() : key.names();
      const auto list = List<std::string>(
          node, path, [&](const Node& element) { return ReadName(element, key.what, names); });
      if (list) key.store(object, *list);
      return;
    }
    case KeyType::kIntegers: {
      const auto list = List<int64_t>(node, path, [&](const Node& element) {
        return ReadWithin(element, key.minimum, key.maximum, &ReadInteger);
      });
      if (!list) return;
      if (list->empty()) return Report(node, path + " must not be empty");
      key.store(object, *list);
      return;
    }
  }
}

void Binder::Elements(const Node& node, const Key& key, void* object, const std::string& path) {
  if (!node.is(Node::Kind::kList)) {
    return Report(node, path + " must be a list, not " + DescribeValue(node));
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    Map(node.items[i], key.keys, key.enter(object), Join(path, std::to_string(i)));
  }
}

template <typename T, typename ReadOne>
std::optional<std::vector<T>> Binder::List(const Node& node, const std::string& path,
                                           ReadOne read_one) {
  if (!node.is(Node::Kind::kList)) {
    Report(node, path + " must be a list, not " + DescribeValue(node));
    return std::nullopt;
  }
  std::vector<T> values;
  for (const Node& element : node.items) {
    if (element.bad) continue;
    const Read<T> value = read_one(element);
    if (value) {
      values.push_back(*value);
    } else {
      Report(element, path + ": " + value.error().message, value.error().nearest);
    }
  }
  return values.size() == node.items.size() ? std::optional(values) : std::nullopt;
}

void Binder::Ranks(const Node& node, const Key& key, void* object, const std::string& path) {
  Target target;
  const auto read_rank = [](const Node& element) {
    return ReadWithin<int64_t>(element, "0", "1000000", &ReadInteger);
  };
  if (node.is(Node::Kind::kList)) {
    const auto ranks = List<int64_t>(node, path, read_rank);
    if (!ranks) return;
    if (ranks->empty()) return Report(node, path + " must not be empty");
    target.ranks.assign(ranks->begin(), ranks->end());
  } else if (node.is(Node::Kind::kScalar) && node.text == "any") {
    target.kind = Target::Kind::kAny;
  } else if (node.is(Node::Kind::kScalar) && node.text == "last") {
    target.kind = Target::Kind::kLast;
  } else if (node.is(Node::Kind::kScalar) && node.text == "all") {
    target.kind = Target::Kind::kAll;
  } else {
    if (node.is(Node::Kind::kMap) || !ReadInteger(node)) {
      return Report(node, path + " must be a number, a list of numbers, any, last or all, not " +
                              DescribeValue(node));
    }
    const Read<int64_t> rank = read_rank(node);
    if (!rank) return Report(node, path + ": " + rank.error().message);
    target.ranks.push_back(static_cast<int>(*rank));
  }
  key.store(object, target);
}

Read<ParamValue> ReadParam(const Node& node, const ParamSpec& spec) {
  const auto as_param = [](auto value) { return ParamValue(std::move(value)); };
  switch (spec.type) {
    case ParamType::kDuration:
      return ReadWithin(node, spec.minimum, spec.maximum, &ReadDuration).map([](Nanoseconds value) {
        return ParamValue(int64_t{value.count()});
      });
    case ParamType::kBytes:
      return ReadWithin(node, spec.minimum, spec.maximum, &ReadBytes).map(as_param);
    case ParamType::kCount:
      return ReadWithin(node, spec.minimum.empty() ? "0" : spec.minimum, spec.maximum, &ReadInteger)
          .map(as_param);
    case ParamType::kChoice: {
      const std::vector<std::string> names(spec.choices.begin(), spec.choices.end());
      return ReadName(node, spec.name, names).map(as_param);
    }
  }
  SHAKEDOWN_ASSERT(false);
}

std::optional<ParamValue> Binder::Parameter(const Node& node, const ParamSpec& spec,
                                            const std::string& path) {
  if (node.bad) return std::nullopt;
  if (node.is(Node::Kind::kNull)) {
    Report(node, path + " has no value");
    return std::nullopt;
  }
  const Read<ParamValue> value = ReadParam(node, spec);
  if (value) return *value;
  Report(node, path + ": " + value.error().message, value.error().nearest);
  return std::nullopt;
}

Params Binder::Parameters(const Node* with, const Node& fault, std::span<const ParamSpec> specs,
                          std::string_view path) {
  static const Node kNothing = [] {
    Node node;
    node.kind = Node::Kind::kMap;
    return node;
  }();
  if (with != nullptr && !with->is(Node::Kind::kMap)) return {};  // reported with the other keys
  const Node& written = with == nullptr ? kNothing : *with;
  Params params;
  for (size_t i = 0; i < written.keys.size(); ++i) {
    const Node& name = written.keys[i];
    if (name.bad || written.Get(name.text) != &written.items[i]) continue;
    const auto spec = std::ranges::find(specs, name.text, &ParamSpec::name);
    if (spec == specs.end()) {
      std::vector<std::string> known;
      for (const ParamSpec& s : specs) known.emplace_back(s.name);
      ReportUnknownKey(name, std::move(known), path);
    } else if (auto value = Parameter(written.items[i], *spec, Join(path, spec->name))) {
      params[std::string(spec->name)] = std::move(*value);
    }
  }
  for (const ParamSpec& spec : specs) {
    if (written.Get(spec.name) != nullptr) continue;
    if (!spec.default_text.empty()) {
      Node standard;
      standard.kind = Node::Kind::kScalar;
      standard.text = spec.default_text;
      const Read<ParamValue> value = ReadParam(standard, spec);
      SHAKEDOWN_ASSERT(value.has_value());  // a declaration of ours
      params[std::string(spec.name)] = *value;
    } else if (!spec.optional) {
      Report(with == nullptr ? fault : *with,
             "the parameter '" + std::string(spec.name) + "' is missing in " + std::string(path));
      problems_->back().text = spec.name;
    }
  }
  return params;
}

}  // namespace

void BindKeys(const std::vector<Source>& sources, const Node& map, std::span<const Key> keys,
              void* object, std::string_view path, std::vector<Problem>* problems) {
  Binder(sources, problems).Map(map, keys, object, path);
}

Params BindParams(const std::vector<Source>& sources, const Node* with, const Node& fault,
                  std::span<const ParamSpec> specs, std::string_view path,
                  std::vector<Problem>* problems) {
  return Binder(sources, problems).Parameters(with, fault, specs, path);
}

void FindDuplicateKeys(const std::vector<Source>& sources, const Node& node,
                       std::vector<Problem>* problems) {
  std::map<std::string_view, const Node*> first_of;
  for (const Node& key : node.keys) {
    const auto [first, is_new] = first_of.emplace(key.text, &key);
    if (is_new || key.bad) continue;
    const Node& other = *first->second;
    problems->push_back(
        ProblemAt(sources, key,
                  "duplicate key '" + key.text + "': it stands " +
                      (other.line > 0 ? "in line " + std::to_string(other.line)
                                      : "at character " + std::to_string(other.column)) +
                      " already"));
  }
  for (const Node& item : node.items) FindDuplicateKeys(sources, item, problems);
}

}  // namespace shakedown
