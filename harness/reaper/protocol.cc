#include "harness/reaper/protocol.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "harness/base/file.h"
#include "harness/process/packet.h"

namespace shakedown {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;
// What the packet says in the place of a text that is in the last descriptor.
constexpr std::string_view kInDescriptor = "text in descriptor";

Result<UniqueFd> TextInMemfd(std::string_view text) {
  UniqueFd fd(::memfd_create("reaper message", MFD_CLOEXEC));
  if (!fd) return FailErrno("create a memfd for", "a message");
  SHAKEDOWN_TRY(WriteAll(fd.get(), text, "memfd of a message"));
  return fd;
}

Result<std::string> TextFromMemfd(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return FailErrno("look at", "the memfd of a message");
  if (st.st_size < 0 || static_cast<size_t>(st.st_size) > kMaxBytes) {
    return Fail("a message of " + std::to_string(st.st_size) + " bytes is too long", EMSGSIZE);
  }
  std::string text(static_cast<size_t>(st.st_size), '\0');
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("read", "the memfd of a message");
    if (n == 0) return Fail("the memfd of a message shrank while being read", EBADMSG);
    done += static_cast<size_t>(n);
  }
  return text;
}

}  // namespace

Status SendReaperMessage(int socket, const Json& body, const std::vector<int>& descriptors) {
  const std::string text = DumpJson(body);
  if (text.size() <= kMaxPacketBytes) return SendPacket(socket, text, descriptors);
  const Result<UniqueFd> memfd = TextInMemfd(text);
  if (!memfd) return tl::unexpected(memfd.error());
  std::vector<int> with_text = descriptors;
  with_text.push_back(memfd->get());
  return SendPacket(socket, kInDescriptor, with_text);
}

Result<std::optional<ReaperMessage>> ReceiveReaperMessage(int socket) {
  Result<std::optional<Packet>> packet = ReceivePacket(socket);
  if (!packet) return Wrap("the reaper's protocol", packet.error());
  if (!*packet) return std::optional<ReaperMessage>();
  std::string text = std::move((*packet)->bytes);
  ReaperMessage received;
  received.descriptors = std::move((*packet)->descriptors);
  if (text == kInDescriptor) {
    if (received.descriptors.empty()) return Fail("a message without its text", EBADMSG);
    Result<std::string> long_text = TextFromMemfd(received.descriptors.back().get());
    if (!long_text) return tl::unexpected(long_text.error());
    text = *std::move(long_text);
    received.descriptors.pop_back();
  }
  Result<Json> body = ParseJson(text);
  if (!body) return Wrap("cannot read a message of the reaper's protocol", body.error());
  received.body = *std::move(body);
  return std::optional(std::move(received));
}

std::string BytesToJson(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xC0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return text;
}

Result<std::string> BytesFromJson(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
      continue;
    }
    // Two bytes of UTF-8 hold the code points from 0x80; 0xC2 and 0xC3 begin those up to 0xFF.
    if ((first != 0xC2 && first != 0xC3) || i + 1 >= text.size()) {
      return Fail("not bytes as BytesToJson writes them", EBADMSG);
    }
    bytes +=
        static_cast<char>((first & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F));
  }
  return bytes;
}

}  // namespace shakedown
