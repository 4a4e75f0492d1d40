#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "injectors/catalog.h"
#include "injectors/injector.h"
#include "injectors/primitives/ballast.h"
#include "injectors/undo.h"
#include "tests/support/await.h"
#include "tests/support/victim_reach.h"

namespace shakedown {
namespace {

using test_support::Eventually;
using test_support::PrivateTmpfs;
using test_support::TempDir;
using test_support::VictimReach;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr int64_t kBytes = 4 << 20;

Injection Full(int64_t size) {
  return {.id = 3,
          .fault = "disk.full",
          .with = {{"size", size}},
          .rank = 0,
          .step = 10,
          .point = Point::kCheckpointWrite};
}

std::unique_ptr<Injector> MakePrivate(const Injection& injection) {
  return FindFault("disk.full")->make(injection, {.available = true, .means = "private tmpfs"});
}

class DiskFull : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!DetectMachine().mount_namespace) GTEST_SKIP() << DetectMachine().why_no_mount_namespace;
  }
};

size_t EntriesOf(const std::filesystem::path& directory) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

TEST_F(DiskFull, AFilesystemThatIsNotPrivateIsNeverFilled) {
  const auto injector = MakePrivate(Full(kBytes));
  const auto reach = VictimReach::Start({.program = "writer", .ranks = 1}, Full(kBytes), {});
  ASSERT_TRUE(reach) << reach.error().message;
  ASSERT_TRUE((*reach)->AwaitHeld());
  const size_t before = EntriesOf((*reach)->CheckpointOf(0));
  const auto recipe = injector->Prepare(**reach);
  ASSERT_FALSE(recipe);
  EXPECT_THAT(recipe.error().message, StartsWith("will not fill the filesystem of '"));
  EXPECT_EQ(EntriesOf((*reach)->CheckpointOf(0)), before);
}

// What the controller believes is not enough: the kernel has to say that it is as small as asked
// for.
TEST_F(DiskFull, AFilesystemLargerThanTheOneThatWasMadeIsNotFilled) {
  const auto injector = MakePrivate(Full(kBytes / 2));
  const auto reach = VictimReach::Start(
      {.program = "writer", .ranks = 1, .private_fs_bytes = kBytes}, Full(kBytes / 2), {});
  ASSERT_TRUE(reach) << reach.error().message;
  ASSERT_TRUE((*reach)->AwaitHeld());
  const auto recipe = injector->Prepare(**reach);
  ASSERT_FALSE(recipe);
  EXPECT_THAT(recipe.error().message, HasSubstr("it has 4194304 bytes"));
}

TEST_F(DiskFull, TheSaveFailsTheEarlierCheckpointStaysAndSpaceReturns) {
  const auto injector = MakePrivate(Full(kBytes));
  const auto reach = VictimReach::Start(
      {.program = "writer", .ranks = 2, .private_fs_bytes = kBytes}, Full(kBytes), {});
  ASSERT_TRUE(reach) << reach.error().message;
  ASSERT_TRUE((*reach)->AwaitHeld());
  const auto recipe = injector->Prepare(**reach);
  ASSERT_TRUE(recipe) << recipe.error().message;
  ASSERT_TRUE(injector->Inject(**reach));
  ASSERT_TRUE(injector->Effect(**reach).holds) << "full as soon as the injection returns";
  ASSERT_TRUE((*reach)->Release(false));
  const PageObserved& page = *(*reach)->Page((*reach)->target());
  ASSERT_TRUE(Eventually([&] { return page.checkpoint_error.load() != 0; }));
  EXPECT_EQ(page.checkpoint_error.load() >> 32, uint64_t{ENOSPC});
  const auto exists = [&](const char* name) {
    return ::faccessat((*reach)->CheckpointDirectory(), name, F_OK, 0) == 0;
  };
  EXPECT_TRUE(exists("step-00000009.json"));
  EXPECT_FALSE(exists("step-00000010.json"));
  ASSERT_TRUE(PlayUndo(recipe->at(0)));
  ASSERT_TRUE(injector->Undone(**reach).holds);
  const uint64_t failed = page.checkpoint_error.load() & 0xFFFFFFFF;
  EXPECT_TRUE(Eventually([&] { return page.committed_step.load() > failed; }))
      << "saves do not succeed again";
}

