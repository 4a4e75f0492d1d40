#include "harness/reaper/client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <set>
#include <utility>

#include "harness/process/process_tree.h"
#include "harness/process/spawn.h"

namespace shakedown {
namespace {

constexpr Milliseconds kAnswerDeadline{10'000};
// Beyond what the reaper was given for the work itself.
constexpr Milliseconds kAnswerGrace{5'000};
constexpr Milliseconds kDestructorDeadline{10'000};
constexpr int kLookAgainMs = 10;

// Reapers of this process that are at work: their subtrees are not orphans of another one's.
std::mutex live_reapers_mutex;
std::vector<ProcessIdentity> live_reapers;

void AddLiveReaper(const ProcessIdentity& reaper) {
  const std::lock_guard lock(live_reapers_mutex);
  live_reapers.push_back(reaper);
}

void RemoveLiveReaper(const ProcessIdentity& reaper) {
  const std::lock_guard lock(live_reapers_mutex);
  std::erase(live_reapers, reaper);
}

std::vector<ProcessIdentity> LiveReapers() {
  const std::lock_guard lock(live_reapers_mutex);
  return live_reapers;
}

// Waits until `fd` is ready for `events`; false at the deadline.
bool Await(int fd, short events, MonoTime deadline) {
  while (true) {
    pollfd ready{fd, events, 0};
    const auto left = std::chrono::ceil<Milliseconds>(deadline - MonoNow()).count();
    const int n = ::poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX)));
    if (n == 1) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

tl::unexpected<Error> Gone() {
  return Fail("the reaper of this run is gone: something killed it", EPIPE);
}

Json BytesList(const std::vector<std::string>& strings) {
  Json list = Json::array();
  for (const std::string& s : strings) list.push_back(BytesToJson(s));
  return list;
}

Result<std::vector<LeftoverProcess>> ParseProcesses(const Json& list) {
  std::vector<LeftoverProcess> processes;
  for (const Json& item : list) {
    Result<ProcessIdentity> identity = IdentityFromJson(Field(item, "process"));
    if (!identity) return tl::unexpected(identity.error());
    const std::string state = StringField(item, "state").value_or("-");
    processes.push_back({*std::move(identity), state.empty() ? '-' : state[0],
                         StringField(item, "command").value_or("")});
  }
  return processes;
}

Result<ReaperEvent> ParseEvent(const Json& body) {
  Result<ProcessIdentity> process = IdentityFromJson(Field(body, "process"));
  if (!process) return tl::unexpected(process.error());
  ReaperEvent event;
  event.process = *std::move(process);
  const std::string role = StringField(body, "role").value_or("");
  event.role = role == "job"      ? ReaperEvent::Role::kJob
               : role == "holder" ? ReaperEvent::Role::kHolder
                                  : ReaperEvent::Role::kOrphan;
  const int signal = SignalNumber(StringField(body, "signal").value_or(""));
  const std::optional<int64_t> code = IntField(body, "code");
  if (signal == 0 && !code) return Fail("an exit without a status: " + DumpJson(body), EBADMSG);
  event.status =
      signal != 0 ? WaitStatus::Signaled(signal) : WaitStatus::Exited(static_cast<int>(*code));
  return event;
}

std::vector<LeftoverProcess> Leftovers(const std::vector<TreeProcess>& processes) {
  std::vector<LeftoverProcess> leftovers;
  for (const TreeProcess& p : processes) {
    leftovers.push_back({p.identity, p.state, CommandOf(p.identity.pid)});
  }
  return leftovers;
}

// A child of ours that was killed.
void ReapSoon(const ProcessIdentity& child) {
  const Result<UniqueFd> pidfd = OpenPidfd(child);
  if (pidfd && Await(pidfd->get(), POLLIN, MonoNow() + Milliseconds(kLookAgainMs))) {
    (void)TryWait(pidfd->get());
  }
}

std::string Describe(const std::vector<LeftoverProcess>& processes) {
  std::string text;
  for (const LeftoverProcess& p : processes) {
    text += (text.empty() ? "" : ", ") + std::to_string(p.process.pid) + " (" + p.command + ", " +
            p.state + ")";
  }
  return text;
}

Result<SpawnedProcess> StartReaper(const std::string& binary, const std::string& run, int socket) {
  const UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!self) return FailErrno("open a pidfd of", "this process");
  SpawnOptions options;
  options.argv = {binary, "--run", run};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    options.environment.emplace_back(*variable);
  }
  options.descriptors = {{STDERR_FILENO, STDERR_FILENO},
                         {socket, kReaperSocketFd},
                         {self.get(), kReaperControllerPidfd}};
  // Closed by the user's shell, perhaps.
  if (::fcntl(STDERR_FILENO, F_GETFD) < 0) options.descriptors.erase(options.descriptors.begin());
  options.new_session = true;
  return Spawn(options);
}

}  // namespace

Result<ReaperClient> ReaperClient::Start(const std::string& reaper_binary, const RunDir& run) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(run.root(), error);
  if (error) return FailErrno("start a reaper for", run.root().native(), error.value());
  const Result<ProcessTree> before = ProcessesBelow(::getpid());
  if (!before) return tl::unexpected(before.error());
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return FailErrno("become", "a subreaper");
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return FailErrno("create a socketpair for", "the reaper");
  }
  ReaperClient client;
  client.socket_.Reset(ends[0]);
  UniqueFd theirs(ends[1]);
  if (::fcntl(client.socket_.get(), F_SETFL, O_NONBLOCK) != 0) {
    return FailErrno("set up", "the reaper's socket");
  }
  for (const TreeProcess& process : before->processes) client.before_.push_back(process.identity);
  Result<SpawnedProcess> process = StartReaper(reaper_binary, root.native(), theirs.get());
  if (!process) return tl::unexpected(process.error());
  theirs.Reset();
  client.pidfd_ = std::move(process->pidfd);
  client.identity_ = process->identity;
  AddLiveReaper(client.identity_);
  const Result<ReaperMessage> ready = client.AwaitAnswer(0, MonoNow() + kAnswerDeadline);
  if (!ready) return Wrap("the reaper '" + reaper_binary + "' did not start", ready.error());
  return client;
}

