// A fresh directory of a test, removed with its contents.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "harness/base/status.h"

namespace shakedown::test_support {

class TempDir {
 public:
  TempDir() {
    std::string name = std::filesystem::temp_directory_path() / "shakedown-test.XXXXXX";
    SHAKEDOWN_ASSERT(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace shakedown::test_support
