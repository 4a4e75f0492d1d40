// What holds for every detector of the catalogue, and for every mechanism that one may name.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "analysis/diagnosis/combine.h"
#include "analysis/diagnosis/detector.h"
#include "analysis/diagnosis/patterns.h"
#include "harness/base/random.h"
#include "tests/analysis/diagnosis/observed_builder.h"

namespace shakedown::diagnosis {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::set<std::string> Mechanisms() {
  std::set<std::string> names;
#define SHAKEDOWN_MECHANISM(name, sentence) names.insert(#name);
#include "harness/wire/mechanisms.def"
#undef SHAKEDOWN_MECHANISM
  return names;
}

std::string Text(const Findings& findings) {
  std::ostringstream text;
  for (const Hypothesis& h : findings.hypotheses) {
    text << h.mechanism << DescribeCulprits(h.culprits) << h.confidence << h.reasons.size();
  }
  text << findings.links.size() << findings.suffered.size() << findings.unexplained.size();
  return text.str();
}

std::vector<ObservedEvidence> BrokenJobs() {
  using namespace test_support;  // NOLINT: the ways to break a job
  return {RankKilled(3, 1).Build(),   RankNotJoined(3, 1).Build(), HangWatchdog(3, 1).Build(),
          NeverReturns(3, 1).Build(), DiskFull(3, 1).Build(),      SlowWorker(3, 1, 0).Build(),
          OutOfMemory(3, 1).Build()};
}

class EveryDetector : public ::testing::TestWithParam<const Detector*> {};
INSTANTIATE_TEST_SUITE_P(Contract, EveryDetector,
                         ::testing::ValuesIn(Detectors().begin(), Detectors().end()),
                         [](const auto& detector) { return std::string(detector.param->name); });

TEST_P(EveryDetector, DeclaresItself) {
  EXPECT_THAT(std::string(GetParam()->reads), Not(IsEmpty()));
  EXPECT_TRUE(std::string(GetParam()->says).ends_with('.'));
}

TEST_P(EveryDetector, SaysNothingAboutNoEvidence) {
  EXPECT_THAT(GetParam()->detect(ObservedEvidence{}).hypotheses, IsEmpty());
}

TEST_P(EveryDetector, SaysNothingAboutAHealthyJob) {
  const Findings findings = GetParam()->detect(test_support::Healthy(3).Build());
  EXPECT_THAT(findings.hypotheses, IsEmpty());
  EXPECT_THAT(findings.suffered, IsEmpty());
  EXPECT_THAT(findings.unexplained, IsEmpty());
}

TEST_P(EveryDetector, SaysSomethingAboutSomeBrokenJob) {
  size_t hypotheses = 0;
  for (const ObservedEvidence& job : BrokenJobs()) {
    hypotheses += GetParam()->detect(job).hypotheses.size();
  }
  EXPECT_GT(hypotheses, 0u);
}

TEST_P(EveryDetector, IsPure) {
  for (const ObservedEvidence& job : BrokenJobs()) {
    EXPECT_EQ(Text(GetParam()->detect(job)), Text(GetParam()->detect(job)));
  }
}

TEST_P(EveryDetector, SpeaksOfKnownMechanismsWithReasonsAndDoubt) {
  for (const ObservedEvidence& job : BrokenJobs()) {
    for (const Hypothesis& h : GetParam()->detect(job).hypotheses) {
      EXPECT_TRUE(Mechanisms().contains(h.mechanism)) << h.mechanism;
      EXPECT_THAT(h.reasons, Not(IsEmpty())) << h.mechanism;
      EXPECT_GT(h.confidence, 0) << h.mechanism;
      EXPECT_LT(h.confidence, 1) << h.mechanism;
      for (const Reason& reason : h.reasons) EXPECT_FALSE(reason.where.file.empty());
    }
  }
}

// Somebody else's bytes in the fields that detectors read.
TEST_P(EveryDetector, SurvivesNonsense) {
  Random random(7);
  const Json nonsense[] = {nullptr,
                           "x",
                           -1,
                           1e300,
                           UINT64_MAX,
                           Json::array({Json::object(), -7}),
                           Json::object({{"rank", "one"}}),
                           std::string("\xff\x1b[2J", 5)};
  for (int round = 0; round < 30; ++round) {
    for (ObservedEvidence job : BrokenJobs()) {
      const auto any = [&] { return nonsense[random.Below(std::size(nonsense))]; };
      for (Event& event : job.events) {
        for (auto& [key, value] : event.fields.items()) {
          if (random.Below(4) == 0) value = any();
        }
        if (random.Below(8) == 0) event.t.ns = static_cast<int64_t>(random.Below(1ull << 40));
      }
      for (AttemptEvidence& attempt : job.attempts) {
        if (random.Below(4) == 0) attempt.started.reset();
        for (LogLine& line : attempt.launcher) {
          for (const char* key : {"behind", "missing", "rank", "code", "signal", "by"}) {
            if (random.Below(4) == 0) line.fields[key] = any();
          }
        }
        for (ProcessEvidence& rank : attempt.ranks) {
          if (random.Below(4) == 0) rank.stacks.assign(random.Below(300), '#');
          for (LogLine& line : rank.log) {
            for (const char* key : {"worker", "errno", "collective", "exit_code"}) {
              if (random.Below(4) == 0) line.fields[key] = any();
            }
          }
        }
      }
      for (PageSample& page : job.pages) {
        if (random.Below(8) == 0) page.lanes.clear();
        if (random.Below(8) == 0) page.collectives_enqueued = INT64_MAX;
        if (random.Below(8) == 0) page.rank = -5;
      }
      for (ProcessExit& exit : job.exits) {
        if (random.Below(8) == 0) exit.code.reset();
        if (random.Below(8) == 0) exit.attempt = 99;
      }
      const Findings findings = GetParam()->detect(job);
      const Diagnosis diagnosis = Combine(job, {findings});
      EXPECT_TRUE(Mechanisms().contains(diagnosis.mechanism));
      EXPECT_TRUE(DiagnosisFromJson(*ParseJson(DumpJson(ToJson(diagnosis)))));
    }
  }
}

TEST(DetectorSources, ReadNothingThatKnowsThePlan) {
  const fs::path folder = fs::path(SHAKEDOWN_SOURCE_DIR) / "analysis/diagnosis";
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".cc" && extension != ".h" && extension != ".def") continue;
    ++files;
    const std::string text = ReadText(entry.path());
    for (const char* secret : {"evidence/secret.h", "#include \"injectors/", "injected()",
                               "run_json()", "journal()", "undone()", "verdict()"}) {
      EXPECT_EQ(text.find(secret), std::string::npos) << entry.path() << " names " << secret;
    }
  }
  EXPECT_GT(files, 10);
}

TEST(DetectorSources, EveryRunbookThatIsNamedIsThere) {
  const fs::path pages = fs::path(SHAKEDOWN_SOURCE_DIR) / "analysis/runbooks";
  int named = 0;
  for (const std::string& mechanism : Mechanisms()) {
    const std::string_view page = RunbookOf(mechanism);
    if (page.empty()) continue;
    ++named;
    EXPECT_TRUE(fs::exists(pages / page)) << mechanism << " names " << page;
  }
  EXPECT_GT(named, 0);
  EXPECT_TRUE(fs::exists(pages / "collective_never_returns.md"));
}

}  // namespace
}  // namespace shakedown::diagnosis
