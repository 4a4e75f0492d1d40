// A small filesystem in a mount namespace of its own, kept by a process that does nothing else, as
// a run has one. Through a user namespace when not root.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"
#include "harness/process/identity.h"

namespace shakedown::test_support {

class PrivateTmpfs {
 public:
  // Mounts it over `directory`, which only processes of its namespace see.
  static Result<std::unique_ptr<PrivateTmpfs>> Make(const std::string& directory, int64_t bytes);
  ~PrivateTmpfs();  // ends the holder, and with it the filesystem

  const ProcessIdentity& holder() const { return holder_; }
  int directory() const { return directory_.get(); }  // seen from outside
  int mount_namespace() const { return mount_namespace_.get(); }
  std::optional<int> user_namespace() const {
    return user_namespace_ ? std::optional<int>(user_namespace_.get()) : std::nullopt;
  }

 private:
  PrivateTmpfs() = default;

  ProcessIdentity holder_;
  UniqueFd alive_;  // the holder ends at its EOF
  UniqueFd directory_;
  UniqueFd mount_namespace_;
  UniqueFd user_namespace_;
};

}  // namespace shakedown::test_support
