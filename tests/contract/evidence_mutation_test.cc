// Evidence that lies: what somebody, or a broken disk, did to a saved run may take a verdict away;
// it never makes one better, never ends or stops the judge, and never leads it out of the run.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "analysis/verdict/verdict.h"
#include "harness/base/file.h"
#include "harness/base/random.h"
#include "tests/support/run_dir_builder.h"
#include "tests/support/temp_dir.h"

namespace shakedown::test_support {
namespace {

namespace fs = std::filesystem;

// What `check` says; nullopt: the folder is no run directory any more, which is no verdict at all.
std::optional<Verdict> VerdictOf(const fs::path& folder) {
  const Result<RunVerdict> verdict = Judge(RunDir(folder));
  return verdict ? std::optional(verdict->verdict) : std::nullopt;
}

std::vector<fs::path> FilesOf(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), folder));
  }
  std::sort(files.begin(), files.end());
  return files;
}

void Write(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

// --- After the seal: whatever is done to a file, the seal says so
// ---------------------------------

struct FileMutation {
  std::string name;
  // `outside`: an existing file that is not the run's.
  std::function<void(const fs::path& file, const fs::path& outside)> apply;
};

void FlipBit(const fs::path& file, double where) {
  std::string bytes = ReadFile(file).value();
  ASSERT_FALSE(bytes.empty()) << file;
  const auto at = static_cast<size_t>(where * static_cast<double>(bytes.size() - 1));
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  Write(file, bytes);
}

const std::vector<FileMutation>& FileMutations() {
  static const std::vector<FileMutation> kMutations = {
      {"missing", [](const fs::path& file, const fs::path&) { fs::remove(file); }},
      {"empty", [](const fs::path& file, const fs::path&) { fs::resize_file(file, 0); }},
      {"half",
       [](const fs::path& f, const fs::path&) { fs::resize_file(f, fs::file_size(f) / 2); }},
      {"one byte less",
       [](const fs::path& f, const fs::path&) { fs::resize_file(f, fs::file_size(f) - 1); }},
      {"one byte more",
       [](const fs::path& file, const fs::path&) { std::ofstream(file, std::ios::app) << " "; }},
      {"first bit", [](const fs::path& file, const fs::path&) { FlipBit(file, 0); }},
      {"a bit", [](const fs::path& file, const fs::path&) { FlipBit(file, 0.6); }},
      {"last bit", [](const fs::path& file, const fs::path&) { FlipBit(file, 1); }},
      {"binary",
       [](const fs::path& file, const fs::path&) {
         Write(file, {"\0\xff\x80{\x01", 5});
       }},
      {"huge", [](const fs::path& f, const fs::path&) { fs::resize_file(f, uintmax_t{64} << 30); }},
      {"symbolic link",
       [](const fs::path& file, const fs::path& outside) {
         fs::remove(file);
         fs::create_symlink(outside, file);
       }},
      {"FIFO",
       [](const fs::path& file, const fs::path&) {
         fs::remove(file);
         ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
       }},
      {"directory",
       [](const fs::path& file, const fs::path&) {
         fs::remove(file);
         fs::create_directory(file);
       }},
  };
  return kMutations;
}

class AfterTheSeal : public ::testing::TestWithParam<FileMutation> {};

TEST_P(AfterTheSeal, NoFileOfARunCanBeChangedUnnoticed) {
  const TempDir sound;
  RunDirBuilder::RankKilled().WriteTo(sound.path());
  ASSERT_EQ(VerdictOf(sound.path()), Verdict::kPass);
  const TempDir elsewhere;
  const fs::path outside = elsewhere.path() / "outside";
  const std::vector<fs::path> files = FilesOf(sound.path());
  ASSERT_GE(files.size(), 24u);
  for (const fs::path& file : files) {
    // The same bytes, so that a judge who followed the link would find nothing wrong with them.
    fs::copy_file(sound.path() / file, outside, fs::copy_options::overwrite_existing);
    const TempDir copy;
    fs::copy(sound.path(), copy.path(), fs::copy_options::recursive);
    GetParam().apply(copy.path() / file, outside);
    const std::optional<Verdict> verdict = VerdictOf(copy.path());
    // A blank more is no other seal.
    const bool blank = GetParam().name == "one byte more";
    if (blank && (file == "seal.json" || file == "journal.jsonl")) continue;
    // run.json and seal.json are what makes it a run and sealed.
    const bool refused = !verdict && (file == "run.json" || file == "seal.json");
    EXPECT_TRUE(refused || verdict == Verdict::kInconclusive || verdict == Verdict::kError)
        << file << ": " << (verdict ? ToString(*verdict) : "no run directory");
  }
  EXPECT_EQ(FilesOf(elsewhere.path()).size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, AfterTheSeal, ::testing::ValuesIn(FileMutations()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

// --- Before the seal: a run that failed stays one that did not pass
// -------------------------------

std::vector<std::string> LinesOf(const fs::path& file) {
  std::vector<std::string> lines;
  const std::string text = ReadFile(file).value();
  for (const std::string_view line : SplitLines(text).complete) lines.emplace_back(line);
  return lines;
}

void WriteLines(const fs::path& file, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  Write(file, text);
}

// Drops, repeats, moves, cuts or alters one record of a file.
std::string MutateLine(const fs::path& file, Random* random) {
  std::vector<std::string> lines = LinesOf(file);
  if (lines.size() < 2) return "nothing";
  const size_t at = random->Below(lines.size());
  const auto it = lines.begin() + static_cast<ptrdiff_t>(at);
  std::string what;
  switch (random->Below(5)) {
    case 0:
      what = "dropped";
      lines.erase(it);
      break;
    case 1:
      what = "repeated";
      lines.insert(it, std::string(*it));
      break;
    case 2:
      what = "moved";
      std::iter_swap(it, lines.begin() + static_cast<ptrdiff_t>(random->Below(lines.size())));
      break;
    case 3:
      what = "cut";
      it->resize(random->Below(it->size()));
      break;
    default: {
      what = "altered";
      const size_t digit = it->find_first_of("0123456789", random->Below(it->size()));
      if (digit != std::string::npos) (*it)[digit] = static_cast<char>('0' + random->Below(10));
    }
  }
  WriteLines(file, lines);
  return what + " line " + std::to_string(at + 1);
}

struct Failing {
  std::string name;
  RunDirBuilder run;
};

std::vector<Failing> FailingRuns() {
  std::vector<Failing> out;
  out.push_back({"ends at step 59", RunDirBuilder::RankKilled({.last_step = 59})});
  out.push_back({"starts from step 0", RunDirBuilder::RankKilled({.resume_from = 0})});
  out.push_back(
      {"learning rate one step late", RunDirBuilder::RankKilled({.lr_of_step_before = 1})});
  out.push_back({"a replica drifts", RunDirBuilder::RankKilled()});
  out.back().run.attempts[1].ranks[2].Row(44).state.weights.digest.low ^= 1;
  out.push_back({"an error nobody logged", RunDirBuilder::RankKilled()});
  out.back().run.RemoveLines(0, 0, "peer.lost");
  return out;
}

TEST(BeforeTheSeal, NoMutatedRecordMakesAFailedRunPass) {
  Random random(11);
  int mutations = 0;
  for (const Failing& failing : FailingRuns()) {
    const TempDir original;
    failing.run.WriteTo(original.path());
    ASSERT_EQ(VerdictOf(original.path()), Verdict::kFail) << failing.name;
    std::vector<fs::path> files;
    for (const fs::path& file : FilesOf(original.path())) {
      if (file.extension() == ".jsonl") files.push_back(file);
    }
    for (int i = 0; i < 60; ++i) {
      const TempDir copy;
      fs::copy(original.path(), copy.path(), fs::copy_options::recursive);
      const fs::path& file = files[random.Below(files.size())];
      const std::string what = MutateLine(copy.path() / file, &random);
      SealAgain(copy.path());
      EXPECT_NE(VerdictOf(copy.path()), Verdict::kPass)
          << failing.name << ", " << file << ": " << what;
      ++mutations;
    }
  }
  EXPECT_EQ(mutations, 300);
}

// --- Before the seal: each lie about a sound run, with the verdict that it must give
// --------------

struct Lie {
  std::string name;
  std::function<void(RunDirBuilder&)> tell;
  std::vector<Verdict> verdicts;  // any of them
};

size_t IndexOf(const std::vector<Event>& events, std::string_view name) {
  const auto it = std::find_if(events.begin(), events.end(),
                               [&](const Event& event) { return event.name == name; });
  EXPECT_NE(it, events.end()) << name;
  return static_cast<size_t>(it - events.begin());
}

void Drop(std::vector<Event>* events, std::string_view name) {
  const size_t before = events->size();
  std::erase_if(*events, [&](const Event& event) { return event.name == name; });
  EXPECT_LT(events->size(), before) << name;
}

// A fault that did nothing, hit something else, came at another time or twice: of every fault.
std::vector<Lie> LiesAboutTheFault() {
  using enum Verdict;
  return {
      {"the injection is not recorded",
       [](RunDirBuilder& run) { Drop(&run.injected, secret_events::kFaultInjected); },
       {kInvalid, kInconclusive}},
      {"no witness is recorded",
       [](RunDirBuilder& run) { Drop(&run.injected, secret_events::kWitnessed); },
       {kInvalid}},
      {"the injection is recorded twice",
       [](RunDirBuilder& run) {
         const size_t at = IndexOf(run.injected, secret_events::kFaultInjected);
         run.injected.insert(run.injected.begin() + static_cast<ptrdiff_t>(at), run.injected[at]);
       },
       {kInvalid}},
      {"another rank was hit",
       [](RunDirBuilder& run) {
         run.FindInjected(secret_events::kFaultInjected).fields["rank"] = 2;
       },
       {kInvalid}},
      {"another step was hit",
       [](RunDirBuilder& run) {
         run.FindInjected(secret_events::kFaultInjected).fields["step"] = 38;
       },
       {kInvalid}},
      {"another attempt was hit",
       [](RunDirBuilder& run) {
         run.FindInjected(secret_events::kFaultInjected).fields["attempt"] = 1;
       },
       {kInvalid, kInconclusive}},
      {"another fault acted",
       [](RunDirBuilder& run) {
         Json& fault = run.FindInjected(secret_events::kFaultInjected).fields["fault"];
         fault = fault == "rank.stall" ? "rank.kill" : "rank.stall";
       },
       {kInvalid}},
      {"a witness that did not hold",
       [](RunDirBuilder& run) {
         run.FindInjected(secret_events::kWitnessed).fields["holds"] = false;
       },
       {kInvalid}},
      {"the fault was held back",
       [](RunDirBuilder& run) {
         Event& injected = run.FindInjected(secret_events::kFaultInjected);
         injected.name = secret_events::kFaultMissed;
         injected.fields["reason"] = "not reached";
       },
       {kInvalid}},
      {"no measurement of the effect held",
       [](RunDirBuilder& run) {
         for (Event& event : run.injected) {
           if (event.name == secret_events::kWitnessed && event.fields["kind"] == "effect") {
             event.fields["holds"] = false;
             event.fields["held"] = 0;
           }
         }
       },
       {kInvalid}},
      {"a bystander was hit",
       [](RunDirBuilder& run) {
         for (Event& event : run.injected) {
           if (event.name == secret_events::kWitnessed && event.fields["kind"] == "bystander") {
             event.fields["holds"] = false;
           }
         }
       },
       {kInvalid}},
  };
}

std::vector<Lie> LiesAboutTheJob() {
  using enum Verdict;
  return {
      {"the job's end is not recorded",
       [](RunDirBuilder& run) { Drop(&run.observed, events::kJobExited); },
       {kInconclusive}},
      {"a step is missing in a ledger",
       [](RunDirBuilder& run) {
         auto& ledger = run.attempts[1].ranks[0].ledger;
         ledger.erase(ledger.begin() + 5);
       },
       {kFail}},
      {"a step is twice in a ledger",
       [](RunDirBuilder& run) {
         auto& ledger = run.attempts[1].ranks[0].ledger;
         ledger.insert(ledger.begin() + 5, LedgerRecord(ledger[5]));
       },
       {kFail}},
      {"two steps of a ledger changed places",
       [](RunDirBuilder& run) {
         auto& ledger = run.attempts[1].ranks[0].ledger;
         std::swap(ledger[5], ledger[6]);
       },
       {kFail}},
      {"a ledger is another rank's",
       [](RunDirBuilder& run) {
         run.attempts[1].ranks[0].ledger = run.attempts[1].ranks[1].ledger;
       },
       {kFail}},
      {"one sample was another",
       [](RunDirBuilder& run) { run.attempts[1].ranks[1].Row(40).ids[0] ^= 1; },
       {kFail}},
      {"one bit of a loss",
       [](RunDirBuilder& run) { run.attempts[1].ranks[1].Row(40).loss_bits ^= 1; },
       {kFail}},
      {"a checkpoint that was never seen",
       [](RunDirBuilder& run) {
         for (LedgerRecord& record : run.attempts[1].ranks[0].ledger) {
           if (auto* claim = std::get_if<LedgerCheckpoint>(&record)) claim->file_digest.high ^= 1;
         }
       },
       {kFail}},
      {"the reference is of another build",
       [](RunDirBuilder& run) { run.key["programs"] = "another"; },
       {kInconclusive}},
      {"the reference ended early",
       [](RunDirBuilder& run) { run.reference[1].ledger.resize(20); },
       {kInconclusive, kFail}},
  };
}

void ExpectVerdict(RunDirBuilder run, const Lie& lie) {
  lie.tell(run);
  const TempDir folder;
  run.WriteTo(folder.path());
  const Result<RunVerdict> verdict = Judge(RunDir(folder.path()));
  ASSERT_TRUE(verdict) << lie.name << ": " << verdict.error().message;
  EXPECT_EQ(std::ranges::count(lie.verdicts, verdict->verdict), 1)
      << lie.name << ": " << ToString(verdict->verdict) << ": " << verdict->reason;
}

TEST(BeforeTheSeal, EachLieAboutAJobGivesTheVerdictItMust) {
  for (const Lie& lie : LiesAboutTheJob()) ExpectVerdict(RunDirBuilder::RankKilled(), lie);
}

struct Faulty {
  const char* name;
  RunDirBuilder (*build)();
};

class EveryFault : public ::testing::TestWithParam<Faulty> {};

TEST_P(EveryFault, ThatDidNotActAsPlannedOnceIsInvalid) {
  const TempDir folder;
  GetParam().build().WriteTo(folder.path());
  ASSERT_EQ(VerdictOf(folder.path()), Verdict::kPass);
  for (const Lie& lie : LiesAboutTheFault()) ExpectVerdict(GetParam().build(), lie);
}

INSTANTIATE_TEST_SUITE_P(
    BeforeTheSeal, EveryFault,
    ::testing::Values(Faulty{"RankKill", [] { return RunDirBuilder::RankKilled(); }},
                      Faulty{"RankStall", &RunDirBuilder::CollectiveTimeout},
                      Faulty{"RankStallAndWatchdog", &RunDirBuilder::HangWatchdog},
                      Faulty{"DiskFull", &RunDirBuilder::DiskFull},
                      Faulty{"DataWorkerSlow", &RunDirBuilder::SlowDataWorker},
                      Faulty{"MemoryDeviceOom", &RunDirBuilder::OutOfMemory}),
    [](const auto& test) { return test.param.name; });

// --- Clocks, and another place
// ---------------------------------------------------------------------

TEST(BeforeTheSeal, AClockThatJumpsNeverMakesALateRecoveryEarly) {
  for (const int64_t jump_ns :
       std::vector<int64_t>{-3'600'000'000'000, -1'000'000'000, 3'600'000'000'000}) {
    RunDirBuilder run = RunDirBuilder::RankKilled();
    run.expect().recovery_budget = Milliseconds(1);  // FAIL, with clocks that do not jump
    for (FakeRank& rank : run.attempts[1].ranks) {
      for (Json& line : rank.log) line["t_ns"] = line["t_ns"].get<int64_t>() + jump_ns;
    }
    const TempDir folder;
    run.WriteTo(folder.path());
    EXPECT_NE(VerdictOf(folder.path()), Verdict::kPass) << jump_ns;
  }
}

TEST(AnotherPlace, TheVerdictOfACopyIsTheSameByteForByte) {
  const TempDir here;
  const TempDir there;
  RunDirBuilder::RankKilled().WriteTo(here.path());
  fs::copy(here.path(), there.path() / "a copy", fs::copy_options::recursive);
  Result<RunVerdict> first = Judge(RunDir(here.path()));
  Result<RunVerdict> second = Judge(RunDir(there.path() / "a copy"));
  ASSERT_TRUE(first && second);
  first->run_dir.clear();
  second->run_dir.clear();
  EXPECT_EQ(DumpJson(ToJson(*first)), DumpJson(ToJson(*second)));
}

}  // namespace
}  // namespace shakedown::test_support
