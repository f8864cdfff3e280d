// For tests: what stands in for a program that measures.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"

namespace berth {

// A program that is a shell script.
class Script {
 public:
  explicit Script(const std::string& body) {
    std::string folder = (std::filesystem::temp_directory_path() / "berth_worker_XXXXXX").string();
    BERTH_CHECK(::mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
    std::ofstream(path()) << "#!/bin/sh\n" << body;
    std::filesystem::permissions(path(), std::filesystem::perms::owner_all);
  }
  ~Script() { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "program").string(); }

 private:
  std::filesystem::path folder_;
};

}  // namespace berth
