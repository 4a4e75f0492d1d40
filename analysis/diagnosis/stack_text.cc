#include "analysis/diagnosis/stack_text.h"

#include <algorithm>
#include <cctype>

#include "harness/base/file.h"

namespace shakedown::diagnosis {
namespace {

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view TrimLeft(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  return text;
}

// "#3  0x00007f.. in c10d::Work::wait() at work.cc:1" -> "c10d::Work::wait() at work.cc:1".
// Empty when it is no frame.
std::string_view FrameText(std::string_view line) {
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  if (line.empty() || !std::isdigit(static_cast<unsigned char>(line.front()))) return {};
  while (!line.empty() && std::isdigit(static_cast<unsigned char>(line.front()))) {
    line.remove_prefix(1);
  }
  line = TrimLeft(line);
  if (line.starts_with("0x")) {
    const size_t space = line.find_first_of(" \t");
    if (space == std::string_view::npos) return line;
    line = TrimLeft(line.substr(space));
    if (line.starts_with("- ")) line = TrimLeft(line.substr(2));
    if (line.starts_with("in ")) line = TrimLeft(line.substr(3));
  }
  return line;
}

}  // namespace

ProcessStacks ParseStacks(std::string_view text) {
  ProcessStacks stacks;
  const Lines lines = SplitLines(text);
  int number = 0;
  for (const std::string_view whole : lines.complete) {
    ++number;
    const std::string_view line = TrimLeft(whole);
    if (const std::string_view frame = FrameText(line); !frame.empty()) {
      if (stacks.threads.empty()) stacks.threads.push_back({"", number, {}});
      stacks.threads.back().frames.push_back({std::string(frame), number});
    } else if (line.starts_with("State:")) {
      const std::string_view state = TrimLeft(line.substr(6));
      if (!state.empty() && stacks.state == 0) stacks.state = state.front();
    } else if (Has(line, "TID") || Has(line, "Thread") || Has(line, "thread")) {
      stacks.threads.push_back({std::string(line), number, {}});
    }
  }
  std::erase_if(stacks.threads, [](const ThreadStack& thread) { return thread.frames.empty(); });
  return stacks;
}

std::vector<StackFrame> JobFrames(const ThreadStack& thread) {
  const auto last_own =
      std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                   [](const StackFrame& frame) { return Has(frame.text, "shakedown::probe::"); });
  return {last_own.base(), thread.frames.end()};
}

std::string FunctionName(const StackFrame& frame) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string name;
  int depth = 0;  // of < and (
  std::string_view text = frame.text;
  while (!text.empty()) {
    if (depth == 0 && text.starts_with(kAnonymous)) {
      name += kAnonymous;
      text.remove_prefix(kAnonymous.size());
      continue;
    }
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '(' || c == '<') {
      ++depth;
    } else if (c == ')' || c == '>') {
      depth = std::max(0, depth - 1);
    } else if (depth == 0) {
      name += c;
    }
  }
  for (const std::string_view tail : {" at ", " const"}) {
    if (const size_t at = name.find(tail); at != std::string::npos) name.resize(at);
  }
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

bool WaitsForPeers(const std::vector<StackFrame>& frames) {
  for (const StackFrame& frame : frames) {
    const std::string name = FunctionName(frame);
    if (Has(name, "gloo::") || Has(name, "c10d::") || name.starts_with("nccl")) return true;
    const bool system = name.starts_with("__") || name.starts_with("pthread_") ||
                        name.starts_with("std::") || name.find("::") == std::string::npos;
    if (!system) return false;
  }
  return false;
}

}  // namespace shakedown::diagnosis
