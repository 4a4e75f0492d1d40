// What the parser accepts, and that it says everything that is wrong with what it does not.
#include "harness/scenario/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/random.h"
#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kGood[] = R"(name: rank_killed
summary: A rank is killed.
classes: [C02]
job:
  ranks: 3
  steps: 60
  step_time: 20ms
  checkpoint: {every: 10, mode: async, keep: 3}
  timeouts: {collective: 5s}
  watchdog: off
  restart: {policy: group, max: 3}
faults:
  - inject: rank.kill
    with: {signal: KILL}
    at: {rank: 1, step: 39, point: collective.enter, committed: 30}
expect:
  outcome: recovers
  diagnosis: {culprit: {rank: 1}, mechanism: killed}
  detected: {within: 1s}
  resume: {from: 30, equals: uninterrupted}
  budget: {recovery: 3s, lost_steps: 10}
)";

// kGood with the first `from` replaced.
std::string Good(std::string_view from = "", std::string_view to = "") {
  std::string text = kGood;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

ParsedScenario Parse(std::string_view text, const ParseOptions& options = {}) {
  return ParseScenario(text, "test.yaml", options);
}

std::vector<std::string> Described(const std::vector<Problem>& problems) {
  std::vector<std::string> out;
  for (const Problem& problem : problems) out.push_back(Describe(problem));
  return out;
}

class TemporaryFolder : public test_support::TempDir {
 public:
  fs::path Write(const std::string& name, std::string_view content) const {
    std::ofstream(path() / name, std::ios::binary) << content;
    return path() / name;
  }
};

TEST(Parse, ReadsEveryPartOfAScenario) {
  const ParsedScenario parsed = Parse(kGood);
  ASSERT_THAT(Described(parsed.problems), ElementsAre());
  EXPECT_THAT(Described(parsed.warnings), ElementsAre());
  const Scenario& s = *parsed.scenario;
  EXPECT_EQ(s.name, "rank_killed");
  EXPECT_EQ(s.path, "test.yaml");
  EXPECT_THAT(s.classes, ElementsAre("C02"));
  EXPECT_EQ(s.job.step_time, milliseconds(20));
  EXPECT_EQ(s.job.checkpoint, (CheckpointConfig{10, CheckpointMode::kAsync, 3}));
  EXPECT_EQ(s.job.collective_timeout, seconds(5));
  EXPECT_EQ(s.job.watchdog, std::nullopt);
  EXPECT_TRUE(fs::is_regular_file(fs::path(s.job.data_dir) / "images-idx3-ubyte"));
  ASSERT_EQ(s.faults.size(), 1U);
  const FaultSpec& fault = s.faults[0];
  EXPECT_EQ(fault.inject, "rank.kill");
  EXPECT_EQ(fault.with, (Params{{"signal", std::string("KILL")}}));
  EXPECT_THAT(fault.target.ranks, ElementsAre(1));
  EXPECT_EQ(fault.step, 39);
  EXPECT_EQ(fault.point, Point::kCollectiveEnter);
  EXPECT_EQ(fault.committed, 30);
  EXPECT_EQ(s.expect.outcome, Outcome::kRecovers);
  EXPECT_EQ(s.expect.diagnosis, (DiagnosisExpectation{{{"rank", 1, std::nullopt, ""}}, "killed"}));
  EXPECT_EQ(s.expect.detected_within, seconds(1));
  EXPECT_EQ(s.expect.resume_from, 30);
  EXPECT_EQ(s.expect.recovery_budget, seconds(3));
  EXPECT_EQ(s.expect.lost_steps_budget, 10);
  EXPECT_FALSE(s.expect.exit_witness_optional);
}

TEST(Parse, TakesDefaultsFromTheStructures) {
  const ParsedScenario parsed = Parse("name: c\nsummary: s\nexpect: {outcome: unaffected}\n");
  ASSERT_THAT(Described(parsed.problems), ElementsAre());
  JobConfig job;
  job.data_dir = parsed.scenario->job.data_dir;
  EXPECT_EQ(parsed.scenario->job, job);
  EXPECT_TRUE(parsed.scenario->faults.empty());
}

TEST(Parse, CompletesAFaultWithItsDefaults) {
  const auto parsed =
      Parse(Good("    with: {signal: KILL}\n    at: {rank: 1, step: 39, point: collective.enter, "
                 "committed: 30}",
                 "    at: {rank: last, step: 39}"));
  ASSERT_THAT(Described(parsed.problems), ElementsAre());
  const FaultSpec& fault = parsed.scenario->faults[0];
  EXPECT_EQ(fault.with, (Params{{"signal", std::string("KILL")}}));
  EXPECT_EQ(fault.point, Point::kCollectiveEnter);
  EXPECT_EQ(fault.target.kind, Target::Kind::kLast);
  EXPECT_EQ(fault.occurrence, 1);
}

TEST(Parse, SurvivesTheJsonOfASavedPlan) {
  const auto parsed = Parse(kGood);
  ASSERT_TRUE(parsed.scenario);
  const auto again = ScenarioFromJson(ToJson(*parsed.scenario));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(DumpJson(ToJson(*again)), DumpJson(ToJson(*parsed.scenario)));
}

TEST(Parse, AcceptsOffAndFalseForAWatchdogThatIsOff) {
  for (const char* word : {"off", "false", "\"off\""}) {
    const auto parsed = Parse(Good("watchdog: off", std::string("watchdog: ") + word));
    ASSERT_THAT(Described(parsed.problems), ElementsAre()) << word;
    EXPECT_EQ(parsed.scenario->job.watchdog, std::nullopt);
  }
  const auto parsed = Parse(Good("watchdog: off", "watchdog: 1s"));
  ASSERT_TRUE(parsed.scenario);
  EXPECT_EQ(parsed.scenario->job.watchdog, seconds(1));
}

TEST(Parse, UnderstandsEveryKindOfCulprit) {
  const auto culprit = [](const char* text) {
    const auto parsed = Parse(Good("culprit: {rank: 1}", text));
    EXPECT_THAT(Described(parsed.problems), ElementsAre()) << text;
    return parsed.scenario ? parsed.scenario->expect.diagnosis.culprits : std::vector<Culprit>();
  };
  EXPECT_THAT(culprit("culprit: {worker: 0, rank: 2}"), ElementsAre(Culprit{"data", 2, 0, ""}));
  EXPECT_THAT(culprit("culprit: {rank: 2, worker: 0}"), ElementsAre(Culprit{"data", 2, 0, ""}));
  EXPECT_THAT(culprit("culprit: {storage: checkpoint}"),
              ElementsAre(Culprit{"storage", {}, {}, "checkpoint"}));
  EXPECT_THAT(culprit("culprit: {node: n1}"), ElementsAre(Culprit{"node", {}, {}, "n1"}));
  EXPECT_THAT(culprit("culprits: [{rank: 0}, {rank: 2}]"),
              ElementsAre(Culprit{"rank", 0, {}, ""}, Culprit{"rank", 2, {}, ""}));
}

// --- One thing wrong

struct BadCase {
  const char* name;
  const char* from;  // in kGood
  const char* to;
  const char* problem;  // the one description, without "test.yaml:"
};

class BadInput : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadInput, IsReportedWhereItStands) {
  const BadCase& c = GetParam();
  const ParsedScenario parsed = Parse(Good(c.from, c.to));
  EXPECT_FALSE(parsed.scenario);
  EXPECT_THAT(Described(parsed.problems),
              ElementsAre(HasSubstr(std::string("test.yaml:") + c.problem)));
}

