// ONNX models, as they are and at another batch: ReadOnnx.
#include "tests/fuzz/graph_promises.h"
#include "tests/fuzz/onnx_mutator.h"

// Every other time as a model; the bytes else.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  onnx::ModelProto model;
  if (seed % 2 == 0 && model.ParseFromArray(data, static_cast<int>(size))) {
    berth::fuzz::OnnxMutator(seed).Mutate(model);
    if (const size_t changed = model.ByteSizeLong(); changed <= max_size) {
      model.SerializeToArray(data, static_cast<int>(changed));
      return changed;
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string path = "fuzz.onnx";
  const auto read = [&](const ImportOptions& options) { return ReadOnnx(fuzz::Text(data, size), path, options); };
  if (!fuzz::Survives(path, [&] { return read({}); }, fuzz::CheckGraph)) return 0;
  fuzz::Survives(path, [&] { return read({.batch = 3}); }, fuzz::CheckGraph);
  return 0;
}
