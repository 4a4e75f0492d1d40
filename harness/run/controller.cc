#include "harness/run/controller.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/file.h"
#include "harness/base/log.h"
#include "harness/process/process_tree.h"
#include "harness/reaper/client.h"
#include "harness/run/checkpoint_watch.h"
#include "harness/run/control_server.h"
#include "harness/run/event_loop.h"
#include "harness/run/injection.h"
#include "harness/run/load_sampler.h"
#include "harness/run/log_follower.h"
#include "harness/run/numerics.h"
#include "harness/run/page_sampler.h"
#include "harness/run/process_table.h"
#include "harness/run/recorder.h"
#include "harness/run/seal.h"
#include "harness/run/stacks.h"
#include "harness/wire/environment.h"
#include "harness/wire/log_events.h"
#include "harness/wire/schedule.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kSamplePeriod = milliseconds(10);
constexpr Nanoseconds kLoadPeriod = milliseconds(500);
// What a rank may be silent beyond three steps before we call it stopped (quality target: notice
// within three step times and one second; the rest is for sampling and for taking the stacks).
constexpr Nanoseconds kNoticeSlack = milliseconds(700);
// After the job's end its processes may still be on their way out; then what is there is left over.
constexpr Nanoseconds kLeaveTime = milliseconds(300);
// How long we wait for the kernel's or the launcher's word on exits that are known to have
// happened.
constexpr Nanoseconds kExitWordTime = milliseconds(500);
// How long a witness may go on looking when the job has ended: several times what any asks for.
constexpr Nanoseconds kWitnessTime = milliseconds(100);

Nanoseconds RunLimit(const JobConfig& job) {
  Nanoseconds limit = seconds(120) + 4 * job.steps * job.step_time + job.startup_timeout;
  const Nanoseconds hang = job.watchdog ? *job.watchdog : job.collective_timeout;
  return limit + (job.max_restarts + 1) * hang;
}

class Controller {
 public:
  explicit Controller(const RunRequest& request)
      : request_(request),
        job_(request.plan.scenario.job),
        run_(request.run_dir),
        processes_(loop_, {[this](TrackedProcess& p) { OnDied(p); },
                           [this](TrackedProcess& p) { OnExited(p); }}),
        seal_(run_) {}

  RunOutcome Run() {
    loop_.OnSignals({SIGINT, SIGTERM, SIGHUP}, [this](int signal) { OnSignal(signal); });
    Status started = Prepare();
    if (started) started = StartReaper();
    if (started) started = Provision();
    if (started) started = Listen();
    if (started) started = StartJob();
    if (!started) {
      End(RunOutcome::How::kFailed, started.error().message);
    } else {
      loop_.Run();
    }
    Finish();
    return outcome_;
  }

 private:
  // --- phases, in order
  Status Prepare();
  Status StartReaper();
  Status Provision();
  Status Listen();
  Status StartJob();
  void Finish();

  // Announces in the journal how something of our own is undone, before or just after it is made.
  Status Announce(const UndoStep& step);

  // --- what the loop calls
  void OnSignal(int signal);
  void OnReaper();
  void OnLauncherOutput(UniqueFd& pipe, int log_fd);
  void OnHello(TrackedProcess& process);
  void OnJoined(TrackedProcess& process, const JoinedMessage& joined);
  void OnDied(TrackedProcess& process);
  void OnExited(TrackedProcess& process);
  void OnLine(const LogFollower::Line& line);
  void OnSample();
  void OnStacks(int attempt, int rank, const std::string& text);

  void BeginAttempt(int attempt);
  void EndAttempt();
  void NoticeStop();
  fs::path PagePath(const TrackedProcess& process) const;
  void SavePage(const TrackedProcess& process);
  void InspectLeftovers();
  void KeepFinalCheckpoint();
  void Pump(Nanoseconds limit, const std::function<bool()>& done);
  void End(RunOutcome::How how, std::string reason);
  void Tell(RunProgress::What what, std::string text = {});
  bool AllExitsKnown() const;
  Json ObservedHeader() const;
  Status CopyReference() const;

