// Where the boxes of a picture go: in layers from top to bottom, which are cut into columns side by side, so that a
// long graph has the shape of a screen.
#pragma once

#include <cstddef>
#include <vector>

#include "export/boxes.h"

namespace berth {

struct Column {
  std::vector<std::vector<size_t>> layers;  // boxes, from top to bottom; arrows lead to lower layers or later columns
};

// `width` is each box's, `layer_height` the distance from one layer to the next, in points. O((V + E) log V) for each
// of the few shapes that it tries.
std::vector<Column> ArrangeInColumns(const Boxes& boxes, const std::vector<double>& width, double layer_height);

}  // namespace berth
