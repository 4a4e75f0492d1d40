#include "harness/process/child.h"

// Keeps Boost.Filesystem, a compiled library, out. Boost 1.81 then lacks includes of its own.
#define BOOST_PROCESS_USE_STD_FS 1
#include <unistd.h>
#include <boost/optional.hpp>
#include <boost/type_traits.hpp>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/process/v2/environment.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>

namespace shakedown {
namespace {
namespace asio = boost::asio;
namespace process = boost::process::v2;
using boost::system::error_code;

// For the kernel to end what was killed. A helper that hangs in it is left behind.
constexpr Milliseconds kKillGrace{1'000};

// Boost.Process hands our signal mask and ignored signals on to the child, and its own way to set
// the environment is not complete in the header-only form of 1.81 (process_environment::on_setup
// has no definition).
struct Setup {
  explicit Setup(const std::vector<std::string>& environment) {
    for (const std::string& variable : environment) variables.push_back(variable.c_str());
    variables.push_back(nullptr);
  }
  template <typename Launcher>
  error_code on_setup(Launcher& launcher, const std::filesystem::path&, const char* const*) {
    launcher.env = variables.data();
    return {};
  }
  template <typename Launcher>
  error_code on_exec_setup(Launcher&, const std::filesystem::path&, const char* const*) {
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    return {};
  }
  std::vector<const char*> variables;
};

class Stream {
 public:
  Stream(asio::io_context& io, size_t limit_bytes) : pipe(io), limit_bytes_(limit_bytes) {}

  // Reads to the end, keeping up to the limit: a helper that floods must not block on a full pipe.
  template <typename Done>
  void Read(Done done) {
    pipe.async_read_some(asio::buffer(buffer_), [this, done](error_code error, size_t n) {
      text.append(buffer_, std::min(n, limit_bytes_ - text.size()));
      error ? done() : Read(done);
    });
  }

  asio::readable_pipe pipe;
  std::string text;

 private:
  size_t limit_bytes_;
  char buffer_[1 << 14];
};

std::vector<std::string> Environment(const HelperRequest& request) {
  const auto name = [](const std::string& variable) {
    return variable.substr(0, variable.find('=') + 1);
  };
  std::vector<std::string> environment = request.environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string own = name(*variable);
    const bool replaced = std::any_of(request.environment.begin(), request.environment.end(),
                                      [&](const std::string& given) { return name(given) == own; });
    if (!replaced) environment.emplace_back(*variable);
  }
  return environment;
}

// Looked up and tried here, since Boost names no program in its errors.
Result<std::filesystem::path> FindProgram(const HelperRequest& request) {
  if (request.argv.empty()) return Fail("cannot run a helper: the command is empty", EINVAL);
  const std::string& name = request.argv[0];
  std::filesystem::path program = name;
  if (name.find('/') == std::string::npos) {
    program = process::environment::find_executable(name);
    if (program.empty()) return Fail("cannot run '" + name + "': it is not in PATH", ENOENT);
  }
  if (::access(program.c_str(), X_OK) != 0) return FailErrno("run", program.native());
  return program;
}

// Runs it in `io` until it has ended and closed its output, or for as long as it may take.
Result<HelperResult> RunToEnd(const HelperRequest& request, const std::filesystem::path& program) {
  asio::io_context io{1};
  Stream out(io, request.output_limit_bytes);
  Stream err(io, request.output_limit_bytes);
  const std::vector<std::string> environment = Environment(request);
  process::process child(io, program,
                         std::vector<std::string>(request.argv.begin() + 1, request.argv.end()),
                         process::process_stdio{nullptr, out.pipe, err.pipe}, Setup(environment));
  asio::steady_timer deadline(io, request.deadline);
  bool late = false;
  bool ended = false;
  int open = 3;  // the process and its two streams
  const auto done = [&] {
    if (--open == 0) deadline.cancel();
  };
  out.Read(done);
  err.Read(done);
  child.async_wait([&](error_code, int) {
    ended = true;
    done();
  });
  deadline.async_wait([&](error_code error) {
    if (error) return;
    late = true;
    error_code ignored;
    // What the helper started itself may hold the pipes open, also when it has ended.
    out.pipe.close(ignored);
    err.pipe.close(ignored);
    if (ended) return;
    ::kill(child.id(), SIGKILL);  // not reaped, so the pid is still its own
    deadline.expires_after(kKillGrace);
    deadline.async_wait([&](error_code cancelled) {
      if (!cancelled) io.stop();
    });
  });
  io.run();
  // Boost would wait for it, however long that takes.
  if (!ended) child.detach();
  if (late) {
    return Fail("'" + request.argv[0] + "' did not end within " +
                    std::to_string(request.deadline.count()) + " ms and was given up",
                ETIMEDOUT);
  }
  // The status word: exit_code() is 9 both for SIGKILL and for exit(9).
  return HelperResult{WaitStatus::FromWord(child.native_exit_code()), std::move(out.text),
                      std::move(err.text)};
}

}  // namespace

Result<HelperResult> RunHelper(const HelperRequest& request) {
  const Result<std::filesystem::path> program = FindProgram(request);
  if (!program) return tl::unexpected(program.error());
  try {
    return RunToEnd(request, *program);
  } catch (const boost::system::system_error& e) {
    return Fail("cannot run '" + program->native() + "': " + e.what(), e.code().value());
  } catch (const std::exception& e) {
    return Fail("cannot run '" + program->native() + "': " + e.what());
  }
}

}  // namespace shakedown
