#include "trainer/launch/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "harness/base/file.h"
#include "harness/wire/json.h"
#include "harness/wire/run_dir.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

constexpr char kFooter[] = R"(
Starts the ranks of a job and restarts them by its policy. The job's configuration (job.json) says how
many ranks, which timeouts, and how many restarts. Without COMMAND each rank is
  TRAINER --config CONFIG --checkpoint-dir DIR
Any other COMMAND is started as it stands, once per rank, with the environment of torchelastic (RANK,
WORLD_SIZE, ...), SHAKEDOWN_STORE_FILE, SHAKEDOWN_RANK_DIR and a heartbeat page at
SHAKEDOWN_HEARTBEAT_FD, in which it has to say that it is ready and which step it has completed.

Start methods: "spawn" starts the command once per rank; "forkserver" starts it once, and each rank is
a fork of it, also after a restart, so that libraries are loaded once. The reference trainer can be
forked, and is unless told otherwise; a COMMAND that cannot is started per rank.

Exit status: 0 all ranks exited 0; 1 the job failed and the restarts are used up; 2 usage; 3 stopped
by SIGTERM, SIGINT or SIGHUP.)";

bool IsProgram(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// Where the program is, so that a missing one is an error before anything is started.
Result<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (IsProgram(name)) return fs::absolute(name).native();
    return Fail("cannot start ranks: '" + name + "' is not an executable file; build it, or name " +
                "the right one with --trainer or after --");
  }
  const char* variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const fs::path candidate = fs::path(path.substr(begin, end - begin)) / name;
    if (end > begin && IsProgram(candidate)) return candidate.native();
    begin = end + 1;
  }
  return Fail("cannot start ranks: there is no program '" + name + "' in PATH (" + path + ")");
}

Result<std::string> TrainerBeside() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return FailErrno("find", "this program's own folder", error.value());
  return (self.parent_path() / "shakedown-trainer").native();
}

Result<JobConfig> ReadJob(const std::string& path) {
  const Result<std::string> text = ReadFile(path, 1 << 20);
  if (!text) return tl::unexpected(text.error());
  const Result<Json> json = ParseJson(*text);
  if (!json) return Wrap("'" + path + "'", json.error());
  Result<JobConfig> job = JobConfigFromJson(*json);
  if (!job) return Wrap("'" + path + "'", job.error());
  if (job->ranks < 1 || job->max_restarts < 0) {
    return Fail("'" + path + "': ranks must be at least 1 and max_restarts at least 0");
  }
  return job;
}

}  // namespace

Result<LaunchOptions> ParseLaunchOptions(int argc, char** argv) {
  CLI::App app("The launcher of the reference job.", "shakedown-launch");
  std::string config;
  std::string log_dir;
  std::string checkpoint_dir;
  std::string trainer;
  std::string start_method;
  std::vector<std::string> command;
  app.footer(kFooter);
  app.add_option("--config", config, "the job's configuration, job.json")->required();
  app.add_option("--log-dir", log_dir, "where attempt-K/ goes; must not have one yet")->required();
  app.add_option("--checkpoint-dir", checkpoint_dir, "where the trainer saves");
  app.add_option("--trainer", trainer, "default: shakedown-trainer beside this program");
  app.add_option("--start-method", start_method,
                 "default: forkserver for the reference trainer, spawn for a COMMAND")
      ->check(CLI::IsMember({"spawn", "forkserver"}));
  app.add_option("COMMAND", command, "another trainer, after --");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return LaunchOptions{};
  } catch (const CLI::ParseError& error) {
    return Fail(std::string(error.what()) + "; see shakedown-launch --help");
  }

  Result<JobConfig> job = ReadJob(config);
  if (!job) return tl::unexpected(job.error());
  if (start_method.empty()) start_method = command.empty() ? "forkserver" : "spawn";
  LaunchOptions options{*std::move(job), fs::absolute(log_dir), std::move(command),
                        start_method == "forkserver"};
  if (options.command.empty()) {
    if (checkpoint_dir.empty()) return Fail("--checkpoint-dir is missing; the trainer saves there");
    if (trainer.empty()) {
      const Result<std::string> beside = TrainerBeside();
      if (!beside) return tl::unexpected(beside.error());
      trainer = *beside;
    }
    options.command = {trainer, "--config", config, "--checkpoint-dir", checkpoint_dir};
  } else if (!trainer.empty() || !checkpoint_dir.empty()) {
    return Fail("--trainer and --checkpoint-dir belong to the reference trainer; a COMMAND after " +
                std::string("-- takes its own options"));
  }
  const Result<std::string> program = FindProgram(options.command[0]);
  if (!program) return tl::unexpected(program.error());
  options.command[0] = *program;
  if (fs::exists(RunDir(options.log_dir).attempt(0))) {
    return Fail("'" + log_dir +
                "' already holds attempt-0; give a fresh --log-dir, logs are never " +
                "overwritten");
  }
  return options;
}

}  // namespace shakedown
