#include "harness/scenario/library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/file.h"
#include "harness/scenario/parse.h"
#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(Library, EveryScenarioThatShipsIsValidAndNamedLikeItsFile) {
  const auto files = ScenarioFiles(ScenarioFolder());
  ASSERT_GE(files.size(), 9U);
  for (const fs::path& file : files) {
    const ParsedScenario parsed = ParseScenarioFile(file);
    for (const Problem& problem : parsed.problems) ADD_FAILURE() << Describe(problem);
    for (const Problem& warning : parsed.warnings) ADD_FAILURE() << Describe(warning);
    ASSERT_TRUE(parsed.scenario);
    EXPECT_EQ(parsed.scenario->name, file.stem()) << file;
    EXPECT_EQ(FindScenario(ListedName(file)).value_or(""), file);
  }
}

TEST(Library, TheExampleInTheReadmeIsValid) {
  const std::string readme = ReadFile(ScenarioFolder() / "README.md").value_or("");
  const std::string fence = "```yaml\n";
  const size_t begin = readme.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const size_t end = readme.find("```\n", begin + fence.size());
  const ParsedScenario parsed =
      ParseScenario(readme.substr(begin + fence.size(), end - begin - fence.size()), "README.md");
  for (const Problem& problem : parsed.problems) ADD_FAILURE() << Describe(problem);
  EXPECT_TRUE(parsed.warnings.empty());
  EXPECT_TRUE(parsed.scenario);
}

TEST(Library, FindsAScenarioByShortNameListedNameAndFile) {
  const fs::path file = ScenarioFolder() / "smoke/rank_killed.yaml";
  EXPECT_EQ(FindScenario("rank_killed").value_or(""), file);
  EXPECT_EQ(FindScenario("smoke/rank_killed").value_or(""), file);
  EXPECT_EQ(FindScenario(file).value_or(""), file);
}

TEST(Library, OffersTheNearestScenario) {
  const auto found = FindScenario("rank_kiled");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().nearest, "rank_killed");
}

TEST(Library, ListsTheSmokeSuiteWithItsControlFirst) {
  const auto suite = LoadSuite("smoke");
  ASSERT_TRUE(suite) << Describe(suite.error().front());
  EXPECT_EQ(suite->name, "smoke");
  ASSERT_EQ(suite->files.size(), 8U);
  EXPECT_EQ(suite->files.front().stem(), "control");
  EXPECT_EQ(suite->require.size(), 8U);
}

TEST(Library, ASuiteThatIsNoneIsAProblem) {
  const auto unknown = LoadSuite("smok");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().front().nearest, "smoke");
  const test_support::TempDir temp;
  const fs::path& folder = temp.path();
  const auto empty = LoadSuite(folder.string());
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().front().message, HasSubstr("has no scenario"));

  std::ofstream(folder / "a.yaml") << "name: a\n";
  std::ofstream(folder / "suite.yaml") << "require: [a, c]\n";
  const auto missing = LoadSuite(folder.string());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().front().message, HasSubstr("no scenario 'c'"));

  std::ofstream(folder / "suite.yaml") << "requires: [a]\n";
  const auto unknown_key = LoadSuite(folder.string());
  ASSERT_FALSE(unknown_key);
  EXPECT_EQ(unknown_key.error().front().nearest, "require");
}

}  // namespace
}  // namespace shakedown
