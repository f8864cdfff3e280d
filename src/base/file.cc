#include "base/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace berth {
namespace {

// Of this process. It can be read by being set only, which all threads would see: so once.
mode_t Umask() {
  static const mode_t mask = [] {
    const mode_t before = ::umask(022);
    ::umask(before);
    return before;
  }();
  return mask;
}

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

constexpr int kForever = -1;
constexpr int kPatience = 5000;  // milliseconds

// Waits until there is something to read, or the last writer is gone; false where neither came to pass.
bool WaitForInput(int descriptor, int milliseconds) {
  struct pollfd input{.fd = descriptor, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&input, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready != 0;
}

// The number of a descriptor of this process that `path` names; -1 where it names none. Where it is a file that a shell
// redirects to, whoever opened that anew would write over what this process prints.
int OwnDescriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const std::string_view digits = path.substr(folder.size());
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return code == std::errc() && end == digits.data() + digits.size() ? number : -1;
  }
  return -1;
}

}  // namespace

std::string ReadFile(const std::string& path, const FileKind& kind) {
  // Without O_NONBLOCK this would wait for somebody to write into a FIFO.
  const File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (file.descriptor < 0) throw Error("{}: cannot be read: {}; check the path", path, Reason());
  struct stat status{};
  if (::fstat(file.descriptor, &status) != 0) throw Error("{}: cannot be read: {}", path, Reason());
  if (S_ISDIR(status.st_mode)) throw Error("{}: is a directory; name a file in it", path);
  const bool pipe = S_ISFIFO(status.st_mode);
  if (!S_ISREG(status.st_mode) && !(pipe && kind.may_be_pipe)) {
    throw Error("{}: is a {} and no regular file; write the {} into a file and name that", path,
                pipe ? "pipe" : "device", kind.what);
  }
  const auto most = static_cast<size_t>(kind.most_bytes);
  const auto too_large = [&] {
    return Error("{}: is larger than {}, the most that a {} may have; {}", path, ToString(Bytes{kind.most_bytes}),
                 kind.what, kind.if_larger);
  };
  if (status.st_size > kind.most_bytes) throw too_large();
  // One byte more than there should be, so that the end is seen.
  std::string content(static_cast<size_t>(std::max<off_t>(status.st_size, 0)) + 1, '\0');
  size_t size = 0;
  bool waited = false, somebody_came = false;
  while (true) {
    if (size == content.size()) content.resize(std::min(2 * size + 65536, most + 1));
    const ssize_t count = ::read(file.descriptor, content.data() + size, content.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      WaitForInput(file.descriptor, kForever);
      continue;
    }
    if (count < 0) throw Error("{}: cannot be read: {}", path, Reason());
    if (count == 0 && pipe && size == 0 && !somebody_came) {
      // A FIFO reads as if it had ended until somebody opens it for writing.
      if (waited)
        throw Error("{}: nobody writes into this pipe; write the {} into a file and name that", path, kind.what);
      waited = true;
      somebody_came = WaitForInput(file.descriptor, kPatience);
      continue;
    }
    if (count == 0) break;
    size += static_cast<size_t>(count);
    if (size > most) throw too_large();
  }
  content.resize(size);
  return content;
}

std::string FollowLinks(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as Linux has it
  fs::path at = path;
  std::error_code code;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path target = fs::read_symlink(at, code);
    if (code) return at.string();
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  throw Error("{}: its symbolic links lead in a circle; name a file", path);
}

void WriteFile(const std::string& given, std::string_view content) {
  const int own = OwnDescriptor(given);
  // Devices and pipes are written to directly: they cannot be renamed over.
  struct stat status{};
  const bool exists = own < 0 && ::stat(given.c_str(), &status) == 0;
  const bool special = own >= 0 || (exists && !S_ISREG(status.st_mode));
  if (special && S_ISDIR(status.st_mode)) throw Error("{}: is a directory; name a file in it", given);
  const std::string path = special ? given : FollowLinks(given);
  std::string temporary = special ? path : fmt::format("{}{}XXXXXX", path, kPart);
  const auto fail = [&] {
    const std::string reason = Reason();
    if (!special) ::unlink(temporary.c_str());
    return Error("{}: cannot be written: {}", given, reason);
  };
  const File file{own >= 0  ? ::fcntl(own, F_DUPFD_CLOEXEC, 0)
                  : special ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC)
                            : ::mkstemp(temporary.data())};
  if (file.descriptor < 0) throw Error("{}: cannot be written: {}; check that the folder exists", given, Reason());
  while (!content.empty()) {
    const ssize_t count = ::write(file.descriptor, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw fail();
    content.remove_prefix(static_cast<size_t>(count));
  }
  if (special) return;
  // What is replaced keeps who may read it.
  if (::fchmod(file.descriptor, exists ? status.st_mode & 07777 : 0666 & ~Umask()) != 0) throw fail();
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

NewFolder::NewFolder(const std::string& path) : path_(path) {
  namespace fs = std::filesystem;
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  std::error_code code;
  const bool there = fs::exists(fs::symlink_status(path_, code));
  if (there && !fs::is_directory(path_, code)) throw Error("{}: is there already, and no folder; name another", path);
  if (there && !fs::is_empty(path_, code)) {
    throw Error("{}: is a folder that is not empty; name another, or remove what is in it", path);
  }
  path_ = FollowLinks(path_);
  beside_ = fmt::format("{}{}XXXXXX", path_, kPart);
  if (::mkdtemp(beside_.data()) == nullptr) {
    const std::string reason = Reason();
    throw Error("{}: cannot be made: {}; check that the folder above it exists and is yours", path, reason);
  }
  ::chmod(beside_.c_str(), 0777 & ~Umask());
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!beside_.empty()) std::filesystem::remove_all(beside_, ignored);
}

void NewFolder::PutInPlace() {
  // An empty folder is replaced; one that is not is refused by the system.
  if (::rename(beside_.c_str(), path_.c_str()) != 0) throw Error("{}: cannot be put in place: {}", path_, Reason());
  beside_.clear();
}

FolderLock::FolderLock(const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kFile);
  File file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)};
  if (file.descriptor < 0) throw Error("{}: cannot be written: {}", path, Reason());
  if (::flock(file.descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      throw Error("{}: cannot be locked: {}; name a folder on a disk of this machine", path, Reason());
    std::string holder(32, '\0');
    holder.resize(static_cast<size_t>(std::max<ssize_t>(::pread(file.descriptor, holder.data(), holder.size(), 0), 0)));
    if (holder.find_first_not_of("0123456789") != std::string::npos) holder.clear();
    throw Error("{}: another process{} works in this folder; wait for its end, or name another folder", folder,
                holder.empty() ? "" : " (" + holder + ")");
  }
  // Who it is, for that message.
  const std::string own = std::to_string(::getpid());
  if (::ftruncate(file.descriptor, 0) != 0 ||
      ::pwrite(file.descriptor, own.data(), own.size(), 0) != static_cast<ssize_t>(own.size())) {
    throw Error("{}: cannot be written: {}", path, Reason());
  }
  descriptor_ = std::exchange(file.descriptor, -1);
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace berth
