// A directory of a test's own, gone with the test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace shakedown {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(Make()) {}
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  static std::filesystem::path Make() {
    std::string path = std::filesystem::temp_directory_path() / "shakedown-test-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) ::abort();
    return path;
  }
  std::filesystem::path path_;
};

}  // namespace shakedown
