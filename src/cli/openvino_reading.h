// OpenVINO as the other reader of models.
#pragma once

#include "import/other_reader.h"

namespace berth {

class OpenVinoReading : public OtherReader {
 public:
  Ir ReadAsIr(const std::string& path, const ImportOptions& options) const override;
  Sizes TensorSizes(const std::string& path, const NamedSizes& inputs) const override;
};

}  // namespace berth
