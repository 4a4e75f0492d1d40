#include "trainer/observe/collective_failure.h"

namespace shakedown {
namespace {

constexpr std::string_view kTimeoutTexts[] = {
    "Timed out waiting",        // Gloo: a send or a receive did not complete
    "Wait timeout",             // c10d::FileStore
    "Timeout waiting for key",  // c10d::FileStore::get
    "wait timeout",
    "Socket Timeout",
    "timed out",
};

constexpr std::string_view kLostTexts[] = {
    "Connection reset by peer",
    "Connection closed by peer",
    "Broken pipe",
    "Connection refused",
    "Socket closed",
    "Socket not connected",
};

}  // namespace

CollectiveFailure ClassifyCollectiveFailure(std::string_view what) {
  // A lost connection first: Gloo reports it as the reason of a wait that it cut short.
  for (const std::string_view text : kLostTexts) {
    if (what.find(text) != std::string_view::npos) return CollectiveFailure::kPeerLost;
  }
  for (const std::string_view text : kTimeoutTexts) {
    if (what.find(text) != std::string_view::npos) return CollectiveFailure::kTimeout;
  }
  return CollectiveFailure::kNone;
}

}  // namespace shakedown
