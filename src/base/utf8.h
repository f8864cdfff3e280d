// Texts that come from files: UTF-8, or not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth {

inline constexpr char32_t kBrokenCharacter = 0xFFFFFFFF;

// The character that starts at `at`, which moves past it; kBrokenCharacter (one byte on) where the bytes are no UTF-8.
char32_t NextCharacter(std::string_view text, size_t& at);

// The text with a replacement character (U+FFFD) in the place of each byte that is no UTF-8; unchanged where all is.
std::string ToUtf8(std::string text);

}  // namespace berth
