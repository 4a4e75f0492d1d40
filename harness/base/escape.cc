// Escape: text of others, made harmless for a terminal.
#include <cstdint>

#include "harness/base/file.h"
#include "harness/base/text.h"

namespace shakedown {
namespace {

struct Decoded {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: not UTF-8
};

// One code point at the front of `text`: shortest form, no surrogates, at most U+10FFFF.
Decoded Decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  return {code, bytes};
}

// C0, DEL and C1 controls act on terminals; line separators and bidirectional controls change what
// a reader sees (Unicode TR 36).
bool Acts(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
         code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

std::string Hex(std::string_view prefix, uint32_t value, int digits) {
  std::string text(prefix);
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    text += "0123456789abcdef"[value >> shift & 0xF];
  }
  return text;
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded next = Decode(text);
    if (next.bytes == 0) {
      out += Hex("\\x", static_cast<unsigned char>(text.front()), 2);
      text.remove_prefix(1);
      continue;
    }
    if (!Acts(next.code)) {
      out += text.substr(0, next.bytes);
    } else if (next.code == '\n') {
      out += "\\n";
    } else if (next.code == '\t') {
      out += "\\t";
    } else {
      out += next.code < 0x80 ? Hex("\\x", next.code, 2) : Hex("\\u", next.code, 4);
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string EscapeLines(std::string_view text) {
  const Lines lines = SplitLines(text);
  std::string out;
  for (const std::string_view line : lines.complete) out += Escape(line) + "\n";
  return out + Escape(lines.torn);
}

}  // namespace shakedown
