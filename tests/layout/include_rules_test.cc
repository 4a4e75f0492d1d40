// Who may include whom, read off the source text. CMake's link lines say the same of targets, but
// cannot see a header without a .cc, nor a system library that happens to be installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace shakedown {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Names = std::vector<std::string_view>;

// Text of each source, by its path from the root of the repository.
using Tree = std::map<std::string, std::string>;

constexpr std::array<std::string_view, 5> kTops = {"harness", "injectors", "trainer", "analysis",
                                                   "tests"};

// `part` is a folder, or a file without its extension. A file belongs to the longest part that
// holds it, so injectors/probe is not in injectors. `may` names parts, or single files; a part may
// always include itself.
struct Rule {
  std::string_view part;
  Names may;
};

const std::vector<Rule>& Rules() {
  static const std::vector<Rule> kRules = {
      {"harness/base", {}},
      {"harness/wire", {"harness/base"}},
      {"harness/process", {"harness/base", "harness/wire"}},
      {"harness/scenario",
       {"harness/base", "harness/wire", "injectors/catalog.def", "injectors/catalog.h",
        "injectors/fault.h",
        // A scenario names checks (waive, expect.check), and needs no more than their names.
        "analysis/checks/catalog.def"}},
      {"harness/plan",
       {"harness/base", "harness/wire", "harness/scenario", "injectors/catalog.h",
        "injectors/fault.h",
        // The plan states the size of the private filesystem, which the injector knows.
        "injectors/injector.h"}},
      {"harness/reaper",
       // Undo is all that a reaper needs of a fault, and all that it gets.
       {"harness/base", "harness/wire", "harness/process", "injectors/play_journal.h"}},
      {"harness/run",
       {"harness/base", "harness/wire", "harness/process", "harness/plan", "injectors",
        // The controller talks to the reaper; it never contains it.
        "harness/reaper/client.h"}},
      {"harness/suite",
       {"harness/base", "harness/wire", "harness/scenario", "harness/plan", "harness/run",
        "analysis/verdict", "analysis/report",
        // How a judged run ended is told in the words of an exit status; nothing is started here.
        "harness/process/wait_status.h"}},
      {"harness/cli",
       {"harness/base", "harness/wire", "harness/process", "harness/scenario", "harness/plan",
        "harness/run", "harness/suite", "injectors", "analysis/checks", "analysis/diagnosis",
        "analysis/verdict", "analysis/report"}},

      // Linked into every rank: of ours, only the headers that are plain data.
      {"injectors/probe",
       {"harness/wire/control.h", "harness/wire/environment.h", "harness/wire/exit_code.h",
        "harness/wire/progress_page.h"}},
      // What several faults share stands on the same contracts as the faults.
      {"injectors/primitives", {"harness/base", "harness/wire", "harness/process", "injectors"}},
      {"injectors", {"harness/base", "harness/wire", "harness/process", "injectors/primitives"}},

      {"trainer/checkpoint",
       {"harness/base", "harness/wire", "injectors/probe", "trainer/defects"}},
      {"trainer/data",
       {"harness/base", "harness/wire", "injectors/probe", "trainer/data/worker_pool"}},
      // Starts the workers; nothing else of data starts a process.
      {"trainer/data/worker_pool",
       {"harness/base", "harness/wire", "harness/process", "injectors/probe", "trainer/data",
        "trainer/defects"}},
      {"trainer/defects", {}},
      // Between the launcher and a rank that has not begun: knows neither.
      {"trainer/fork_server", {"harness/base", "harness/wire", "harness/process"}},
      {"trainer/launch",
       {"harness/base", "harness/wire", "harness/process", "injectors/probe", "trainer/defects",
        "trainer/fork_server"}},
      {"trainer/observe",
       {"harness/base", "harness/wire", "trainer/defects",
        // The log of saves listens to the saver.
        "trainer/checkpoint/saver.h"}},
      {"trainer/torch",
       {"harness/base", "harness/wire", "injectors/probe", "trainer", "trainer/checkpoint",
        "trainer/data", "trainer/data/worker_pool", "trainer/defects", "trainer/observe"}},
      // main.cc reaches the training loop through trainer/rank.h alone.
      {"trainer",
       {"harness/base", "harness/wire", "injectors/probe", "trainer/checkpoint", "trainer/data",
        "trainer/data/worker_pool", "trainer/defects", "trainer/fork_server", "trainer/observe"}},

      {"analysis/evidence", {"harness/base", "harness/wire"}},
      {"analysis/timeline", {"harness/base", "harness/wire", "analysis/evidence"}},
      // Blind: what was observed, never what was injected.
      {"analysis/diagnosis", {"harness/base", "harness/wire", "analysis/evidence/observed.h"}},
      {"analysis/checks",
       {"harness/base", "harness/wire", "analysis/evidence", "analysis/timeline"}},
      {"analysis/verdict",
       {"harness/base", "harness/wire", "analysis/evidence", "analysis/timeline",
        "analysis/diagnosis", "analysis/checks"}},
      {"analysis/report",
       {"harness/base", "harness/wire", "analysis/verdict",
        // The order and the names in which checks are printed.
        "analysis/checks/catalog.h"}},

      // Judging has to work where nothing can be injected or run, so its tests do too.
      {"tests/analysis",
       {"harness/base", "harness/wire", "analysis/evidence", "analysis/timeline",
        "analysis/diagnosis", "analysis/checks", "analysis/verdict", "analysis/report",
        "tests/support"}},
      {"tests/support", {"*"}},
      // Other tests look wherever they have to. Nothing names tests, so only tests include them.
      {"tests", {"*"}},
  };
  return kRules;
}

