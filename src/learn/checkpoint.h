// What training needs to go on, as one file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "learn/libtorch.h"

namespace berth {

// Numbers and texts as JSON, and tensors, each name once. The file is one of safetensors (base/safetensors.h), with the
// JSON and a hash of all in its metadata. Equal content makes equal bytes (torch's own archives differ from one to the
// next).
struct Checkpoint {
  nlohmann::json meta{};
  std::vector<std::pair<std::string, at::Tensor>> tensors{};

  std::string ToBytes() const;
  // Checkpoints come from strangers, too: whatever the bytes are, they are read within their bounds, or refused by an
  // Error that names `path`: where they are no such file, and where some are lost or changed. What `meta` says is still
  // to be checked.
  static Checkpoint Parse(std::string_view bytes, const std::string& path);

  // The tensors whose names begin with `prefix`, in order, copied into `to`; throws Error naming `path` where they do
  // not fit.
  void CopyTo(std::string_view prefix, const std::vector<at::Tensor>& to, const std::string& path) const;
};

}  // namespace berth
