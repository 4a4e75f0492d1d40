#include "harness/wire/journal_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace shakedown {
namespace {

std::vector<uint64_t> Seqs(const Journal& journal) {
  std::vector<uint64_t> seqs;
  for (const JournalStep& step : journal.pending) seqs.push_back(step.seq);
  return seqs;
}

class JournalFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/journal_record_test.XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path path() const { return folder_ / "journal.jsonl"; }

  // Header, steps 1, 2 and 3, and a mark that 2 is undone.
  std::string Sample() {
    Result<JournalWriter> writer = JournalWriter::Open(path());
    EXPECT_TRUE(writer);
    EXPECT_TRUE(writer->Header({{"pid", 7}}, {{"pid", 8}}, "/some/run"));
    for (int i = 1; i <= 3; ++i) {
      const Json step{{"verb", "remove_tree"}, {"path", "/a/b" + std::to_string(i)}};
      EXPECT_EQ(*writer->AppendStep(step, i == 3 ? std::nullopt : std::optional(i)), i);
    }
    EXPECT_TRUE(writer->MarkUndone(2));
    return *ReadFile(path());
  }

  std::filesystem::path folder_;
};

TEST_F(JournalFile, StepsThatAreNotMarkedUndoneArePendingInTheirOrder) {
  const Journal journal = ParseJournal(Sample(), "");
  EXPECT_EQ(Seqs(journal), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(journal.pending[0].injection, 1);
  EXPECT_EQ(journal.pending[1].injection, std::nullopt);
  EXPECT_EQ(StringField(journal.pending[1].step, "path"), "/a/b3");
  EXPECT_EQ(IntField(Field(journal.header, "controller"), "pid"), 7);
  EXPECT_EQ(IntField(Field(journal.header, "reaper"), "pid"), 8);
  EXPECT_EQ(StringField(journal.header, "run_dir"), "/some/run");
  EXPECT_TRUE(journal.damaged_lines.empty());
  EXPECT_FALSE(journal.torn_tail);
}

TEST_F(JournalFile, WhatOthersUndidIsNotPending) {
  const std::string journal = Sample();
  const std::string done = EncodeRecord({{"seq", 3}, {"undone", true}, {"by", "reaper"}}) + "\n";
  const std::string failed = EncodeRecord({{"seq", 1}, {"undone", false}, {"by", "reaper"}}) + "\n";
  EXPECT_EQ(Seqs(ParseJournal(journal, done + failed)), (std::vector<uint64_t>{1}));
  // A torn or damaged mark counts as none: playing a step again is harmless.
  EXPECT_EQ(Seqs(ParseJournal(journal, done.substr(0, done.size() - 1))),
            (std::vector<uint64_t>{1, 3}));
}

TEST_F(JournalFile, SecondWriterIsRefused) {
  ASSERT_TRUE(JournalWriter::Open(path()));
  EXPECT_EQ(JournalWriter::Open(path()).error().code, EEXIST);
  EXPECT_EQ(JournalWriter::Open(folder_ / "missing" / "journal.jsonl").error().code, ENOENT);
}

// A writer may be killed after any byte.
TEST_F(JournalFile, CutAtEveryByteItKeepsEveryCompleteStepAndReportsNoDamage) {
  const std::string text = Sample();
  const std::vector<std::string_view> lines = SplitLines(text).complete;
  std::vector<size_t> ends;
  for (const std::string_view line : lines) {
    ends.push_back(static_cast<size_t>(line.data() + line.size() - text.data()));
  }
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const Journal journal = ParseJournal(std::string_view(text).substr(0, cut), "");
    std::vector<uint64_t> expected;
    for (uint64_t seq = 1; seq <= 3; ++seq) {
      const bool marked = seq == 2 && cut >= ends[4];
      if (cut >= ends[seq] && !marked) expected.push_back(seq);
    }
    ASSERT_EQ(Seqs(journal), expected) << "cut after " << cut << " bytes";
    ASSERT_TRUE(journal.damaged_lines.empty()) << "cut after " << cut << " bytes";
    const bool whole = cut == 0 || text[cut - 1] == '\n' || text[cut] == '\n' || cut == text.size();
    ASSERT_EQ(journal.torn_tail, !whole) << "cut after " << cut << " bytes";
  }
}

TEST_F(JournalFile, WithAnyBitFlippedTheOtherRecordsAreReadAndTheDamagedOneIsNamed) {
  const std::string text = Sample();
  for (size_t byte = 0; byte < text.size(); ++byte) {
    const int line = static_cast<int>(std::count(text.begin(), text.begin() + byte, '\n')) + 1;
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      const Journal journal = ParseJournal(damaged, "");
      // A flipped newline joins two lines, a new newline cuts one in two: neither half is a record.
      if (text[byte] == '\n') {
        ASSERT_TRUE(journal.damaged_lines == std::vector<int>{line} || journal.torn_tail);
        continue;
      }
      ASSERT_FALSE(journal.damaged_lines.empty()) << "byte " << byte << " bit " << bit;
      ASSERT_EQ(journal.damaged_lines[0], line) << "byte " << byte << " bit " << bit;
      std::vector<uint64_t> expected{1, 3};
      if (line == 5) expected = {1, 2, 3};
      std::erase(expected, static_cast<uint64_t>(line - 1));
      ASSERT_EQ(Seqs(journal), expected) << "byte " << byte << " bit " << bit;
      ASSERT_EQ(journal.header.is_null(), line == 1);
    }
  }
}

TEST(JournalRecord, IntactRecordsThatAreNoneOfOursAreDamage) {
  for (const Json& record :
       {Json{{"seq", 0}, {"step", Json::object()}}, Json{{"seq", 1}}, Json{{"undone", true}},
        Json{{"seq", -1}, {"undone", true}}, Json{{"seq", 1}, {"step", "text"}}}) {
    const Journal journal = ParseJournal(EncodeRecord(record) + "\n", "");
    EXPECT_EQ(journal.damaged_lines, std::vector<int>{1}) << DumpJson(record);
  }
}

TEST(JournalRecord, AnyTextSurvivesTheWayThroughARecord) {
  const Json record{{"text", "\"sum\":\"}\\\n\t\xC3\xA4"}, {"n", -5}, {"list", {1, 2}}};
  const std::string line = EncodeRecord(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Result<Json> back = DecodeRecord(line);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, record);
}

TEST(JournalRecord, TextWithoutAChecksumIsNone) {
  for (const char* text :
       {"", "{}", R"({"seq":1,"undone":true})", R"(,"sum":"0123456789abcdef"})"}) {
    EXPECT_FALSE(DecodeRecord(text)) << text;
  }
}

}  // namespace
}  // namespace shakedown