// Where a library that is not ours may be seen. `where` names files, folders (with a slash at the
// end), or the .cc files of a folder.
struct Quarantine {
  std::string_view headers;
  Names where;
};

const std::vector<Quarantine>& Quarantines() {
  static const Names kTorch = {"trainer/torch/", "tests/trainer/torch/"};
  static const std::vector<Quarantine> kQuarantines = {
      {"torch/", kTorch},
      {"ATen/", kTorch},
      {"c10/", kTorch},
      {"boost/process/", {"harness/process/child.cc"}},
      {"boost/asio/", {"harness/run/event_loop.cc", "harness/process/child.cc"}},
      // What Boost.Process 1.81 uses and forgets to include.
      {"boost/", {"harness/process/child.cc"}},
      // The test reads the same text by a second way.
      {"yaml-cpp/", {"harness/scenario/parse.cc", "tests/harness/scenario/schema_test.cc"}},
      {"spdlog/", {"harness/base/log.cc"}},
      {"nlohmann/", {"harness/wire/json.h"}},
      // The launcher and the data worker are programs with a command line of their own.
      {"CLI/", {"harness/cli/*.cc", "trainer/launch/options.cc", "trainer/data/worker_main.cc"}},
      {"openssl/", {"harness/base/digest.cc"}},
      {"xxhash.h", {"harness/base/digest.cc"}},
      // Result, and the few results whose error is not the common one.
      {"tl/",
       {"harness/base/status.h", "harness/scenario/library.h", "harness/scenario/suite_file.h",
        "trainer/checkpoint/publish.h"}},
      {"gtest/", {"tests/"}},
      {"gmock/", {"tests/"}},
      {"benchmark/", {"tests/bench/"}},
  };
  return kQuarantines;
}

// The kernel's and the C library's folders below /usr/include.
constexpr std::array<std::string_view, 6> kSystem = {"sys/",     "linux/", "net/",
                                                     "netinet/", "arpa/",  "asm/"};

// Where a fault may be named outside of its own file.
constexpr std::array<std::string_view, 2> kNameFaults = {
    // Examples in help texts.
    "harness/cli/command_explain.cc", "harness/cli/main.cc"};

Names FaultNames() {
  return {
#define SHAKEDOWN_FAULT(family, name) #family "." #name,
#include "injectors/catalog.def"
#undef SHAKEDOWN_FAULT
  };
}

struct Include {
  int line;
  std::string path;
  bool quoted;
};