ReaperClient::ReaperClient(ReaperClient&& other) noexcept = default;

ReaperClient::~ReaperClient() {
  if (!pidfd_) return;
  socket_.Reset();
  if (Await(pidfd_.get(), POLLIN, MonoNow() + kDestructorDeadline)) (void)Wait(pidfd_.get());
  RemoveLiveReaper(identity_);
}

Status ReaperClient::QueueEvent(const Json& body) {
  Result<ReaperEvent> event = ParseEvent(body);
  if (!event) return tl::unexpected(event.error());
  events_.push_back(*std::move(event));
  return {};
}

Result<std::vector<ReaperEvent>> ReaperClient::ReadEvents() {
  while (true) {
    const Result<std::optional<ReaperMessage>> message = ReceiveReaperMessage(socket_.get());
    if (!message && message.error().code == EAGAIN) break;
    if (!message) return tl::unexpected(message.error());
    if (!message->has_value()) {
      if (events_.empty()) return Gone();
      break;
    }
    // An answer that comes after its deadline is nobody's any more.
    if ((*message)->body.contains("event")) SHAKEDOWN_TRY(QueueEvent((*message)->body));
  }
  std::vector<ReaperEvent> events(events_.begin(), events_.end());
  events_.clear();
  return events;
}

Result<ReaperMessage> ReaperClient::AwaitAnswer(int64_t id, MonoTime deadline) {
  while (true) {
    if (!Await(socket_.get(), POLLIN, deadline)) {
      return Fail("the reaper (process " + std::to_string(identity_.pid) +
                      ") does not answer; see what it hangs in",
                  ETIMEDOUT);
    }
    Result<std::optional<ReaperMessage>> message = ReceiveReaperMessage(socket_.get());
    if (!message && message.error().code == EAGAIN) continue;
    if (!message) return tl::unexpected(message.error());
    if (!message->has_value()) return Gone();
    ReaperMessage& received = **message;
    if (received.body.contains("event")) {
      SHAKEDOWN_TRY(QueueEvent(received.body));
      continue;
    }
    if (IntField(received.body, "id") != id) continue;
    if (const std::optional<std::string> error = StringField(received.body, "error")) {
      return Fail(*error, static_cast<int>(IntField(received.body, "code").value_or(0)));
    }
    return std::move(received);
  }
}