TEST_F(DiskFull, SpaceThatComesBackWhileItActsIsSeen) {
  const auto injector = MakePrivate(Full(kBytes));
  const auto reach = VictimReach::Start(
      {.program = "writer", .ranks = 1, .private_fs_bytes = kBytes}, Full(kBytes), {});
  ASSERT_TRUE(reach) << reach.error().message;
  ASSERT_TRUE((*reach)->AwaitHeld());
  ASSERT_TRUE(injector->Prepare(**reach));
  ASSERT_TRUE(injector->Inject(**reach));
  ASSERT_TRUE(injector->Effect(**reach).holds);
  ASSERT_EQ(::unlinkat((*reach)->CheckpointDirectory(), "step-00000009.pt", 0), 0);
  EXPECT_FALSE(injector->Effect(**reach).holds);
}

class Ballast : public DiskFull {
 protected:
  void SetUp() override {
    DiskFull::SetUp();
    if (IsSkipped()) return;
    auto made = PrivateTmpfs::Make(directory_.path(), kBytes);
    ASSERT_TRUE(made) << made.error().message;
    fs_ = *std::move(made);
  }
  TempDir directory_;
  std::unique_ptr<PrivateTmpfs> fs_;
};

TEST_F(Ballast, FillsToTheLastByte) {
  EXPECT_EQ(TryToWrite(fs_->directory()), 0);
  const auto bytes = FillFilesystem(fs_->directory(), ".shakedown-ballast");
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(*bytes, kBytes);
  EXPECT_EQ(SpaceOf(fs_->directory())->available_bytes, 0);
  EXPECT_EQ(TryToWrite(fs_->directory()), ENOSPC);
}

TEST_F(Ballast, FillsARestThatIsNoWholePiece) {
  UniqueFd other(::openat(fs_->directory(), "other", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::fallocate(other.get(), 0, 0, 12345), 0);
  ASSERT_TRUE(FillFilesystem(fs_->directory(), ".shakedown-ballast"));
  EXPECT_EQ(TryToWrite(fs_->directory()), ENOSPC);
}

TEST_F(Ballast, NeverWritesIntoAFileThatIsThere) {
  UniqueFd there(
      ::openat(fs_->directory(), ".shakedown-ballast", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const auto bytes = FillFilesystem(fs_->directory(), ".shakedown-ballast");
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, EEXIST);
}

TEST_F(Ballast, FollowsNoLink) {
  ASSERT_EQ(::symlinkat("target", fs_->directory(), ".shakedown-ballast"), 0);
  EXPECT_FALSE(FillFilesystem(fs_->directory(), ".shakedown-ballast"));
  EXPECT_NE(::faccessat(fs_->directory(), "target", F_OK, 0), 0);
}

TEST(BallastName, CarriesTheInjectionAndIsNeverTheSame) {
  const auto one = NewBallastName(7);
  const auto two = NewBallastName(7);
  ASSERT_TRUE(one && two);
  EXPECT_THAT(*one, MatchesRegex("\\.shakedown-ballast-7-[0-9a-f]+"));
  EXPECT_NE(*one, *two);
}

TEST(DiskFullMeans, TheWeakerMeansIsNamedWithWhatWouldGiveTheBetterOne) {
  const Fault& fault = *FindFault("disk.full");
  const Availability best = fault.available({.mount_namespace = true});
  EXPECT_EQ(best.means, "private tmpfs");
  EXPECT_EQ(best.level, Level::kReal);
  EXPECT_EQ(best.better, "");
  const Availability other = fault.available({.why_no_mount_namespace = "no such thing"});
  EXPECT_EQ(other.means, "probe");
  EXPECT_EQ(other.level, Level::kRealEffect);
  EXPECT_THAT(other.better, HasSubstr("no such thing"));
}

}  // namespace
}  // namespace shakedown
