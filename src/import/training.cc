#include "import/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "import/ir_work.h"

namespace berth {
namespace {

// Ops that no gradient passes through: their results are indices, shapes or truth values.
constexpr std::array<std::string_view, 18> kNoGradient = {
    "Shape",       "Size", "ArgMax", "ArgMin", "NonZero", "Equal",  "Greater", "GreaterOrEqual",    "Less",
    "LessOrEqual", "And",  "Or",     "Not",    "Range",   "OneHot", "IsNaN",   "NonMaxSuppression", "ConstantOfShape"};

// What a derivative needs of the forward pass. Linear ops need nothing; those whose derivative is a function of their
// result keep the result; all others keep their inputs.
enum class Keeps { kNothing, kOutputs, kInputs };

constexpr std::array<std::string_view, 22> kKeepNothing = {"Add",        "Sub",      "Neg",         "Sum",
                                                           "Mean",       "Identity", "Cast",        "Reshape",
                                                           "Flatten",    "Squeeze",  "Unsqueeze",   "Transpose",
                                                           "Concat",     "Split",    "Slice",       "Pad",
                                                           "Expand",     "Tile",     "AveragePool", "GlobalAveragePool",
                                                           "ReduceMean", "ReduceSum"};
constexpr std::array<std::string_view, 9> kKeepOutputs = {"Relu", "Sigmoid", "Tanh",      "Softmax", "LogSoftmax",
                                                          "Exp",  "Sqrt",    "LeakyRelu", "Dropout"};

Keeps KeptBy(std::string_view op_type) {
  if (std::ranges::count(kKeepNothing, op_type) > 0) return Keeps::kNothing;
  if (std::ranges::count(kKeepOutputs, op_type) > 0) return Keeps::kOutputs;
  return Keeps::kInputs;
}

// Floating-point operations per weight, counted from the update rules: w -= lr g (2); v = mu v + g, w -= lr v (4);
// Kingma and Ba 2015, algorithm 1, with the bias corrections folded into the step size (11).
double UpdateFlops(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return 2;
    case Optimizer::kMomentum:
      return 4;
    case Optimizer::kAdam:
      return 11;
  }
  return 0;
}

int64_t StatesPerWeight(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kMomentum:
      return 1;
    case Optimizer::kAdam:
      return 2;
  }
  return 0;
}

// Grows the training graph over a copy of the forward one. Builder positions of forward ops, tensors, parameters and
// inputs are their ids in the forward graph.
class TrainingBuilder {
 public:
  TrainingBuilder(const Graph& forward, Optimizer optimizer)
      : forward_(forward),
        optimizer_(optimizer),
        builder_(forward.name() + "_training"),
        with_(forward.num_ops()),
        learns_(forward.num_ops()),
        gradients_(forward.num_tensors()),
        parameter_gradients_(forward.num_parameters()) {}

  TrainingGraph Build() {
    CopyForward();
    FindWhatLearns();
    AddLoss();
    for (size_t v = forward_.num_ops(); v-- > 0;) AddGradient(MakeId<OpId>(v));
    for (const ParameterId parameter : forward_.parameters()) AddUpdate(parameter);
    TrainingGraph training{.graph = builder_.Build(), .colocate = {}};
    for (const std::vector<size_t>& group : with_) {
      if (group.size() < 2) continue;
      std::vector<OpId>& ops = training.colocate.emplace_back();
      for (const size_t position : group) ops.push_back(training.graph.op_at_file_position(position));
      std::ranges::sort(ops);
    }
    return training;
  }

 private:
  struct Value {
    size_t tensor;  // in the builder
    int64_t bytes;
  };

  void CopyForward() {
    for (const OpId op : forward_.ops()) {
      builder_.AddOp(std::string(forward_.op_name(op)), forward_.op_type(op), forward_.work(op));
      with_[Index(op)].push_back(Index(op));
    }
    for (const TensorId tensor : forward_.tensors()) {
      const size_t copy = builder_.AddTensor(Index(forward_.producer(tensor)), forward_.tensor_bytes(tensor),
                                             std::string(forward_.tensor_name(tensor)), forward_.is_output(tensor));
      builder_.SetShape(copy, forward_.tensor_shape(tensor));
      if (forward_.is_constant(tensor)) builder_.MarkConstant(copy);
      for (const OpId op : forward_.consumers(tensor)) builder_.Consume(Index(tensor), Index(op));
    }
    for (const ParameterId parameter : forward_.parameters()) {
      builder_.AddParameter(forward_.parameter_bytes(parameter), std::string(forward_.parameter_name(parameter)));
      for (const OpId op : forward_.parameter_consumers(parameter)) builder_.UseParameter(Index(parameter), Index(op));
    }
    for (const InputId input : forward_.inputs()) {
      const size_t copy = builder_.AddInput(forward_.input_bytes(input), std::string(forward_.input_name(input)));
      builder_.SetInputShape(copy, forward_.input_shape(input), std::string(forward_.input_type(input)));
      for (const OpId op : forward_.input_consumers(input)) builder_.UseInput(Index(input), Index(op));
    }
    for (const std::string& note : forward_.notes()) builder_.AddNote(note);
  }

