#include "trainer/launch/heartbeat_page.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <utility>

namespace shakedown {

Result<HeartbeatPage> HeartbeatPage::Create() {
  UniqueFd fd(::memfd_create("heartbeat", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return FailErrno("create shared memory for", "a heartbeat");
  if (::ftruncate(fd.get(), sizeof(Heartbeat)) != 0) return FailErrno("size", "a heartbeat");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return FailErrno("seal", "a heartbeat");
  }
  void* page = ::mmap(nullptr, sizeof(Heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return FailErrno("map", "a heartbeat");
  return HeartbeatPage(std::move(fd), static_cast<Heartbeat*>(page));
}

HeartbeatPage::HeartbeatPage(HeartbeatPage&& other) noexcept
    : fd_(std::move(other.fd_)), page_(std::exchange(other.page_, nullptr)) {}

HeartbeatPage::~HeartbeatPage() {
  if (page_ != nullptr) ::munmap(page_, sizeof(Heartbeat));
}

}  // namespace shakedown
