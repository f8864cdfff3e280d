// What holds of every reader, whatever the bytes are. A fuzzer calls its reader in Survives, which hands on what was
// read, and checks with FUZZ_CHECK what its header promises of that.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace berth::fuzz {

[[noreturn]] inline void Broken(const char* file, int line, const char* promise, const std::string& text) {
  std::fprintf(stderr, "%s:%d: broken promise: %s%s%s\n", file, line, promise, text.empty() ? "" : ": ", text.c_str());
  std::abort();
}

#define FUZZ_CHECK(promise, ...)                                                                                    \
  do {                                                                                                              \
    if (!(promise)) ::berth::fuzz::Broken(__FILE__, __LINE__, #promise, ::berth::internal::CheckText(__VA_ARGS__)); \
  } while (false)

// An Error is one line that names the file. Any other exception ends the process by itself.
inline void CheckError(const Error& error, std::string_view path) {
  const std::string_view what = error.what();
  FUZZ_CHECK(what.find(path) != what.npos, "the error names no file: {}", what);
  FUZZ_CHECK(what.find('\n') == what.npos, "the error has several lines: {}", what);
  FUZZ_CHECK(what.size() <= Error::kLongest, "the error has {} bytes", what.size());
}

// Calls use(read()); whether read() gave something. Only read() may throw Error, which must be a good one.
template <typename Read, typename Use>
bool Survives(std::string_view path, const Read& read, const Use& use) {
  const auto result = [&]() -> std::optional<decltype(read())> {
    try {
      return read();
    } catch (const Error& error) {
      CheckError(error, path);
      return std::nullopt;
    }
  }();
  if (result) use(*result);
  return result.has_value();
}

inline std::string_view Text(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

}  // namespace berth::fuzz