  // As ONNX calls it: OpenVINO has names of its own.
  std::string_view TypeOf(OpId op) const {
    const std::string_view type = forward_.op_type(op);
    const IrOpName* const of_ir = FindIrOp(type);
    return of_ir != nullptr ? of_ir->onnx : type;
  }

  bool Differentiable(OpId op) const { return std::ranges::count(kNoGradient, TypeOf(op)) == 0; }

  // A single number (of at most 8 bytes) is a constant of the formula, like an epsilon or a scale, and no weight.
  bool IsWeight(ParameterId parameter) const {
    constexpr int64_t kOneNumber = 8;
    return forward_.parameter_bytes(parameter) > kOneNumber;
  }

  // Gradients flow where a weight is behind. In a graph that has no weights all ops count as having some.
  void FindWhatLearns() {
    const auto parameters = forward_.parameters();
    const bool all = std::ranges::none_of(parameters, [&](ParameterId parameter) { return IsWeight(parameter); });
    for (const OpId op : forward_.ops()) {
      if (!Differentiable(op)) continue;
      const auto learns = [&](TensorId tensor) { return Learns(forward_.producer(tensor)); };
      learns_[Index(op)] =
          all || std::ranges::any_of(forward_.parameters_of(op), [&](ParameterId each) { return IsWeight(each); }) ||
          std::ranges::any_of(forward_.inputs_of(op), learns);
    }
  }

  bool Learns(OpId op) const { return learns_[Index(op)]; }

  // A backward op whose bytes are counted as its tensors are joined to it.
  size_t AddBackward(std::string name, std::string_view type, OpWork work, OpId home) {
    work.bytes_read = work.bytes_written = 0;
    work.sizes = forward_.work(home).sizes;
    const size_t op = builder_.AddOp(std::move(name), type, work);
    builder_.MarkBackward(op);
    with_[Index(home)].push_back(op);
    return op;
  }

  void Read(size_t op, Value value) {
    builder_.Consume(value.tensor, op);
    builder_.work(op).bytes_read += value.bytes;
  }

  Value Write(size_t op, int64_t bytes, std::string name) {
    builder_.work(op).bytes_written += bytes;
    return {builder_.AddTensor(op, bytes, std::move(name)), bytes};
  }

  void AddLoss() {
    std::vector<TensorId> outputs;
    for (const TensorId tensor : forward_.tensors()) {
      if (forward_.is_output(tensor) && Learns(forward_.producer(tensor))) outputs.push_back(tensor);
    }
    if (outputs.empty()) return;
    const OpId home = forward_.producer(outputs.back());
    const size_t loss = AddBackward(
        "loss", "Loss", {.op_class = OpClass::kElementwise, .data_type = forward_.work(home).data_type}, home);
    for (const TensorId tensor : outputs) {
      const int64_t bytes = forward_.tensor_bytes(tensor);
      Read(loss, {Index(tensor), bytes});
      gradients_[Index(tensor)].push_back(Write(loss, bytes, fmt::format("grad/{}", forward_.tensor_name(tensor))));
      builder_.work(loss).flops += static_cast<double>(bytes / BytesPerValue(forward_.work(home).data_type));
    }
  }

  // All gradients of one thing as one, next to `home`; none when nothing depends on it.
  std::optional<Value> Sum(std::vector<Value>& parts, std::string_view name, OpId home) {
    if (parts.empty()) return std::nullopt;
    if (parts.size() == 1) return parts.front();
    const DataType type = forward_.work(home).data_type;
    const double additions =
        static_cast<double>(parts.size() - 1) * static_cast<double>(parts.front().bytes / BytesPerValue(type));
    const size_t sum = AddBackward(fmt::format("sum/{}", name), "AddN",
                                   {.flops = additions, .op_class = OpClass::kElementwise, .data_type = type}, home);
    for (const Value part : parts) Read(sum, part);
    return Write(sum, parts.front().bytes, fmt::format("sum/{}", name));
  }