  const RunRequest& request_;
  const JobConfig& job_;
  RunDir run_;
  EventLoop loop_;
  ProcessTable processes_;
  Seal seal_;
  RunOutcome outcome_;
  bool ended_ = false;

  std::optional<Recorder> recorder_;
  std::optional<JournalWriter> journal_;
  std::optional<ReaperClient> reaper_;
  CheckpointAccess checkpoint_;
  UniqueFd run_directory_;
  std::string socket_dir_;
  std::vector<uint64_t> own_undo_;  // journal records of what we made ourselves
  std::unique_ptr<CheckpointWatch> checkpoint_watch_;
  std::unique_ptr<PageSampler> pages_;
  std::unique_ptr<LoadSampler> load_;
  std::unique_ptr<LogFollower> logs_;
  std::unique_ptr<Injections> injections_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<StackCollector> stacks_;

  UniqueFd launcher_out_, launcher_err_, launcher_out_log_, launcher_err_log_;
  MonoTime job_started_;
  bool job_exited_ = false;
  int attempt_ = -1;
  std::set<int> noticed_;  // attempts whose stop has been noticed at `noticed_step_`
  uint64_t noticed_step_ = 0;
  bool fs_in_namespace_ = false;
};

void Controller::Tell(RunProgress::What what, std::string text) {
  if (!request_.progress) return;
  const uint64_t step = pages_ ? pages_->advance().step : 0;
  request_.progress(
      {what, std::max(attempt_, 0), step, static_cast<uint64_t>(job_.steps), std::move(text)});
}

void Controller::End(RunOutcome::How how, std::string reason) {
  if (!ended_) {
    ended_ = true;
    outcome_.how = how;
    outcome_.reason = std::move(reason);
  }
  loop_.Stop();
}

// Samples and values per sample, from the header of the data set's image file (IDX: magic, then
// big-endian sizes of each dimension). {0, 0} when it cannot be read: the job will say why.
std::pair<int64_t, int64_t> DataShape(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().native().ends_with("images-idx3-ubyte")) continue;
    const Result<std::string> bytes = ReadFile(entry.path());
    if (!bytes || bytes->size() < 16) return {0, 0};
    const auto number = [&](size_t at) {
      int64_t value = 0;
      for (size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<uint8_t>((*bytes)[i]);
      return value;
    };
    return {number(4), number(8) * number(12)};
  }
  return {0, 0};
}

Json Controller::ObservedHeader() const {
  const auto [samples, values] = DataShape(job_.data_dir);
  Json timeouts = {{"collective_ms", ToMs(job_.collective_timeout)}};
  timeouts["watchdog_ms"] = job_.watchdog ? Json(ToMs(*job_.watchdog)) : Json(nullptr);
  timeouts["worker_deadline_ms"] = ToMs(job_.worker_deadline);
  timeouts["startup_ms"] = ToMs(job_.startup_timeout);
  timeouts["term_grace_ms"] = ToMs(job_.term_grace);
  return {{"schema_version", kSchemaVersion},
          {"run_id", run_.root().filename().native()},
          {"wall_time", FormatRfc3339(WallNow())},
          {"boot_id", BootId()},
          {"command", "shakedown-launch --config job.json"},
          {"job", ToJson(job_)},
          {"samples", samples},
          {"input", values},
          {"timeouts", std::move(timeouts)},
          {"numerics", NumericsRecord()},
          {"machine", MachineRecord()},
          {"exit_source", processes_.ExitSource()}};
}

Status Controller::CopyReference() const {
  if (request_.reference_dir.empty()) return {};
  // Copies, not links: evidence must not share a file with the cache.
  std::error_code error;
  fs::copy(request_.reference_dir, run_.reference(), fs::copy_options::recursive, error);
  if (error) {
    return Fail("cannot copy the reference run into '" + run_.reference().native() +
                "': " + error.message());
  }
  return {};
}

