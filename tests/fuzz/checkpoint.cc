// Checkpoints of learned planners, as far as they are read without libtorch: ParseTensorFile, back by WriteTensorFile,
// and the JSON in their metadata.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/safetensors.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/reader.h"

// Every other time the header as JSON, with its length in front; the bytes else.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  constexpr size_t kLength = 8;
  uint64_t length = 0;
  if (size > kLength) std::memcpy(&length, data, kLength);
  if (seed % 2 == 0 && length > 0 && length <= size - kLength) {
    const char* text = reinterpret_cast<const char*>(data);
    const std::string rest(text + kLength + length, size - kLength - length);
    const std::string head = berth::fuzz::JsonMutator(seed).Mutate({text + kLength, length});
    if (!head.empty() && kLength + head.size() + rest.size() <= max_size) {
      length = head.size();
      std::memcpy(data, &length, kLength);
      std::memcpy(data + kLength, head.data(), head.size());
      if (!rest.empty()) std::memcpy(data + kLength + head.size(), rest.data(), rest.size());
      return kLength + head.size() + rest.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string path = "fuzz.safetensors";
  fuzz::Survives(
      path, [&] { return ParseTensorFile(fuzz::Text(data, size), path); },
      [&](const TensorFile& file) {
        size_t bytes = 0;
        for (const StoredTensor& tensor : file.tensors) {
          size_t elements = 1;
          for (const int64_t dim : tensor.shape) elements *= static_cast<size_t>(dim);
          FUZZ_CHECK(tensor.bytes.size() == elements * TensorTypeBytes(tensor.type));
          bytes += tensor.bytes.size();
        }
        FUZZ_CHECK(bytes <= size);
        const std::string written = WriteTensorFile(file);
        const TensorFile again = ParseTensorFile(written, path);
        FUZZ_CHECK(again.metadata == file.metadata && again.tensors.size() == file.tensors.size());
        FUZZ_CHECK(WriteTensorFile(again) == written);
        for (const auto& [key, text] : file.metadata) {
          fuzz::Survives(path, [&] { return ParseJson(text, path); }, [](const nlohmann::json&) {});
        }
      });
  return 0;
}