std::vector<Include> IncludesOf(const std::string& text) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> includes;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (std::regex_search(line, match, kInclude)) {
      includes.push_back({number, match[2], match[1] == "\""});
    }
  }
  return includes;
}

bool Holds(std::string_view part, std::string_view file) {
  return file.starts_with(part) && file.size() > part.size() &&
         (file[part.size()] == '/' || file[part.size()] == '.');
}

const Rule* RuleOf(std::string_view file) {
  const Rule* longest = nullptr;
  for (const Rule& rule : Rules()) {
    if (Holds(rule.part, file) && (!longest || rule.part.size() > longest->part.size())) {
      longest = &rule;
    }
  }
  return longest;
}

bool IsOurs(std::string_view path) {
  return std::ranges::any_of(kTops, [&](std::string_view top) { return Holds(top, path); });
}

bool MayInclude(const Rule& rule, std::string_view target) {
  const Rule* other = RuleOf(target);
  if (other == &rule) return true;
  return std::ranges::any_of(rule.may, [&](std::string_view allowed) {
    return allowed == "*" || allowed == target || (other && allowed == other->part);
  });
}

bool Matches(std::string_view where, std::string_view file) {
  if (where.ends_with('/')) return file.starts_with(where);
  if (!where.ends_with("/*.cc")) return file == where;
  return file.starts_with(where.substr(0, where.size() - 4)) && file.ends_with(".cc");
}

// Empty when `file` may include the header `path`, which is not ours.
std::string RefuseForeign(std::string_view file, const std::string& path) {
  const Quarantine* longest = nullptr;
  for (const Quarantine& one : Quarantines()) {
    if (path.starts_with(one.headers) &&
        (!longest || one.headers.size() > longest->headers.size())) {
      longest = &one;
    }
  }
  if (longest) {
    for (std::string_view where : longest->where) {
      if (Matches(where, file)) return "";
    }
    return "only " + ::testing::PrintToString(longest->where) + " may see " +
           std::string(longest->headers);
  }
  const bool plain =
      path.find('/') == std::string::npos ||
      std::ranges::any_of(kSystem, [&](std::string_view s) { return path.starts_with(s); });
  return plain ? "" : "a library that the quarantine list does not have";
}

std::string RefuseOurs(std::string_view file, const std::string& path, const Tree& tree) {
  const Rule* rule = RuleOf(file);
  if (!rule) return "no rule says what this folder may include";
  if (!tree.contains(path)) return "no such file, seen from the root of the repository";
  if (!MayInclude(*rule, path)) return std::string(rule->part) + " may not";
  return "";
}

// "file:line: includes x: why not", for every include that a rule forbids.
std::vector<std::string> BrokenIncludes(const Tree& tree) {
  std::vector<std::string> broken;
  for (const auto& [file, text] : tree) {
    for (const Include& include : IncludesOf(text)) {
      const std::string why = include.quoted || IsOurs(include.path)
                                  ? RefuseOurs(file, include.path, tree)
                                  : RefuseForeign(file, include.path);
      if (why.empty()) continue;
      broken.push_back(file + ":" + std::to_string(include.line) + ": includes " + include.path +
                       ": " + why);
    }
  }
  return broken;
}

// Chains of includes that lead from a file of `part` to `forbidden`, over however many headers.
std::vector<std::string> WaysTo(const std::string& forbidden, std::string_view part,
                                const Tree& tree) {
  std::vector<std::string> ways;
  for (const auto& [start, unused] : tree) {
    if (!Holds(part, start)) continue;
    std::map<std::string, std::string> from = {{start, ""}};
    std::vector<std::string> open = {start};
    while (!open.empty()) {
      const std::string file = open.back();
      open.pop_back();
      const auto source = tree.find(file);
      if (source == tree.end()) continue;
      for (const Include& include : IncludesOf(source->second)) {
        if (from.emplace(include.path, file).second) open.push_back(include.path);
      }
    }
    if (!from.contains(forbidden)) continue;
    std::string way = forbidden;
    for (std::string step = from[forbidden]; !step.empty(); step = from[step]) {
      way = step + " -> " + way;
    }
    ways.push_back(way);
  }
  return ways;
}

