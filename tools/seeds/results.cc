#include "tools/seeds/results.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace berth::seeds {

Results::Results(std::string path, Access access) : path_(std::move(path)) {
  if (access == Access::kReads && !std::filesystem::exists(path_)) {
    throw Error("{}: no such file; nothing has been measured yet", path_);
  }
  try {
    if (access == Access::kAdds) Open();
    Read(ReadFile(path_, {.what = "results file"}));
  } catch (...) {
    ::close(file_);
    throw;
  }
}

Results::~Results() { ::close(file_); }

void Results::Open() {
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder)) {
    throw Error("{}: there is no folder {} for it; make it, or name another file with --results", path_,
                folder.string());
  }
  file_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw Error("{}: cannot be written: {}", path_, std::strerror(errno));
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    throw Error("{}: another run writes it; wait for that one, or name another file with --results", path_);
  }
}

void Results::Read(const std::string& text) {
  size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    const std::string place = fmt::format("{}:{}", path_, number);
    if (end == std::string::npos) {
      if (file_ < 0) return;
      if (::ftruncate(file_, static_cast<off_t>(begin)) != 0) {
        throw Error("{}: the line is cut short, and cannot be taken away: {}", place, std::strerror(errno));
      }
      mended_ = fmt::format("{}: the line was cut short and is taken away; its cell is measured again", place);
      return;
    }
    try {
      Keep(CellOf(ParseJson(std::string_view(text).substr(begin, end - begin), place), place));
    } catch (const Error& error) {
      throw Error("{}; take the line out, or name another file with --results", error.what());
    }
    begin = end + 1;
  }
}

const Cell* Results::Find(const Question& question) const {
  const auto found = by_key_.find(question.Key());
  return found == by_key_.end() ? nullptr : &cells_[found->second];
}

void Results::Add(Cell cell) {
  const std::string line = ToJson(cell).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  // One write, so that nobody sees half a line unless the machine stops in the middle of it.
  if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw Error("{}: cannot be written: {}; the cells before are kept", path_, std::strerror(errno));
  }
  Keep(std::move(cell));
}

void Results::Keep(Cell cell) {
  by_key_[cell.question.Key()] = cells_.size();
  cells_.push_back(std::move(cell));
}

}  // namespace berth::seeds
