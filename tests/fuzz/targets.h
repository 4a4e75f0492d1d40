// Every reader of bytes that somebody else may have written, as one function each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shakedown::fuzz {

struct Target {
  const char* name;
  // Reads the bytes. What they are is not asked; but what was understood must be understood the
  // same way when it is written and read again. Aborts when it is not.
  void (*feed)(std::string_view bytes);
  // Inputs that are understood, to begin with.
  std::vector<std::string> (*seeds)();
};

const std::vector<Target>& Targets();

}  // namespace shakedown::fuzz