constexpr BadCase kBadCases[] = {
    // Keys.
    {"UnknownKey", "  steps: 60", "  stepz: 60",
     "6:3: unknown key 'stepz' in job (did you mean 'steps'?)"},
    {"UnknownKeyAtTheTop",
     "classes:", "clases:", "3:1: unknown key 'clases' (did you mean 'classes'?)"},
    {"UnknownKeyWithoutANeighbour", "  steps: 60", "  steps: 60\n  colour: red",
     "7:3: unknown key 'colour' in job"},
    {"DuplicateKey", "  step_time: 20ms", "  steps: 61",
     "7:3: duplicate key 'steps': it stands in line 6 already"},
    {"DuplicateKeyAtTheTop", "classes: [C02]", "name: other",
     "3:1: duplicate key 'name': it stands in line 1 already"},
    {"MissingKey", "summary: A rank is killed.\n", "", "1:1: the key 'summary' is missing"},
    {"MissingNestedKey", "  outcome: recovers\n", "",
     "17:3: the key 'outcome' is missing in expect"},
    {"MissingStep", "step: 39, ", "", "15:9: the key 'step' is missing in faults.0.at"},
    {"NoValue", "  steps: 60", "  steps:", "6:3: job.steps has no value"},
    {"KeyThatIsNoWord", "  steps: 60", "  [1, 2]: 60", "6:3: a key must be a word, not a list"},
    // Types and units.
    {"WrongType", "  steps: 60", "  steps: many",
     "6:10: job.steps: must be a whole number, not 'many'"},
    {"QuotedNumber", "  steps: 60", "  steps: \"60\"",
     "6:10: job.steps: must be a whole number, not '60'"},
    {"ListForANumber", "  steps: 60", "  steps: [60]",
     "6:10: job.steps: must be a whole number, not a list"},
    {"FractionForAWholeNumber", "  steps: 60", "  steps: 60.5",
     "6:10: job.steps: must be a whole number, not '60.5'"},
    {"TextForAGroup", "  checkpoint: {every: 10, mode: async, keep: 3}", "  checkpoint: often",
     "8:15: job.checkpoint must be a group of keys, not 'often'"},
    {"GroupForAList", "faults:\n  - inject", "faults:\n    inject",
     "13:5: faults must be a list, not a group of keys"},
    {"MissingUnit", "step_time: 20ms", "step_time: 20",
     "7:14: job.step_time: '20' is not a duration: the unit is missing"},
    {"UnknownUnit", "step_time: 20ms", "step_time: 20msec",
     "7:14: job.step_time: '20msec' is not a duration: the unit 'msec' is unknown"},
    {"SizeWithoutUnit", "step_time: 20ms", "bucket_size: 65536",
     "7:16: job.bucket_size: '65536' is not a size: the unit is missing"},
    {"NegativeDuration", "step_time: 20ms", "step_time: -20ms",
     "7:14: job.step_time: '-20ms' is not a duration: it is negative"},
    {"HugeDuration", "step_time: 20ms", "step_time: 1e300h",
     "7:14: job.step_time: '1e300h' is not a duration: it is too large"},
    // Impossible values.
    {"Zero", "ranks: 3", "ranks: 0", "5:10: job.ranks: 0 is too small: it must be at least 1"},
    {"Negative", "  steps: 60", "  steps: -1",
     "6:10: job.steps: -1 is too small: it must be at least 1"},
    {"HugeNumber", "  steps: 60", "  steps: 99999999999999999999",
     "6:10: job.steps: 99999999999999999999 is too large"},
    {"NotANumber", "  step_time: 20ms", "  dropout: .nan",
     "7:12: job.dropout: must be a number, not '.nan'"},
    {"Infinity", "  step_time: 20ms", "  dropout: inf",
     "7:12: job.dropout: must be a number, not 'inf'"},
    {"DropoutOfOne", "  step_time: 20ms", "  dropout: 1.0",
     "7:12: job.dropout: 1.0 is too large: it must be at most 0.99"},
    {"EmptyList", "  step_time: 20ms", "  hidden: []", "7:11: job.hidden must not be empty"},
    {"BadElement", "  step_time: 20ms", "  hidden: [256, 0]",
     "7:17: job.hidden: 0 is too small: it must be at least 1"},
    {"StepZero", "step: 39", "step: 0", "15:25: faults.0.at.step: 0 is too small"},
    {"BatchLargerThanTheData", "  step_time: 20ms", "  micro_batch: 60000",
     "5:3: a step needs 360000 samples"},
    {"BadName", "name: rank_killed", "name: a b/c", "1:7: name: 'a b/c' is not a name"},
    {"FaultThatNeedsItsHold", "at: {rank: 1", "hold: none\n    at: {rank: 1",
     "15:11: faults.0.hold: rank.kill acts from outside while its target is held"},
    // Names.
    {"UnknownFault", "rank.kill", "rank.kil",
     "13:13: faults.0.inject: unknown fault 'rank.kil' (did you mean 'rank.kill'?)"},
    {"UnknownPoint", "collective.enter", "collective.entr",
     "15:36: faults.0.at.point: unknown point 'collective.entr' (did you mean "
     "'collective.enter'?)"},
    {"PointOfAnotherFault", "collective.enter", "worker.read",
     "15:36: rank.kill cannot be injected at worker.read"},
    {"UnknownMechanism", "mechanism: killed", "mechanism: kiled",
     "18:46: expect.diagnosis.mechanism: unknown mechanism 'kiled' (did you mean 'killed'?)"},
    {"UnknownClass", "[C02]", "[C99]",
     "3:11: classes: unknown failure class 'C99' (did you mean 'C09'?)"},
    {"UnknownOutcome", "outcome: recovers", "outcome: recover",
     "17:12: expect.outcome: unknown outcome 'recover' (did you mean 'recovers'?)"},
    {"UnknownPolicy", "policy: group", "policy: gruop",
     "11:21: job.restart.policy: unknown restart policy 'gruop' (did you mean 'group'?)"},
    {"UnknownMode", "mode: async", "mode: later",
     "8:33: job.checkpoint.mode: unknown checkpoint mode 'later': it is one of sync, async"},
    {"UnknownDataSet", "  step_time: 20ms", "  data: digit",
     "7:9: unknown data set 'digit', and no directory of that name either (did you mean "
     "'digits'?)"},
    {"UnknownTimeout", "  detected: {within: 1s}", "  timeout: {fires: wachdog}",
     "19:20: expect.timeout.fires: unknown timeout 'wachdog' (did you mean 'watchdog'?)"},
    {"UnknownParameter", "with: {signal: KILL}", "with: {sgnal: KILL}",
     "14:12: unknown key 'sgnal' in faults.0.with (did you mean 'signal'?)"},
    {"UnknownChoice", "signal: KILL", "signal: KIL",
     "14:20: faults.0.with.signal: unknown signal 'KIL' (did you mean 'KILL'?)"},
    {"UnknownCheck", "classes: [C02]",
     "waive: [{check: resume_equl, reason: r, until: 2027-01-31}]",
     "3:17: waive.0.check: unknown check 'resume_equl' (did you mean 'resume_equal'?)"},
    {"BadDate", "classes: [C02]", "waive: [{check: detected, reason: r, until: 2027-02-30}]",
     "3:45: waive.0.until: must be a date like 2027-01-31, not '2027-02-30'"},
    // Ranks and workers.
    {"RankOutsideTheJob", "at: {rank: 1", "at: {rank: 3",
     "15:16: rank 3 is outside the job: the job has 3 ranks, 0 to 2"},
    {"RankInAListOutsideTheJob", "at: {rank: 1", "at: {rank: [0, 7]",
     "15:20: rank 7 is outside the job"},
    {"RankTwice", "at: {rank: 1", "at: {rank: [1, 1]",
     "15:20: faults.0.at.rank: rank 1 stands there twice"},
    {"NegativeRank", "at: {rank: 1", "at: {rank: -1",
     "15:16: faults.0.at.rank: -1 is too small: it must be at least 0"},
    {"RankWord", "at: {rank: 1", "at: {rank: every",
     "15:16: faults.0.at.rank must be a number, a list of numbers, any, last or all, not 'every'"},
    {"CulpritOutsideTheJob", "culprit: {rank: 1}", "culprit: {rank: 5}",
     "18:31: rank 5 is outside the job"},
    {"WorkerOfARankFault", "at: {rank: 1", "at: {rank: 1, worker: 0",
     "15:27: rank.kill acts on a rank, not on one of its data workers"},
    // Contradictions.
    {"CulpritOfTwoKinds", "culprit: {rank: 1}", "culprit: {rank: 1, node: a}",
     "18:24: expect.diagnosis.culprit must be one of"},
    {"CulpritAndCulprits", "culprit: {rank: 1}", "culprit: {rank: 1}, culprits: [{rank: 2}]",
     "18:45: culprit and culprits say the same"},
    {"ToleranceWithoutDegrades", "  detected: {within: 1s}", "  tolerance: {weights: 1e-5}",
     "19:14: expect.tolerance belongs to the outcome degrades, not to recovers"},
    {"NoSuchCheckpoint", "from: 30", "from: 35", "20:18: there is no checkpoint of step 35"},
    {"WatchdogThatIsOff", "  detected: {within: 1s}", "  timeout: {fires: watchdog}",
     "19:20: the watchdog cannot fire: job.watchdog is off"},
    {"RecoveryWithoutRestarts", "policy: group", "policy: none",
     "17:12: the job cannot recover: job.restart.policy is none"},
    {"CheckWithoutVerdict", "  detected: {within: 1s}", "  check: detected",
     "19:10: expect.check needs expect.verdict"},
    {"FailWithoutCheck", "  detected: {within: 1s}", "  verdict: FAIL",
     "19:12: an expected FAIL needs expect.check"},
    {"UntilOfAFaultThatEndsByItself", "    with: {signal: KILL}",
     "    until: save_failed\n    for: 2s",
     "15:10: rank.kill ends with the process that it acts on"},
    {"SamePlaceTwice", "expect:\n",
     "  - inject: rank.stall\n    at: {rank: any, step: 39}\nexpect:\n",
     "17:9: the same place as that of faults.0"},
    // YAML itself.
    {"Tab", "  steps: 60", "\tsteps: 60", "6:1: a tab in the indentation"},
    {"SyntaxError", "classes: [C02]", "classes: [C02", "4:4: not YAML: "},
    {"SecondDocument", "expect:\n", "expect:\n  outcome: recovers\n---\nname: x\n",
     "18:1: a second document: one file, one scenario"},
    {"Tag", "  steps: 60", "  steps: !!int 60", "6:10: a type tag"},
};

