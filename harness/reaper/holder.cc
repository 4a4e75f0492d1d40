#include "harness/reaper/holder.h"

#include "harness/base/unique_fd.h"
#include "harness/process/mount_namespace.h"
#include "harness/reaper/protocol.h"

namespace shakedown {
namespace {

struct Held {
  UniqueFd root;
  bool user_namespace = false;
};

Result<Held> Mount(const std::string& mountpoint, int64_t bytes) {
  const Result<bool> user_namespace = EnterPrivateMounts();
  if (!user_namespace) return tl::unexpected(user_namespace.error());
  Result<UniqueFd> root = MountPrivateTmpfs(mountpoint, bytes);
  if (!root) return tl::unexpected(root.error());
  return Held{*std::move(root), *user_namespace};
}

}  // namespace

int HoldPrivateFilesystem(const std::string& mountpoint, int64_t bytes) {
  const UniqueFd socket(kHolderSocketFd);
  {
    // The root travels to the controller; a descriptor kept here would not be needed, since the
    // namespace keeps the mount.
    const Result<Held> held = Mount(mountpoint, bytes);
    const Status told =
        held ? SendReaperMessage(socket.get(), {{"user_namespace", held->user_namespace}},
                                 {held->root.get()})
             : SendReaperMessage(socket.get(),
                                 {{"error", held.error().message}, {"code", held.error().code}});
    if (!held || !told) return 1;
  }
  // Nothing is ever sent to us: the next thing to come is the end.
  const Result<std::optional<ReaperMessage>> end = ReceiveReaperMessage(socket.get());
  return end && !*end ? 0 : 1;
}

}  // namespace shakedown
