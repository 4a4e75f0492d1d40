#include "trainer/observe/heartbeat_writer.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <string>
#include <thread>
#include <utility>

#include "harness/base/time.h"
#include "harness/base/unique_fd.h"
#include "trainer/defects/defect.h"

namespace shakedown {

Result<HeartbeatWriter> HeartbeatWriter::Open(std::optional<int> fd) {
  HeartbeatWriter writer;
  if (!fd) return writer;
  const UniqueFd owned(*fd);
  const std::string what = "heartbeat descriptor " + std::to_string(*fd);
  struct stat st {};
  if (::fstat(owned.get(), &st) != 0) return FailErrno("use", what);
  // Writing beyond the end of the memory would be SIGBUS.
  if (st.st_size < static_cast<off_t>(sizeof(Heartbeat))) {
    return Fail("cannot use " + what + ": " + std::to_string(st.st_size) +
                " bytes are too few for a heartbeat");
  }
  void* page =
      ::mmap(nullptr, sizeof(Heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED, owned.get(), 0);
  if (page == MAP_FAILED) return FailErrno("map", what);
  writer.page_ = static_cast<Heartbeat*>(page);
  return writer;
}

HeartbeatWriter::HeartbeatWriter(HeartbeatWriter&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)) {}

HeartbeatWriter::~HeartbeatWriter() {
  if (page_ != nullptr) ::munmap(page_, sizeof(Heartbeat));
}

void HeartbeatWriter::Ready() {
  if (page_ == nullptr) return;
  page_->ready.store(1, std::memory_order_relaxed);
  if (Planted(Defect::kHeartbeatWithoutProgress)) {
    std::thread([page = page_] {
      while (true) {
        std::this_thread::sleep_for(Milliseconds(50));
        page->step.fetch_add(1, std::memory_order_relaxed);
      }
    }).detach();
  }
}

void HeartbeatWriter::StepCompleted(int64_t step) {
  if (page_ != nullptr) {
    page_->step.store(static_cast<uint64_t>(step), std::memory_order_relaxed);
  }
}

}  // namespace shakedown
