#include "trainer/data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

using ::testing::HasSubstr;

std::string Word(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
  return out;
}
std::string Images(uint32_t samples, uint32_t rows, uint32_t columns, const std::string& data) {
  return Word(0x803) + Word(samples) + Word(rows) + Word(columns) + data;
}
std::string Labels(uint32_t samples, const std::string& data) {
  return Word(0x801) + Word(samples) + data;
}

class Idx : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(dir_.path() / name, std::ios::binary) << bytes;
  }
  void WritePair(const std::string& images, const std::string& labels) {
    Write("images-idx3-ubyte", images);
    Write("labels-idx1-ubyte", labels);
  }
  // The message of the error that loading must give.
  std::string Refusal() {
    const Result<DataSet> set = LoadDataSet(dir_.path());
    return set ? "(loaded)" : set.error().message;
  }
  test_support::TempDir dir_;
};

TEST_F(Idx, TheDigitsThatShipAreReadWhole) {
  const Result<DataSet> set = LoadDataSet(SHAKEDOWN_SOURCE_DIR "/trainer/data/digits");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->samples, 1797);
  EXPECT_EQ(set->features, 64);
  EXPECT_EQ(set->pixels.size(), 1797u * 64);
  EXPECT_EQ(set->labels.size(), 1797u);
  EXPECT_EQ(set->largest_pixel(), 16);
  EXPECT_EQ(set->largest_label(), 9);
  // README.md of the digits: images per label.
  EXPECT_EQ(std::count(set->labels.begin(), set->labels.end(), 0), 178);
  EXPECT_EQ(std::count(set->labels.begin(), set->labels.end(), 9), 180);
}

TEST_F(Idx, PixelsAndLabelsAreReadInTheOrderOfTheFile) {
  WritePair(Images(2, 1, 3, "\x01\x02\x03\x04\x05\x06"), Labels(2, "\x07\x08"));
  const Result<DataSet> set = LoadDataSet(dir_.path());
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->features, 3);
  EXPECT_THAT(set->pixels, ::testing::ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(set->labels, ::testing::ElementsAre(7, 8));
}

TEST_F(Idx, TheTrainingPairIsTakenWhereThereAreTwo) {
  Write("train-images-idx3-ubyte", Images(1, 1, 1, "\x01"));
  Write("t10k-images-idx3-ubyte", Images(1, 1, 1, "\x02"));
  Write("train-labels-idx1-ubyte", Labels(1, "\x01"));
  Write("t10k-labels-idx1-ubyte", Labels(1, "\x02"));
  const Result<IdxPair> pair = FindIdxPair(dir_.path());
  ASSERT_TRUE(pair) << pair.error().message;
  EXPECT_EQ(pair->images.filename(), "train-images-idx3-ubyte");
  EXPECT_EQ(pair->labels.filename(), "train-labels-idx1-ubyte");
}

TEST_F(Idx, AMissingDirectoryIsNamed) {
  const Result<DataSet> set = LoadDataSet(dir_.path() / "nowhere");
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr("nowhere"));
  EXPECT_EQ(set.error().code, ENOENT);
}

TEST_F(Idx, AMissingFileIsNamed) {
  Write("images-idx3-ubyte", Images(1, 1, 1, "\x01"));
  EXPECT_THAT(Refusal(), HasSubstr("labels-idx1-ubyte"));
}

TEST_F(Idx, TwoPairsWithoutATrainingPairAreRefused) {
  Write("a-images-idx3-ubyte", Images(1, 1, 1, "\x01"));
  Write("b-images-idx3-ubyte", Images(1, 1, 1, "\x01"));
  EXPECT_THAT(Refusal(), HasSubstr("exactly one file"));
}

TEST_F(Idx, AnEmptyFileIsRefused) {
  WritePair("", Labels(1, "\x01"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("images-idx3-ubyte"), HasSubstr("magic number")));
}

TEST_F(Idx, AWrongMagicNumberIsRefused) {
  WritePair(Labels(1, "\x01"), Labels(1, "\x01"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("at byte 0"), HasSubstr("0x00000801")));
}

TEST_F(Idx, ACompressedFileIsToldToBeDecompressed) {
  WritePair("\x1F\x8B\x08\x08 and so on", Labels(1, "\x01"));
  EXPECT_THAT(Refusal(), HasSubstr("gunzip"));
}

TEST_F(Idx, AHeaderCutShortIsRefused) {
  WritePair(Word(0x803) + Word(2), Labels(1, "\x01"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("at byte 8"), HasSubstr("sizes")));
}

TEST_F(Idx, ASizeOfZeroIsRefused) {
  WritePair(Images(0, 1, 1, ""), Labels(0, ""));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("at byte 4"), HasSubstr("zero or too large")));
}

TEST_F(Idx, SizesWhoseProductOverflowsAreRefused) {
  WritePair(Images(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, "\x01"), Labels(1, "\x01"));
  EXPECT_THAT(Refusal(), HasSubstr("zero or too large"));
}

TEST_F(Idx, AFileShorterThanItsSizesIsRefused) {
  WritePair(Images(2, 1, 3, "\x01\x02\x03\x04\x05"), Labels(2, "\x07\x08"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("at byte 21"), HasSubstr("22 bytes")));
}

TEST_F(Idx, BytesAfterTheLastElementAreRefused) {
  WritePair(Images(1, 1, 1, "\x01"), Labels(1, "\x01\x02"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("labels-idx1-ubyte"), HasSubstr("1 bytes follow")));
}

TEST_F(Idx, FilesThatDoNotBelongTogetherAreRefused) {
  WritePair(Images(2, 1, 1, "\x01\x02"), Labels(1, "\x01"));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("1 labels"), HasSubstr("2 images")));
}

TEST_F(Idx, ADirectoryInTheFilesPlaceIsRefused) {
  std::filesystem::create_directory(dir_.path() / "images-idx3-ubyte");
  Write("labels-idx1-ubyte", Labels(1, "\x01"));
  EXPECT_THAT(Refusal(), HasSubstr("images-idx3-ubyte"));
}

}  // namespace
}  // namespace shakedown
