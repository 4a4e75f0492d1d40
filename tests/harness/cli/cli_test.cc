// The command line as a script sees it: the binary's exit status, stdout and stderr. Nothing here
// starts a job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "harness/base/file.h"
#include "harness/wire/json.h"
#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;
using test_support::TempDir;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Ran {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// `arguments` as typed into a shell.
Ran Shakedown(const std::string& arguments) {
  const TempDir temp;
  const std::string err_file = temp.path() / "stderr";
  const std::string command =
      std::string("'" SHAKEDOWN_BINARY_DIR "/shakedown' ") + arguments + " 2>'" + err_file + "'";
  Ran ran;
  FILE* const pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  char buffer[4096];
  size_t n = 0;
  while ((n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0) ran.out.append(buffer, n);
  const int status = ::pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status)) << command;
  ran.exit_code = WEXITSTATUS(status);
  ran.err = ReadFile(err_file).value_or("");
  return ran;
}

Json ParseOrFail(const std::string& text) {
  const auto json = ParseJson(text);
  EXPECT_TRUE(json) << text;
  return json.value_or(Json());
}

void ExpectNarrow(const std::string& text) {
  for (const std::string_view line : SplitLines(text).complete) EXPECT_LE(line.size(), 80U) << line;
}

TEST(Cli, HelpTeachesTheFirstCommandsAndTheExitStatuses) {
  const Ran ran = Shakedown("--help");
  EXPECT_EQ(ran.exit_code, 0);
  for (const char* part : {"shakedown plan rank_killed", "Exit status", "3 INVALID", "--json"}) {
    EXPECT_THAT(ran.out, HasSubstr(part));
  }
  ExpectNarrow(ran.out);
}

TEST(Cli, EveryCommandHasAnExampleAndItsExitStatusInItsHelp) {
  for (const char* command : {"plan", "list", "explain", "validate", "schema"}) {
    const Ran ran = Shakedown(std::string(command) + " --help");
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_THAT(ran.out, HasSubstr(std::string("  shakedown ") + command)) << command;
    EXPECT_THAT(ran.out, HasSubstr("Exit status: 0")) << command;
    EXPECT_THAT(ran.out, HasSubstr("--json")) << command;
    ExpectNarrow(ran.out);
  }
}

TEST(Cli, EveryCommandFileStandsInTheListOfCommands) {
  const std::string folder = SHAKEDOWN_SOURCE_DIR "/harness/cli";
  const std::string list = ReadFile(folder + "/commands.def").value_or("");
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("command_") || entry.path().extension() != ".cc") continue;
    const std::string command = entry.path().stem().string().substr(sizeof("command_") - 1);
    EXPECT_THAT(list, HasSubstr("SHAKEDOWN_COMMAND(" + command + ")"));
    ++files;
  }
  EXPECT_GE(files, 5);
}