INSTANTIATE_TEST_SUITE_P(Parse, BadInput, ::testing::ValuesIn(kBadCases),
                         [](const auto& bad) { return std::string(bad.param.name); });

// --- Many things wrong

TEST(Parse, ReportsAllProblemsOfAFileInTheOrderOfTheirPlaces) {
  const auto parsed = Parse(R"(name: x
sumary: y
job:
  ranks: 2
  ranks: 4
  step_time: 20
  checkpoint: {evry: 10, keep: 0}
faults:
  - inject: rank.kil
    at: {rank: 9, step: 3}
  - inject: rank.kill
    at: {rank: 5, step: 3, point: nowhere}
expect:
  outcome: maybe
  diagnosis: {mechanism: vanished}
)");
  EXPECT_FALSE(parsed.scenario);
  EXPECT_THAT(
      Described(parsed.problems),
      ElementsAre(HasSubstr(":1:1: the key 'summary' is missing"),
                  HasSubstr(":2:1: unknown key 'sumary'"), HasSubstr(":5:3: duplicate key 'ranks'"),
                  HasSubstr(":6:14: job.step_time"), HasSubstr(":7:16: unknown key 'evry'"),
                  HasSubstr(":7:32: job.checkpoint.keep"), HasSubstr(":9:13: faults.0.inject"),
                  HasSubstr(":12:16: rank 5 is outside the job"),
                  HasSubstr(":12:35: faults.1.at.point"), HasSubstr(":14:12: expect.outcome"),
                  HasSubstr(":15:26: expect.diagnosis.mechanism")));
}