  void AddGradient(OpId op) {
    if (!Learns(op)) return;
    std::vector<Value> incoming;
    for (size_t t = forward_.first_output(op); t < forward_.end_output(op); ++t) {
      if (const auto gradient = Sum(gradients_[t], forward_.tensor_name(MakeId<TensorId>(t)), op))
        incoming.push_back(*gradient);
    }
    std::vector<TensorId> wanted;
    for (const TensorId tensor : forward_.inputs_of(op)) {
      if (Learns(forward_.producer(tensor))) wanted.push_back(tensor);
    }
    std::vector<ParameterId> weights;
    for (const ParameterId parameter : forward_.parameters_of(op)) {
      if (IsWeight(parameter)) weights.push_back(parameter);
    }
    if (incoming.empty() || (wanted.empty() && weights.empty())) return;

    OpWork work = forward_.work(op);
    switch (work.op_class) {
      case OpClass::kMatMul:
      case OpClass::kConv:
      case OpClass::kRecurrent:
        work.flops *= wanted.size() + (weights.empty() ? 0 : 1) >= 2 ? 2 : 1;
        break;
      case OpClass::kNormalization:
        work.flops *= 2;
        break;
      default:
        break;
    }
    const size_t backward = AddBackward(fmt::format("grad/{}", forward_.op_name(op)),
                                        fmt::format("{}Grad", forward_.op_type(op)), work, op);
    for (const Value gradient : incoming) Read(backward, gradient);
    switch (KeptBy(TypeOf(op))) {
      case Keeps::kNothing:
        break;
      case Keeps::kInputs:
        for (const TensorId tensor : forward_.inputs_of(op))
          Read(backward, {Index(tensor), forward_.tensor_bytes(tensor)});
        for (const InputId input : forward_.graph_inputs_of(op)) {
          builder_.UseInput(Index(input), backward);
          builder_.work(backward).bytes_read += forward_.input_bytes(input);
        }
        break;
      case Keeps::kOutputs:
        for (size_t t = forward_.first_output(op); t < forward_.end_output(op); ++t)
          Read(backward, {t, forward_.tensor_bytes(MakeId<TensorId>(t))});
        break;
    }
    for (const TensorId tensor : wanted) {
      gradients_[Index(tensor)].push_back(
          Write(backward, forward_.tensor_bytes(tensor),
                fmt::format("grad/{}/{}", forward_.op_name(op), forward_.tensor_name(tensor))));
    }
    // A sum's derivative needs no summand, that of a look-up no table.
    if (KeptBy(TypeOf(op)) == Keeps::kInputs && TypeOf(op) != "Gather") {
      for (const ParameterId parameter : forward_.parameters_of(op)) {
        builder_.UseParameter(Index(parameter), backward);
        builder_.work(backward).bytes_read += forward_.parameter_bytes(parameter);
      }
    }
    for (const ParameterId parameter : weights) {
      parameter_gradients_[Index(parameter)].push_back(
          Write(backward, forward_.parameter_bytes(parameter),
                fmt::format("grad/{}/{}", forward_.op_name(op), forward_.parameter_name(parameter))));
    }
  }

  void AddUpdate(ParameterId parameter) {
    const std::span<const OpId> users = forward_.parameter_consumers(parameter);
    if (users.empty() || !IsWeight(parameter)) return;
    const OpId home = users.front();
    const std::string_view name = forward_.parameter_name(parameter);
    const auto gradient = Sum(parameter_gradients_[Index(parameter)], name, home);
    if (!gradient) return;
    const int64_t bytes = forward_.parameter_bytes(parameter);
    const DataType type = forward_.work(home).data_type;
    const double weights = static_cast<double>(bytes / BytesPerValue(type));
    const size_t update = AddBackward(
        fmt::format("update/{}", name), fmt::format("{}Update", kOptimizerNames[static_cast<size_t>(optimizer_)]),
        {.flops = UpdateFlops(optimizer_) * weights, .op_class = OpClass::kElementwise, .data_type = type}, home);
    Read(update, *gradient);
    builder_.UseParameter(Index(parameter), update);
    const int64_t state_bytes = StatesPerWeight(optimizer_) * bytes;
    if (state_bytes > 0)
      builder_.UseParameter(
          builder_.AddParameter(state_bytes,
                                fmt::format("{}/{}", kOptimizerNames[static_cast<size_t>(optimizer_)], name)),
          update);
    builder_.work(update).bytes_read += bytes + state_bytes;
    builder_.work(update).bytes_written += bytes + state_bytes;
  }

  const Graph& forward_;
  const Optimizer optimizer_;
  GraphBuilder builder_;
  std::vector<std::vector<size_t>> with_;  // per forward op: the builder positions that share its device
  std::vector<bool> learns_;               // per forward op: a weight is in it or before it
  std::vector<std::vector<Value>> gradients_;
  std::vector<std::vector<Value>> parameter_gradients_;
};

}  // namespace

TrainingGraph MakeTrainingGraph(const Graph& forward, Optimizer optimizer) {
  return TrainingBuilder(forward, optimizer).Build();
}

}  // namespace berth