TEST(Cli, WrongUsageExitsWithTwoAndTheNearestName) {
  const struct {
    const char* arguments;
    const char* message;
  } kCases[] = {
      {"", "subcommand is required"},
      {"plam rank_killed", "unknown command 'plam' (did you mean 'plan'?)"},
      {"plan rank_killed --sede 3", "unknown option '--sede' (did you mean '--seed'?)"},
      {"plan rank_killed --seed x", "--seed"},
      {"plan", "SCENARIO is required"},
      {"plan rank_killd", "did you mean 'rank_killed'?"},
      {"plan a b", "plan: "},
      {"run ''", "run: SCENARIO: the name is empty"},
      {"plan ''", "plan: SCENARIO: the name is empty"},
      {"validate rank_killed ''", "validate: FILE: the name is empty"},
      {"suite ''", "suite: SUITE: the name is empty"},
      {"explain ''", "explain: NAME: the name is empty"},
      {"list ''", "list: WHAT: the name is empty"},
      {"check ''", "check: RUN: the name is empty"},
      {"diagnose ''", "diagnose: RUN: the name is empty"},
      {"abort ''", "abort: RUN: the name is empty"},
      {"clean ''", "clean: PATH: the name is empty"},
      {"explain nowhere.yaml", "nowhere.yaml: "},
      {"list fault", "did you mean 'faults'?"},
      {"explain rank.kil", "did you mean 'rank.kill'?"},
      {"validate nowhere.yaml", "nowhere.yaml: "},
      {"validate /", "/: "},
      {"plan rank_killed --set job.ranks=0", "--set job.ranks=0: job.ranks: 0 is too small"},
      {"plan rank_killed --job nowhere.yaml", "nowhere.yaml: "},
  };
  for (const auto& c : kCases) {
    const Ran ran = Shakedown(c.arguments);
    EXPECT_EQ(ran.exit_code, 2) << c.arguments;
    EXPECT_THAT(ran.err, HasSubstr(c.message)) << c.arguments;
    EXPECT_THAT(ran.out, IsEmpty()) << c.arguments;

    const Ran with_json = Shakedown(std::string(c.arguments) + " --json");
    if (*c.arguments == '\0') continue;  // --json is an option of commands
    EXPECT_EQ(with_json.exit_code, 2) << c.arguments;
    const Json json = ParseOrFail(with_json.out);
    EXPECT_EQ(json["schema_version"], 1);
    for (const char* field : {"file", "line", "column", "message", "nearest"}) {
      EXPECT_TRUE(json["error"].contains(field)) << c.arguments << " " << field;
    }
    EXPECT_EQ(json["errors"][0], json["error"]);
  }
}

TEST(Cli, ValidateReportsAllProblemsOfAllFiles) {
  const TempDir temp;
  const fs::path a = temp.path() / "a.yaml";
  const fs::path b = temp.path() / "b.yaml";
  std::ofstream(a)
      << "name: a\nsummary: s\njob: {stepz: 1, ranks: 0}\nexpect: {outcome: recovers}\n";
  std::ofstream(b) << "name: b\nsummary: s\nexpect: {outcome: fine}\n";
  const std::string files = a.string() + " " + b.string();
  const Ran ran = Shakedown("validate smoke/rank_killed " + files);
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err,
              HasSubstr("a.yaml:3:7: unknown key 'stepz' in job (did you mean 'steps'?)\n"));
  EXPECT_THAT(ran.err, HasSubstr("a.yaml:3:24: job.ranks: 0 is too small"));
  EXPECT_THAT(ran.err, HasSubstr("b.yaml:3:19: expect.outcome: unknown outcome 'fine'"));
  EXPECT_EQ(ran.out, "smoke/rank_killed: valid\n");
  const Json json = ParseOrFail(Shakedown("validate --json " + files).out);
  EXPECT_EQ(json["errors"].size(), 3U);
  EXPECT_EQ(json["error"]["line"], 3);
  EXPECT_EQ(json["error"]["column"], 7);
  EXPECT_EQ(json["error"]["nearest"], "steps");
}

TEST(Cli, ValidateAcceptsEveryScenarioThatShips) {
  const Ran ran =
      Shakedown("validate " SHAKEDOWN_SOURCE_DIR "/scenarios/smoke/[a-rt-z]*.yaml --json");
  EXPECT_EQ(ran.exit_code, 0);
  const Json json = ParseOrFail(ran.out);
  EXPECT_EQ(json["files"].size(), 7U);
  for (const Json& file : json["files"]) EXPECT_EQ(file["valid"], true);
}

TEST(Cli, ValidateWarnsOfAStepThatIsNeverReached) {
  const TempDir temp;
  const fs::path file = temp.path() / "late.yaml";
  std::ofstream(file) << "name: late\nsummary: s\nfaults:\n  - inject: rank.kill\n"
                         "    at: {rank: 0, step: 99}\nexpect: {outcome: recovers}\n";
  const Ran ran = Shakedown("validate " + file.string());
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.err, HasSubstr("warning: "));
  EXPECT_THAT(ran.err, HasSubstr("late.yaml:5:25: step 99 is never reached"));
}

