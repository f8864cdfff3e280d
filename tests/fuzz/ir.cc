// OpenVINO's IR in both views: ReadIr.
#include "import/readers.h"
#include "tests/fuzz/graph_promises.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const std::string path = "fuzz.xml";
  for (const IrView view : {IrView::kFolded, IrView::kRaw}) {
    fuzz::Survives(path, [&] { return ReadIr(fuzz::Text(data, size), path, view); }, fuzz::CheckGraph);
  }
  return 0;
}
