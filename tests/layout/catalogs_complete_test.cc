// An entry of a catalogue is a promise of more files than the one that the configure step asks for:
// a scenario, a runbook, a row in the contract, tests. And what the documents link to exists.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "injectors/catalog.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

// Text of each file, by its path from the root of the repository.
using Tree = std::map<std::string, std::string>;

constexpr std::string_view kTops[] = {"harness",  "injectors", "trainer",
                                      "analysis", "scenarios", "tests"};
constexpr const char* kContract = "tests/contract/fault_contract_test.cc";

void Read(const fs::path& path, Tree& tree) {
  std::ifstream in(path, std::ios::binary);
  tree[path.lexically_relative(SHAKEDOWN_SOURCE_DIR)] = {std::istreambuf_iterator<char>(in), {}};
}

const Tree& Repository() {
  static const Tree kTree = [] {
    Tree tree;
    const fs::path root = SHAKEDOWN_SOURCE_DIR;
    static const std::set<std::string> kText = {".cc", ".md", ".yaml", ".def"};
    for (const auto& entry : fs::directory_iterator(root)) {
      if (entry.path().extension() == ".md") Read(entry.path(), tree);
    }
    for (std::string_view top : kTops) {
      for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
        if (kText.contains(entry.path().extension())) Read(entry.path(), tree);
      }
    }
    return tree;
  }();
  return kTree;
}

std::string TextOf(const Tree& tree, const std::string& path) {
  const auto file = tree.find(path);
  return file == tree.end() ? "" : file->second;
}

std::string WithoutYamlComments(const std::string& text) {
  static const std::regex kComment("(^|\\s)#[^\\n]*");
  return std::regex_replace(text, kComment, "$1");
}

std::string Quoted(std::string_view name) {
  return std::regex_replace(std::string(name), std::regex("\\."), "\\.");
}

bool Contains(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, std::regex(pattern));
}

bool Mentions(const std::string& text, std::string_view fault) {
  return Contains(text, "(^|[^a-z0-9_.])" + Quoted(fault) + "(?![a-z0-9_])(?!\\.[a-z])");
}

bool Injects(const std::string& scenario, std::string_view fault) {
  return Contains(WithoutYamlComments(scenario),
                  "(^|[\\s{])inject:\\s*" + Quoted(fault) + "(?![a-z0-9_.])");
}

Strings ScenariosWith(const Tree& tree, std::string_view fault) {
  Strings names;
  for (const auto& [path, text] : tree) {
    if (path.starts_with("scenarios/") && path.ends_with(".yaml") && Injects(text, fault)) {
      names.push_back(fs::path(path).stem());
    }
  }
  return names;
}

// The names that a page gives to `shakedown run`.
Strings ScenariosRunBy(const std::string& page) {
  static const std::regex kRun("shakedown run ([a-z0-9_/]+)");
  Strings names;
  for (std::sregex_iterator it(page.begin(), page.end(), kRun), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  return names;
}

// An operator has to be able to make what a page describes: it has the fault's name, or runs a
// scenario that injects it.
bool ShowsHowToMake(const Tree& tree, const std::string& page, std::string_view fault) {
  if (Mentions(page, fault)) return true;
  const Strings with = ScenariosWith(tree, fault);
  return std::ranges::any_of(ScenariosRunBy(page), [&](const std::string& name) {
    return std::ranges::find(with, fs::path(name).filename().string()) != with.end();
  });
}

struct FaultEntry {
  std::string family;
  std::string name;
  std::string runbook;
  std::string full() const { return family + "." + name; }
};

// What a fault lacks, one sentence each.
Strings LackingOf(const FaultEntry& fault, const Tree& tree) {
  Strings lacking;
  const auto require = [&](bool there, const std::string& what) {
    if (!there) lacking.push_back(fault.full() + ": " + what);
  };
  const std::string source = "injectors/" + fault.family + "/" + fault.name + ".cc";
  const std::string runbook = "analysis/runbooks/" + fault.runbook;
  require(tree.contains(source), "no " + source);
  require(!ScenariosWith(tree, fault.full()).empty(), "no scenario injects it");
  require(tree.contains(runbook), "no " + runbook);
  require(ShowsHowToMake(tree, TextOf(tree, runbook), fault.full()),
          runbook + " neither names it nor runs a scenario that injects it");
  require(Contains(TextOf(tree, kContract), "\\.fault = \"" + Quoted(fault.full()) + "\""),
          std::string("no row in ") + kContract);
  return lacking;
}

std::vector<FaultEntry> Faults() {
  std::vector<FaultEntry> entries;
  for (const Fault* fault : FaultCatalog()) {
    entries.push_back(
        {std::string(fault->family), std::string(fault->name), std::string(fault->runbook)});
  }
  return entries;
}

Strings Checks() {
  return {
#define SHAKEDOWN_CHECK(name) #name,
#include "analysis/checks/catalog.def"
#undef SHAKEDOWN_CHECK
  };
}

Strings Detectors() {
  return {
#define SHAKEDOWN_DETECTOR(name) #name,
#include "analysis/diagnosis/catalog.def"
#undef SHAKEDOWN_DETECTOR
  };
}

// Entries of a catalogue of analysis without <folder>/<name>_test.cc, or with one that has no test.
Strings Untested(const Strings& names, const std::string& folder, const Tree& tree) {
  Strings untested;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name + "_test.cc";
    if (!Contains(TextOf(tree, path), "(^|\\n)TEST(_F|_P)?\\(")) {
      untested.push_back(name + ": no test in " + path);
    }
  }
  return untested;
}