// The end of the literal that opens at `quote`: just behind its closing quote.
size_t EndOfLiteral(std::string_view text, size_t quote) {
  size_t at = quote + 1;
  while (at < text.size() && text[at] != text[quote]) at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

size_t EndOfRawLiteral(std::string_view text, size_t quote) {
  const size_t paren = text.find('(', quote);
  if (paren == std::string_view::npos) return text.size();
  const std::string close = ")" + std::string(text.substr(quote + 1, paren - quote - 1)) + "\"";
  const size_t end = text.find(close, paren);
  return end == std::string_view::npos ? text.size() : end + close.size();
}

// The string literals of C++ source, as written, without those in comments.
Names StringLiterals(std::string_view text) {
  Names literals;
  const auto past = [&](std::string_view mark, size_t from) {
    const size_t end = text.find(mark, from);
    return end == std::string_view::npos ? text.size() : end + mark.size();
  };
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool in_word = at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1]));
    if (rest.starts_with("//")) {
      at = past("\n", at);
    } else if (rest.starts_with("/*")) {
      at = past("*/", at + 2);
    } else if (rest.starts_with('"')) {
      const bool raw = at > 0 && text[at - 1] == 'R';
      const size_t end = raw ? EndOfRawLiteral(text, at) : EndOfLiteral(text, at);
      literals.push_back(text.substr(at, end - at));
      at = end;
    } else if (rest.starts_with('\'') && !in_word) {  // in a word it groups digits
      at = EndOfLiteral(text, at);
    } else {
      ++at;
    }
  }
  return literals;
}

bool HasWord(std::string_view text, std::string_view word) {
  const auto part_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !part_of_name(text[at - 1])) &&
        (end == text.size() || !part_of_name(text[end]))) {
      return true;
    }
  }
  return false;
}

// Files of the core, that is of neither injectors nor tests, that name a fault in a literal.
std::vector<std::string> CoreThatNamesFaults(const Tree& tree) {
  std::vector<std::string> broken;
  for (const auto& [file, text] : tree) {
    if (Holds("injectors", file) || Holds("tests", file)) continue;
    if (std::ranges::find(kNameFaults, file) != kNameFaults.end()) continue;
    for (std::string_view literal : StringLiterals(text)) {
      for (std::string_view fault : FaultNames()) {
        if (HasWord(literal, fault)) broken.push_back(file + ": names " + std::string(fault));
      }
    }
  }
  return broken;
}

const Tree& Repository() {
  static const Tree kTree = [] {
    Tree tree;
    const fs::path root = SHAKEDOWN_SOURCE_DIR;
    for (std::string_view top : kTops) {
      for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
        const fs::path extension = entry.path().extension();
        if (extension != ".h" && extension != ".cc" && extension != ".def") continue;
        std::ifstream in(entry.path(), std::ios::binary);
        tree[entry.path().lexically_relative(root)] = {std::istreambuf_iterator<char>(in), {}};
      }
    }
    return tree;
  }();
  return kTree;
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

TEST(IncludeRules, TheTreeKeepsThem) {
  for (std::string_view top : kTops) {
    EXPECT_TRUE(
        std::ranges::any_of(Repository(), [&](const auto& file) { return Holds(top, file.first); }))
        << "nothing was read from " << top;
  }
  const auto broken = BrokenIncludes(Repository());
  EXPECT_THAT(broken, IsEmpty()) << Lines(broken);
}

TEST(IncludeRules, DiagnosisReachesNoSecretOverAnyHeader) {
  const std::string secret = "analysis/evidence/secret.h";
  ASSERT_TRUE(Repository().contains(secret));
  ASSERT_FALSE(WaysTo(secret, "analysis/checks", Repository()).empty());  // the search finds it
  const auto ways = WaysTo(secret, "analysis/diagnosis", Repository());
  EXPECT_THAT(ways, IsEmpty()) << Lines(ways);
}

