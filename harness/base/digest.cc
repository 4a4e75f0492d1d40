#include "harness/base/digest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <cerrno>
#include <charconv>

#include "harness/base/unique_fd.h"

namespace shakedown {
namespace {

std::string HexOf(const unsigned char* data, size_t bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes * 2);
  for (size_t i = 0; i < bytes; ++i) {
    out += kDigits[data[i] >> 4];
    out += kDigits[data[i] & 15];
  }
  return out;
}

}  // namespace

std::string ToHex(const Digest128& digest) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH128_hash_t{digest.low, digest.high});
  return HexOf(canonical.digest, sizeof canonical.digest);
}

Result<Digest128> ParseDigest128(std::string_view hex) {
  Digest128 out;
  const auto half = [&](std::string_view text, uint64_t* value) {
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), *value, 16);
    return ec == std::errc() && end == text.data() + text.size();
  };
  if (hex.size() != 32 || !half(hex.substr(0, 16), &out.high) || !half(hex.substr(16), &out.low)) {
    return Fail("'" + std::string(hex.substr(0, 64)) +
                "' is not a digest of 32 hexadecimal digits");
  }
  return out;
}

struct Xxh3::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
Xxh3::~Xxh3() = default;

void Xxh3::Update(const void* data, size_t bytes) {
  XXH3_128bits_update(state_->xxh, data, bytes);
  bytes_ += bytes;
}

Result<Digest128> Xxh3::Finish() const {
  if (bytes_ == 0) return Fail("refusing a digest over no bytes");
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return Digest128{hash.high64, hash.low64};
}

Digest128 Xxh3Of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return Digest128{hash.high64, hash.low64};
}

uint64_t Xxh3Of64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string Sha256Hex(std::string_view bytes) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), out, &size, EVP_sha256(), nullptr);
  return HexOf(out, size);
}

Result<std::string> Sha256OfFile(const std::filesystem::path& path, int64_t* bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return FailErrno("open", path.native());
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return FailErrno("stat", path.native());
  if (!S_ISREG(st.st_mode))
    return Fail("cannot digest '" + path.native() + "': not a regular file");
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  int64_t total = 0;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("read", path.native());
    if (n == 0) break;
    EVP_DigestUpdate(context.get(), buffer, static_cast<size_t>(n));
    total += n;
  }
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context.get(), out, &size);
  if (bytes != nullptr) *bytes = total;
  return HexOf(out, size);
}

}  // namespace shakedown