Result<ReaperMessage> ReaperClient::Ask(Json request, const std::vector<int>& descriptors,
                                        Milliseconds within) {
  const MonoTime deadline = MonoNow() + within;
  request["id"] = ++last_id_;
  while (true) {
    const Status sent = SendReaperMessage(socket_.get(), request, descriptors);
    if (sent) return AwaitAnswer(last_id_, deadline);
    if (sent.error().code == EPIPE || sent.error().code == ECONNRESET) return Gone();
    if (sent.error().code != EAGAIN) return tl::unexpected(sent.error());
    if (!Await(socket_.get(), POLLOUT, deadline)) {
      return Fail("the reaper (process " + std::to_string(identity_.pid) +
                      ") does not read its commands; see what it hangs in",
                  ETIMEDOUT);
    }
  }
}

Result<PrivateFilesystem> ReaperClient::ProvisionPrivateFilesystem(const std::string& mountpoint,
                                                                   int64_t bytes) {
  Result<ReaperMessage> answer = Ask({{"command", reaper_commands::kProvisionPrivateFs},
                                      {"mountpoint", BytesToJson(mountpoint)},
                                      {"bytes", bytes}},
                                     {}, kAnswerDeadline + kAnswerGrace);
  if (!answer) return tl::unexpected(answer.error());
  Result<ProcessIdentity> holder = IdentityFromJson(Field(answer->body, "holder"));
  if (!holder) return tl::unexpected(holder.error());
  if (answer->descriptors.size() != 1) {
    return Fail("the reaper made a private filesystem but passed no descriptor of it", EBADMSG);
  }
  return PrivateFilesystem{*std::move(holder),
                           BoolField(answer->body, "user_namespace").value_or(false),
                           std::move(answer->descriptors[0])};
}

Result<StartedJob> ReaperClient::StartJob(const JobRequest& request) {
  Result<ReaperMessage> answer = Ask({{"command", reaper_commands::kStartJob},
                                      {"argv", BytesList(request.argv)},
                                      {"environment", BytesList(request.environment)},
                                      {"directory", BytesToJson(request.directory)},
                                      {"in_private_fs", request.in_private_fs}},
                                     {request.stdout_fd, request.stderr_fd}, kAnswerDeadline);
  if (!answer) return tl::unexpected(answer.error());
  Result<ProcessIdentity> process = IdentityFromJson(Field(answer->body, "process"));
  if (!process) return tl::unexpected(process.error());
  if (answer->descriptors.size() != 1) {
    return Fail("the reaper started the job but passed no pidfd of it", EBADMSG);
  }
  return StartedJob{*std::move(process), std::move(answer->descriptors[0])};
}

Result<std::vector<LeftoverProcess>> ReaperClient::AskForProcesses(Json request,
                                                                   Milliseconds within) {
  const Result<ReaperMessage> answer = Ask(std::move(request), {}, within);
  if (!answer) return tl::unexpected(answer.error());
  return ParseProcesses(Field(answer->body, "processes"));
}

Result<std::vector<LeftoverProcess>> ReaperClient::InspectLeftovers() {
  return AskForProcesses({{"command", reaper_commands::kInspectLeftovers}}, kAnswerDeadline);
}

