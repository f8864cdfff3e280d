// Text files that are part of the program (cmake/BerthEmbed.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace berth {

struct EmbeddedFile {
  std::string_view name;  // the file's, without folder and extension
  std::string_view content;
};

}  // namespace berth