TEST(IncludeRules, TheProbeReachesNoJsonAndNoResultOverAnyHeader) {
  for (const char* header : {"harness/wire/json.h", "harness/base/status.h"}) {
    ASSERT_TRUE(Repository().contains(header));
    const auto ways = WaysTo(header, "injectors/probe", Repository());
    EXPECT_THAT(ways, IsEmpty()) << Lines(ways);
  }
}

TEST(IncludeRules, TheCoreNamesNoFault) {
  const auto broken = CoreThatNamesFaults(Repository());
  EXPECT_THAT(broken, IsEmpty()) << Lines(broken);
}

// An exception that nobody needs any more is a hole.
TEST(IncludeRules, EveryExceptionIsUsed) {
  std::vector<std::string> unused;
  for (const Rule& rule : Rules()) {
    for (std::string_view allowed : rule.may) {
      if (allowed.find('.') == std::string_view::npos) continue;
      const bool used = std::ranges::any_of(Repository(), [&](const auto& file) {
        return RuleOf(file.first) == &rule &&
               std::ranges::any_of(IncludesOf(file.second),
                                   [&](const Include& i) { return i.path == allowed; });
      });
      if (!used) unused.push_back(std::string(rule.part) + " may include " + std::string(allowed));
    }
  }
  for (std::string_view file : kNameFaults) {
    const auto source = Repository().find(std::string(file));
    const bool used = source != Repository().end() &&
                      std::ranges::any_of(FaultNames(), [&](std::string_view fault) {
                        return HasWord(source->second, fault);
                      });
    if (!used) unused.push_back(std::string(file) + " may name faults");
  }
  EXPECT_THAT(unused, IsEmpty()) << Lines(unused);
}

// The rules themselves come out red when they should.

std::vector<std::string> BrokenBy(const std::string& file, const std::string& include) {
  return BrokenIncludes({{file, "#include " + include + "\n"},
                         {"harness/base/file.h", ""},
                         {"harness/process/child.h", ""},
                         {"harness/run/phase.h", ""},
                         {"injectors/fault.h", ""},
                         {"injectors/undo.h", ""},
                         {"analysis/evidence/secret.h", ""},
                         {"analysis/evidence/observed.h", ""},
                         {"analysis/verdict/verdict.h", ""},
                         {"trainer/rank.h", ""},
                         {"trainer/torch/ddp.h", ""},
                         {"tests/support/await.h", ""}});
}

TEST(IncludeRulesEngine, RefusesWhatTheTableDoesNotAllow) {
  const std::pair<const char*, const char*> forbidden[] = {
      {"harness/base/x.cc", "\"harness/run/phase.h\""},
      {"harness/run/x.cc", "\"analysis/verdict/verdict.h\""},
      {"harness/run/x.cc", "\"trainer/rank.h\""},
      {"harness/run/x.cc", "\"tests/support/await.h\""},
      {"harness/reaper/x.cc", "\"injectors/fault.h\""},
      {"injectors/rank/x.cc", "\"trainer/rank.h\""},
      {"injectors/rank/x.cc", "\"analysis/evidence/observed.h\""},
      {"injectors/rank/x.cc", "\"harness/run/phase.h\""},
      {"injectors/probe/x.cc", "\"harness/base/file.h\""},
      {"trainer/data/ring.cc", "\"harness/process/child.h\""},
      {"trainer/main.cc", "\"trainer/torch/ddp.h\""},
      {"analysis/checks/x.cc", "\"injectors/fault.h\""},
      {"analysis/checks/x.cc", "<injectors/fault.h>"},
      {"analysis/checks/x.cc", "\"harness/run/phase.h\""},
      {"analysis/checks/x.cc", "\"harness/process/child.h\""},
      {"analysis/diagnosis/x.cc", "\"analysis/evidence/secret.h\""},
      {"tests/analysis/x_test.cc", "\"harness/run/phase.h\""},
      {"harness/nowhere/x.cc", "\"harness/base/file.h\""},
      {"harness/base/x.cc", "\"file.h\""},
  };
  for (const auto& [file, include] : forbidden) {
    EXPECT_THAT(BrokenBy(file, include), ElementsAre(HasSubstr(std::string(file) + ":1: ")))
        << file << " includes " << include;
  }
}

