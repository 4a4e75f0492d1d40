// The connection to the controller: hello, page, holds (harness/wire/control.h).
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "harness/wire/control.h"
#include "harness/wire/environment.h"
#include "harness/wire/exit_code.h"
#include "injectors/probe/internal.h"

namespace shakedown::probe::internal {
namespace {

// A process must start even when its controller is stopped or wedged. On a starved machine a sound
// controller was seen not to run for a whole second; a process that gives up too early goes on
// unarmed, which makes the run INVALID.
constexpr int64_t kHelloLimitNs = 5'000'000'000;

// Written before main() and in the child of a fork only, so that threads may read it. It is never
// closed while other threads run: one of them might be about to send, and the number could already
// belong to another file. What is lost is shut down instead.
constinit int control_socket = -1;
constinit bool reference_job = false;
// One hold at a time: the controller answers on one stream.
constinit pthread_mutex_t hold_mutex = PTHREAD_MUTEX_INITIALIZER;

// Only in processes that were given a controller; a line on stderr is all that a probe can say.
void GoOnUnarmed(const char* tried, const char* on, int error) {
  char line[512];
  const int n = std::snprintf(line, sizeof line,
                              "shakedown probe: cannot %s '%s': %s; going on unarmed, is the "
                              "controller of this run still there?\n",
                              tried, on, std::strerror(error));
  if (n <= 0) return;
  const size_t bytes = std::min(static_cast<size_t>(n), sizeof line - 1);
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, bytes);
}

// -1 when absent or no number.
int32_t NumberFrom(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return -1;
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (errno != 0 || *end != '\0' || value < 0 || value > std::numeric_limits<int32_t>::max()) {
    return -1;
  }
  return static_cast<int32_t>(value);
}

HelloMessage MakeHello() {
  HelloMessage hello{};
  hello.header = {kControlMagic, MessageKind::kHello};
  hello.pid = ::getpid();
  hello.worker_hint = NumberFrom(env::kWorker);
  hello.role = hello.worker_hint >= 0 ? Role::kWorker : Role::kRank;
  hello.rank_hint = NumberFrom(env::kRank);
  hello.attempt_hint = NumberFrom(env::kRestartCount);
  hello.incarnation = std::max(NumberFrom(env::kIncarnation), 0);
  return hello;
}

// Unix sockets do not send part of a packet.
bool Send(const void* message, size_t bytes) {
  ssize_t sent = 0;
  do {
    sent = ::send(control_socket, message, bytes, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes);
}

bool Connect(int socket, const sockaddr_un& address, int64_t deadline_ns) {
  while (true) {
    const int64_t left_us = (deadline_ns - MonotonicNs()) / 1000;
    if (left_us <= 0) {
      errno = ETIMEDOUT;
      return false;
    }
    // SO_SNDTIMEO also bounds connect() while the listener's queue is full (unix(7), socket(7)),
    // and later each send.
    const timeval limit{left_us / 1'000'000, left_us % 1'000'000};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      return true;
    }
    if (errno != EINTR) return false;
  }
}

bool WaitReadable(int socket, int64_t deadline_ns) {
  while (true) {
    const int64_t left_ms = (deadline_ns - MonotonicNs() + 999'999) / 1'000'000;
    pollfd entry{socket, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::max<int64_t>(left_ms, 0)));
    if (ready > 0) return true;
    if (ready == 0) {
      errno = ETIMEDOUT;
      return false;
    }
    if (errno != EINTR) return false;
  }
}

// The descriptor that came with the welcome; -1 with errno 0 when the controller does not want this
// process, with another errno when the answer is not a welcome.
int ReceiveWelcome(int socket) {
  WelcomeMessage welcome{};
  iovec content{&welcome, sizeof welcome};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  ssize_t received = 0;
  do {
    received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return -1;
  int page_fd = -1;
  if (const cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr && c->cmsg_level == SOL_SOCKET &&
                                                  c->cmsg_type == SCM_RIGHTS &&
                                                  c->cmsg_len == CMSG_LEN(sizeof(int))) {
    std::memcpy(&page_fd, CMSG_DATA(c), sizeof page_fd);
  }
  const bool is_welcome = received == sizeof welcome && (message.msg_flags & MSG_TRUNC) == 0 &&
                          welcome.header.magic == kControlMagic &&
                          welcome.header.kind == MessageKind::kWelcome;
  if (is_welcome && welcome.accepted != 0 && page_fd >= 0) return page_fd;
  if (page_fd >= 0) ::close(page_fd);
  errno = is_welcome && welcome.accepted == 0 ? 0 : EPROTO;
  return -1;
}

// Without the seals another holder of the descriptor could shrink the file, and the next pass of a
// point would be a SIGBUS.
ProgressPage* MapPage(int page_fd) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  struct stat st {};
  const int seals = ::fcntl(page_fd, F_GET_SEALS);
  if (::fstat(page_fd, &st) != 0 || st.st_size != static_cast<off_t>(kPageBytes) || seals < 0 ||
      (seals & kSeals) != kSeals) {
    errno = EPROTO;
    return nullptr;
  }
  void* memory = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* mapped = static_cast<ProgressPage*>(memory);
  // A page that says nothing yet is the process's to fill; one of another version is not ours.
  if (mapped->observed.magic != 0 &&
      (mapped->observed.magic != kPageMagic || mapped->observed.version != kPageVersion)) {
    ::munmap(memory, kPageBytes);
    errno = EPROTO;
    return nullptr;
  }
  return mapped;
}

ProgressPage* Meet(int socket, const char* path, const HelloMessage& hello) {
  const int64_t deadline_ns = MonotonicNs() + kHelloLimitNs;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) {
    GoOnUnarmed("connect to the control socket", path, ENAMETOOLONG);
    return nullptr;
  }
  std::memcpy(address.sun_path, path, std::strlen(path) + 1);
  if (!Connect(socket, address, deadline_ns)) {
    GoOnUnarmed("connect to the control socket", path, errno);
    return nullptr;
  }
  control_socket = socket;
  if (!Send(&hello, sizeof hello) || !WaitReadable(socket, deadline_ns)) {
    GoOnUnarmed("get an answer from the control socket", path, errno);
    return nullptr;
  }
  const int page_fd = ReceiveWelcome(socket);
  if (page_fd < 0) {
    if (errno != 0) GoOnUnarmed("understand the answer of the control socket", path, errno);
    return nullptr;
  }
  ProgressPage* mapped = MapPage(page_fd);
  if (mapped == nullptr) GoOnUnarmed("use the progress page from the control socket", path, errno);
  ::close(page_fd);
  return mapped;
}