TEST(Parse, CountsColumnsInCharacters) {
  const auto parsed =
      Parse(Good("summary: A rank is killed.", "summary: \"ä ö ü\"\nclasses: {ä: C02}"));
  ASSERT_FALSE(parsed.problems.empty());
  const auto inside = Parse(Good("  checkpoint: {every: 10", "  checkpoint: {\"ä\": 1, evry: 10"));
  EXPECT_THAT(Described(inside.problems), ElementsAre(HasSubstr(":8:16: unknown key 'ä'"),
                                                      HasSubstr(":8:24: unknown key 'evry'")));
}

// --- Files that are no scenarios

TEST(Parse, RefusesAnAliasWithoutExpandingIt) {
  std::string bomb =
      "name: x\nsummary: y\nexpect: {outcome: unaffected}\na: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'z'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i) bomb += (i > 0 ? ", *" : "*") + before;
    bomb += "]\n";
  }
  const auto parsed = Parse(bomb);
  EXPECT_FALSE(parsed.scenario);
  EXPECT_THAT(Described(parsed.problems), ::testing::Contains(HasSubstr(":5:8: an alias")));
}

TEST(Parse, ReportsEveryAliasAndWhatElseIsWrong) {
  const auto parsed = Parse(
      "name: x\nsummary: y\nexpect: {outcome: unaffectd}\na: &a [x]\nb: &b [*a, *a]\n"
      "job: {steps: *b, ranks: 0}\n");
  EXPECT_THAT(Described(parsed.problems),
              ElementsAre(HasSubstr(":3:19: expect.outcome"), HasSubstr(":4:1: unknown key 'a'"),
                          HasSubstr(":5:1: unknown key 'b'"), HasSubstr(":5:8: an alias ('*name')"),
                          HasSubstr(":5:12: an alias too"), HasSubstr(":6:14: an alias too"),
                          HasSubstr(":6:25: job.ranks: 0 is too small")));
}