Status Controller::Prepare() {
  Tell(RunProgress::What::kStarting);
  SHAKEDOWN_TRY(MakeDirectories(run_.tmp()));
  SHAKEDOWN_TRY(MakeDirectories(run_.checkpoint_dir()));
  run_directory_.Reset(::open(run_.root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!run_directory_) return FailErrno("open", run_.root().native());
  // First of all: whatever fails from here on stands in the evidence.
  Result<Recorder> recorder = Recorder::Open(run_);
  if (!recorder) return tl::unexpected<Error>(recorder.error());
  recorder_ = std::move(*recorder);
  recorder_->Observe(events::kRunStarted, ObservedHeader());
  Result<JournalWriter> journal = JournalWriter::Open(run_.journal());
  if (!journal) return tl::unexpected<Error>(journal.error());
  journal_ = std::move(*journal);
  SHAKEDOWN_TRY(PublishFile(run_.job_config(), DumpPretty(ToJson(job_)) + "\n"));
  Json run = {{"schema_version", kSchemaVersion}, {"run_id", run_.root().filename().native()},
              {"plan", ToJson(request_.plan)},    {"command", request_.command},
              {"machine", MachineRecord()},       {"numerics", NumericsRecord()}};
  for (const auto& [key, value] : request_.notes.items()) run[key] = value;
  SHAKEDOWN_TRY(PublishFile(run_.run_json(), DumpPretty(run) + "\n"));
  return CopyReference();
}

Status Controller::StartReaper() {
  Result<ReaperClient> reaper = ReaperClient::Start(request_.binaries.reaper.native(), run_);
  if (!reaper) return Wrap("cannot start the reaper", reaper.error());
  reaper_.emplace(std::move(*reaper));
  Result<ProcessIdentity> self = IdentityOf(::getpid());
  if (!self) return tl::unexpected<Error>(self.error());
  SHAKEDOWN_TRY(journal_->Header(ToJson(*self), ToJson(reaper_->identity()), run_.root().native()));
  loop_.WatchReadable(reaper_->fd(), [this] { OnReaper(); });
  return {};
}

Status Controller::Provision() {
  if (request_.plan.private_fs_bytes) {
    Result<PrivateFilesystem> filesystem = reaper_->ProvisionPrivateFilesystem(
        run_.checkpoint_dir().native(), *request_.plan.private_fs_bytes);
    if (!filesystem) return Wrap("cannot make the private filesystem", filesystem.error());
    checkpoint_.directory = std::move(filesystem->root);
    checkpoint_.holder = filesystem->holder;
    fs_in_namespace_ = true;
  } else {
    checkpoint_.directory.Reset(
        ::open(run_.checkpoint_dir().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!checkpoint_.directory) return FailErrno("open", run_.checkpoint_dir().native());
  }
  checkpoint_.path = run_.checkpoint_dir().native();
  Result<std::unique_ptr<CheckpointWatch>> watch =
      CheckpointWatch::Start(checkpoint_.directory.get(), loop_, *recorder_, [this](int64_t step) {
        if (injections_) injections_->OnPublished(step);
      });
  if (!watch) return tl::unexpected<Error>(watch.error());
  checkpoint_watch_ = std::move(*watch);
  return {};
}

Status Controller::Announce(const UndoStep& step) {
  Result<uint64_t> seq = journal_->Append(step, std::nullopt);
  if (!seq) return tl::unexpected<Error>(seq.error());
  own_undo_.push_back(*seq);
  return {};
}

Status Controller::Listen() {
  // Not in the run directory: its path may be longer than a Unix socket's may be.
  const char* tmp = std::getenv("TMPDIR");
  std::string directory =
      std::string(tmp != nullptr && std::string_view(tmp).size() < 60 ? tmp : "/tmp") +
      "/shakedown-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return FailErrno("create directory", directory);
  socket_dir_ = directory;
  SHAKEDOWN_TRY(Announce({UndoVerb::kRemoveTree, socket_dir_, std::nullopt}));

  pages_ = std::make_unique<PageSampler>(processes_, *recorder_);
  load_ = std::make_unique<LoadSampler>(*recorder_);
  stacks_ = std::make_unique<StackCollector>(
      loop_,
      [this](int attempt, int rank, const std::string& text) { OnStacks(attempt, rank, text); });
  Result<std::unique_ptr<Injections>> injections = Injections::Make(
      {request_.plan, loop_, *recorder_, processes_, *journal_, checkpoint_, run_directory_.get(),
       [this](TrackedProcess& p, uint32_t arm, bool act) { control_->Release(p, arm, act); },
       [this](int64_t step) { return checkpoint_watch_->Published(step); },
       [this](const Injection& i) {
         Tell(RunProgress::What::kInjected,
              i.fault + " at rank " + std::to_string(i.rank) + ", step " + std::to_string(i.step));
       }},
      request_.machine);
  if (!injections) return tl::unexpected<Error>(injections.error());
  injections_ = std::move(*injections);
  Result<std::unique_ptr<LogFollower>> logs = LogFollower::Start(
      run_, loop_, *recorder_, [this](const LogFollower::Line& line) { OnLine(line); });
  if (!logs) return tl::unexpected<Error>(logs.error());
  logs_ = std::move(*logs);
  Result<std::unique_ptr<ControlServer>> control = ControlServer::Listen(
      socket_dir_ + "/control", loop_, processes_,
      {[this](pid_t pid) { return IsBelow(pid, reaper_->identity().pid); },
       [this](TrackedProcess& p) { OnHello(p); },
       [this](TrackedProcess& p, const JoinedMessage& m) { OnJoined(p, m); },
       [this](TrackedProcess& p, const HeldMessage& m) { injections_->OnHeld(p, m); },
       [this](TrackedProcess& p, const FiredMessage& m) { injections_->OnFired(p, m); }});
  if (!control) return tl::unexpected<Error>(control.error());
  control_ = std::move(*control);
  return {};
}

Status Controller::StartJob() {
  const auto pipe_to = [this](UniqueFd* ours, UniqueFd* log,
                              const fs::path& path) -> Result<UniqueFd> {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("create", "a pipe for the launcher");
    ours->Reset(ends[0]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    UniqueFd theirs(ends[1]);
    log->Reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!*log) return FailErrno("create", path.native());
    loop_.WatchReadable(ours->get(),
                        [this, ours, fd = log->get()] { OnLauncherOutput(*ours, fd); });
    return theirs;
  };
  Result<UniqueFd> out = pipe_to(&launcher_out_, &launcher_out_log_, run_.launcher_stdout());
  if (!out) return tl::unexpected<Error>(out.error());
  Result<UniqueFd> err = pipe_to(&launcher_err_, &launcher_err_log_, run_.launcher_stderr());
  if (!err) return tl::unexpected<Error>(err.error());

  JobRequest request;
  request.argv = {request_.binaries.launcher.native(),
                  "--config",
                  run_.job_config().native(),
                  "--log-dir",
                  run_.root().native(),
                  "--checkpoint-dir",
                  run_.checkpoint_dir().native(),
                  "--trainer",
                  request_.binaries.trainer.native()};
  // A small environment of known content: results must not depend on the shell they were started
  // from.
  for (const char* name : {"PATH", "HOME", "USER", "LANG", "LD_LIBRARY_PATH"}) {
    if (const char* value = std::getenv(name)) {
      request.environment.push_back(std::string(name) + "=" + value);
    }
  }
  for (const auto& [name, value] : PinnedNumerics()) {
    request.environment.push_back(name + "=" + value);
  }
  request.environment.push_back(std::string(env::kTmpDir) + "=" + run_.tmp().native());
  request.environment.push_back(std::string(env::kControlSocket) + "=" + socket_dir_ + "/control");
  request.environment.push_back(std::string(env::kReference) + "=1");
  request.directory = run_.root().native();
  request.stdout_fd = out->get();
  request.stderr_fd = err->get();
  request.in_private_fs = fs_in_namespace_;
  Result<StartedJob> started = reaper_->StartJob(request);
  if (!started) return Wrap("cannot start the job", started.error());
  job_started_ = MonoNow();
  // For `clean`, when controller and reaper are both killed.
  SHAKEDOWN_TRY(Announce({UndoVerb::kEndProcess, "", started->process}));

  loop_.Every(kSamplePeriod, [this](Nanoseconds late) {
    load_->NoteSlip(late);
    OnSample();
  });
  loop_.Every(kLoadPeriod, [this](Nanoseconds) { load_->Sample(); });
  const Nanoseconds limit = RunLimit(job_);
  loop_.After(limit, [this, limit] {
    End(RunOutcome::How::kTimedOut,
        "the job was still running after " + std::to_string(limit / seconds(1)) + " s");
  });
  return {};
}

void Controller::OnSignal(int signal) {
  outcome_.signal = signal;
  End(RunOutcome::How::kInterrupted, SignalName(signal) + " was received");
}

void Controller::OnReaper() {
  Result<std::vector<ReaperEvent>> events = reaper_->ReadEvents();
  if (!events) {
    loop_.Unwatch(reaper_->fd());
    return End(RunOutcome::How::kFailed, "the reaper is gone: " + events.error().message);
  }
  for (const ReaperEvent& event : *events) {
    if (event.role != ReaperEvent::Role::kJob) continue;
    job_exited_ = true;
    outcome_.job_wall = MonoNow() - job_started_;
    Json record = {{"pid", event.process.pid}};
    event.status.AddTo(record);
    record["source"] = "waitid";
    // From its first instruction: what it loads before its first attempt is its own time, too.
    record["wall_ms"] = ToMs(outcome_.job_wall);
    recorder_->Observe(events::kJobExited, std::move(record));
    End(RunOutcome::How::kCompleted, "");
  }
}

void Controller::OnLauncherOutput(UniqueFd& pipe, int log_fd) {
  char buffer[1 << 14];
  while (pipe) {
    const ssize_t n = ::read(pipe.get(), buffer, sizeof buffer);
    if (n < 0) return;
    if (n == 0) {
      loop_.Unwatch(pipe.get());
      pipe.Reset();
      return;
    }
    if (Status written = WriteAll(log_fd, {buffer, static_cast<size_t>(n)}, "launcher output");
        !written) {
      LogWarning(written.error().message);
    }
  }
}

void Controller::OnHello(TrackedProcess& process) {
  if (process.attempt > attempt_) BeginAttempt(process.attempt);
  Json record = {{"attempt", process.attempt},
                 {"role", process.role == Role::kRank ? "rank" : "worker"},
                 {"rank", process.rank}};
  record["worker"] = process.worker ? Json(*process.worker) : Json(nullptr);
  record["incarnation"] = process.incarnation;
  record["pid"] = process.identity.pid;
  record["start_time"] = process.identity.start_time;
  recorder_->Observe(events::kProcessHello, std::move(record));
  if (process.role == Role::kRank) {
    if (Status noted = Announce({UndoVerb::kEndProcess, "", process.identity}); !noted) {
      LogWarning(noted.error().message);
    }
  }
  if (Status kept = reaper_->KeepPage(PagePath(process).lexically_relative(run_.root()).native(),
                                      process.page_fd.get());
      !kept) {
    LogWarning(kept.error().message);
  }
  injections_->Arm(process);
}

void Controller::OnJoined(TrackedProcess& process, const JoinedMessage& joined) {
  const bool moved = joined.rank != process.rank;
  process.rank = joined.rank;
  process.joined = true;
  recorder_->Observe(events::kRankJoined, {{"attempt", process.attempt},
                                           {"rank", joined.rank},
                                           {"world_size", joined.world_size},
                                           {"pid", process.identity.pid}});
  if (moved) injections_->Rearm(process);
}

void Controller::OnDied(TrackedProcess& process) {
  if (injections_) injections_->OnDied(process);
  if (pages_) pages_->Final(process);
  if (checkpoint_watch_ && process.role == Role::kRank) {
    checkpoint_watch_->Drain();
    checkpoint_watch_->Inspect("death", process.rank);
  }
}

void Controller::OnExited(TrackedProcess& process) {
  Json record = {{"attempt", process.attempt},
                 {"role", process.role == Role::kRank ? "rank" : "worker"},
                 {"rank", process.rank}};
  record["worker"] = process.worker ? Json(*process.worker) : Json(nullptr);
  record["incarnation"] = process.incarnation;
  record["pid"] = process.identity.pid;
  process.exit->AddTo(record);
  record["source"] = process.exit_source;
  // The time is the end itself, not when its status became known.
  recorder_->Observe(events::kProcessExited, std::move(record), process.died);
}

void Controller::OnLine(const LogFollower::Line& line) {
  if (line.source != "log" && line.source != "launcher") return;
  const Result<Json> json = ParseJson(line.text);
  if (!json) return;
  const std::string event = StringField(*json, "event").value_or("");
  if (line.source == "log") {
    if (event == log_events::kCheckpointFailed && injections_) {
      injections_->OnJobEvent("save_failed", *line.rank);
    }
    return;
  }
  if (event == log_events::kAttemptStarted) {
    if (line.attempt > attempt_) BeginAttempt(line.attempt);
  } else if (event == log_events::kRankExited) {
    const auto rank = IntField(*json, "rank");
    const auto pid = IntField(*json, "pid");
    if (!rank || !pid) return;
    const auto code = IntField(*json, "code");
    const auto signal = StringField(*json, "signal");
    if (!code && !signal) return;
    processes_.LauncherSaid(line.attempt, static_cast<int>(*rank), static_cast<pid_t>(*pid),
                            signal ? WaitStatus::Signaled(SignalNumber(*signal))
                                   : WaitStatus::Exited(static_cast<int>(*code)));
  } else if (event == log_events::kAttemptFailed || event == log_events::kAttemptFinished) {
    checkpoint_watch_->Drain();
    checkpoint_watch_->Inspect("attempt_end");
  }
}

void Controller::OnSample() {
  // Without evidence there is nothing to judge: going on would only fill what is full.
  if (!recorder_->status()) {
    return End(RunOutcome::How::kFailed,
               "evidence could not be written: " + recorder_->status().error().message);
  }
  pages_->SampleAll();
  Tell(RunProgress::What::kStep);
  NoticeStop();
}

// The harness's own notice that the job does not move: graded, never a reason to fail the job.
void Controller::NoticeStop() {
  const PageSampler::Advance& advance = pages_->advance();
  if (advance.step == 0 || advance.step >= static_cast<uint64_t>(job_.steps)) return;
  const Nanoseconds limit = 3 * job_.step_time + kNoticeSlack;
  const Nanoseconds waited = MonoNow() - advance.moved;
  if (waited < limit) return;
  if (noticed_.contains(advance.attempt) && noticed_step_ == advance.step) return;
  std::vector<TrackedProcess*> living;
  for (TrackedProcess* p : processes_.OfAttempt(advance.attempt)) {
    if (!p->dead && p->role == Role::kRank) living.push_back(p);
  }
  if (living.empty()) return;
  noticed_.insert(advance.attempt);
  noticed_step_ = advance.step;
  recorder_->Observe(events::kNoProgress, {{"attempt", advance.attempt},
                                           {"last_step", advance.step},
                                           {"waited_ms", ToMs(waited)},
                                           {"limit_ms", ToMs(limit)}});
  Tell(RunProgress::What::kNoticed,
       "no rank has completed a step for " + std::to_string(waited / milliseconds(1)) + " ms");
  for (TrackedProcess* p : living) stacks_->Collect(p->identity, p->attempt, p->rank);
}

void Controller::OnStacks(int attempt, int rank, const std::string& text) {
  const fs::path path = run_.rank(attempt, rank) / kRankStacks;
  if (Status made = MakeDirectories(path.parent_path()); !made) return;
  if (Status written = PublishFile(path, text, Durability::kBuffered); !written) {
    return LogWarning(written.error().message);
  }
  recorder_->Observe(events::kStacksCollected,
                     {{"attempt", attempt},
                      {"rank", rank},
                      {"file", path.lexically_relative(run_.root()).native()}});
}

void Controller::BeginAttempt(int attempt) {
  EndAttempt();
  attempt_ = attempt;
  recorder_->Observe(events::kAttemptStarted, {{"attempt", attempt}});
  checkpoint_watch_->Drain();
  checkpoint_watch_->SetAttempt(attempt);
  checkpoint_watch_->Inspect("attempt_start");
  Tell(RunProgress::What::kAttempt);
}

void Controller::EndAttempt() {
  if (attempt_ < 0) return;
  for (TrackedProcess* p : processes_.OfAttempt(attempt_)) {
    pages_->Final(*p);
    SavePage(*p);
  }
  stacks_->Wait();  // before the seal
  logs_->Drain();
  recorder_->Observe(events::kAttemptEnded, {{"attempt", attempt_}});
  if (Status sealed = seal_.Attempt(attempt_); !sealed) LogWarning(sealed.error().message);
}

fs::path Controller::PagePath(const TrackedProcess& process) const {
  if (!process.worker) return run_.rank(process.attempt, process.rank) / kRankPage;
  return run_.worker(process.attempt, process.rank, *process.worker) /
         (process.incarnation == 0 ? std::string(kRankPage)
                                   : "page-" + std::to_string(process.incarnation) + ".bin");
}

void Controller::SavePage(const TrackedProcess& process) {
  const fs::path path = PagePath(process);
  if (!MakeDirectories(path.parent_path())) return;
  const std::string_view half(reinterpret_cast<const char*>(&process.observed()),
                              kPageObservedBytes);
  if (Status written = PublishFile(path, half, Durability::kBuffered); !written) {
    LogWarning(written.error().message);
  }
}

bool Controller::AllExitsKnown() const {
  for (const TrackedProcess* p : processes_.All()) {
    if (!p->exit) return false;
  }
  return true;
}

// Runs the loop until `done` or the limit: for events that are known to be on their way.
void Controller::Pump(Nanoseconds limit, const std::function<bool()>& done) {
  if (done()) return;
  bool expired = false;
  const auto timer = loop_.After(limit, [&] {
    expired = true;
    loop_.Stop();
  });
  const auto look = loop_.Every(milliseconds(1), [&](Nanoseconds) {
    if (done()) loop_.Stop();
  });
  while (!expired && !done()) loop_.Run();
  loop_.Cancel(timer);
  loop_.Cancel(look);
}

void Controller::InspectLeftovers() {
  std::vector<LeftoverProcess> left;
  const MonoTime deadline = MonoNow() + kLeaveTime;
  while (true) {
    Result<std::vector<LeftoverProcess>> found = reaper_->InspectLeftovers();
    if (!found) return;
    left = std::move(*found);
    if (left.empty() || MonoNow() >= deadline) break;
    Pump(milliseconds(20), [] { return false; });
  }
  Json processes = Json::array();
  for (const LeftoverProcess& p : left) {
    processes.push_back({{"pid", p.process.pid}, {"command", p.command}});
  }
  Json temporary = Json::array();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_.tmp(), error)) {
    temporary.push_back(entry.path().filename().native());
  }
  recorder_->Observe(events::kLeftoversInspected, {{"processes", std::move(processes)},
                                                   {"temporary", std::move(temporary)},
                                                   {"inspected", {"processes", "temporary"}}});
}