TEST(Cli, ListHasTheFieldsOfTheContract) {
  for (const char* what : {"faults", "scenarios", "checks", "points", "classes", "mechanisms"}) {
    const Ran ran = Shakedown(std::string("list --json ") + what);
    EXPECT_EQ(ran.exit_code, 0) << what;
    const Json json = ParseOrFail(ran.out);
    ASSERT_TRUE(json.is_array());
    EXPECT_GE(json.size(), 6U) << what;
    std::set<std::string> names;
    for (const Json& entry : json) {
      for (const char* field : {"schema_version", "name", "path", "summary", "available", "why_not",
                                "level", "classes"}) {
        EXPECT_TRUE(entry.contains(field)) << what << " " << field;
      }
      EXPECT_TRUE(entry["available"].get<bool>()) << entry;
      EXPECT_TRUE(entry["summary"].is_string()) << entry;
      EXPECT_TRUE(names.insert(entry["name"]).second) << entry;
    }
  }
  EXPECT_EQ(ParseOrFail(Shakedown("list --json classes").out).size(), 24U);
}

TEST(Cli, ListIsPlainTextThatFitsANarrowTerminal) {
  for (const char* what :
       {"faults", "scenarios", "checks", "points", "classes", "mechanisms", "runbooks"}) {
    const Ran ran = Shakedown(std::string("list ") + what);
    EXPECT_EQ(ran.exit_code, 0);
    EXPECT_THAT(ran.out, HasSubstr("NAME"));
    EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
    ExpectNarrow(ran.out);
  }
}

TEST(Cli, ExplainShowsEverythingThatIsListed) {
  for (const char* what :
       {"faults", "scenarios", "checks", "points", "classes", "mechanisms", "runbooks"}) {
    const Json list = ParseOrFail(Shakedown(std::string("list --json ") + what).out);
    for (const Json& entry : list) {
      const auto name = entry["name"].get<std::string>();
      const Ran ran = Shakedown("explain '" + name + "'");
      EXPECT_EQ(ran.exit_code, 0) << name;
      EXPECT_THAT(ran.out, HasSubstr(name + " ("));
    }
  }
  const Json json = ParseOrFail(Shakedown("explain --json rank.kill").out);
  EXPECT_EQ(json["entries"][0]["kind"], "fault");
  EXPECT_EQ(json["entries"][0]["mechanism"], "killed");
  EXPECT_EQ(Shakedown("explain rank_killed").exit_code, 0);
}

TEST(Cli, PlanIsTheSameForTheSameSeedAndStartsNothing) {
  const auto digest = [](const std::string& arguments) {
    return ParseOrFail(Shakedown("plan --json rank_killed " + arguments).out)["digest"]
        .get<std::string>();
  };
  EXPECT_EQ(digest("--seed 7"), digest("--seed 7"));
  EXPECT_NE(digest("--seed 7"), digest("--seed 8"));
  const TempDir temp;
  const Ran ran = Shakedown("plan rank_killed && ls -A '" + temp.path().string() + "'");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("rank 1"));
  ExpectNarrow(ran.out);
}

TEST(Cli, SetMayBeRepeatedAndOverridesTheScenario) {
  const Ran ran = Shakedown(
      "plan rank_killed --set faults.0.at.rank=2 --set job.steps=55 --set 'faults.0.at.step=41' "
      "--json");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const Json plan = ParseOrFail(ran.out);
  EXPECT_EQ(plan["injections"][0]["rank"], 2);
  EXPECT_EQ(plan["injections"][0]["step"], 41);
  EXPECT_EQ(plan["scenario"]["job"]["steps"], 55);
}

TEST(Cli, SchemaIsJsonOfTheDraftThatItNames) {
  const Ran ran = Shakedown("schema");
  EXPECT_EQ(ran.exit_code, 0);
  const Json schema = ParseOrFail(ran.out);
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(schema["additionalProperties"], false);
}

