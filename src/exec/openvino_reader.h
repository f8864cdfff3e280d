// Models as OpenVINO reads them, for formats that Berth has no reader for and shapes that its own leaves unknown.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth {

using SizesByName = std::map<std::string, std::vector<int64_t>, std::less<>>;

struct IrReading {
  std::string xml{};                         // the IR, without weights
  std::vector<std::string> batches{};        // inputs whose first axis the file leaves open, taken as 1
  std::map<int64_t, std::string> numbers{};  // of the weights what is as small as a number, by offset, as bytes
  std::string version{};                     // of OpenVINO
};
// A model of any format that OpenVINO knows, its inputs at the sizes that are asked for; `batch` is the first axis of
// every input of which it is plain that this is the batch. Throws Error where this build lacks OpenVINO, where OpenVINO
// does not take the file, and for sizes that no input has.
IrReading ReadAsIr(const std::string& path, const SizesByName& inputs, std::optional<int64_t> batch);

struct SizesReading {
  SizesByName tensors{};  // those whose sizes it tells
  std::string version{};
};
// The sizes of a model's tensors where its inputs have those of `inputs`. Throws Error likewise.
SizesReading ReadTensorSizes(const std::string& path, const SizesByName& inputs);

}  // namespace berth