TEST(Parse, RefusesAMergeKey) {
  const auto parsed = Parse(Good("  steps: 60", "  <<: *base"));
  EXPECT_FALSE(parsed.scenario);
  const auto anchored =
      Parse(std::string("base: &base {steps: 5}\n") + Good("  steps: 60", "  <<: *base"));
  EXPECT_THAT(Described(anchored.problems), ::testing::Contains(HasSubstr(":7:7: an alias")));
}

TEST(Parse, RefusesWhatIsNestedTooDeeply) {
  for (const char* const open : {"[", "{a: ", "- "}) {
    std::string text = "name: ";
    if (std::string_view(open) == "- ") text = "";
    for (int i = 0; i < 5000; ++i) text += open;
    const auto parsed = Parse(text);
    EXPECT_FALSE(parsed.scenario);
    EXPECT_EQ(parsed.problems.size(), 1U) << open;
  }
}

TEST(Parse, RefusesMoreValuesThanAnyScenarioHas) {
  std::string text = "name: x\nclasses: [";
  for (int i = 0; i < 100'000; ++i) text += "C02, ";
  const auto parsed = Parse(text + "C02]\n");
  EXPECT_THAT(Described(parsed.problems), ElementsAre(HasSubstr("more than 20000 values")));
}

TEST(Parse, RefusesBinaryInput) {
  EXPECT_THAT(Described(Parse(std::string("name: x\n\0y: 1\n", 14)).problems),
              ElementsAre(HasSubstr(":2:1: not a text file in UTF-8")));
  EXPECT_THAT(Described(Parse("name: \xff\xfe\n").problems),
              ElementsAre(HasSubstr(":1:7: not a text file in UTF-8")));
  std::string noise;
  for (int i = 0; i < 4096; ++i) noise += static_cast<char>((i * 7919 + (i >> 3)) & 0xFF);
  EXPECT_THAT(Described(Parse(noise).problems), ElementsAre(HasSubstr("not a text file")));
}

TEST(Parse, RefusesAnEmptyFile) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "null\n"}) {
    const auto parsed = Parse(text);
    EXPECT_FALSE(parsed.scenario);
    EXPECT_THAT(Described(parsed.problems), ElementsAre("test.yaml: the file is empty; a scenario "
                                                        "has at least name, summary and expect"))
        << text;
  }
}

