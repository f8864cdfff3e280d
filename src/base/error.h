// The two ways in which something can be wrong: the user's mistake (Error) and ours (BERTH_CHECK).
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

// The one exception of the project: a mistake of the user's. Its text is one line that says what is wrong, where, and
// how to mend it. What search expects to go wrong (a placement that does not fit) is data, never an Error.
class Error : public std::runtime_error {
 public:
  // What it quotes comes from files: control characters are written as "\n" or "\x1b", and of a text longer than this
  // the middle is left out.
  static constexpr size_t kLongest = 4096;  // bytes

  explicit Error(const std::string& what) : std::runtime_error(OneLine(what)) {}

  // Error("{}: no such device", name) with fmt's checked format strings.
  template <typename... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : Error(fmt::format(format, std::forward<Args>(args)...)) {}

 private:
  static std::string OneLine(const std::string& what);
};

// Prints file, line, the condition and the text to stderr and aborts. Not for mistakes of users.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& text);

// The closest of `known` to `wrong` by edit distance (a swap of neighbours is one edit), whatever the case of letters,
// or empty when none is near: for "did you mean". Nobody types more than a hundred characters nearly right.
std::string_view Closest(std::string_view wrong, const std::vector<std::string>& known);

}  // namespace berth

// Ours to keep: an invariant of the program. Always on; keep it out of inner loops.
#define BERTH_CHECK(condition, ...)                                                                    \
  do {                                                                                                 \
    if (!(condition)) [[unlikely]]                                                                     \
      ::berth::CheckFailed(__FILE__, __LINE__, #condition, ::berth::internal::CheckText(__VA_ARGS__)); \
  } while (false)

namespace berth::internal {

inline std::string CheckText() { return {}; }

template <typename... Args>
std::string CheckText(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}

}  // namespace berth::internal
