// Publishing checkpoints: what is on disk after each operation, done or failed.
#include "trainer/checkpoint/publish.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "harness/base/unique_fd.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/trainer/checkpoint/armed_point.h"
#include "trainer/checkpoint/retain.h"
#include "trainer/checkpoint/select.h"

namespace shakedown {
namespace {

using testing::ElementsAre;

SerializedCheckpoint Serialized(int64_t step, char fill = 'a') {
  auto built = test_support::BuildCheckpoint(step, fill);
  built.manifest.file.clear();
  built.manifest.bytes = 0;
  built.manifest.digest = {};
  return {built.bytes, built.manifest};
}

class Publish : public testing::Test {
 protected:
  auto Save(int64_t step, char fill = 'a') {
    return PublishCheckpoint(fd_.get(), Serialized(step, fill));
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const auto listing = ListCheckpoints(fd_.get());
    for (const auto& file : listing->files) {
      names.push_back(file.name.starts_with(kCheckpointTemporaryPrefix) ? "temporary" : file.name);
    }
    return names;
  }
  test_support::TempDir directory_;
  UniqueFd fd_{::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(Publish, ASavedCheckpointIsVerifiedByTheSecondReader) {
  const auto saved = Save(10);
  ASSERT_TRUE(saved) << saved.error().error.message;
  EXPECT_EQ(saved->file, "step-00000010.pt");
  const auto found = InspectCheckpoint(fd_.get(), 10);
  EXPECT_TRUE(found.verified) << found.why;
  EXPECT_EQ(found.file, saved->digest);
  EXPECT_THAT(Names(), ElementsAre("step-00000010.json", "step-00000010.pt"));
}

TEST_F(Publish, AWriteThatFailsLeavesATornTemporaryFileAndNoCheckpoint) {
  const test_support::ArmedPoint armed(Point::kCheckpointWrite, 10, ENOSPC);
  const auto saved = Save(10);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().operation, "write");
  EXPECT_EQ(saved.error().error.code, ENOSPC);
  ASSERT_THAT(Names(), ElementsAre("temporary"));
  const auto torn = ListCheckpoints(fd_.get())->files[0].bytes;
  EXPECT_GT(torn, 0);
  EXPECT_LT(torn, static_cast<int64_t>(Serialized(10).bytes.size()));
}

TEST_F(Publish, AFailureOfAnyOperationIsNamedAndNothingCountsAsCheckpoint) {
  const std::pair<Point, std::string> cases[] = {{Point::kCheckpointWrite, "write"},
                                                 {Point::kCheckpointFsync, "fsync"},
                                                 {Point::kCheckpointRename, "rename"},
                                                 {Point::kCheckpointPublish, "manifest create"}};
  for (const auto& [point, operation] : cases) {
    const test_support::ArmedPoint armed(point, 10, EIO);
    const auto saved = Save(10);
    ASSERT_FALSE(saved) << operation;
    EXPECT_EQ(saved.error().operation, operation);
    EXPECT_EQ(saved.error().error.code, EIO);
    EXPECT_FALSE(InspectCheckpoint(fd_.get(), 10).complete) << operation;
    const auto selected = SelectCheckpoint(fd_.get(), [](auto...) { FAIL() << "refused"; });
    ASSERT_TRUE(selected);
    EXPECT_EQ(*selected, std::nullopt) << operation;
    EXPECT_TRUE(RemoveTemporaries(fd_.get()));
    EXPECT_THAT(Names(), ElementsAre()) << operation;
  }
  EXPECT_TRUE(Save(10));
}

TEST_F(Publish, AFailedSaveDoesNotTouchTheCheckpointsBefore) {
  ASSERT_TRUE(Save(10));
  const test_support::ArmedPoint armed(Point::kCheckpointWrite, 20, ENOSPC);
  ASSERT_FALSE(Save(20));
  EXPECT_TRUE(InspectCheckpoint(fd_.get(), 10).verified);
}

TEST_F(Publish, AnArmOfAnotherStepDoesNotAct) {
  const test_support::ArmedPoint armed(Point::kCheckpointWrite, 20, ENOSPC);
  EXPECT_TRUE(Save(10));
}

// The directory lost its place while the training ran: creating a file in it fails.
TEST_F(Publish, ARemovedDirectoryIsAnError) {
  std::filesystem::remove_all(directory_.path());
  const auto saved = Save(10);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().operation, "create");
  EXPECT_EQ(saved.error().error.code, ENOENT);
}

}  // namespace
}  // namespace shakedown
