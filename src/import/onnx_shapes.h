// The shapes and types of a node's outputs from those of its inputs.
#pragma once

#include <string>
#include <vector>

#include "import/onnx_node.h"
#include "import/onnx_reshape.h"

namespace berth {

// Shapes that the file itself has, where --shape asks for others: a dimension that a file fixes can then be told from
// one that merely was the batch size when the file was written.
struct FileShapes {
  const Dims* input = nullptr;   // of the node's first input
  const Dims* output = nullptr;  // of its first output
  const SizeChanges* changes = nullptr;
};

struct InferredShapes {
  std::vector<Value> outputs;  // type, dims and known_dims are set
  std::string problem{};       // why some outputs are not known; empty otherwise
};

// Every dimension is a number: the walk replaces symbols before. Own rules first, for ops whose newer versions the
// library does not know and for shapes that a file has fixed; then the inference of libonnx's operator schemas; then
// rules by class. Throws Error for attributes that no op can have (a stride of 0). O(1) in the sizes of the tensors.
InferredShapes InferShapes(const OnnxNode& node, const FileShapes& file_shapes, NoteList& notes);

// The parts of a Split along `axis`; empty when they are not known.
std::vector<int64_t> SplitSizes(const OnnxNode& node, size_t axis);

}  // namespace berth
