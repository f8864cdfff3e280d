#include "cli/openvino_reading.h"

#include "exec/openvino_reader.h"
#include "import/import.h"

namespace berth {
namespace {

// "2026.3.1-20950-abc" is more than a note has to say.
std::string Called(const std::string& version) { return "OpenVINO " + version.substr(0, version.find('-')); }

}  // namespace

OtherReader::Ir OpenVinoReading::ReadAsIr(const std::string& path, const ImportOptions& options) const {
  IrReading reading = berth::ReadAsIr(path, options.shapes, options.batch);
  return {.reader = Called(reading.version),
          .xml = std::move(reading.xml),
          .batches = std::move(reading.batches),
          .numbers = std::move(reading.numbers)};
}

OtherReader::Sizes OpenVinoReading::TensorSizes(const std::string& path, const NamedSizes& inputs) const {
  SizesReading reading = ReadTensorSizes(path, inputs);
  return {.reader = Called(reading.version), .tensors = std::move(reading.tensors)};
}

}  // namespace berth
