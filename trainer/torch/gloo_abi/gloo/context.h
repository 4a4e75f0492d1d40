// Declaration only; the definition is in libtorch_cpu.so. See ../README.md.
#pragma once

// ProcessGroupGloo.hpp relies on these being included from here.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
