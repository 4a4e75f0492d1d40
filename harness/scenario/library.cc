#include "harness/scenario/library.h"

#include <algorithm>

#include "harness/scenario/suite_file.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;

// In a folder of scenarios, but none themselves.
bool IsScenarioFile(const fs::path& path) {
  const std::string name = path.filename();
  return path.extension() == ".yaml" && name != "suite.yaml" && name != "job.yaml";
}

bool LooksLikePath(const std::string& argument) {
  return argument.ends_with(".yaml") || argument.ends_with(".yml") || argument.starts_with("/") ||
         argument.starts_with("./") || argument.starts_with("../");
}

Problem About(const std::string& file, std::string message) {
  return {file, 0, 0, file, std::move(message), std::nullopt};
}

std::vector<std::string> SuiteNames() {
  std::vector<std::string> names;
  for (const fs::path& file : ScenarioFiles(ScenarioFolder())) {
    const std::string folder = file.parent_path().lexically_relative(ScenarioFolder());
    if (folder != "." && (names.empty() || names.back() != folder)) names.push_back(folder);
  }
  return names;
}

}  // namespace

fs::path ScenarioFolder() { return SHAKEDOWN_SCENARIO_FOLDER; }

std::vector<fs::path> ScenarioFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;  // an unreadable folder has no scenarios
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored) && IsScenarioFile(it->path())) files.push_back(it->path());
  }
  std::ranges::sort(files);
  return files;
}

std::string ListedName(const fs::path& file) {
  const fs::path relative = file.lexically_normal().lexically_relative(ScenarioFolder());
  if (relative.empty() || *relative.begin() == "..") return file;
  return fs::path(relative).replace_extension();
}

tl::expected<fs::path, Problem> FindScenario(const std::string& argument) {
  std::error_code ignored;
  if (LooksLikePath(argument)) return fs::path(argument);
  // A FIFO or a device too: reading it says what it is. A folder may have the name of a scenario.
  const fs::file_type type = fs::status(argument, ignored).type();
  if (fs::exists(fs::file_status(type)) && type != fs::file_type::directory)
    return fs::path(argument);
  std::vector<fs::path> matches;
  std::vector<std::string> known;
  for (const fs::path& file : ScenarioFiles(ScenarioFolder())) {
    const std::string listed = ListedName(file);
    if (listed == argument) return file;
    if (file.stem() == argument) matches.push_back(file);
    known.push_back(listed);
    known.push_back(file.stem());
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    Problem problem = About(argument,
                            "no such file, and no scenario of that name (`shakedown list "
                            "scenarios` names them)");
    problem.nearest = NearestName(argument, known);
    return tl::unexpected(std::move(problem));
  }
  std::string message = "several scenarios have that name:";
  for (const fs::path& match : matches) message += " " + ListedName(match);
  return tl::unexpected(About(argument, std::move(message)));
}

tl::expected<Suite, std::vector<Problem>> LoadSuite(const std::string& argument) {
  const auto fail = [&](std::string message) {
    Problem problem = About(argument, std::move(message));
    problem.nearest = NearestName(argument, SuiteNames());
    return tl::unexpected(std::vector<Problem>{std::move(problem)});
  };
  std::error_code ignored;
  Suite suite;
  suite.folder = argument;
  if (!fs::is_directory(suite.folder, ignored)) suite.folder = ScenarioFolder() / argument;
  if (argument.empty() || !fs::is_directory(suite.folder, ignored)) {
    return fail("no such folder, and no suite of that name");
  }
  suite.folder = fs::absolute(suite.folder).lexically_normal();
  if (!suite.folder.has_filename()) suite.folder = suite.folder.parent_path();
  suite.name = suite.folder.filename();
  suite.files = ScenarioFiles(suite.folder);
  if (suite.files.empty()) return fail("the folder has no scenario (*.yaml)");
  std::ranges::stable_partition(suite.files,
                                [](const fs::path& file) { return file.stem() == "control"; });
  const fs::path file = suite.folder / "suite.yaml";
  if (!fs::exists(file, ignored)) return suite;
  auto parsed = ParseSuiteFile(file);
  if (!parsed) return tl::unexpected(std::move(parsed.error()));
  suite.require = std::move(parsed->require);
  std::vector<std::string> names;
  for (const fs::path& scenario : suite.files) names.push_back(scenario.stem());
  std::vector<Problem> problems;
  for (const std::string& name : suite.require) {
    if (std::ranges::find(names, name) != names.end()) continue;
    problems.push_back({file, 0, 0, name, "require: the folder has no scenario '" + name + "'",
                        NearestName(name, names)});
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return suite;
}

}  // namespace shakedown
