// A folder for what only this run of the program needs.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace berth {

// Made when this is made, and removed with all that is in it when this goes.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / (name + "_XXXXXX")).string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw Error("{}: cannot be made", path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string Path(const std::string& file) const { return path_ + "/" + file; }

 private:
  std::string path_;
};

}  // namespace berth
