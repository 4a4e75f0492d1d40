// Landlock: a process gives up the right to open anything but what it names (man 7 landlock). By
// raw system calls, since the C library of Debian 12 has no wrappers.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/base/status.h"

namespace shakedown::diagnosis {

struct ReadableFiles {
  // Files, or folders with everything below them. What does not exist is left out, and so are
  // symbolic links: a link in an untrusted folder could name anything.
  std::vector<std::filesystem::path> read;
  // Folders whose names may be listed; no file below them can be opened because of that.
  std::vector<std::filesystem::path> list;
};

// Version of the kernel's Landlock interface, from 1; 0 when it has none or it is turned off.
int LandlockVersion();

// From now on this thread, and whatever it starts, can open what `files` names for reading and
// nothing else: no writing, making, removing or executing of files. Descriptors that are open
// already stay usable. Cannot be taken back. Sets no_new_privs.
Status RestrictReading(const ReadableFiles& files);

}  // namespace shakedown::diagnosis