void Controller::KeepFinalCheckpoint() {
  checkpoint_watch_->Drain();
  checkpoint_watch_->Inspect("attempt_end");
  const std::optional<int64_t> step = checkpoint_watch_->NewestVerified();
  if (!step || !MakeDirectories(run_.final_checkpoint())) return;
  for (const std::string& name : {CheckpointFileName(*step), CheckpointManifestName(*step)}) {
    std::error_code error;
    fs::copy_file("/proc/self/fd/" + std::to_string(checkpoint_.directory.get()) + "/" + name,
                  run_.final_checkpoint() / name, error);
    if (error) LogWarning("cannot keep checkpoint " + name + ": " + error.message());
  }
}

void Controller::Finish() {
  Tell(RunProgress::What::kEnding);
  const bool completed = ended_ && outcome_.how == RunOutcome::How::kCompleted;
  if (recorder_ && reaper_ && control_) {
    // The job is judged by what it left before any of our clean-up.
    if (completed) {
      Pump(kExitWordTime, [this] { return AllExitsKnown(); });
      InspectLeftovers();
      // A job that ends at once must not take the time from a witness that only needs to look
      // again.
      Pump(kWitnessTime, [this] { return injections_->AllWitnessed(); });
    }
    // A job that has to end is ended only after our faults are undone.
    injections_->Finish();
    outcome_.dirty |= injections_->dirty();
  }
  if (reaper_) (void)reaper_->EndAll();  // Shutdown says what remains
  if (control_) {
    Pump(kExitWordTime, [this] { return AllExitsKnown(); });
    OnLauncherOutput(launcher_out_, launcher_out_log_.get());
    OnLauncherOutput(launcher_err_, launcher_err_log_.get());
    KeepFinalCheckpoint();
    EndAttempt();
    load_->Sample();
  }
  control_.reset();
  if (reaper_) {
    loop_.Unwatch(reaper_->fd());
    if (Status gone = reaper_->Shutdown(); !gone) {
      const Result<std::vector<LeftoverProcess>> left = reaper_->EndOrphans();
      if (!left || !left->empty()) {
        outcome_.dirty = true;
        outcome_.reason +=
            left ? " (processes of the job could not be ended)" : " (" + left.error().message + ")";
      }
    }
  }
  if (!socket_dir_.empty()) {
    if (Status gone = PlayUndo({UndoVerb::kRemoveTree, socket_dir_, std::nullopt}); !gone) {
      outcome_.dirty = true;
    }
    // What could not be undone stays announced, for `clean`. A record that cannot be written is
    // played once more by it, which is harmless.
    if (!outcome_.dirty) {
      for (const uint64_t seq : own_undo_) (void)journal_->MarkUndone(seq);
    }
  }
  if (launcher_out_) loop_.Unwatch(launcher_out_.get());
  if (launcher_err_) loop_.Unwatch(launcher_err_.get());
  logs_.reset();
  checkpoint_watch_.reset();
  if (!recorder_) return;
  recorder_->FreeReserve();
  const auto fail_without_evidence = [this] {
    if (recorder_->status()) return;
    outcome_.how = RunOutcome::How::kFailed;
    outcome_.reason = "evidence could not be written: " + recorder_->status().error().message;
  };
  fail_without_evidence();
  static constexpr const char* kHow[] = {"completed", "interrupted", "timed_out", "failed"};
  recorder_->Observe(events::kRunEnded, {{"how", kHow[static_cast<int>(outcome_.how)]},
                                         {"reason", outcome_.reason},
                                         {"dirty", outcome_.dirty}});
  fail_without_evidence();
  if (Status sealed = seal_.Run(); !sealed && outcome_.how == RunOutcome::How::kCompleted) {
    outcome_.how = RunOutcome::How::kFailed;
    outcome_.reason = sealed.error().message;
  }
}

}  // namespace

RunOutcome ExecuteRun(const RunRequest& request) { return Controller(request).Run(); }

Result<fs::path> MakeRunDirectory(const fs::path& parent, const std::string& name) {
  std::error_code error;
  const fs::path absolute = fs::absolute(parent, error);
  if (error) return Fail("cannot resolve '" + parent.native() + "': " + error.message());
  SHAKEDOWN_TRY(MakeDirectories(absolute));
  const fs::path real = fs::canonical(absolute, error);
  if (error) return Fail("cannot resolve '" + absolute.native() + "': " + error.message());
  const std::string stamp = FormatRfc3339(WallNow());
  std::string compact;
  for (const char c : stamp.substr(0, 19)) {
    if (c != '-' && c != ':') compact += c;
  }
  std::string directory = (real / (name + "-" + compact + "-XXXXXX")).native();
  if (::mkdtemp(directory.data()) == nullptr)
    return FailErrno("create a run directory in", real.native());
  return fs::path(directory);
}

}  // namespace shakedown
