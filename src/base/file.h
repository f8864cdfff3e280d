// Files in and out, with errors that name the file.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace berth {

// What a file that is read may be.
struct FileKind {
  std::string_view what = "file";                 // for errors: "plan"
  int64_t most_bytes = int64_t{1} << 30;          // no file of this kind is larger
  bool may_be_pipe = false;                       // a pipe (/dev/stdin, a FIFO) will do, and is read to its end
  std::string_view if_larger = "check the path";  // the remedy
};

// The whole file. Nothing but regular files, and pipes where `kind` allows them: a device may never end, a folder has
// no content, and a FIFO that nobody writes into (for five seconds) would be waited for without an end. Error for
// these, for what cannot be read, and for what is larger than `kind` allows, which is found before more than that is
// read.
std::string ReadFile(const std::string& path, const FileKind& kind = {});

// Written beside and renamed, so that nobody ever sees half a file. A symbolic link stays, and what it leads to is
// written; a descriptor (/dev/stdout), a device or a pipe is written to directly. Error when that fails; nothing is
// left behind then.
void WriteFile(const std::string& path, std::string_view content);

// What WriteFile replaces: `path`, or what it leads to where it is a symbolic link; that need not be there yet. Error
// where links lead nowhere.
std::string FollowLinks(const std::string& path);

// Removes what WriteFile left beside `path` where its process was killed. Not while another writes it.
void RemoveLeftovers(const std::string& path);

// A folder that is filled beside and put in place as a whole, so that nobody ever sees half of it.
class NewFolder {
 public:
  // `path` must not be there yet, or be an empty folder; its parent must be there. Throws Error.
  explicit NewFolder(const std::string& path);
  // What was not put in place is gone.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  // Where a file of this name is to be written.
  std::string operator/(std::string_view name) const { return beside_ + '/' + std::string(name); }
  // Throws Error where somebody else has put something there in the meantime.
  void PutInPlace();

 private:
  std::string path_, beside_;  // beside_ is empty when it is in place
};

// The one that works in a folder: a lock on the file `lock` in it, which the kernel takes back when the process dies,
// and which ends with this object. The folder must be there.
class FolderLock {
 public:
  // Throws Error naming the folder, and the process where it says so, when somebody else holds it.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  static constexpr const char* kFile = "lock";

 private:
  int descriptor_;
};

// Parses JSON; an Error names `path` and what was expected with line and column, or the key that is there twice with
// its place.
nlohmann::json ParseJson(std::string_view text, const std::string& path);
nlohmann::json ReadJson(const std::string& path, const FileKind& kind = {});

}  // namespace berth
