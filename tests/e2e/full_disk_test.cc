// A disk that fills up under the run directory: what `run` says must follow from what it could
// still write, so that `check` says the same afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/cli.h"

namespace shakedown {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// The folder ($1) becomes a filesystem of $2 KiB in a mount namespace of the shell's own. Prints
// what `shakedown` ($3) says to `run`, then to `check`, as two lines.
constexpr char kScript[] =
    "mount -t tmpfs -o size=\"$2\"k none \"$1\" || exit 77\n"
    "\"$3\" run control --set job.steps=20 --json --out \"$1\" | tr -d '\\n'; echo\n"
    "for run in \"$1\"/control-*; do \"$3\" check --json \"$run\" | tr -d '\\n'; done; echo\n";

class FullDisk : public ::testing::TestWithParam<int> {};

TEST_P(FullDisk, RunAndCheckGiveTheSameVerdictAndTheCause) {
  const RunsFolder folder;
  const Result<HelperResult> ran =
      RunHelper({.argv = {"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", kScript,
                          "sh", folder.str(), std::to_string(GetParam()), Program("shakedown")},
                 .deadline = Milliseconds(200'000)});
  ASSERT_TRUE(ran) << ran.error().message;
  if (ran->status.code() == 77 || ran->out.empty()) {
    GTEST_SKIP() << "a filesystem cannot be mounted here: " << ran->err;
  }
  const size_t end = ran->out.find('\n');
  const Json run = ParseJson(ran->out.substr(0, end)).value_or(Json());
  const Json check = ParseJson(ran->out.substr(end + 1)).value_or(Json());
  EXPECT_EQ(StringField(run, "verdict"), "ERROR") << ran->out << ran->err;
  EXPECT_THAT(StringField(run, "reason").value_or(""),
              AnyOf(HasSubstr("cannot copy the reference run"),
                    HasSubstr("evidence could not be written: cannot write")));
  EXPECT_EQ(StringField(check, "verdict"), StringField(run, "verdict")) << ran->out;
  EXPECT_EQ(StringField(check, "reason"), StringField(run, "reason"));
}

// Too small for the reference run; full while the job runs.
INSTANTIATE_TEST_SUITE_P(Sizes, FullDisk, ::testing::Values(500, 1300));

}  // namespace
}  // namespace shakedown
