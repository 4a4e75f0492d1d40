// Messages between the controller and its reaper, on a SOCK_SEQPACKET socketpair: one JSON object a
// message, with descriptors beside it (SCM_RIGHTS). Both ends are of one build, so there is no
// version in it.
//
//   controller -> reaper: {"id", "command", ...}        reaper -> controller: {"id", ...}, or
//                                                       {"id", "error", "code"}
//   provision_private_fs  mountpoint, bytes             holder, user_namespace + the root directory
//   start_job             argv, environment, directory, process + its pidfd
//                         in_private_fs
//                         + stdout, stderr
//   inspect_leftovers                                   processes: [{process, state, command}]
//   end_all               deadline_ms                   processes: those that remain
//   keep_page             name + the page's memfd
//   shutdown              deadline_ms                   processes: those that remain
//
// And, at any time, reaper -> controller: {"event": "exited", "role": job|holder|orphan, "process",
// "code" or "signal"}. Processes are identities. Arguments, environment and paths may be any bytes:
// see BytesToJson.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/status.h"
#include "harness/base/unique_fd.h"
#include "harness/wire/json.h"

namespace shakedown {

// Where the reaper finds its ends.
inline constexpr int kReaperSocketFd = 3;
inline constexpr int kReaperControllerPidfd = 4;

namespace reaper_commands {
inline constexpr char kProvisionPrivateFs[] = "provision_private_fs";
inline constexpr char kStartJob[] = "start_job";
inline constexpr char kInspectLeftovers[] = "inspect_leftovers";
inline constexpr char kEndAll[] = "end_all";
inline constexpr char kKeepPage[] = "keep_page";
inline constexpr char kShutdown[] = "shutdown";
}  // namespace reaper_commands

struct ReaperMessage {
  Json body;
  std::vector<UniqueFd> descriptors;
};

// The descriptors stay the caller's. Text of any length: a long one travels in a memfd. On a
// non-blocking socket that is full: EAGAIN.
Status SendReaperMessage(int socket, const Json& body, const std::vector<int>& descriptors = {});
// nullopt at the end of the connection; EAGAIN when a non-blocking socket has nothing.
Result<std::optional<ReaperMessage>> ReceiveReaperMessage(int socket);

// JSON strings are text, but arguments and paths are bytes: each byte becomes the code point of the
// same number.
std::string BytesToJson(std::string_view bytes);
// Code points above 255, which BytesToJson never makes, are refused.
Result<std::string> BytesFromJson(std::string_view text);

}  // namespace shakedown
