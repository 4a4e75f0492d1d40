// Each reader of foreign bytes on inputs that were understood and then damaged, the same ones every
// time. Under the sanitizers this is where a reader that looks beyond its input is found.
#include <gtest/gtest.h>

#include <string>

#include "harness/base/random.h"
#include "tests/fuzz/targets.h"

namespace shakedown::fuzz {
namespace {

constexpr int kInputs = 2000;

std::string Damaged(std::string bytes, Random* random) {
  static const std::string kSpecial[] = {
      "\xff", "0",  "-1", "18446744073709551616", "1e999",   "{",
      "]",    "\"", "\n", std::string(1, '\0'),   "&a [*a]", "\xed\xa0\x80"};
  const int times = 1 + static_cast<int>(random->Below(4));
  for (int i = 0; i < times; ++i) {
    const size_t at = random->Below(bytes.size() + 1);
    switch (random->Below(6)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random->Below(8)));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.erase(at, random->Below(16));
        break;
      case 3:
        bytes.insert(at, kSpecial[random->Below(std::size(kSpecial))]);
        break;
      case 4:
        bytes.insert(at, bytes.substr(random->Below(bytes.size() + 1), random->Below(64)));
        break;
      default:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random->Next());
    }
  }
  return bytes;
}

class EveryReader : public ::testing::TestWithParam<Target> {};

TEST_P(EveryReader, SurvivesDamagedInput) {
  const std::vector<std::string> seeds = GetParam().seeds();
  ASSERT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) GetParam().feed(seed);
  GetParam().feed("");
  Random random(5, GetParam().name);
  int fed = 0;
  for (; fed < kInputs; ++fed) {
    // A copy of exactly that size, so that a sanitizer sees the first byte beyond it.
    const std::string input = Damaged(seeds[random.Below(seeds.size())], &random);
    const std::vector<char> exact(input.begin(), input.end());
    GetParam().feed({exact.data(), exact.size()});
  }
  EXPECT_EQ(fed, kInputs);
}

INSTANTIATE_TEST_SUITE_P(All, EveryReader, ::testing::ValuesIn(Targets()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace shakedown::fuzz