TEST(IncludeRulesEngine, RefusesALibraryOutsideItsQuarantine) {
  const std::pair<const char*, const char*> forbidden[] = {
      {"trainer/main.cc", "<torch/nn.h>"},
      {"trainer/main.cc", "<ATen/Context.h>"},
      {"injectors/memory/x.cc", "<c10/util/Exception.h>"},
      {"harness/process/spawn.cc", "<boost/process/v2/process.hpp>"},
      {"harness/run/controller.cc", "<boost/asio/io_context.hpp>"},
      {"harness/run/event_loop.cc", "<boost/process/v2/process.hpp>"},
      {"harness/scenario/bind.cc", "<yaml-cpp/yaml.h>"},
      {"harness/base/file.cc", "<spdlog/spdlog.h>"},
      {"harness/wire/event.h", "<nlohmann/json.hpp>"},
      {"harness/cli/command.h", "<CLI/CLI.hpp>"},
      {"harness/base/file.cc", "<gtest/gtest.h>"},
      {"harness/base/file.cc", "<fmt/format.h>"},
  };
  for (const auto& [file, include] : forbidden) {
    EXPECT_THAT(BrokenBy(file, include), SizeIs(1)) << file << " includes " << include;
  }
}

TEST(IncludeRulesEngine, AcceptsWhatIsAllowed) {
  const std::pair<const char*, const char*> allowed[] = {
      {"harness/run/x.cc", "\"injectors/fault.h\""},
      {"harness/cli/x.cc", "<CLI/CLI.hpp>"},
      {"harness/base/x.cc", "<sys/types.h>"},
      {"harness/base/x.cc", "<vector>"},
      {"trainer/torch/x.h", "<torch/nn.h>"},
      {"trainer/torch/x.cc", "\"trainer/rank.h\""},
      {"trainer/data/worker_pool.cc", "\"harness/process/child.h\""},
      {"analysis/checks/x.cc", "\"analysis/evidence/secret.h\""},
      {"tests/harness/run/x_test.cc", "\"analysis/verdict/verdict.h\""},
  };
  for (const auto& [file, include] : allowed) {
    EXPECT_THAT(BrokenBy(file, include), IsEmpty()) << file << " includes " << include;
  }
}

TEST(IncludeRulesEngine, FindsAWayOverSeveralHeadersAndACircleDoesNotTrapIt) {
  const Tree tree = {{"analysis/diagnosis/x.cc", "#include \"harness/wire/a.h\"\n"},
                     {"harness/wire/a.h", "  #  include \"harness/wire/b.h\"\n"},
                     {"harness/wire/b.h",
                      "#include \"harness/wire/a.h\"\n#include \"analysis/evidence/secret.h\"\n"}};
  EXPECT_THAT(WaysTo("analysis/evidence/secret.h", "analysis/diagnosis", tree),
              ElementsAre("analysis/diagnosis/x.cc -> harness/wire/a.h -> harness/wire/b.h -> "
                          "analysis/evidence/secret.h"));
}

TEST(IncludeRulesEngine, FindsAFaultInALiteralAndNotInACommentOrALongerName) {
  const std::string fault(FaultNames().front());
  const auto found = [&](const std::string& text) {
    return CoreThatNamesFaults({{"harness/run/x.cc", text}});
  };
  EXPECT_THAT(found("if (name == \"" + fault + "\") Die();"), SizeIs(1));
  EXPECT_THAT(found("char q = '\"'; int n = 1'000; auto s = \"a \\\" " + fault + " b\";"),
              SizeIs(1));
  EXPECT_THAT(found("auto s = R\"x(one \" and " + fault + ")x\";"), SizeIs(1));
  EXPECT_THAT(found("// \"" + fault + "\"\n/* \"" + fault + "\" */ int x;"), IsEmpty());
  EXPECT_THAT(found("auto s = \"" + fault + "ed\" \"x." + fault + "\";"), IsEmpty());
  EXPECT_THAT(CoreThatNamesFaults({{"injectors/x.cc", "\"" + fault + "\""}}), IsEmpty());
}

}  // namespace
}  // namespace shakedown
