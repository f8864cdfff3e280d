#include "placement/fusion_view.h"

#include <algorithm>
#include <array>
#include <utility>

namespace berth {
namespace {

// OpenVINO's names for ops that the rules know by ONNX's.
constexpr auto kOtherNames = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"Convolution", "Conv"},
    {"GroupConvolution", "Conv"},
    {"ConvolutionBackpropData", "ConvTranspose"},
    {"GroupConvolutionBackpropData", "ConvTranspose"},
    {"Subtract", "Sub"},
    {"Multiply", "Mul"},
    {"Divide", "Div"},
    {"Power", "Pow"},
    {"Maximum", "Max"},
    {"Minimum", "Min"},
    {"Negative", "Neg"},
    {"Ceiling", "Ceil"},
    {"ReLU", "Relu"},
    {"PReLU", "PRelu"},
    {"Clamp", "Clip"},
    {"HSwish", "HardSwish"},
    {"SoftPlus", "Softplus"},
    {"SoftSign", "Softsign"},
    {"LogicalAnd", "And"},
    {"LogicalOr", "Or"},
    {"LogicalXor", "Xor"},
    {"LogicalNot", "Not"},
    {"LessEqual", "LessOrEqual"},
    {"GreaterEqual", "GreaterOrEqual"},
    {"Select", "Where"},
    {"SoftMax", "Softmax"},
    {"BatchNormInference", "BatchNormalization"},
    {"Convert", "Cast"},
});

struct NamedRole {
  std::string_view type;
  FusionRole role;
};

constexpr auto kRoles = std::to_array<NamedRole>({
    {"Conv", FusionRole::kConv},
    {"ConvTranspose", FusionRole::kDeconv},
    {"MatMul", FusionRole::kProduct},
    {"Gemm", FusionRole::kProduct},
    {"InstanceNormalization", FusionRole::kInstanceNorm},
    {"BatchNormalization", FusionRole::kBatchNorm},
    {"LayerNormalization", FusionRole::kLayerNorm},
    {"Add", FusionRole::kArithmetic},
    {"Sub", FusionRole::kArithmetic},
    {"Mul", FusionRole::kArithmetic},
    {"Div", FusionRole::kArithmetic},
    {"Abs", FusionRole::kActivation},
    {"Clip", FusionRole::kActivation},
    {"Elu", FusionRole::kActivation},
    {"Gelu", FusionRole::kActivation},
    {"HardSwish", FusionRole::kActivation},
    {"LeakyRelu", FusionRole::kActivation},
    {"Mish", FusionRole::kActivation},
    {"PRelu", FusionRole::kActivation},
    {"Relu", FusionRole::kActivation},
    {"Round", FusionRole::kActivation},
    {"Sigmoid", FusionRole::kActivation},
    {"Softsign", FusionRole::kActivation},
    {"Sqrt", FusionRole::kActivation},
    {"Swish", FusionRole::kActivation},
    {"Tanh", FusionRole::kActivation},
    {"And", FusionRole::kElementwise},
    {"Ceil", FusionRole::kElementwise},
    {"Equal", FusionRole::kElementwise},
    {"Erf", FusionRole::kElementwise},
    {"Exp", FusionRole::kElementwise},
    {"Floor", FusionRole::kElementwise},
    {"Greater", FusionRole::kElementwise},
    {"GreaterOrEqual", FusionRole::kElementwise},
    {"Less", FusionRole::kElementwise},
    {"LessOrEqual", FusionRole::kElementwise},
    {"Max", FusionRole::kElementwise},
    {"Min", FusionRole::kElementwise},
    {"Mod", FusionRole::kElementwise},
    {"Neg", FusionRole::kElementwise},
    {"Not", FusionRole::kElementwise},
    {"Or", FusionRole::kElementwise},
    {"Pow", FusionRole::kElementwise},
    {"Reciprocal", FusionRole::kElementwise},
    {"Softplus", FusionRole::kElementwise},
    {"Where", FusionRole::kElementwise},
    {"Xor", FusionRole::kElementwise},
});

// Ops of ONNX that are element-wise and that OpenVINO runs as kernels of their own.
constexpr auto kAlone = std::to_array<std::string_view>({"Acos",
                                                         "Acosh",
                                                         "Asin",
                                                         "Asinh",
                                                         "Atan",
                                                         "Atanh",
                                                         "Bernoulli",
                                                         "BitShift",
                                                         "BitwiseAnd",
                                                         "BitwiseNot",
                                                         "BitwiseOr",
                                                         "BitwiseXor",
                                                         "Cast",
                                                         "CastLike",
                                                         "Celu",
                                                         "Cos",
                                                         "Cosh",
                                                         "HardSigmoid",
                                                         "Hardmax",
                                                         "IsInf",
                                                         "IsNaN",
                                                         "LRN",
                                                         "Log",
                                                         "LogSoftmax",
                                                         "LpNormalization",
                                                         "Mean",
                                                         "RandomNormal",
                                                         "RandomNormalLike",
                                                         "RandomUniform",
                                                         "RandomUniformLike",
                                                         "RotaryEmbedding",
                                                         "RMSNormalization",
                                                         "Selu",
                                                         "Shrink",
                                                         "Sign",
                                                         "Sin",
                                                         "Sinh",
                                                         "Softmax",
                                                         "Sum",
                                                         "Tan",
                                                         "ThresholdedRelu",
                                                         "GroupNormalization",
                                                         "MeanVarianceNormalization",
                                                         "MVN",
                                                         "DequantizeLinear",
                                                         "DynamicQuantizeLinear",
                                                         "QuantizeLinear",
                                                         "SkipLayerNormalization",
                                                         "SimplifiedLayerNormalization",
                                                         "SkipSimplifiedLayerNormalization"});

