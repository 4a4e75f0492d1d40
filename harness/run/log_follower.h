// Follows the files that the job writes below the run directory and stamps the arrival of each line
// on the controller's clock. Files are found by inotify; none is ever waited for.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/base/unique_fd.h"
#include "harness/run/event_loop.h"
#include "harness/run/recorder.h"
#include "harness/wire/run_dir.h"

namespace shakedown {

class LogFollower {
 public:
  struct Line {
    int attempt = 0;
    std::optional<int> rank;
    std::string source;  // log, stdout, stderr, launcher
    std::string_view text;
  };
  using Handler = std::function<void(const Line&)>;

  // Calls `arrived` for each complete line after line.arrived is recorded.
  static Result<std::unique_ptr<LogFollower>> Start(const RunDir& run, EventLoop& loop,
                                                    Recorder& recorder, Handler arrived);
  ~LogFollower();

  // Reads what has been written up to now; called before an attempt is sealed.
  void Drain();

 private:
  struct File {
    std::filesystem::path path;
    std::string relative;
    int attempt = 0;
    std::optional<int> rank;
    std::string source;
    UniqueFd fd;
    std::string tail;  // of a line that is not complete yet
    int lines = 0;
  };

  LogFollower(const RunDir& run, EventLoop& loop, Recorder& recorder, Handler arrived);
  void Watch(const std::filesystem::path& directory);
  void Scan(const std::filesystem::path& directory);
  void OnInotify();
  void Read(File& file);
  void Deliver();
  void OnLine(File& file, std::string_view line);

  RunDir run_;
  EventLoop& loop_;
  Recorder& recorder_;
  Handler arrived_;
  UniqueFd inotify_;
  std::map<int, std::filesystem::path> watches_;
  std::map<std::string, File> files_;  // by path
  // Read and not delivered yet: a handler may itself call Drain, and lines must stay in order.
  std::deque<std::pair<File*, std::string>> pending_;
  bool delivering_ = false;
};

}  // namespace shakedown
