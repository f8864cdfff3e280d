// Another program's reading of model files, for what Berth's own readers cannot tell.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace berth {

struct ImportOptions;

// Sizes of tensors, by name.
using NamedSizes = std::map<std::string, std::vector<int64_t>, std::less<>>;

class OtherReader {
 public:
  virtual ~OtherReader() = default;

  struct Ir {
    std::string reader{};                // who read it: "OpenVINO 2026.3"
    std::string xml{};                   // OpenVINO's intermediate representation, without weights
    std::vector<std::string> batches{};  // inputs whose first axis the file leaves open, taken as 1
    // Of the weights those pieces that are as small as a number, by their offset: as bytes.
    std::map<int64_t, std::string> numbers{};
  };
  // A model of any format that it knows, at the sizes of `options`. Throws Error where it does not take the file, for
  // sizes that the model's inputs cannot have, and where there is no such program.
  virtual Ir ReadAsIr(const std::string& path, const ImportOptions& options) const = 0;

  struct Sizes {
    std::string reader{};
    NamedSizes tensors{};   // those that it knows
    std::string refused{};  // why there are none, where it did not take the file
  };
  // The sizes of a model's tensors where its inputs have those of `inputs`. Throws Error likewise.
  virtual Sizes TensorSizes(const std::string& path, const NamedSizes& inputs) const = 0;
};

}  // namespace berth
