#include "harness/run/seal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "harness/base/digest.h"
#include "harness/base/file.h"

namespace shakedown {
namespace {

namespace fs = std::filesystem;

class SealTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "shakedown-test-XXXXXX").native();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    run_ = RunDir(pattern);
  }
  void TearDown() override { fs::remove_all(run_.root()); }
  void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  RunDir run_{""};
};

TEST_F(SealTest, NamesSizeRecordsAndDigestOfEachFileOfAnAttempt) {
  Write(run_.rank(0, 0) / kRankLog, "a\nb\n");
  Write(run_.rank(0, 0) / kRankLedger, "binary");
  Seal seal(run_);
  ASSERT_TRUE(seal.Attempt(0));
  ASSERT_TRUE(seal.Run());
  const Json json = ParseJson(ReadFile(run_.seal()).value()).value();
  const Json& files = json.at("attempts").at(0).at("files");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].at("name"), "attempt-0/rank-0/ledger.bin");
  EXPECT_TRUE(files[0].at("records").is_null());
  EXPECT_EQ(files[1].at("bytes"), 4);
  EXPECT_EQ(files[1].at("records"), 2);
  EXPECT_EQ(files[1].at("sha256"), Sha256Hex("a\nb\n"));
}

TEST_F(SealTest, LinksAreNotFollowed) {
  Write(run_.root() / "secret", "outside");
  fs::create_directories(run_.rank(0, 0));
  fs::create_symlink(run_.root() / "secret", run_.rank(0, 0) / "link");
  const Json files = SealFiles(run_, run_.attempt(0)).value();
  EXPECT_TRUE(files.empty());
}

TEST_F(SealTest, AnAttemptWithoutAFolderIsSealedAsEmpty) {
  Seal seal(run_);
  EXPECT_TRUE(seal.Attempt(3));
}

}  // namespace
}  // namespace shakedown
