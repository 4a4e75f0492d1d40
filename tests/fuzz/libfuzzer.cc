// One program for all targets:  shakedown-fuzz --target=NAME [options of libFuzzer] [CORPUS]
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace {
const shakedown::fuzz::Target* chosen = nullptr;
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view kFlag = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (!argument.starts_with(kFlag)) continue;
    for (const auto& target : shakedown::fuzz::Targets()) {
      if (argument.substr(kFlag.size()) == target.name) chosen = &target;
    }
  }
  if (chosen != nullptr) return 0;
  (void)std::fputs("usage: shakedown-fuzz --target=NAME ...; NAME is one of\n", stderr);
  for (const auto& target : shakedown::fuzz::Targets()) std::fprintf(stderr, "  %s\n", target.name);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->feed({reinterpret_cast<const char*>(data), size});
  return 0;
}
