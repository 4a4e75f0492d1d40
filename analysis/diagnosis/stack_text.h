// Reads stacks.txt: the stacks of a process as a debugger printed them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shakedown::diagnosis {

struct StackFrame {
  std::string text;  // function and place, without number and address
  int line = 0;      // in the file, from 1
};

struct ThreadStack {
  std::string title;  // "TID 4711:"
  int line = 0;
  std::vector<StackFrame> frames;  // innermost first
};

struct ProcessStacks {
  char state = 0;  // 'S', 'T', ... of the process where the file says it; else 0
  std::vector<ThreadStack> threads;
};

// Understands what eu-stack, gdb and pstack print: a line that begins with '#' and a number is a
// frame, any other line that mentions "thread" or "TID" begins a thread; "State: T (stopped)" is as
// in /proc/PID/status. Lines that are neither are left out.
ProcessStacks ParseStacks(std::string_view text);

// Without the frames of the observer: everything from the innermost frame out to the last that
// belongs to Shakedown's probe. What is left is the job's own.
std::vector<StackFrame> JobFrames(const ThreadStack& thread);

// "c10d::Reducer::finalize_backward() at r.cc:1" -> "c10d::Reducer::finalize_backward": without
// parameters, template arguments and place.
std::string FunctionName(const StackFrame& frame);

// The thread sleeps in the communication library: the innermost frame that is not the system's or
// the C++ library's belongs to it.
bool WaitsForPeers(const std::vector<StackFrame>& frames);

}  // namespace shakedown::diagnosis
