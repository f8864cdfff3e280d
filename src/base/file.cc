#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace berth {
namespace {

// Closes (and on the way out of a failed write removes) what was opened.
struct File {
  int descriptor;
  ~File() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

// What is written has the file's name, this, and six characters of mkstemp's.
constexpr std::string_view kPart = ".part-";

std::string Reason() { return std::strerror(errno); }

}  // namespace

std::string ReadFile(const std::string& path) {
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.descriptor < 0) throw Error("{}: cannot be read: {}; check the path", path, Reason());
  struct stat status{};
  if (::fstat(file.descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    throw Error("{}: is a directory; name a file in it", path);
  }
  std::string content(static_cast<size_t>(std::max<off_t>(status.st_size, 0)), '\0');
  size_t size = 0;
  while (true) {
    if (size == content.size()) content.resize(content.size() + 65536);
    const ssize_t count = ::read(file.descriptor, content.data() + size, content.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error("{}: cannot be read: {}", path, Reason());
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  content.resize(size);
  return content;
}

void WriteFile(const std::string& path, std::string_view content) {
  // Devices and pipes (/dev/stdout) are written to directly: they cannot be renamed over.
  struct stat status{};
  const bool special = ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  if (special && S_ISDIR(status.st_mode)) throw Error("{}: is a directory; name a file in it", path);
  std::string temporary = special ? path : fmt::format("{}{}XXXXXX", path, kPart);
  const auto fail = [&] {
    const std::string reason = Reason();
    if (!special) ::unlink(temporary.c_str());
    return Error("{}: cannot be written: {}", path, reason);
  };
  const File file{special ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC) : ::mkstemp(temporary.data())};
  if (file.descriptor < 0) throw Error("{}: cannot be written: {}; check that the folder exists", path, Reason());
  while (!content.empty()) {
    const ssize_t count = ::write(file.descriptor, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw fail();
    content.remove_prefix(static_cast<size_t>(count));
  }
  if (special) return;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file.descriptor, 0666 & ~mask) != 0) throw fail();
  if (::rename(temporary.c_str(), path.c_str()) != 0) throw fail();
}

void RemoveLeftovers(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(path).parent_path();
  const std::string start = fs::path(path).filename().string() + std::string(kPart);
  std::vector<fs::path> leftovers;
  std::error_code code;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, code), end; !code && entry != end;
       entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(start) && name.size() == start.size() + 6) leftovers.push_back(entry->path());
  }
  for (const fs::path& leftover : leftovers) fs::remove(leftover, code);
}

nlohmann::json ParseJson(std::string_view text, const std::string& path) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string_view before = text.substr(0, std::min(error.byte == 0 ? 0 : error.byte - 1, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t start = before.rfind('\n');
    const size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
    if (text.empty()) throw Error("{}: is empty; a JSON document was expected", path);
    std::string what = error.what();
    if (const size_t at = what.rfind(": "); at != std::string::npos) what = what.substr(at + 2);
    throw Error("{}:{}:{}: not valid JSON: {}", path, line, column, what);
  } catch (const nlohmann::json::exception&) {
    throw Error("{}: holds a number beyond what a double can hold; use one below 1e308", path);
  }
}

nlohmann::json ReadJson(const std::string& path) { return ParseJson(ReadFile(path), path); }

}  // namespace berth
