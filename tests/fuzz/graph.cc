// Graphs in Berth's own format: ReadGraphJson.
#include "tests/fuzz/graph_promises.h"
#include "tests/fuzz/json_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return berth::fuzz::MutateJson(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string path = "fuzz.json";
  fuzz::Survives(path, [&] { return ReadGraphJson(fuzz::Text(data, size), path); }, fuzz::CheckGraph);
  return 0;
}
