#include "base/utf8.h"

#include <algorithm>

namespace berth {

char32_t NextCharacter(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned lead = byte(at);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  char32_t character = length == 1 ? lead : length == 2 ? lead & 0x1F : length == 3 ? lead & 0x0F : lead & 0x07;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) {
      ++at;
      return kBrokenCharacter;
    }
    character = character << 6 | (byte(at + i) & 0x3F);
  }
  // Over-long forms and halves of surrogate pairs.
  const bool valid = length > 0 && !(length == 3 && character < 0x800) && !(length == 4 && character < 0x10000) &&
                     !(character >= 0xD800 && character < 0xE000) && character < 0x110000;
  at += valid ? length : 1;
  return valid ? character : kBrokenCharacter;
}

std::string ToUtf8(std::string text) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return text;
  std::string whole;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    if (NextCharacter(text, at) == kBrokenCharacter) {
      whole += "\xEF\xBF\xBD";
    } else {
      whole.append(text, start, at - start);
    }
  }
  return whole;
}

}  // namespace berth