bool ReceiveRelease(uint32_t arm_index, ReleaseMessage* release) {
  ssize_t received = 0;
  do {
    // MSG_TRUNC: the packet's own length comes back, so one that is too long is seen.
    received = ::recv(control_socket, release, sizeof *release, MSG_TRUNC);
  } while (received < 0 && errno == EINTR);
  return received == sizeof *release && release->header.magic == kControlMagic &&
         release->header.kind == MessageKind::kRelease && release->arm_index == arm_index;
}

Answer ControlLost() {
  if (reference_job) ::_exit(kRankControlLost);
  ::shutdown(control_socket, SHUT_RDWR);
  return Answer::kGoOn;
}

}  // namespace

ProgressPage* SayHello(uint8_t* attempt_hint) {
  const HelloMessage hello = MakeHello();
  *attempt_hint = static_cast<uint8_t>(std::max(hello.attempt_hint, 0));
  const char* path = std::getenv(env::kControlSocket);
  if (path == nullptr || *path == '\0') return nullptr;
  const char* reference = std::getenv(env::kReference);
  reference_job = reference != nullptr && std::strcmp(reference, "1") == 0;

  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    GoOnUnarmed("make a socket for", path, errno);
    return nullptr;
  }
  ProgressPage* mapped = Meet(socket, path, hello);
  if (mapped == nullptr) {
    ::close(socket);
    control_socket = -1;
    return nullptr;
  }
  PageObserved& observed = mapped->observed;
  observed.magic = kPageMagic;
  observed.version = kPageVersion;
  observed.rank.store(-1);
  observed.world_size.store(0);
  observed.worker.store(hello.worker_hint);
  observed.pid.store(hello.pid);
  return mapped;
}

void SendJoined(int rank, int world_size) {
  if (control_socket < 0) return;
  JoinedMessage joined{};
  joined.header = {kControlMagic, MessageKind::kJoined};
  joined.rank = rank;
  joined.world_size = world_size;
  Send(&joined, sizeof joined);
}

void SendFired(const Match& match) {
  if (control_socket < 0) return;
  FiredMessage fired{};
  fired.header = {kControlMagic, MessageKind::kFired};
  fired.arm_id = match.arm_id;
  fired.arm_index = match.arm_index;
  fired.point = static_cast<uint32_t>(match.point);
  fired.step = match.step;
  fired.occurrence = match.occurrence;
  fired.t_ns = match.reached_ns;
  Send(&fired, sizeof fired);
}

Answer Hold(const Match& match) {
  HeldMessage held{};
  held.header = {kControlMagic, MessageKind::kHeld};
  held.arm_id = match.arm_id;
  held.arm_index = match.arm_index;
  held.point = static_cast<uint32_t>(match.point);
  held.step = match.step;
  held.occurrence = match.occurrence;
  held.lane = lane;
  held.t_ns = match.reached_ns;

  ::pthread_mutex_lock(&hold_mutex);
  ReleaseMessage release{};
  Answer answer = Answer::kGoOn;
  if (!Send(&held, sizeof held) || !ReceiveRelease(match.arm_index, &release)) {
    answer = ControlLost();
  } else if (release.act != 0) {
    answer = Answer::kAct;
  }
  ::pthread_mutex_unlock(&hold_mutex);
  return answer;
}

void DropConnection(ProgressPage* shared) {
  if (control_socket >= 0) ::close(control_socket);
  control_socket = -1;
  // A thread that was held when this one forked has taken the mutex with it.
  hold_mutex = PTHREAD_MUTEX_INITIALIZER;
  if (shared != nullptr) ::munmap(shared, kPageBytes);
}

}  // namespace shakedown::probe::internal