// Data sets have names of their own.
FusionRole RoleByClass(OpClass op_class, size_t operands) {
  switch (op_class) {
    case OpClass::kConv:
      return FusionRole::kConv;
    case OpClass::kMatMul:
      return FusionRole::kProduct;
    case OpClass::kElementwise:
      return operands < 2 ? FusionRole::kActivation : FusionRole::kArithmetic;
    case OpClass::kNormalization:
      return FusionRole::kBatchNorm;
    default:
      return FusionRole::kNone;
  }
}

FusionRole RoleOf(std::string_view type, OpClass op_class, size_t operands) {
  const auto named = std::ranges::find(kRoles, type, &NamedRole::type);
  if (named != kRoles.end()) return named->role;
  if (std::ranges::find(kAlone, type) != kAlone.end()) return FusionRole::kNone;
  return RoleByClass(op_class, operands);
}

}  // namespace

FusionView::FusionView(const Graph& graph)
    : graph_(graph),
      producers_(graph.num_ops()),
      consumers_(graph.num_ops()),
      is_result_(graph.num_ops(), 0),
      has_constants_(graph.num_ops(), 0) {
  for (const std::string& name : graph.op_types()) {
    const auto other = std::ranges::find(kOtherNames, name, &std::pair<std::string_view, std::string_view>::first);
    type_.push_back(other == kOtherNames.end() ? std::string_view(name) : other->second);
  }
  const auto unique = [](std::vector<OpId>& list) {
    std::ranges::sort(list);
    list.erase(std::ranges::unique(list).begin(), list.end());
  };
  for (const OpId op : graph.ops()) {
    if (!graph.parameters_of(op).empty()) has_constants_[Index(op)] = 1;
  }
  for (const TensorId tensor : graph.tensors()) {
    const OpId from = graph.producer(tensor);
    if (graph.is_output(tensor)) is_result_[Index(from)] = 1;
    for (const OpId to : graph.consumers(tensor)) {
      if (graph.is_constant(tensor)) {
        has_constants_[Index(to)] = 1;
      } else {
        consumers_[Index(from)].push_back(to);
        producers_[Index(to)].push_back(from);
      }
    }
  }
  for (const OpId op : graph.ops()) {
    unique(producers_[Index(op)]);
    unique(consumers_[Index(op)]);
    role_.push_back(RoleOf(type(op), graph.work(op).op_class, num_operands(op)));
  }
}

std::optional<OpId> FusionView::OnlyConsumer(OpId op) const {
  if (is_result(op) || consumers(op).size() != 1) return std::nullopt;
  return consumers(op).front();
}

bool FusionView::IsReadOnlyBy(OpId op, std::span<const OpId> ops) const {
  const auto reads = [&](OpId consumer) { return std::ranges::find(ops, consumer) != ops.end(); };
  return !is_result(op) && std::ranges::all_of(consumers(op), reads);
}

bool FusionView::ConstantsArePerChannel(OpId op, bool last_axis) const {
  const auto dims = shape(op);
  if (dims.empty()) return true;
  const int64_t channels = last_axis || dims.size() < 2 ? dims.back() : dims[1];
  const int64_t most = std::max(kBytesOfOneNumber, channels * BytesPerValue(graph_.work(op).data_type));
  const auto small = [&](ParameterId parameter) { return graph_.parameter_bytes(parameter) <= most; };
  const auto small_tensor = [&](TensorId tensor) {
    return !graph_.is_constant(tensor) || graph_.tensor_bytes(tensor) <= most;
  };
  return std::ranges::all_of(graph_.parameters_of(op), small) &&
         std::ranges::all_of(graph_.inputs_of(op), small_tensor);
}

bool FusionView::is_constant(OpId op) const {
  const size_t first = graph_.first_output(op), end = graph_.end_output(op);
  for (size_t tensor = first; tensor < end; ++tensor) {
    if (!graph_.is_constant(MakeId<TensorId>(tensor))) return false;
  }
  return first < end;
}

std::span<const int64_t> FusionView::shape(OpId op) const {
  if (graph_.first_output(op) == graph_.end_output(op)) return {};
  return graph_.tensor_shape(MakeId<TensorId>(graph_.first_output(op)));
}

}  // namespace berth