TEST(Parse, RefusesWhatIsNoGroupOfKeys) {
  EXPECT_THAT(Described(Parse("just words\n").problems),
              ElementsAre("test.yaml:1:1: a scenario must be a group of keys, not 'just words'"));
  EXPECT_THAT(Described(Parse("- a\n- b\n").problems),
              ElementsAre("test.yaml:1:1: a scenario must be a group of keys, not a list"));
}

TEST(Parse, RefusesFilesThatCannotBeRead) {
  const TemporaryFolder folder;
  for (const fs::path& path : {folder.path() / "missing.yaml", folder.path()}) {
    const auto parsed = ParseScenarioFile(path);
    EXPECT_FALSE(parsed.scenario);
    ASSERT_EQ(parsed.problems.size(), 1U);
    EXPECT_EQ(parsed.problems[0].file, path);
    EXPECT_EQ(parsed.problems[0].line, 0);
  }
  const fs::path huge = folder.Write("huge.yaml", std::string(2 << 20, '#'));
  EXPECT_EQ(ParseScenarioFile(huge).problems.size(), 1U);
}

TEST(Parse, ReadsAByteOrderMarkAndWindowsLineEnds) {
  std::string text = "\xEF\xBB\xBF";
  for (const char c : std::string_view(kGood))
    text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const auto parsed = Parse(text);
  EXPECT_THAT(Described(parsed.problems), ElementsAre());
}

// Whatever a slip of a keyboard or a damaged disk makes of a scenario: an answer, never a crash,
// and a scenario exactly when there is no problem.
TEST(Parse, AnswersEveryMutationOfAScenario) {
  constexpr std::string_view kSyntax = "{}[]:,&*!|>'\"%@`#-?\n";
  Random random(1, "mutations");
  int valid = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = kGood;
    const uint64_t changes = 1 + random.Below(4);
    for (uint64_t n = 0; n < changes; ++n) {
      const size_t at = random.Below(text.size());
      switch (random.Below(4)) {
        case 0:
          text.erase(at, 1 + random.Below(20));
          break;
        case 1:
          text.insert(at, 1, static_cast<char>(random.Below(256)));
          break;
        case 2:
          text.insert(at, 1, kSyntax[random.Below(kSyntax.size())]);
          break;
        default:
          text.insert(at, text.substr(random.Below(text.size()), random.Below(40)));
      }
    }
    const auto parsed = Parse(text);
    EXPECT_EQ(parsed.scenario.has_value(), parsed.problems.empty()) << text;
    valid += parsed.scenario ? 1 : 0;
  }
  EXPECT_GT(valid, 0);
  EXPECT_LT(valid, 1500);
}

