#include "harness/run/log_follower.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "harness/base/digest.h"

namespace shakedown {
namespace fs = std::filesystem;
namespace {

// A job that floods its log must not fill the run directory with our records of it: after this many
// lines of one file arrivals are no longer recorded one by one.
constexpr int kMaxRecordedLines = 20000;
constexpr size_t kMaxLineBytes = 1 << 20;

struct Kind {
  const char* file;
  const char* source;
};
constexpr Kind kRankFiles[] = {{kRankLog, "log"}, {kRankStdout, "stdout"}, {kRankStderr, "stderr"}};

std::string Hex64(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// K of "prefix-K"; nullopt for any other name.
std::optional<int> Numbered(const std::string& name, const std::string& prefix) {
  if (name.rfind(prefix, 0) != 0 || name.size() == prefix.size() ||
      name.size() > prefix.size() + 6) {
    return std::nullopt;
  }
  int value = 0;
  for (const char c : name.substr(prefix.size())) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

LogFollower::LogFollower(const RunDir& run, EventLoop& loop, Recorder& recorder, Handler arrived)
    : run_(run), loop_(loop), recorder_(recorder), arrived_(std::move(arrived)) {}

Result<std::unique_ptr<LogFollower>> LogFollower::Start(const RunDir& run, EventLoop& loop,
                                                        Recorder& recorder, Handler arrived) {
  std::unique_ptr<LogFollower> follower(new LogFollower(run, loop, recorder, std::move(arrived)));
  follower->inotify_.Reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!follower->inotify_) return FailErrno("start", "inotify");
  follower->Watch(run.root());
  follower->Deliver();
  loop.WatchReadable(follower->inotify_.get(), [f = follower.get()] { f->OnInotify(); });
  return follower;
}

LogFollower::~LogFollower() { loop_.Unwatch(inotify_.get()); }

void LogFollower::Watch(const fs::path& directory) {
  const int watch =
      ::inotify_add_watch(inotify_.get(), directory.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO);
  if (watch < 0) return;  // gone again, or not a directory
  // Known already: inotify gives the same number for the same inode.
  if (!watches_.emplace(watch, directory).second) return;
  Scan(directory);  // what was there before the watch
}

void LogFollower::Scan(const fs::path& directory) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().native();
    const fs::path parent = directory.filename();
    if (directory == run_.root()) {
      if (Numbered(name, "attempt-")) Watch(entry.path());
      continue;
    }
    File file;
    if (const auto attempt = Numbered(parent.native(), "attempt-")) {
      if (Numbered(name, "rank-")) {
        Watch(entry.path());
        continue;
      }
      if (name != "launcher.jsonl") continue;
      file.attempt = *attempt;
      file.source = "launcher";
    } else {
      const auto rank = Numbered(parent.native(), "rank-");
      const auto of = Numbered(directory.parent_path().filename().native(), "attempt-");
      if (!rank || !of) continue;
      for (const Kind& kind : kRankFiles) {
        if (name == kind.file) file.source = kind.source;
      }
      if (file.source.empty()) continue;
      file.attempt = *of;
      file.rank = *rank;
    }
    file.path = entry.path();
    file.relative = fs::relative(entry.path(), run_.root(), error).native();
    const auto [it, added] = files_.emplace(entry.path().native(), std::move(file));
    if (added) Read(it->second);
  }
}

void LogFollower::OnInotify() {
  alignas(inotify_event) char buffer[16384];
  while (true) {
    const ssize_t n = ::read(inotify_.get(), buffer, sizeof buffer);
    if (n <= 0) return Deliver();
    for (ssize_t at = 0; at < n;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        Drain();
        continue;
      }
      const auto watch = watches_.find(event->wd);
      if (watch == watches_.end() || event->len == 0) continue;
      const fs::path path = watch->second / event->name;
      const auto file = files_.find(path.native());
      if (file != files_.end()) {
        Read(file->second);
      } else if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
        Scan(watch->second);
      }
    }
  }
}

void LogFollower::Drain() {
  for (const auto& [watch, directory] : std::map(watches_)) Scan(directory);
  for (auto& [path, file] : files_) Read(file);
  Deliver();
}

void LogFollower::Read(File& file) {
  if (!file.fd) {
    file.fd.Reset(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    struct stat st {};
    if (!file.fd || ::fstat(file.fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) {
      file.fd.Reset();
      return;
    }
  }
  char buffer[1 << 15];
  while (true) {
    const ssize_t n = ::read(file.fd.get(), buffer, sizeof buffer);
    if (n <= 0) return;
    file.tail.append(buffer, static_cast<size_t>(n));
    size_t start = 0;
    for (size_t end; (end = file.tail.find('\n', start)) != std::string::npos; start = end + 1) {
      pending_.emplace_back(&file, file.tail.substr(start, end - start));
    }
    file.tail.erase(0, start);
    if (file.tail.size() > kMaxLineBytes) file.tail.clear();
  }
}

void LogFollower::Deliver() {
  if (delivering_) return;
  delivering_ = true;
  while (!pending_.empty()) {
    const auto [file, line] = std::move(pending_.front());
    pending_.pop_front();
    OnLine(*file, line);
  }
  delivering_ = false;
}

void LogFollower::OnLine(File& file, std::string_view line) {
  ++file.lines;
  if (file.lines <= kMaxRecordedLines) {
    Json record = {{"attempt", file.attempt}};
    record["rank"] = file.rank ? Json(*file.rank) : Json(nullptr);
    record["source"] = file.source;
    record["file"] = file.relative;
    record["line"] = file.lines;
    record["bytes"] = line.size();
    record["xxh3"] = Hex64(Xxh3Of64(line));
    recorder_.Observe(events::kLineArrived, std::move(record));
  }
  arrived_({file.attempt, file.rank, file.source, line});
}

}  // namespace shakedown
