// Reading stored zip archives, sound and hostile.
#include "harness/wire/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/checkpoint_builder.h"

namespace shakedown {
namespace {

using test_support::ZipBuilder;
using testing::HasSubstr;

std::string Overwrite(std::string bytes, size_t at, const std::string& with) {
  return bytes.replace(at, with.size(), with);
}

size_t EndRecord(const std::string& archive) { return archive.rfind("PK\x05\x06"); }

std::string ErrorOf(std::string_view archive) {
  const auto entries = ReadZipArchive(archive);
  return entries ? "" : entries.error().message;
}

TEST(ZipArchive, EntriesComeBackByNameWithTheirBytes) {
  const std::string archive = ZipBuilder().Add("a/data/0", "first").Add("a/data/1", "").Build();
  const auto entries = ReadZipArchive(archive);
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries->size(), 2u);
  EXPECT_EQ(entries->at("a/data/0"), "first");
  EXPECT_EQ(entries->at("a/data/1"), "");
}

TEST(ZipArchive, ACommentAfterTheEndRecordIsSkipped) {
  const auto archive = ZipBuilder().Add("x", "data").Build("a comment");
  const auto entries = ReadZipArchive(archive);
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries->at("x"), "data");
}

TEST(ZipArchive, SizesInTheZip64FieldAreUsed) {
  const auto archive = ZipBuilder().Add("x", "data", {.zip64 = true}).Build();
  const auto entries = ReadZipArchive(archive);
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries->at("x"), "data");
}

TEST(ZipArchive, WhatIsNoArchiveIsRefused) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("no end record"));
  EXPECT_THAT(ErrorOf(std::string(100, 'x')), HasSubstr("no end record"));
}

TEST(ZipArchive, CompressedAndEncryptedEntriesAreRefused) {
  EXPECT_THAT(ErrorOf(ZipBuilder().Add("x", "data", {.method = 8}).Build()),
              HasSubstr("compressed"));
  EXPECT_THAT(ErrorOf(ZipBuilder().Add("x", "data", {.flags = 1}).Build()), HasSubstr("encrypted"));
}

TEST(ZipArchive, TwoEntriesOfOneNameAreRefused) {
  EXPECT_THAT(ErrorOf(ZipBuilder().Add("x", "one").Add("x", "two").Build()),
              HasSubstr("two entries"));
}

TEST(ZipArchive, ADirectoryOutsideTheFileIsRefused) {
  const std::string archive = ZipBuilder().Add("x", "data").Build();
  EXPECT_THAT(ErrorOf(Overwrite(archive, EndRecord(archive) + 16, "\xff\xff\xff\x7f")),
              HasSubstr("outside the file"));
}

TEST(ZipArchive, AnEntryBeyondTheEndIsRefused) {
  const std::string archive = ZipBuilder().Add("x", "data").Build();
  const size_t central = archive.find("PK\x01\x02");
  const std::string huge("\xf0\xff\xff\x7f\xf0\xff\xff\x7f", 8);
  EXPECT_THAT(ErrorOf(Overwrite(archive, central + 20, huge)), HasSubstr("beyond the end"));
  EXPECT_THAT(ErrorOf(Overwrite(archive, central + 42, "\xff\xff\xff\x7f")),
              HasSubstr("no local header"));
}

TEST(ZipArchive, MoreEntriesThanTheDirectoryHoldsAreRefused) {
  const std::string archive = ZipBuilder().Add("x", "data").Build();
  EXPECT_THAT(ErrorOf(Overwrite(archive, EndRecord(archive) + 10, std::string("\xff\xff", 2))),
              HasSubstr("ends early"));
}

// Whatever one byte is changed to, and wherever the file is cut, the reader stays inside (which the
// sanitizers see) and answers.
TEST(ZipArchive, NoChangedByteAndNoCutMakesItReadOutside) {
  const std::string archive =
      ZipBuilder().Add("archive/data/0", "0123456789").Add("y", "z", {.zip64 = true}).Build();
  size_t refused = 0;
  for (size_t at = 0; at < archive.size(); ++at) {
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      const std::string changed = Overwrite(archive, at, std::string(1, value));
      const auto entries = ReadZipArchive(changed);
      if (!entries) {
        ++refused;
        continue;
      }
      for (const auto& [name, bytes] : *entries) {
        EXPECT_GE(bytes.data(), changed.data());
        EXPECT_LE(bytes.data() + bytes.size(), changed.data() + changed.size());
      }
    }
    // A copy on the heap of just that size, so that a read beyond its end is seen.
    const std::vector<char> cut(archive.begin(), archive.begin() + static_cast<long>(at));
    EXPECT_FALSE(ReadZipArchive({cut.data(), cut.size()}));
  }
  EXPECT_GT(refused, 50u);
}

}  // namespace
}  // namespace shakedown