Result<std::vector<LeftoverProcess>> ReaperClient::EndAll(Milliseconds deadline) {
  return AskForProcesses({{"command", reaper_commands::kEndAll}, {"deadline_ms", deadline.count()}},
                         deadline + kAnswerGrace);
}

Status ReaperClient::KeepPage(const std::string& name, int page_fd) {
  const Result<ReaperMessage> answer =
      Ask({{"command", reaper_commands::kKeepPage}, {"name", BytesToJson(name)}}, {page_fd},
          kAnswerDeadline);
  if (!answer) return tl::unexpected(answer.error());
  return {};
}

Status ReaperClient::Shutdown(Milliseconds deadline) {
  const Result<std::vector<LeftoverProcess>> remain =
      AskForProcesses({{"command", reaper_commands::kShutdown}, {"deadline_ms", deadline.count()}},
                      deadline + kAnswerGrace);
  if (!remain) return tl::unexpected(remain.error());
  if (!Await(pidfd_.get(), POLLIN, MonoNow() + kAnswerGrace)) {
    return Fail("the reaper (process " + std::to_string(identity_.pid) +
                    ") has answered that it ends, and does not",
                ETIMEDOUT);
  }
  SHAKEDOWN_TRY(Wait(pidfd_.get()));
  pidfd_.Reset();
  RemoveLiveReaper(identity_);
  if (!remain->empty()) {
    return Fail("processes of the run remain after SIGKILL: " + Describe(*remain), EBUSY);
  }
  return {};
}

Result<std::vector<TreeProcess>> ReaperClient::Orphans() const {
  const Result<ProcessTree> tree = ProcessesBelow(::getpid());
  if (!tree) return tl::unexpected(tree.error());
  const Result<ProcessStat> self = ReadProcessStat(::getpid());
  if (!self) return tl::unexpected(self.error());
  std::vector<ProcessIdentity> spared = before_;
  for (const ProcessIdentity& reaper : LiveReapers()) {
    if (reaper != identity_) spared.push_back(reaper);
  }
  std::set<pid_t> below_spared;
  std::vector<TreeProcess> orphans;
  for (const TreeProcess& process : tree->processes) {  // parents come first
    const bool spare = below_spared.contains(process.parent) ||
                       std::find(spared.begin(), spared.end(), process.identity) != spared.end();
    if (spare) below_spared.insert(process.identity.pid);
    // A process can leave a session but never enter one, and the reaper had left ours.
    if (spare || process.session == self->session || process.identity == identity_) continue;
    orphans.push_back(process);
  }
  return orphans;
}

Result<std::vector<LeftoverProcess>> ReaperClient::EndOrphans(Milliseconds within) {
  const MonoTime deadline = MonoNow() + within;
  if (pidfd_) {
    (void)SignalPidfd(pidfd_.get(), SIGKILL);
    if (!Await(pidfd_.get(), POLLIN, deadline)) {
      return Fail("the reaper (process " + std::to_string(identity_.pid) +
                      ") is still there after SIGKILL; it hangs in the kernel",
                  ETIMEDOUT);
    }
    (void)Wait(pidfd_.get());
    pidfd_.Reset();
    RemoveLiveReaper(identity_);
  }
  for (int found_none = 0;;) {
    const Result<std::vector<TreeProcess>> orphans = Orphans();
    if (!orphans) return tl::unexpected(orphans.error());
    found_none = orphans->empty() ? found_none + 1 : 0;
    if (found_none == 2 || MonoNow() > deadline) return Leftovers(*orphans);
    KillRound(*orphans);
    for (const TreeProcess& orphan : *orphans) {
      // One that is not our child has a parent that is being ended as well, and becomes ours.
      if (orphan.parent == ::getpid()) ReapSoon(orphan.identity);
    }
  }
}

}  // namespace shakedown