// --- Other sources

TEST(Set, ChangesTheTreeBeforeItIsChecked) {
  const auto parsed = Parse(kGood, {.sets = {"faults.0.at.rank=[0, 2]", "job.timeouts.startup=9s",
                                             "job.hidden=[32]", "expect.restarts=1"}});
  ASSERT_THAT(Described(parsed.problems), ElementsAre());
  EXPECT_THAT(parsed.scenario->faults[0].target.ranks, ElementsAre(0, 2));
  EXPECT_EQ(parsed.scenario->job.startup_timeout, seconds(9));
  EXPECT_THAT(parsed.scenario->job.hidden, ElementsAre(32));
  EXPECT_EQ(parsed.scenario->expect.restarts, 1);
}

TEST(Set, LaterOnesWin) {
  const auto parsed = Parse(kGood, {.sets = {"job.steps=50", "job.steps=55"}});
  ASSERT_TRUE(parsed.scenario);
  EXPECT_EQ(parsed.scenario->job.steps, 55);
}

TEST(Set, ProblemsPointAtTheOption) {
  const auto problem = [](const std::string& set) {
    const auto parsed = Parse(kGood, {.sets = {set}});
    EXPECT_FALSE(parsed.scenario) << set;
    return parsed.problems.empty() ? "" : Describe(parsed.problems.front());
  };
  EXPECT_EQ(problem("job.stepz=5"),
            "--set job.stepz=5: unknown key 'stepz' in job (did you mean 'steps'?)");
  EXPECT_THAT(problem("job.step_time=5"),
              HasSubstr("--set job.step_time=5: job.step_time: '5' is not"));
  EXPECT_THAT(problem("faults.0.at.rank=7"),
              HasSubstr("--set faults.0.at.rank=7: rank 7 is outside"));
  EXPECT_THAT(problem("faults.4.at.rank=1"), HasSubstr("no element '4': the list has 1"));
  EXPECT_THAT(problem("faults.x.at.rank=1"), HasSubstr("no element 'x'"));
  EXPECT_THAT(problem("name.deeper=1"), HasSubstr("there is no key 'deeper' below 'rank_killed'"));
  EXPECT_THAT(problem("job..steps=1"), HasSubstr("an empty key"));
  EXPECT_THAT(problem("job.steps"), HasSubstr("must be PATH=VALUE"));
  EXPECT_THAT(problem("=3"), HasSubstr("must be PATH=VALUE"));
  EXPECT_THAT(problem("job.steps=[1"), HasSubstr("not YAML"));
  EXPECT_THAT(problem("job.steps="), HasSubstr("job.steps has no value"));
  EXPECT_THAT(problem("job.steps=*x"), HasSubstr("--set job.steps=*x: not YAML"));
}

TEST(Set, ProblemsInsideAValueSayWhereInTheOption) {
  const auto problem = [](const std::string& set) {
    const auto parsed = Parse(kGood, {.sets = {set}});
    EXPECT_FALSE(parsed.scenario) << set;
    return parsed.problems.empty() ? Problem() : parsed.problems.front();
  };
  EXPECT_EQ(Describe(problem("job={steps: 60, steps: 60}")),
            "--set job={steps: 60, steps: 60}, character 17: duplicate key 'steps': it stands at "
            "character 6 already");
  EXPECT_THAT(Describe(problem("job={seed: 1,\n ränks: 3, rank: 4}")),
              HasSubstr(", character 16: unknown key 'ränks' in job"));
  EXPECT_THAT(Describe(problem("faults.0.at={rank: 1, step: 39, point: [}")),
              HasSubstr(", character 41: not YAML"));
  const Json json = ToJson(problem("job={steps: 60, steps: 60}"));
  EXPECT_EQ(json["column"], 17);
  EXPECT_TRUE(json["line"].is_null());
}

