#include "harness/reaper/reaper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

#include "harness/base/file.h"
#include "harness/base/log.h"
#include "harness/reaper/holder.h"
#include "harness/wire/progress_page.h"
#include "injectors/play_journal.h"

namespace shakedown {
namespace {

constexpr Milliseconds kHolderStart{10'000};
constexpr Milliseconds kHolderEnd{2'000};
constexpr Milliseconds kDefaultEnd{5'000};
// What is still there after this long hangs in the kernel, and waiting longer helps nobody.
constexpr Milliseconds kLostEnd{60'000};
// A process that is killed far below is no child of ours: its end brings no signal, so the tree is
// looked at again after this long.
constexpr int kLookAgainMs = 10;
constexpr int kInspectTries = 20;

int LeftMs(MonoTime deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - MonoNow()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

// Whether `fd` becomes readable before the deadline.
bool AwaitReadable(int fd, MonoTime deadline) {
  while (true) {
    pollfd ready{fd, POLLIN, 0};
    const int n = ::poll(&ready, 1, LeftMs(deadline));
    if (n == 1) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

Milliseconds DeadlineOf(const Json& request) {
  return Milliseconds(IntField(request, "deadline_ms").value_or(kDefaultEnd.count()));
}

Json Describe(const std::vector<TreeProcess>& processes) {
  Json list = Json::array();
  for (const TreeProcess& process : processes) {
    list.push_back({{"process", ToJson(process.identity)},
                    {"state", std::string(1, process.state)},
                    {"command", CommandOf(process.identity.pid)}});
  }
  return list;
}

Result<std::string> BytesField(const Json& request, std::string_view key) {
  const std::optional<std::string> text = StringField(request, key);
  if (!text) return Fail("the command has no '" + std::string(key) + "'", EBADMSG);
  return BytesFromJson(*text);
}

Result<std::vector<std::string>> BytesListField(const Json& request, std::string_view key) {
  std::vector<std::string> list;
  for (const Json& item : Field(request, key)) {
    if (!item.is_string()) return Fail("'" + std::string(key) + "' is no list of strings", EBADMSG);
    Result<std::string> bytes = BytesFromJson(item.get<std::string>());
    if (!bytes) return tl::unexpected(bytes.error());
    list.push_back(*std::move(bytes));
  }
  return list;
}

// Components of a relative path that stays inside; empty when it is none.
std::vector<std::string> InsideParts(const std::string& name) {
  std::vector<std::string> parts;
  if (name.find('\0') != std::string::npos) return {};
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    std::string part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return {};
    parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

// Creates RUN/name for writing, with the folders on the way, following no link.
Result<UniqueFd> CreateInside(const std::filesystem::path& run, const std::string& name) {
  const std::vector<std::string> parts = InsideParts(name);
  SHAKEDOWN_ASSERT(!parts.empty());
  UniqueFd folder(::open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t i = 0; folder && i + 1 < parts.size(); ++i) {
    if (::mkdirat(folder.get(), parts[i].c_str(), 0700) != 0 && errno != EEXIST) break;
    folder.Reset(
        ::openat(folder.get(), parts[i].c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!folder) return FailErrno("open the folder of", name);
  UniqueFd file(::openat(folder.get(), parts.back().c_str(),
                         O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!file) return FailErrno("create", name);
  return file;
}

Status WritePage(const std::filesystem::path& run, const std::string& name, int page) {
  std::string observed(kPageObservedBytes, '\0');
  const ssize_t n = ::pread(page, observed.data(), observed.size(), 0);
  if (n != static_cast<ssize_t>(observed.size())) return FailErrno("read the page of", name);
  const Result<UniqueFd> file = CreateInside(run, name);
  if (!file) return tl::unexpected(file.error());
  return WriteAll(file->get(), observed, name);
}

}  // namespace

Result<Reaper> Reaper::Make(RunDir run, UniqueFd socket, UniqueFd controller) {
  Reaper reaper(std::move(run));
  for (const int fd : {socket.get(), controller.get()}) {
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      return FailErrno("find the controller's descriptor", std::to_string(fd));
    }
  }
  if (::fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0) return FailErrno("set up", "the socket");
  reaper.socket_ = std::move(socket);
  reaper.controller_ = std::move(controller);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return FailErrno("become", "a subreaper");
  // Ends only when its work is done: what ends a terminal or a session is not meant for it.
  for (const int signal : {SIGINT, SIGHUP, SIGTERM, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTOU}) {
    ::signal(signal, SIG_IGN);
  }
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  if (::sigprocmask(SIG_BLOCK, &child, nullptr) != 0) return FailErrno("block", "SIGCHLD");
  reaper.child_signal_.Reset(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!reaper.child_signal_) return FailErrno("create a signalfd of", "SIGCHLD");
  return reaper;
}

int Reaper::Run() {
  Send({{"id", 0}});  // ready: from here on nothing that we start can get lost
  while (true) {
    switch (WaitForNext()) {
      case Turn::kGoOn:
        break;
      case Turn::kShutDown:
        return ShutDown();
      case Turn::kControllerLost:
        return OnControllerLost();
    }
  }
}

Reaper::Turn Reaper::WaitForNext() {
  pollfd ready[] = {
      {controller_.get(), POLLIN, 0},
      {child_signal_.get(), POLLIN, 0},
      {socket_.get(), static_cast<short>(outgoing_.empty() ? POLLIN : POLLIN | POLLOUT), 0}};
  if (::poll(ready, std::size(ready), -1) < 0) {
    SHAKEDOWN_ASSERT(errno == EINTR);
    return Turn::kGoOn;
  }
  if (ready[0].revents != 0) return Turn::kControllerLost;
  if (ready[1].revents != 0) Reap();
  if ((ready[2].revents & POLLOUT) != 0) Flush();
  if ((ready[2].revents & ~POLLOUT) != 0) return ReadCommands();
  return Turn::kGoOn;
}

Reaper::Turn Reaper::ReadCommands() {
  Result<std::optional<ReaperMessage>> message = ReceiveReaperMessage(socket_.get());
  if (!message && message.error().code == EAGAIN) return Turn::kGoOn;
  if (!message) {
    LogError(message.error().message);
    return Turn::kControllerLost;
  }
  if (!message->has_value()) return Turn::kControllerLost;
  Handle(std::move(**message));
  return shutdown_deadline_ ? Turn::kShutDown : Turn::kGoOn;
}

void Reaper::Handle(ReaperMessage message) {
  const Json id = Field(message.body, "id");
  const std::string command = StringField(message.body, "command").value_or("");
  if (command == reaper_commands::kShutdown) {
    shutdown_deadline_ = DeadlineOf(message.body);
    shutdown_id_ = id;
    return;
  }
  Result<Answer> answer = Carry(command, message);
  if (!answer) {
    Send({{"id", id}, {"error", answer.error().message}, {"code", answer.error().code}});
    return;
  }
  answer->body["id"] = id;
  Send(std::move(answer->body), std::move(answer->descriptors));
}

Result<Reaper::Answer> Reaper::Carry(const std::string& command, ReaperMessage& message) {
  if (command == reaper_commands::kProvisionPrivateFs) return ProvisionPrivateFs(message.body);
  if (command == reaper_commands::kStartJob) return StartJob(message.body, message.descriptors);
  if (command == reaper_commands::kInspectLeftovers) return InspectLeftovers();
  if (command == reaper_commands::kEndAll) return EndAll(message.body);
  if (command == reaper_commands::kKeepPage) return KeepPage(message.body, message.descriptors);
  return Fail("the reaper knows no command '" + command + "'", EBADMSG);
}

Result<Reaper::Answer> Reaper::ProvisionPrivateFs(const Json& request) {
  if (holder_) return Fail("the run has a private filesystem already", EEXIST);
  const Result<std::string> mountpoint = BytesField(request, "mountpoint");
  if (!mountpoint) return tl::unexpected(mountpoint.error());
  const int64_t bytes = IntField(request, "bytes").value_or(0);
  if (bytes <= 0) return Fail("a private filesystem needs a size", EINVAL);

  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return FailErrno("create a socketpair for", "the holder");
  }
  Holder holder;
  holder.socket.Reset(ends[0]);
  UniqueFd theirs(ends[1]);
  SpawnOptions options;
  options.argv = {"/proc/self/exe", "--hold", *mountpoint, std::to_string(bytes)};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    options.environment.emplace_back(*variable);
  }
  options.descriptors = {{theirs.get(), kHolderSocketFd}, {STDERR_FILENO, STDERR_FILENO}};
  Result<SpawnedProcess> process = Spawn(options);
  if (!process) return tl::unexpected(process.error());
  theirs.Reset();
  holder.process = *std::move(process);

  if (!AwaitReadable(holder.socket.get(), MonoNow() + kHolderStart)) {
    return Fail("the holder of the private filesystem at '" + *mountpoint + "' does not answer",
                ETIMEDOUT);
  }
  Result<std::optional<ReaperMessage>> told = ReceiveReaperMessage(holder.socket.get());
  if (!told) return tl::unexpected(told.error());
  if (!told->has_value()) return Fail("the holder of the private filesystem died", ECHILD);
  ReaperMessage& message = **told;
  if (const std::optional<std::string> error = StringField(message.body, "error")) {
    return Fail(*error, static_cast<int>(IntField(message.body, "code").value_or(0)));
  }
  Result<Namespaces> namespaces = OpenNamespaces(holder.process.identity);
  if (!namespaces) return tl::unexpected(namespaces.error());
  holder.namespaces = *std::move(namespaces);
  holder_ = std::move(holder);
  return Answer{{{"holder", ToJson(holder_->process.identity)},
                 {"user_namespace", Field(message.body, "user_namespace")}},
                std::move(message.descriptors)};
}

Result<Reaper::Answer> Reaper::StartJob(const Json& request, std::vector<UniqueFd>& descriptors) {
  Result<std::vector<std::string>> argv = BytesListField(request, "argv");
  Result<std::vector<std::string>> environment = BytesListField(request, "environment");
  Result<std::string> directory = BytesField(request, "directory");
  if (!argv) return tl::unexpected(argv.error());
  if (!environment) return tl::unexpected(environment.error());
  if (!directory) return tl::unexpected(directory.error());
  if (descriptors.size() != 2) return Fail("a job needs stdout and stderr", EBADMSG);
  SpawnOptions options;
  options.argv = *std::move(argv);
  options.environment = *std::move(environment);
  options.directory = *std::move(directory);
  options.descriptors = {{descriptors[0].get(), STDOUT_FILENO},
                         {descriptors[1].get(), STDERR_FILENO}};
  options.new_session = true;
  if (BoolField(request, "in_private_fs").value_or(false)) {
    if (!holder_) return Fail("the job is to start in a private filesystem; there is none", EINVAL);
    options.mount_namespace_fd = holder_->namespaces.mount.get();
    if (holder_->namespaces.user) options.user_namespace_fd = holder_->namespaces.user.get();
  }
  Result<SpawnedProcess> process = Spawn(options);
  if (!process) return tl::unexpected(process.error());
  jobs_.push_back(process->identity);
  Answer answer{{{"process", ToJson(process->identity)}}, {}};
  answer.descriptors.push_back(std::move(process->pidfd));
  return answer;
}

Result<ProcessTree> Reaper::Others() {
  Result<ProcessTree> tree = ProcessesBelow(::getpid());
  if (tree && holder_) {
    std::erase_if(tree->processes, [&](const TreeProcess& process) {
      return process.identity == holder_->process.identity;
    });
  }
  return tree;
}

Result<Reaper::Answer> Reaper::InspectLeftovers() {
  Result<ProcessTree> tree;
  for (int i = 0; i < kInspectTries; ++i) {
    Reap();
    tree = Others();
    if (!tree) return tl::unexpected(tree.error());
    if (tree->settled) break;
  }
  return Answer{{{"processes", Describe(tree->processes)}}, {}};
}

Result<Reaper::Answer> Reaper::EndAll(const Json& request) {
  const Result<std::vector<TreeProcess>> remain = EndSubtree(DeadlineOf(request));
  if (!remain) return tl::unexpected(remain.error());
  return Answer{{{"processes", Describe(*remain)}}, {}};
}

Result<Reaper::Answer> Reaper::KeepPage(const Json& request, std::vector<UniqueFd>& descriptors) {
  Result<std::string> name = BytesField(request, "name");
  if (!name) return tl::unexpected(name.error());
  if (descriptors.size() != 1) return Fail("a page to keep needs its memfd", EBADMSG);
  if (InsideParts(*name).empty()) {
    return Fail("'" + *name + "' is not a path inside the run directory", EINVAL);
  }
  pages_[*name] = std::move(descriptors[0]);
  return Answer{};
}

void Reaper::Send(Json body, std::vector<UniqueFd> descriptors) {
  outgoing_.push_back({std::move(body), std::move(descriptors)});
  Flush();
}

void Reaper::Flush() {
  while (!outgoing_.empty()) {
    const Outgoing& next = outgoing_.front();
    std::vector<int> descriptors;
    for (const UniqueFd& fd : next.descriptors) descriptors.push_back(fd.get());
    const Status sent = SendReaperMessage(socket_.get(), next.body, descriptors);
    if (!sent && sent.error().code == EAGAIN) return;
    // Nobody listens any more: the next turn finds the end of the connection.
    if (!sent) return outgoing_.clear();
    outgoing_.pop_front();
  }
}

void Reaper::Reap() {
  signalfd_siginfo ignored[16];
  while (::read(child_signal_.get(), ignored, sizeof ignored) > 0) continue;
  while (true) {
    // Looked at before it is reaped: until then its pid is its own, and /proc knows its start time.
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    const Result<ProcessIdentity> identity = IdentityOf(info.si_pid);
    const pid_t pid = info.si_pid;
    info = {};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) != 0) return;
    if (!identity) {
      LogError(identity.error().message);
      continue;
    }
    const bool is_job = std::find(jobs_.begin(), jobs_.end(), *identity) != jobs_.end();
    const bool is_holder = holder_ && holder_->process.identity == *identity;
    Json event{{"event", "exited"},
               {"role", is_job      ? "job"
                        : is_holder ? "holder"
                                    : "orphan"},
               {"process", ToJson(*identity)}};
    WaitStatus::FromSiginfo(info).AddTo(event);
    Send(std::move(event));
  }
}

Result<std::vector<TreeProcess>> Reaper::EndSubtree(Milliseconds within) {
  const MonoTime deadline = MonoNow() + within;
  int found_empty = 0;
  while (true) {
    Reap();
    Result<ProcessTree> tree = Others();
    if (!tree) return tl::unexpected(tree.error());
    if (tree->processes.empty() && tree->settled && ++found_empty == 2) return tree->processes;
    if (!tree->processes.empty()) found_empty = 0;
    KillRound(tree->processes);
    if (MonoNow() > deadline) return tree->processes;
    if (tree->processes.empty()) continue;
    pollfd ended{child_signal_.get(), POLLIN, 0};
    (void)::poll(&ended, 1, kLookAgainMs);
  }
}

void Reaper::EndHolder() {
  if (!holder_) return;
  holder_->socket.Reset();
  holder_->namespaces = {};
  if (!AwaitReadable(holder_->process.pidfd.get(), MonoNow() + kHolderEnd)) {
    (void)SignalPidfd(holder_->process.pidfd.get(), SIGKILL);
    (void)AwaitReadable(holder_->process.pidfd.get(), MonoNow() + kHolderEnd);
  }
  Reap();
  holder_.reset();
}

void Reaper::WritePages() {
  for (const auto& [name, page] : pages_) {
    const Status written = WritePage(run_.root(), name, page.get());
    if (!written) LogError(written.error().message);
  }
}

int Reaper::ShutDown() {
  const Result<std::vector<TreeProcess>> remain = EndSubtree(*shutdown_deadline_);
  EndHolder();
  Json answer{{"id", shutdown_id_}};
  if (remain) {
    answer["processes"] = Describe(*remain);
  } else {
    answer["error"] = remain.error().message;
    answer["code"] = remain.error().code;
  }
  // The last words may wait for room: the controller is there and asked for them.
  ::fcntl(socket_.get(), F_SETFL, 0);
  Send(std::move(answer));
  return remain && remain->empty() ? 0 : 1;
}

int Reaper::OnControllerLost() {
  bool clean = true;
  const auto say = [&](const std::string& problem) {
    clean = false;
    LogError(problem);
  };
  if (Status noted = NoteInUndone(run_, "reaper", "controller.lost"); !noted) {
    say(noted.error().message);
  }
  const Result<PlayedJournal> played = PlayJournal(run_, "reaper");
  if (!played) say(played.error().message);
  if (played) {
    for (const std::string& remains : played->remains) say(remains);
  }
  const Result<std::vector<TreeProcess>> remain = EndSubtree(kLostEnd);
  if (!remain) say(remain.error().message);
  if (remain && !remain->empty()) {
    say("processes remain after SIGKILL: " + DumpJson(Describe(*remain)));
    (void)NoteInUndone(run_, "reaper", "processes.remain");
  }
  WritePages();
  EndHolder();
  return clean ? 0 : 1;
}

}  // namespace shakedown
