#include "import/onnx_value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace berth {
namespace {

using onnx::TensorProto;

// Data types of onnx.proto newer than the library's copy of it.
enum NewType : int32_t {
  kFloat8First = 17,  // E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ
  kFloat8Last = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

long double FromHalf(uint16_t half) {
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const long double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<long double>::quiet_NaN()
                         : sign * std::numeric_limits<long double>::infinity();
  return exponent == 0 ? sign * std::ldexp(static_cast<long double>(mantissa), -24)
                       : sign * std::ldexp(static_cast<long double>(mantissa + 1024), exponent - 25);
}

template <typename T>
Content FromRaw(const std::string& raw, size_t count) {
  Content content(count);
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, raw.data() + i * sizeof(T), sizeof(T));
    content[i] = static_cast<long double>(element);
  }
  return content;
}

std::optional<Content> ReadRaw(int32_t type, const std::string& raw, size_t count) {
  static_assert(std::endian::native == std::endian::little, "ONNX stores raw data little-endian");
  switch (type) {
    case TensorProto::FLOAT:
      return FromRaw<float>(raw, count);
    case TensorProto::DOUBLE:
      return FromRaw<double>(raw, count);
    case TensorProto::INT64:
      return FromRaw<int64_t>(raw, count);
    case TensorProto::INT32:
      return FromRaw<int32_t>(raw, count);
    case TensorProto::INT16:
      return FromRaw<int16_t>(raw, count);
    case TensorProto::INT8:
      return FromRaw<int8_t>(raw, count);
    case TensorProto::BOOL:
    case TensorProto::UINT8:
      return FromRaw<uint8_t>(raw, count);
    case TensorProto::UINT16:
      return FromRaw<uint16_t>(raw, count);
    case TensorProto::UINT32:
      return FromRaw<uint32_t>(raw, count);
    case TensorProto::UINT64:
      return FromRaw<uint64_t>(raw, count);
    case TensorProto::FLOAT16: {
      Content content = FromRaw<uint16_t>(raw, count);
      for (long double& element : content) element = FromHalf(static_cast<uint16_t>(element));
      return content;
    }
    default:
      return std::nullopt;
  }
}

// Nothing where there is no data, as in files without weights.
std::optional<Content> ReadTyped(const TensorProto& tensor, size_t count, std::string_view where) {
  const auto copy = [&](const auto& data) -> std::optional<Content> {
    if (data.empty() && count > 0) return std::nullopt;
    if (static_cast<size_t>(data.size()) != count) {
      throw Error("{}: it has {} numbers, its shape says {}", where, data.size(), count);
    }
    return Content(data.begin(), data.end());
  };
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return copy(tensor.float_data());
    case TensorProto::DOUBLE:
      return copy(tensor.double_data());
    case TensorProto::INT64:
      return copy(tensor.int64_data());
    case TensorProto::INT32:
    case TensorProto::INT16:
    case TensorProto::INT8:
    case TensorProto::BOOL:
    case TensorProto::UINT8:
    case TensorProto::UINT16:
      return copy(tensor.int32_data());
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return copy(tensor.uint64_data());
    default:
      return std::nullopt;
  }
}

}  // namespace

int ElementBits(int32_t type) {
  switch (type) {
    case TensorProto::UINT8:
    case TensorProto::INT8:
    case TensorProto::BOOL:
    case kFloat8E8M0:
      return 8;
    case TensorProto::UINT16:
    case TensorProto::INT16:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return 16;
    case TensorProto::INT64:
    case TensorProto::UINT64:
    case TensorProto::DOUBLE:
    case TensorProto::COMPLEX64:
      return 64;
    case TensorProto::STRING:  // a pointer and a length
    case TensorProto::COMPLEX128:
      return 128;
    case kUint4:
    case kInt4:
    case kFloat4:
      return 4;
    case kUint2:
    case kInt2:
      return 2;
    default:
      return type >= kFloat8First && type <= kFloat8Last ? 8 : 32;
  }
}

