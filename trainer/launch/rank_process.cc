#include "trainer/launch/rank_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include "harness/base/file.h"
#include "harness/base/log.h"
#include "harness/wire/environment.h"
#include "harness/wire/run_dir.h"
#include "trainer/fork_server/protocol.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

// NAME=value of what differs from the launcher's own environment.
std::vector<std::string> RankSettings(const LaunchOptions& options, const RankSetting& setting) {
  const std::string rank = std::to_string(setting.rank);
  const std::string ranks = std::to_string(options.job.ranks);
  const std::pair<std::string, std::string> ours[] = {
      {env::kRank, rank},
      {env::kLocalRank, rank},
      {env::kWorldSize, ranks},
      {env::kLocalWorldSize, ranks},
      {env::kRestartCount, std::to_string(setting.attempt)},
      {env::kMaxRestarts, std::to_string(options.job.max_restarts)},
      {env::kRunId, setting.run_id},
      {env::kStoreFile, setting.store_file.native()},
      {env::kRankDir, RunDir(options.log_dir).rank(setting.attempt, setting.rank).native()},
      {env::kHeartbeatFd, std::to_string(kHeartbeatFdInRank)},
      {env::kMicroBatchParts, std::to_string(setting.micro_batch_parts)},
  };
  std::vector<std::string> out;
  for (const auto& [name, value] : ours) out.push_back(name + "=" + value);
  // The fork server does without it, so it is named here.
  if (const char* control = std::getenv(env::kControlSocket)) {
    out.push_back(std::string(env::kControlSocket) + "=" + control);
  }
  return out;
}

std::string_view NameOf(std::string_view setting) { return setting.substr(0, setting.find('=')); }

std::vector<std::string> WithOwnEnvironment(std::vector<std::string> settings) {
  const size_t ours = settings.size();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool overridden =
        std::any_of(settings.begin(), settings.begin() + static_cast<ptrdiff_t>(ours),
                    [&](const std::string& own) { return NameOf(own) == NameOf(*variable); });
    if (!overridden) settings.emplace_back(*variable);
  }
  return settings;
}

// O_EXCL: what an earlier attempt or run has written is never touched.
Result<UniqueFd> NewLog(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return FailErrno("create", path.native());
  return fd;
}

}  // namespace

Result<RankProcess> RankProcess::Start(const LaunchOptions& options, const RankSetting& setting,
                                       std::optional<ForkServer>& server) {
  const fs::path directory = RunDir(options.log_dir).rank(setting.attempt, setting.rank);
  SHAKEDOWN_TRY(MakeDirectories(directory));
  const Result<UniqueFd> out = NewLog(directory / kRankStdout);
  if (!out) return tl::unexpected(out.error());
  const Result<UniqueFd> err = NewLog(directory / kRankStderr);
  if (!err) return tl::unexpected(err.error());
  Result<HeartbeatPage> heartbeat = HeartbeatPage::Create();
  if (!heartbeat) return tl::unexpected(heartbeat.error());

  std::vector<std::string> settings = RankSettings(options, setting);
  if (server) {
    Result<SpawnedProcess> rank = server->Fork(settings, out->get(), err->get(), heartbeat->fd());
    if (rank) return RankProcess(*std::move(rank), *std::move(heartbeat));
    LogError("ranks are started one by one from now on: " + rank.error().message);
    server.reset();
  }
  SpawnOptions spawn;
  spawn.argv = options.command;
  spawn.environment = WithOwnEnvironment(std::move(settings));
  spawn.descriptors = {{out->get(), STDOUT_FILENO},
                       {err->get(), STDERR_FILENO},
                       {heartbeat->fd(), kHeartbeatFdInRank}};
  spawn.new_session = true;
  Result<SpawnedProcess> process = Spawn(spawn);
  if (!process) return tl::unexpected(process.error());
  return RankProcess(*std::move(process), *std::move(heartbeat));
}

void RankProcess::Signal(int signal) {
  sent_ = signal;
  if (const Status sent = SignalPidfd(pidfd(), signal); !sent && sent.error().code != ESRCH) {
    LogError("pid " + std::to_string(pid()) + ": " + sent.error().message);
  }
}

std::optional<Activity> ActivityOf(pid_t pid) {
  const fs::path proc = "/proc/" + std::to_string(pid);
  const Result<std::string> stat = ReadFile(proc / "stat");
  const Result<std::string> schedstat = ReadFile(proc / "schedstat");
  if (!stat || !schedstat) return std::nullopt;
  // The name in parentheses may hold anything; the state follows its last one.
  const size_t name_end = stat->rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat->size()) return std::nullopt;
  Activity activity{(*stat)[name_end + 2], 0};
  if (!(std::istringstream(*schedstat) >> activity.run_time_ns)) return std::nullopt;
  return activity;
}

}  // namespace shakedown
