// Tensors while an ONNX graph is walked: shape, type, and for small constants what they hold.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/body_work.h"
#include "import/note_list.h"
#include "import/op_table.h"

namespace berth {

// Elements of a small constant. A long double holds every int64_t and every double exactly.
using Content = std::vector<long double>;
static_assert(std::numeric_limits<long double>::digits >= 63);

// Above this many elements a constant is only a number of bytes: shapes and axes are small, weights are not looked
// into.
inline constexpr int64_t kMaxContent = 4096;

struct OnnxValue {
  std::string_view name{};
  int32_t type = 0;  // onnx::TensorProto::DataType, 0: unknown; newer files hold numbers that the library does not know
  Dims dims{};
  bool known_dims = false;

  // Of the dimensions.
  Certainty certainty = Certainty::kKnown;

  // A sequence of values, or an optional, which is a sequence of one or none: no dims of its own.
  bool is_sequence = false, is_optional = false;
  std::vector<OnnxValue> elements{};

  // A constant. Constants that are views of one another share the storage of `root`, a position in the same pool.
  bool constant = false;
  size_t root = 0;
  int64_t stored_bytes = 0;
  std::optional<Content> content{};
  Certainty content_certainty = Certainty::kKnown;  // sizes of doubtful tensors make doubtful contents
  // The type that it had before a DequantizeLinear, 0 when it comes from none.
  int32_t quantized_type = 0;
  // What a run's data will be like (onnx_density.h). Integers that name one of so many choices; 0: not known to.
  int64_t choices = 0;
  // The share of elements that are expected not to be zero; negative: not known.
  double density = -1;

  // A result: the node and the scope (0: the main graph) that make it; a graph input has no node.
  size_t scope = 0;
  ptrdiff_t node = -1;
};

// Bits of one element; 32 for types that are not known.
int ElementBits(int32_t type);
bool IsFloating(int32_t type);
// Whether the file leaves a dimension open; runtimes take a size of -1 for that as well.
inline bool IsOpen(const onnx::TensorShapeProto::Dimension& dim) {
  return !dim.has_dim_value() || dim.dim_value() == -1;
}
// "float32"; empty for types that are not known.
std::string_view ElementTypeName(int32_t type);
// The type that has a peak rate of its own on devices.
DataType ComputeType(int32_t type);

// Throws Error that begins with `where` when a dimension is negative or the tensor exceeds kMostTensorBytes.
int64_t CheckedBytes(const Dims& dims, int32_t type, std::string_view where);
int64_t CheckedElements(const Dims& dims, std::string_view where);
// Of a sequence, its elements together.
int64_t CheckedBytes(const OnnxValue& value, std::string_view where);

std::string ToString(const Dims& dims);

// Shape, type and, when it is small and there, content of an initialiser. Absent data (external, stripped) is fine;
// data of the wrong size is an Error.
OnnxValue ReadTensor(const onnx::TensorProto& tensor, std::string_view where);

// Clamped and truncated: INT64_MAX stands in many files for "to the end".
int64_t ToInt(long double number);
std::vector<int64_t> ToInts(const Content& content);

}  // namespace berth