std::string_view ElementTypeName(int32_t type) {
  constexpr std::string_view kNames[] = {
      "",          "float32",    "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "float64",        "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  return type >= 0 && type < static_cast<int32_t>(std::size(kNames)) ? kNames[type] : std::string_view();
}

bool IsFloating(int32_t type) {
  return type == TensorProto::FLOAT || type == TensorProto::FLOAT16 || type == TensorProto::BFLOAT16 ||
         type == TensorProto::DOUBLE;
}

DataType ComputeType(int32_t type) {
  switch (type) {
    case TensorProto::FLOAT16:
      return DataType::kF16;
    case TensorProto::BFLOAT16:
      return DataType::kBF16;
    case TensorProto::DOUBLE:
    case TensorProto::COMPLEX128:
      return DataType::kF64;
    default:
      break;
  }
  const bool is_bool = type == TensorProto::BOOL;
  return ElementBits(type) <= 8 && !is_bool ? DataType::kI8 : DataType::kF32;
}

int64_t CheckedElements(const Dims& dims, std::string_view where) {
  int64_t product = 1;
  for (const int64_t dim : dims) {
    if (dim < 0)
      throw Error("{} has the negative dimension {} in {}; check the sizes of the inputs", where, dim, ToString(dims));
    // Also of a tensor without elements: sums of sizes and paddings must not overflow.
    if (dim > kMostTensorBytes || __builtin_mul_overflow(product, dim, &product)) {
      throw Error("{} has more elements than can be counted: {}; check the sizes of the inputs", where, ToString(dims));
    }
  }
  return product;
}

int64_t CheckedBytes(const Dims& dims, int32_t type, std::string_view where) {
  const int64_t elements = CheckedElements(dims, where);
  const int bits = ElementBits(type);
  int64_t total = 0;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(bits), &total) || total > 8 * kMostTensorBytes) {
    throw Error("{} is larger than 64 TiB: {}; check the sizes of the inputs", where, ToString(dims));
  }
  return total / 8 + (total % 8 != 0 ? 1 : 0);
}

int64_t CheckedBytes(const OnnxValue& value, std::string_view where) {
  if (!value.is_sequence) return CheckedBytes(value.dims, value.type, where);
  int64_t total = 0;
  for (const OnnxValue& element : value.elements) AddBytes(total, CheckedBytes(element, where), where);
  if (total > kMostTensorBytes) {
    throw Error("{} is a sequence of {} tensors that are larger than 64 TiB together; check the sizes of the inputs",
                where, value.elements.size());
  }
  return total;
}

std::string ToString(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

OnnxValue ReadTensor(const TensorProto& tensor, std::string_view where) {
  OnnxValue value;
  value.name = tensor.name();
  value.type = tensor.data_type();
  value.dims.assign(tensor.dims().begin(), tensor.dims().end());
  value.known_dims = true;
  value.constant = true;
  value.stored_bytes = CheckedBytes(value.dims, value.type, where);
  const int64_t elements = CheckedElements(value.dims, where);
  const std::string& raw = tensor.raw_data();
  if (!raw.empty() && value.type != TensorProto::STRING && static_cast<int64_t>(raw.size()) != value.stored_bytes) {
    throw Error("{} holds {} bytes, but its shape {} needs {}; the file is damaged", where, raw.size(),
                ToString(value.dims), value.stored_bytes);
  }
  if (elements > kMaxContent || tensor.data_location() == TensorProto::EXTERNAL) return value;
  const size_t count = static_cast<size_t>(elements);
  value.content = !raw.empty() ? ReadRaw(value.type, raw, count) : ReadTyped(tensor, count, where);
  return value;
}

int64_t ToInt(long double number) {
  if (std::isnan(number)) return 0;
  if (number >= 0x1p63L) return std::numeric_limits<int64_t>::max();
  if (number <= -0x1p63L) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(number);
}

std::vector<int64_t> ToInts(const Content& content) {
  std::vector<int64_t> ints(content.size());
  std::ranges::transform(content, ints.begin(), ToInt);
  return ints;
}

}  // namespace berth
