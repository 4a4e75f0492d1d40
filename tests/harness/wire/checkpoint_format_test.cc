// Names, manifests and the second reader of checkpoints.
#include "harness/wire/checkpoint_format.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "harness/base/unique_fd.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temp_dir.h"

namespace shakedown {
namespace {

using test_support::BuildCheckpoint;
using test_support::BuiltCheckpoint;
using test_support::WriteCheckpoint;
using test_support::WriteManifest;
using testing::HasSubstr;

class CheckpointFormat : public testing::Test {
 protected:
  const std::filesystem::path& path() const { return directory_.path(); }
  CheckpointInspection Inspect(int64_t step) const { return InspectCheckpoint(fd_.get(), step); }
  void Write(const std::string& name, std::string_view bytes) const {
    ASSERT_TRUE(PublishFile(path() / name, bytes, Durability::kBuffered));
  }

  test_support::TempDir directory_;
  UniqueFd fd_{::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(CheckpointFormat, NamesAndStepsGoBothWays) {
  EXPECT_EQ(CheckpointFileName(30), "step-00000030.pt");
  EXPECT_EQ(CheckpointManifestName(30), "step-00000030.json");
  EXPECT_EQ(CheckpointStepOf("step-00000030.pt"), 30);
  EXPECT_EQ(CheckpointStepOf("step-00000030.json"), 30);
  EXPECT_EQ(CheckpointStepOf(CheckpointFileName(1234567890123)), 1234567890123);
}

TEST_F(CheckpointFormat, OtherNamesAreNoCheckpoints) {
  for (const char* name :
       {"", "step-30.pt", "step-000000030.pt", "step-00000030", "step-00000030.pt.bak",
        "step--0000030.pt", "step-00000030.tmp", ".tmp-00000030.pt", "step-0000003x.pt"}) {
    EXPECT_EQ(CheckpointStepOf(name), std::nullopt) << name;
  }
}

TEST_F(CheckpointFormat, AManifestComesBackAsItWasWritten) {
  const CheckpointManifest manifest = BuildCheckpoint(30).manifest;
  const auto again = CheckpointManifestFromJson(ToJson(manifest));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(ToJson(*again), ToJson(manifest));
}

TEST_F(CheckpointFormat, EveryFieldOfAManifestIsNeeded) {
  const Json whole = ToJson(BuildCheckpoint(30).manifest);
  for (const auto& [key, value] : whole.items()) {
    Json without = whole;
    without.erase(key);
    const auto manifest = CheckpointManifestFromJson(without);
    ASSERT_FALSE(manifest) << key;
    EXPECT_THAT(manifest.error().message, HasSubstr("'" + key + "'"));
    Json wrong = whole;
    wrong[key] = Json::object();
    EXPECT_FALSE(CheckpointManifestFromJson(wrong)) << key;
  }
  for (const auto& [key, value] : whole["tensors"][0].items()) {
    Json without = whole;
    without["tensors"][0].erase(key);
    EXPECT_FALSE(CheckpointManifestFromJson(without)) << "tensor's " << key;
  }
}

TEST_F(CheckpointFormat, AShapeThatDoesNotGiveTheBytesIsRefused) {
  Json json = ToJson(BuildCheckpoint(30).manifest);
  json["tensors"][0]["shape"] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_FALSE(CheckpointManifestFromJson(json));
  json["tensors"][0]["shape"] = {-2, -3};
  EXPECT_FALSE(CheckpointManifestFromJson(json));
}

TEST_F(CheckpointFormat, ASoundCheckpointIsVerified) {
  const BuiltCheckpoint built = BuildCheckpoint(30);
  WriteCheckpoint(path(), built);
  const CheckpointInspection found = Inspect(30);
  EXPECT_TRUE(found.complete);
  EXPECT_TRUE(found.verified) << found.why;
  EXPECT_EQ(found.file, built.manifest.digest);
  EXPECT_EQ(found.weights, built.manifest.weights);
  EXPECT_EQ(found.optimizer, built.manifest.optimizer);
  EXPECT_EQ(found.rng, built.manifest.rng);
}

TEST_F(CheckpointFormat, AFileWithoutManifestIsNotComplete) {
  const BuiltCheckpoint built = BuildCheckpoint(30);
  Write(built.manifest.file, built.bytes);
  EXPECT_FALSE(Inspect(30).complete);
  EXPECT_THAT(Inspect(30).why, HasSubstr("step-00000030.json"));
}

TEST_F(CheckpointFormat, AManifestWithoutFileIsNotComplete) {
  WriteManifest(path(), BuildCheckpoint(30).manifest);
  EXPECT_FALSE(Inspect(30).complete);
  EXPECT_THAT(Inspect(30).why, HasSubstr("step-00000030.pt"));
}

TEST_F(CheckpointFormat, ACutFileIsNotComplete) {
  const BuiltCheckpoint built = BuildCheckpoint(30);
  WriteCheckpoint(path(), built);
  std::filesystem::resize_file(path() / built.manifest.file, built.bytes.size() - 1);
  EXPECT_FALSE(Inspect(30).complete);
  EXPECT_FALSE(Inspect(30).verified);
}

TEST_F(CheckpointFormat, AChangedByteIsSeenWhereverItIs) {
  const BuiltCheckpoint built = BuildCheckpoint(30);
  for (size_t at = 0; at < built.bytes.size(); at += 7) {
    BuiltCheckpoint changed = built;
    changed.bytes[at] = static_cast<char>(changed.bytes[at] ^ 1);
    WriteCheckpoint(path(), changed);
    EXPECT_TRUE(Inspect(30).complete);
    EXPECT_FALSE(Inspect(30).verified) << "byte " << at;
  }
}

// A trainer that digests the wrong bytes writes a manifest that fits itself: the reader must not
// take the manifest's word for what is inside.
TEST_F(CheckpointFormat, ManifestsThatLieAboutTheContentAreSeen) {
  const auto why = [&](auto change) {
    BuiltCheckpoint built = BuildCheckpoint(30);
    change(built.manifest);
    WriteCheckpoint(path(), built);
    EXPECT_FALSE(Inspect(30).verified);
    return Inspect(30).why;
  };
  EXPECT_THAT(why([](auto& m) { m.weights.low ^= 1; }), HasSubstr("all weights"));
  EXPECT_THAT(why([](auto& m) { m.optimizer.low ^= 1; }), HasSubstr("optimizer"));
  EXPECT_THAT(why([](auto& m) { m.rng[1].low ^= 1; }), HasSubstr("generators"));
  EXPECT_THAT(why([](auto& m) { m.rng.pop_back(); }), HasSubstr("generators"));
  EXPECT_THAT(why([](auto& m) { m.world_size = 3; }), HasSubstr("generators"));
  EXPECT_THAT(why([](auto& m) { m.tensors[2].digest.low ^= 1; }), HasSubstr("'optim.w.exp_avg'"));
  EXPECT_THAT(why([](auto& m) { std::swap(m.tensors[1], m.tensors[4]); }), HasSubstr("'rng.0'"));
  EXPECT_THAT(why([](auto& m) { m.tensors.push_back(m.tensors[0]); }), HasSubstr("data/7"));
}

TEST_F(CheckpointFormat, AManifestOfAnotherStepIsRefused) {
  BuiltCheckpoint built = BuildCheckpoint(20);
  WriteCheckpoint(path(), built);
  std::filesystem::rename(path() / CheckpointManifestName(20), path() / CheckpointManifestName(30));
  EXPECT_FALSE(Inspect(30).complete);
  EXPECT_THAT(Inspect(30).why, HasSubstr("step 20"));
}

TEST_F(CheckpointFormat, GarbageInsteadOfAManifestIsAReasonAndNoCrash) {
  Write(CheckpointManifestName(30), "\xff\xfe not json");
  EXPECT_THAT(Inspect(30).why, HasSubstr("not JSON"));
  Write(CheckpointManifestName(30), "[1, 2]");
  EXPECT_THAT(Inspect(30).why, HasSubstr("not an object"));
}

TEST_F(CheckpointFormat, LinksAndFifosAreNotFollowed) {
  const BuiltCheckpoint built = BuildCheckpoint(30);
  WriteCheckpoint(path(), built);
  std::filesystem::rename(path() / built.manifest.file, path() / "elsewhere");
  std::filesystem::create_symlink("elsewhere", path() / built.manifest.file);
  EXPECT_FALSE(Inspect(30).verified);
  std::filesystem::remove(path() / built.manifest.file);
  ASSERT_EQ(::mkfifo((path() / built.manifest.file).c_str(), 0600), 0);
  EXPECT_THAT(Inspect(30).why, HasSubstr("not a regular file"));
}

TEST_F(CheckpointFormat, TheListingHasRegularFilesByNameAndCanBeRepeated) {
  WriteCheckpoint(path(), BuildCheckpoint(30));
  Write(".tmp-1", "torn");
  std::filesystem::create_directory(path() / "folder");
  std::filesystem::create_symlink("folder", path() / "link");
  for (int i = 0; i < 2; ++i) {
    const auto listing = ListCheckpoints(fd_.get());
    ASSERT_TRUE(listing) << listing.error().message;
    std::vector<std::string> names;
    for (const auto& file : listing->files) names.push_back(file.name);
    EXPECT_THAT(names, testing::ElementsAre(".tmp-1", "step-00000030.json", "step-00000030.pt"));
    EXPECT_EQ(listing->files[0].bytes, 4);
    EXPECT_GT(listing->files[0].mtime_ns, 0);
  }
}

TEST_F(CheckpointFormat, WhatIsNoDirectoryCannotBeListed) { EXPECT_FALSE(ListCheckpoints(-1)); }

}  // namespace
}  // namespace shakedown