// A scenario whose summary is `summary`, between double quotes of YAML.
fs::path WriteScenario(const TempDir& folder, const std::string& summary) {
  const fs::path file = folder.path() / "some.yaml";
  std::ofstream(file) << "name: some\nsummary: \"" << summary
                      << "\"\nfaults:\n  - inject: rank.kill\n    at: {rank: 1, step: 39}\n"
                         "expect: {outcome: recovers}\n";
  return file;
}

void ExpectHarmless(const std::string& text) {
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
  for (const char* acts : {"\x7f", "\xc2\x9b", "\nroot#"}) EXPECT_THAT(text, Not(HasSubstr(acts)));
}

TEST(Cli, TextOfOthersCannotActOnTheTerminal) {
  const TempDir temp;
  const std::string hostile = "\\e]0;owned\\a\\e[2J\\nroot# \\u009b1m";
  const fs::path file = WriteScenario(temp, hostile);
  const fs::path wrong = temp.path() / "wrong.yaml";
  std::ofstream(wrong) << "\"" << hostile << "\": 1\nname: \"" << hostile << "\"\n";
  for (const std::string& arguments :
       {"plan " + file.string(), "validate " + wrong.string(), "plan " + wrong.string(),
        std::string("plan \"$(printf 'a\\033[2J\\nroot# ')\""),
        std::string("\"$(printf '\\033[2J')\""), std::string("explain \"$(printf '\\033[2J')\""),
        std::string("list \"$(printf '\\033[2J')\""), std::string("check \"$(printf '\\033[2J')\""),
        std::string("diagnose \"$(printf '\\033[2J')\""),
        std::string("suite \"$(printf '\\033[2J')\""),
        std::string("clean \"$(printf '\\033[2J')\"")}) {
    const Ran ran = Shakedown(arguments);
    ExpectHarmless(ran.out);
    ExpectHarmless(ran.err);
    EXPECT_THAT(ran.out + ran.err, HasSubstr("\\x1b")) << arguments;
  }
}

TEST(Cli, TheVersionIsJsonWhereThatIsAskedFor) {
  EXPECT_THAT(Shakedown("--version").out, ::testing::StartsWith("shakedown "));
  for (const char* arguments : {"--version --json", "--json --version"}) {
    const Ran ran = Shakedown(arguments);
    EXPECT_EQ(ran.exit_code, 0);
    const Json json = ParseOrFail(ran.out);
    EXPECT_EQ(json["schema_version"], 1);
    EXPECT_EQ("shakedown " + StringField(json, "version").value_or("") + "\n",
              Shakedown("--version").out);
  }
}

TEST(Cli, WhatIsNoRegularFileIsNamedAndDoesNotBlock) {
  const TempDir temp;
  for (const char* name : {"fifo.yaml", "fifo"}) {
    const fs::path fifo = temp.path() / name;
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    const Ran ran = Shakedown("validate " + fifo.string());
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, HasSubstr("not a regular file: a FIFO"));
    const Ran relative = Shakedown("validate '" + fs::relative(fifo).string() + "'");
    EXPECT_THAT(relative.err, HasSubstr("not a regular file: a FIFO"));
  }
}

TEST(Cli, ExplainTakesAScenarioFile) {
  const TempDir temp;
  const fs::path file = WriteScenario(temp, "What it is.");
  const Ran ran = Shakedown("explain " + file.string());
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("some.yaml (scenario)\n"));
  EXPECT_THAT(ran.out, HasSubstr("What it is."));
  EXPECT_THAT(ran.out, HasSubstr("rank.kill"));
  std::ofstream(file, std::ios::app) << "stray: 1\n";
  const Ran wrong = Shakedown("explain " + file.string());
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("some.yaml:7:1: unknown key 'stray'"));
  ExpectHarmless(Shakedown("explain " + WriteScenario(temp, "\\e[2J\\nroot#").string()).out);
}

TEST(Cli, ResultsThatCannotBeWrittenAreAnError) {
  const Ran ran = Shakedown("list points >/dev/full");
  EXPECT_EQ(ran.exit_code, 5);
  EXPECT_THAT(ran.err, HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace shakedown