TEST(JobFile, IsReadRelativeToTheScenarioAndItsKeysCanBeReplaced) {
  const TemporaryFolder folder;
  folder.Write("job.yaml", "steps: 20\nranks: 2\ncheckpoint: {every: 5, keep: 2}\n");
  const fs::path path =
      folder.Write("s.yaml",
                   "name: s\nsummary: t\njob: {file: job.yaml, ranks: 4, checkpoint: {keep: 7}}\n"
                   "expect: {outcome: unaffected}\n");
  const auto parsed = ParseScenarioFile(path);
  ASSERT_THAT(Described(parsed.problems), ElementsAre());
  EXPECT_EQ(parsed.scenario->job.steps, 20);
  EXPECT_EQ(parsed.scenario->job.ranks, 4);
  EXPECT_EQ(parsed.scenario->job.checkpoint.every, 5);
  EXPECT_EQ(parsed.scenario->job.checkpoint.keep, 7);
}

TEST(JobFile, ProblemsInItAreItsOwn) {
  const TemporaryFolder folder;
  const fs::path job = folder.Write("job.yaml", "steps: 20\nrnks: 2\n");
  const fs::path path = folder.Write(
      "s.yaml", "name: s\nsummary: t\njob: {file: job.yaml}\nexpect: {outcome: unafected}\n");
  EXPECT_THAT(
      Described(ParseScenarioFile(path).problems),
      ElementsAre(HasSubstr("s.yaml:4:19: expect.outcome"),
                  HasSubstr("job.yaml:2:1: unknown key 'rnks' in job (did you mean 'ranks'?)")));
}

TEST(JobFile, ThatIsMissingIsReportedWhereItIsNamed) {
  const auto parsed = Parse(Good("  ranks: 3", "  file: nowhere.yaml"));
  EXPECT_THAT(Described(parsed.problems),
              ElementsAre(HasSubstr("test.yaml:5:9: the job file cannot be read")));
}

TEST(JobFile, OfTheOptionReplacesTheJob) {
  const TemporaryFolder folder;
  const fs::path job = folder.Write("other.yaml", "steps: 50\nranks: 2\n");
  const auto parsed = Parse(kGood, {.job_file = job, .sets = {"job.seed=9"}});
  ASSERT_THAT(Described(parsed.problems), ElementsAre());
  EXPECT_EQ(parsed.scenario->job.steps, 50);
  EXPECT_EQ(parsed.scenario->job.seed, 9U);
  EXPECT_EQ(parsed.scenario->job.step_time, JobConfig().step_time);
}

TEST(Data, ADirectoryWithoutAnIdxPairIsAProblem) {
  const TemporaryFolder folder;
  const auto parsed = Parse(kGood, {.sets = {"job.data=" + folder.path().string()}});
  EXPECT_THAT(Described(parsed.problems), ElementsAre(HasSubstr("has no file images-idx3-ubyte")));
  folder.Write("images-idx3-ubyte", "x");
  folder.Write("labels-idx1-ubyte", "x");
  const auto damaged = Parse(kGood, {.sets = {"job.data=" + folder.path().string()}});
  EXPECT_THAT(Described(damaged.problems), ElementsAre(HasSubstr("is not an IDX file of labels")));
}

// --- Warnings

TEST(Warning, APlaceThatIsNeverReachedIsNoProblem) {
  const auto warning = [](const char* from, const char* to) -> std::string {
    const auto parsed = Parse(Good(from, to));
    EXPECT_TRUE(parsed.scenario) << to;
    return parsed.warnings.size() == 1 ? Describe(parsed.warnings[0]) : "";
  };
  EXPECT_THAT(warning("step: 39", "step: 61"),
              HasSubstr("test.yaml:15:25: step 61 is never reached: the job ends with 60"));
  EXPECT_THAT(warning("step: 39, point: collective.enter", "step: 39, point: checkpoint.write"),
              HasSubstr("there is no checkpoint of step 39"));
  EXPECT_THAT(warning("point: collective.enter", "point: step.end, occurrence: 2"),
              HasSubstr("occurrence 2 of step.end is never reached"));
  EXPECT_THAT(warning("point: collective.enter", "point: forward.begin, occurrence: 3"),
              HasSubstr("a step passes it 2 times"));
  EXPECT_THAT(warning("at: {rank: 1", "at: {attempt: 4, rank: 1"),
              HasSubstr("attempt 4 is never started"));
  EXPECT_THAT(warning("committed: 30", "committed: 40"),
              HasSubstr("no checkpoint of step 40 is published before step 39"));
}

}  // namespace
}  // namespace shakedown
