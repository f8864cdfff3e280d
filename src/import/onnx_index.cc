#include "import/onnx_index.h"

namespace berth {

void ForEachIndex(const Dims& dims, const std::function<void(size_t position, const Place& index)>& visit) {
  const auto count = static_cast<size_t>(CheckedElements(dims, "a constant"));
  Place index(dims.size(), 0);
  for (size_t position = 0; position < count; ++position) {
    visit(position, index);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

}  // namespace berth
