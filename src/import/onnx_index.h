// Walking through the elements of small tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "import/onnx_value.h"

namespace berth {

// An element, by its position along every axis.
using Place = std::vector<int64_t>;

inline void Append(Place& place, std::span<const int64_t> more) {
  for (const int64_t at : more) place.push_back(at);
}

// Calls visit(position, index) for every element of `dims` in row-major order.
void ForEachIndex(const Dims& dims, const std::function<void(size_t position, const Place& index)>& visit);

// Where the element at `index` lies.
inline size_t PositionAt(std::span<const int64_t> index, const Dims& dims) {
  size_t position = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    position = position * static_cast<size_t>(dims[axis]) + static_cast<size_t>(index[axis]);
  }
  return position;
}

// Where the element at `index` of a broadcast result lies in an operand.
inline size_t BroadcastPosition(std::span<const int64_t> index, const Dims& dims) {
  size_t position = 0;
  const size_t skip = index.size() - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t at = dims[axis] == 1 ? 0 : index[axis + skip];
    position = position * static_cast<size_t>(dims[axis]) + static_cast<size_t>(at);
  }
  return position;
}

// Whether `dims` can be spread over `over`.
inline bool Broadcasts(const Dims& dims, const Dims& over) {
  if (dims.size() > over.size()) return false;
  const size_t skip = over.size() - dims.size();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] != 1 && dims[axis] != over[axis + skip]) return false;
  }
  return true;
}

}  // namespace berth