// File names of pages that a source asks for: "not_joined.md".
Strings PagesNamedBy(const std::string& source) {
  static const std::regex kPage("\"([a-z0-9_]+\\.md)\"");
  Strings pages;
  for (std::sregex_iterator it(source.begin(), source.end(), kPage), end; it != end; ++it) {
    pages.push_back((*it)[1]);
  }
  return pages;
}

Strings MissingPages(const Tree& tree) {
  Strings missing;
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".cc") || path.starts_with("tests/")) continue;
    for (const std::string& page : PagesNamedBy(text)) {
      if (!tree.contains("analysis/runbooks/" + page))
        missing.push_back(path + ": no page " + page);
    }
  }
  return missing;
}

// Names that a runbook tells the reader to run, and that no scenario has.
Strings MissingScenarios(const Tree& tree) {
  std::set<std::string> known;
  for (const auto& [path, text] : tree) {
    if (!path.starts_with("scenarios/") || !path.ends_with(".yaml")) continue;
    known.insert(fs::path(path).stem());
    known.insert(fs::path(path).lexically_relative("scenarios").replace_extension());
  }
  Strings missing;
  for (const auto& [path, text] : tree) {
    if (!path.starts_with("analysis/runbooks/")) continue;
    for (const std::string& name : ScenariosRunBy(text)) {
      if (!known.contains(name)) missing.push_back(path + ": no scenario " + name);
    }
  }
  return missing;
}

// Targets of the links of a page that are files: no anchors, no other hosts, nothing in code.
Strings LinksOf(const std::string& page) {
  static const std::regex kCode("```[^`]*```|`[^`\\n]*`");
  static const std::regex kLink("\\]\\(([^)#\\s]+)[^)]*\\)");
  static const std::regex kElsewhere("^[a-z]+:.*");
  const std::string text = std::regex_replace(page, kCode, "");
  Strings links;
  for (std::sregex_iterator it(text.begin(), text.end(), kLink), end; it != end; ++it) {
    const std::string target = (*it)[1];
    if (!std::regex_match(target, kElsewhere)) links.push_back(target);
  }
  return links;
}

Strings DeadLinks(const Tree& tree, const fs::path& root) {
  Strings dead;
  for (const auto& [path, text] : tree) {
    if (!path.ends_with(".md")) continue;
    for (const std::string& link : LinksOf(text)) {
      const fs::path target = link.starts_with('/') ? root / link.substr(1)
                                                    : root / fs::path(path).parent_path() / link;
      if (!fs::exists(target)) dead.push_back(path + ": no " + link);
    }
  }
  return dead;
}

