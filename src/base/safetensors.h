// The file layout of safetensors (github.com/huggingface/safetensors): the length of a JSON header in 8 bytes, little
// end first; the header, with the type, the shape and the place of each tensor; then all tensors' bytes, without gaps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

struct StoredTensor {
  std::string name{};
  std::string type{};  // "F32", "I64", ...: TensorTypeBytes knows them
  std::vector<int64_t> shape{};
  std::string_view bytes{};  // row-major, little end first; lies in what the file was parsed of
};

struct TensorFile {
  std::map<std::string, std::string> metadata{};
  std::vector<StoredTensor> tensors{};  // in the order of their bytes
};

// The bytes of one element; 0 for a type that there is not.
size_t TensorTypeBytes(std::string_view type);

// Equal content makes equal bytes.
std::string WriteTensorFile(const TensorFile& file);

// Nothing in `bytes` is trusted: the header's length, and every type, shape and place in it, are held against the
// length of the file before anything is read; tensors that overlap, leave a gap or have another size than their shape
// says are refused. Throws Error naming `path` and the tensor. The result refers to `bytes`.
TensorFile ParseTensorFile(std::string_view bytes, const std::string& path);

}  // namespace berth
