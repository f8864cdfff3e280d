// The shapes and types of a node's outputs from those of its inputs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/onnx_node.h"
#include "import/onnx_reshape.h"

namespace berth {

// The newest versions of ONNX's operator set and of its files whose every op has a rule (tests/data/onnx_cases.json).
inline constexpr int64_t kNewestOpset = 28;
inline constexpr int64_t kNewestIrVersion = 14;

// Shapes that the file itself has, where --shape asks for others: a dimension that a file fixes can then be told from
// one that merely was the batch size when the file was written.
struct FileShapes {
  const Dims* input = nullptr;   // of the node's first input
  const Dims* output = nullptr;  // of its first output
  const SizeChanges* changes = nullptr;
};

struct InferredShapes {
  std::vector<OnnxValue> outputs;  // type, dims, known_dims and certainty are set; of a sequence, its elements
  bool told = false;               // whether a rule told them
  std::string problem{};           // why none did, where more can be said
  bool impossible = false;         // whether it is that no run can compute the op: its sizes contradict each other
};

// Every dimension is a number: the walk replaces symbols before. One rule per op type (onnx_rules_*.cc); for types of
// com.microsoft that have none, what their class says. An output is as uncertain as the least certain of what it
// follows from. Throws Error for attributes that no op can have (a stride of 0) and for sizes that cannot be. O(1) in
// the sizes of the tensors.
InferredShapes InferShapes(const OnnxNode& node, const FileShapes& file_shapes, NoteList& notes);

// Whether an op needs no data of its inputs, but only what is known of them: Shape, Size, SequenceLength,
// OptionalHasElement.
bool AsksForShape(std::string_view domain, std::string_view type);
// The same inputs give other outputs each time.
bool IsRandom(std::string_view type);

// Whether this op type has a rule. Control flow and Constant are read by the walk itself and have none.
bool HasShapeRule(std::string_view domain, std::string_view type);

}  // namespace berth