std::string Lines(const Strings& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

TEST(CatalogsComplete, EveryFaultHasSourceScenarioRunbookAndContract) {
  ASSERT_FALSE(Faults().empty());
  for (const FaultEntry& fault : Faults()) {
    const Strings lacking = LackingOf(fault, Repository());
    EXPECT_THAT(lacking, IsEmpty()) << Lines(lacking);
  }
}

TEST(CatalogsComplete, EveryCheckHasATest) {
  ASSERT_FALSE(Checks().empty());
  const Strings untested = Untested(Checks(), "tests/analysis/checks", Repository());
  EXPECT_THAT(untested, IsEmpty()) << Lines(untested);
}

TEST(CatalogsComplete, EveryDetectorHasATest) {
  ASSERT_FALSE(Detectors().empty());
  const Strings untested = Untested(Detectors(), "tests/analysis/diagnosis", Repository());
  EXPECT_THAT(untested, IsEmpty()) << Lines(untested);
}

TEST(CatalogsComplete, EveryRunbookThatASourceNamesExistsAndEveryPageIsNamed) {
  const Strings missing = MissingPages(Repository());
  EXPECT_THAT(missing, IsEmpty()) << Lines(missing);

  std::set<std::string> named;
  for (const auto& [path, text] : Repository()) {
    if (!path.ends_with(".cc") || path.starts_with("tests/")) continue;
    for (const std::string& page : PagesNamedBy(text)) named.insert(page);
  }
  for (const auto& [path, unused] : Repository()) {
    if (!path.starts_with("analysis/runbooks/")) continue;
    const std::string page = fs::path(path).filename();
    EXPECT_TRUE(page == "README.md" || named.contains(page)) << path << " is named by no source";
  }
}

TEST(CatalogsComplete, EveryScenarioThatARunbookRunsExists) {
  const Strings missing = MissingScenarios(Repository());
  EXPECT_THAT(missing, IsEmpty()) << Lines(missing);
}

TEST(CatalogsComplete, EveryLinkOfADocumentLeadsToAFile) {
  const Strings dead = DeadLinks(Repository(), SHAKEDOWN_SOURCE_DIR);
  EXPECT_THAT(dead, IsEmpty()) << Lines(dead);
}

// Each of the searches above comes out red when it should.

TEST(CatalogsCompleteEngine, AFaultWithNothingLacksEverything) {
  EXPECT_THAT(LackingOf({"rank", "vanish", "rank_vanished.md"}, Repository()),
              ElementsAre(HasSubstr("no injectors/rank/vanish.cc"), HasSubstr("no scenario"),
                          HasSubstr("no analysis/runbooks/rank_vanished.md"),
                          HasSubstr("neither names it"), HasSubstr("no row")));
}

TEST(CatalogsCompleteEngine, AFaultIsCompleteByNameOrByAScenarioInItsRunbook) {
  Tree tree = {{"injectors/rank/vanish.cc", ""},
               {"scenarios/faults/gone.yaml", "faults:\n  - inject: rank.vanish\n"},
               {"analysis/runbooks/gone.md", "    shakedown run gone\n"},
               {kContract, "{.fault = \"rank.vanish\","}};
  const FaultEntry fault = {"rank", "vanish", "gone.md"};
  EXPECT_THAT(LackingOf(fault, tree), IsEmpty());
  tree["analysis/runbooks/gone.md"] = "Made with rank.vanish.";
  EXPECT_THAT(LackingOf(fault, tree), IsEmpty());
  tree["analysis/runbooks/gone.md"] = "    shakedown run another\n";
  EXPECT_THAT(LackingOf(fault, tree), ElementsAre(HasSubstr("neither names it")));
}

TEST(CatalogsCompleteEngine, OnlyAnInjectKeyWithTheWholeNameInjects) {
  EXPECT_TRUE(Injects("faults: [{inject: rank.kill, at: {rank: 1}}]", "rank.kill"));
  EXPECT_TRUE(Injects("  - inject: rank.kill  # hard\n", "rank.kill"));
  EXPECT_FALSE(Injects("  # inject: rank.kill\n", "rank.kill"));
  EXPECT_FALSE(Injects("  - inject: rank.kill_all\n", "rank.kill"));
  EXPECT_FALSE(Injects("summary: what rank.kill does\n", "rank.kill"));
  EXPECT_FALSE(Injects("  - inject: rank_kill\n", "rank.kill"));
}

TEST(CatalogsCompleteEngine, AnEntryWithoutATestIsFound) {
  const Tree tree = {{"t/one_test.cc", "\nTEST(One, Works) {"}, {"t/two_test.cc", "// TEST(\n"}};
  EXPECT_THAT(Untested({"one", "two", "three"}, "t", tree),
              ElementsAre(HasSubstr("t/two_test.cc"), HasSubstr("t/three_test.cc")));
}

TEST(CatalogsCompleteEngine, APageOrAScenarioThatIsNotThereIsFound) {
  EXPECT_THAT(MissingPages({{"analysis/diagnosis/x.cc", "{\"a\", \"lost.md\"}"}}),
              ElementsAre(HasSubstr("lost.md")));
  EXPECT_THAT(MissingScenarios({{"analysis/runbooks/x.md", "    shakedown run lost --seed 1"}}),
              ElementsAre(HasSubstr("lost")));
}

TEST(CatalogsCompleteEngine, ADeadLinkIsFoundAndCodeAnchorsAndOtherHostsAreNoLinks) {
  const std::string page =
      "[a](base) [b](lost.md#part) [c](https://example.org/x) [d](#here) `[e](code.md)`\n"
      "```\n[f](block.md)\n```\n[g](/tests) [h](/lost)";
  EXPECT_THAT(DeadLinks({{"harness/README.md", page}}, SHAKEDOWN_SOURCE_DIR),
              ElementsAre("harness/README.md: no lost.md", "harness/README.md: no /lost"));
}

}  // namespace
}  // namespace shakedown
