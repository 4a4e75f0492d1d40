// Which checkpoint a training resumes from, and what is kept.
#include "trainer/checkpoint/select.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/base/unique_fd.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temp_dir.h"
#include "trainer/checkpoint/retain.h"

namespace shakedown {
namespace {

using test_support::BuildCheckpoint;
using test_support::WriteCheckpoint;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Directory : public testing::Test {
 protected:
  const std::filesystem::path& path() const { return directory_.path(); }
  Result<std::optional<CheckpointManifest>> Select() {
    refused_.clear();
    return SelectCheckpoint(fd_.get(),
                            [this](int64_t step, const std::string&, const std::string& why) {
                              EXPECT_FALSE(why.empty());
                              refused_.push_back(step);
                            });
  }
  void Damage(int64_t step) const {
    auto built = BuildCheckpoint(step);
    built.bytes[40] ^= 1;
    WriteCheckpoint(path(), built);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const auto listing = ListCheckpoints(fd_.get());
    for (const auto& file : listing->files) names.push_back(file.name);
    return names;
  }

  test_support::TempDir directory_;
  UniqueFd fd_{::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  std::vector<int64_t> refused_;
};

using Selection = Directory;
using Retention = Directory;

TEST_F(Selection, AnEmptyDirectoryMeansAFreshStart) {
  const auto selected = Select();
  ASSERT_TRUE(selected);
  EXPECT_EQ(*selected, std::nullopt);
}

TEST_F(Selection, TheNewestThatVerifiesIsTaken) {
  for (const int64_t step : {10, 20, 30}) WriteCheckpoint(path(), BuildCheckpoint(step));
  const auto selected = Select();
  ASSERT_TRUE(selected && *selected);
  EXPECT_EQ((*selected)->step, 30);
  EXPECT_THAT(refused_, IsEmpty());
}

TEST_F(Selection, DamagedOnesArePassedOverAndSaidSo) {
  WriteCheckpoint(path(), BuildCheckpoint(10));
  Damage(20);
  WriteCheckpoint(path(), BuildCheckpoint(30));
  std::filesystem::resize_file(path() / CheckpointFileName(30), 10);
  const auto selected = Select();
  ASSERT_TRUE(selected && *selected);
  EXPECT_EQ((*selected)->step, 10);
  EXPECT_THAT(refused_, ElementsAre(30, 20));
}

TEST_F(Selection, AFileWithoutManifestIsNoCheckpoint) {
  WriteCheckpoint(path(), BuildCheckpoint(10));
  WriteCheckpoint(path(), BuildCheckpoint(20));
  std::filesystem::remove(path() / CheckpointManifestName(20));
  const auto selected = Select();
  ASSERT_TRUE(selected && *selected);
  EXPECT_EQ((*selected)->step, 10);
}

TEST_F(Selection, WhenNoneVerifiesItIsAnErrorAndNotAFreshStart) {
  Damage(10);
  Damage(20);
  const auto selected = Select();
  ASSERT_FALSE(selected);
  EXPECT_THAT(selected.error().message, HasSubstr("none of the 2 checkpoints"));
  EXPECT_THAT(refused_, ElementsAre(20, 10));
}

TEST_F(Selection, AReadChecksTheFileAgain) {
  WriteCheckpoint(path(), BuildCheckpoint(10));
  const auto read = ReadCheckpoint(fd_.get(), 10);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->bytes, BuildCheckpoint(10).bytes);
  Damage(10);
  EXPECT_THAT(ReadCheckpoint(fd_.get(), 10).error().message, HasSubstr("digest"));
  EXPECT_FALSE(ReadCheckpoint(fd_.get(), 20));
}

TEST_F(Retention, TheNewestAreKept) {
  for (const int64_t step : {10, 20, 30, 40}) WriteCheckpoint(path(), BuildCheckpoint(step));
  ASSERT_TRUE(RotateCheckpoints(fd_.get(), 2, 40));
  EXPECT_THAT(Names(), ElementsAre("step-00000030.json", "step-00000030.pt", "step-00000040.json",
                                   "step-00000040.pt"));
}

TEST_F(Retention, FilesWithoutManifestPushNothingOut) {
  WriteCheckpoint(path(), BuildCheckpoint(10));
  for (const int64_t step : {20, 30}) {
    WriteCheckpoint(path(), BuildCheckpoint(step));
    std::filesystem::remove(path() / CheckpointManifestName(step));
  }
  WriteCheckpoint(path(), BuildCheckpoint(40));
  ASSERT_TRUE(RotateCheckpoints(fd_.get(), 2, 40));
  EXPECT_TRUE(InspectCheckpoint(fd_.get(), 10).verified);
}

// After a fall-back the refused, later checkpoints are still there when the first new one is saved.
TEST_F(Retention, LaterStepsThatWereRefusedPushNothingOut) {
  WriteCheckpoint(path(), BuildCheckpoint(10));
  WriteCheckpoint(path(), BuildCheckpoint(20));
  Damage(30);
  ASSERT_TRUE(RotateCheckpoints(fd_.get(), 1, 20));
  EXPECT_TRUE(InspectCheckpoint(fd_.get(), 20).verified);
  EXPECT_FALSE(std::filesystem::exists(path() / CheckpointFileName(10)));
}

TEST_F(Retention, TornFilesAreRemovedAndCheckpointsStay) {
  WriteCheckpoint(path(), BuildCheckpoint(10));
  WriteCheckpoint(path(), BuildCheckpoint(20));
  std::filesystem::remove(path() / CheckpointManifestName(20));
  ASSERT_TRUE(PublishFile(path() / ".tmp-1", "torn", Durability::kBuffered));
  ASSERT_TRUE(PublishFile(path() / "somebody-elses", "file", Durability::kBuffered));
  ASSERT_TRUE(RemoveTemporaries(fd_.get()));
  EXPECT_THAT(Names(), ElementsAre("somebody-elses", "step-00000010.json", "step-00000010.pt"));
}

TEST_F(Retention, AFileThatCannotBeRemovedIsAnError) {
  for (const int64_t step : {10, 20}) WriteCheckpoint(path(), BuildCheckpoint(step));
  EXPECT_FALSE(RotateCheckpoints(-1, 1, 20));
  EXPECT_FALSE(RemoveTemporaries(-1));
}

}  // namespace
}  // namespace shakedown
