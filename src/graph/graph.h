// A neural network as a placer sees it: ops joined by tensors, with the weights they share.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace berth {

// What a device is more or less good at; a cost model has one efficiency per class.
enum class OpClass : uint8_t {
  kMatMul,
  kConv,
  kElementwise,
  kNormalization,
  kReduction,
  kDataMovement,
  kRecurrent,
  kOther
};
inline constexpr size_t kOpClasses = 8;
inline constexpr std::array<std::string_view, kOpClasses> kOpClassNames = {
    "matmul", "conv", "elementwise", "normalization", "reduction", "data_movement", "recurrent", "other"};

// The type in which an op computes; a device has one peak rate per type.
enum class DataType : uint8_t { kF32, kF16, kBF16, kI8, kF64 };
inline constexpr size_t kDataTypes = 5;
inline constexpr std::array<std::string_view, kDataTypes> kDataTypeNames = {"f32", "f16", "bf16", "i8", "f64"};
constexpr int64_t BytesPerValue(DataType type) {
  constexpr std::array<int64_t, kDataTypes> kBytes = {4, 2, 2, 1, 8};
  return kBytes[static_cast<size_t>(type)];
}

// How far the sizes of a tensor can be trusted. What is computed from a doubtful size is as doubtful, to the end.
enum class Certainty : uint8_t {
  kKnown,
  kEstimated,  // a run's data decide: counted at the most there can be, or at what is expected on average
  kUnknown,    // nothing tells: a guess
};
inline constexpr size_t kCertainties = 3;
inline constexpr std::array<std::string_view, kCertainties> kCertaintyNames = {"known", "estimated", "unknown"};

// Of one tensor, parameter or graph input: 64 TiB, more than any of a real model has.
inline constexpr int64_t kMostTensorBytes = int64_t{1} << 46;
// Of all of them and of what all ops read, write and hold while they run, together: 4 PiB, so that no sum over the
// devices of a cluster overflows, of which device files have at most 1024.
inline constexpr int64_t kMostGraphBytes = int64_t{1} << 52;
// Of one op: more than a sequence of any use has, and a number that a double holds exactly.
inline constexpr int64_t kMostSteps = int64_t{1} << 46;

// What one op does, on whatever device. Floating-point operations count a multiply-add as two.
struct OpWork {
  double flops = 0;
  int64_t bytes_read = 0;       // inputs and parameters
  int64_t bytes_written = 0;    // outputs
  int64_t workspace_bytes = 0;  // held only while the op runs
  // One after another within it: those of a recurrent layer in all its directions; of a loop or branch the ops
  // of its body, in all its rounds.
  int64_t steps = 1;
  OpClass op_class = OpClass::kOther;
  DataType data_type = DataType::kF32;
  bool bytes_only = false;  // no formula is known for this op type: it is costed by its bytes, and `inspect` says so
  Certainty sizes = Certainty::kKnown;  // of its inputs and outputs: the least certain one's
  bool operator==(const OpWork&) const = default;
};

// An immutable directed acyclic graph.
//
// An Op runs on one device. A Tensor has one producer and any number of consumers; it is sent once per destination
// device, not once per edge. A Parameter (weight) has bytes and the ops that use it, and no producer: it lies once on
// each device that holds one of them. An Input is fed from outside. Op ids are a topological order; tensors are
// numbered by producer. Every list of consumers is ascending and without repetition. All accessors are O(1).
class Graph {
 public:
  size_t num_ops() const { return op_work_.size(); }
  size_t num_tensors() const { return tensor_bytes_.size(); }
  size_t num_parameters() const { return parameter_bytes_.size(); }
  size_t num_inputs() const { return input_bytes_.size(); }
  // Pairs (tensor, consumer).
  size_t num_edges() const { return consumers_.items.size(); }

  Ids<OpId> ops() const { return Ids<OpId>(num_ops()); }
  Ids<TensorId> tensors() const { return Ids<TensorId>(num_tensors()); }
  Ids<ParameterId> parameters() const { return Ids<ParameterId>(num_parameters()); }
  Ids<InputId> inputs() const { return Ids<InputId>(num_inputs()); }

  const std::string& name() const { return name_; }

  std::string_view op_name(OpId op) const { return op_names_[Index(op)]; }
  std::string_view op_type(OpId op) const { return op_types_[Index(op_type_ids_[Index(op)])]; }
  // Op types as small numbers, for tables: op_type_index(op) < op_types().size().
  size_t op_type_index(OpId op) const { return Index(op_type_ids_[Index(op)]); }
  const std::vector<std::string>& op_types() const { return op_types_; }
  const OpWork& work(OpId op) const { return op_work_[Index(op)]; }
  // An op of a training graph's backward pass (data sets mark them; `pipeline` counts both passes of a device).
  bool is_backward(OpId op) const { return !is_backward_.empty() && is_backward_[Index(op)] != 0; }

  // The tensors that an op consumes, each once, ascending.
  std::span<const TensorId> inputs_of(OpId op) const { return inputs_of_[Index(op)]; }
  // Tensors are numbered by producer: an op's outputs are first_output(op) .. first_output(op + 1).
  size_t first_output(OpId op) const { return first_output_[Index(op)]; }
  size_t end_output(OpId op) const { return first_output_[Index(op) + 1]; }

  OpId producer(TensorId tensor) const { return producer_[Index(tensor)]; }
  std::span<const OpId> consumers(TensorId tensor) const { return consumers_[Index(tensor)]; }
  int64_t tensor_bytes(TensorId tensor) const { return tensor_bytes_[Index(tensor)]; }
  // Its dimensions where the file says them, symbolic ones as 1; empty where it does not, and for scalars.
  std::span<const int64_t> tensor_shape(TensorId tensor) const { return tensor_shape_[Index(tensor)]; }
  std::string_view tensor_name(TensorId tensor) const { return tensor_names_[Index(tensor)]; }
  // Made of weights alone, which a runtime copies where they are wanted when it compiles: sending it takes no time.
  bool is_constant(TensorId tensor) const { return !is_constant_.empty() && is_constant_[Index(tensor)] != 0; }
  bool has_constants() const { return !is_constant_.empty(); }
  // A result of the whole graph: it stays until the end of the run.
  bool is_output(TensorId tensor) const { return is_output_[Index(tensor)] != 0; }

  // Whether all that it makes depends on weights alone; false where it makes nothing.
  bool makes_constants(OpId op) const {
    for (size_t tensor = first_output(op); tensor < end_output(op); ++tensor) {
      if (!is_constant(MakeId<TensorId>(tensor))) return false;
    }
    return first_output(op) < end_output(op);
  }
  std::span<const ParameterId> parameters_of(OpId op) const { return parameters_of_[Index(op)]; }
  std::span<const OpId> parameter_consumers(ParameterId parameter) const {
    return parameter_consumers_[Index(parameter)];
  }
  int64_t parameter_bytes(ParameterId parameter) const { return parameter_bytes_[Index(parameter)]; }
  std::string_view parameter_name(ParameterId parameter) const { return parameter_names_[Index(parameter)]; }

  std::span<const OpId> input_consumers(InputId input) const { return input_consumers_[Index(input)]; }
  std::span<const InputId> graph_inputs_of(OpId op) const { return graph_inputs_of_[Index(op)]; }  // ascending
  int64_t input_bytes(InputId input) const { return input_bytes_[Index(input)]; }
  std::string_view input_name(InputId input) const { return input_names_[Index(input)]; }
  // Its dimensions and the type of its elements, "float32", where the file says them; empty where it does not.
  std::span<const int64_t> input_shape(InputId input) const { return input_shape_[Index(input)]; }
  std::string_view input_type(InputId input) const { return input_types_[Index(input)]; }

  // The op that stood at this position of the file; placement arrays follow the file.
  OpId op_at_file_position(size_t position) const { return file_order_[position]; }

  // Totals.
  double total_flops() const;
  int64_t total_parameter_bytes() const;
  int64_t total_tensor_bytes() const;

  // A hash of structure, types, work and sizes, without any name, independent of the file's order as far as ids are:
  // equal for a graph whose ops were renamed.
  uint64_t structural_fingerprint() const { return fingerprint_; }

  // What importers have to say to the user: op types that were guessed at, data that was missing. One line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class GraphBuilder;

  // Rows of items, flat.
  template <typename T>
  struct Rows {
    std::vector<size_t> start{0};
    std::vector<T> items;
    std::span<const T> operator[](size_t row) const { return {items.data() + start[row], start[row + 1] - start[row]}; }
  };

  // Many short names in one block.
  class Names {
   public:
    void Add(std::string_view name) {
      text_ += name;
      start_.push_back(text_.size());
    }
    std::string_view operator[](size_t i) const {
      return std::string_view(text_).substr(start_[i], start_[i + 1] - start_[i]);
    }

   private:
    std::string text_;
    std::vector<size_t> start_{0};
  };

  enum class TypeId : int32_t {};

  std::string name_;
  std::vector<OpWork> op_work_;
  std::vector<uint8_t> is_backward_;  // empty when none is
  Names op_names_;
  std::vector<std::string> op_types_;
  std::vector<TypeId> op_type_ids_;
  Rows<TensorId> inputs_of_;
  std::vector<size_t> first_output_;
  Rows<ParameterId> parameters_of_;
  std::vector<OpId> producer_;
  Rows<OpId> consumers_;
  std::vector<int64_t> tensor_bytes_;
  std::vector<uint8_t> is_constant_;  // empty when none is
  Rows<int64_t> tensor_shape_;
  std::vector<uint8_t> is_output_;
  Names tensor_names_;
  Rows<OpId> parameter_consumers_;
  std::vector<int64_t> parameter_bytes_;
  Names parameter_names_;
  Rows<OpId> input_consumers_;
  Rows<InputId> graph_inputs_of_;
  std::vector<int64_t> input_bytes_;
  Rows<int64_t> input_shape_;
  Names input_names_, input_types_;
  std::vector<OpId> file_order_;
  std::vector<std::string> notes_;
  uint64_t fingerprint_ = 0;
};

// Collects ops and tensors in any order and makes a Graph of them. Positions are those of the Add calls. Texts come
// from files and may be any bytes; the Graph's are UTF-8 (base/utf8.h), as all formats that it is written in are.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name);

  // Empty names become "<type>_<position>"; a name that is taken gets "#2", "#3", ... appended at Build.
  size_t AddOp(std::string name, std::string_view type, const OpWork& work);
  size_t AddTensor(size_t producer, int64_t bytes, std::string name = {}, bool is_output = false);
  size_t AddParameter(int64_t bytes, std::string name = {});
  size_t AddInput(int64_t bytes, std::string name = {});
  void Consume(size_t tensor, size_t op);
  void UseParameter(size_t parameter, size_t op);
  void UseInput(size_t input, size_t op);
  void SetShape(size_t tensor, std::span<const int64_t> shape) {
    tensors_[tensor].shape.assign(shape.begin(), shape.end());
  }
  void SetInputShape(size_t input, std::span<const int64_t> shape, std::string type);
  void MarkConstant(size_t tensor) { tensors_[tensor].is_constant = true; }
  void MarkOutput(size_t tensor) { tensors_[tensor].is_output = true; }
  void MarkBackward(size_t op) { ops_[op].is_backward = true; }
  void AddNote(std::string note);

  OpWork& work(size_t op) { return ops_[op].work; }
  size_t num_ops() const { return ops_.size(); }

  // Numbers the ops topologically: the Add order where that is one, else the nearest by Kahn's algorithm (smallest
  // position first). Throws Error naming the ops of a cycle, what is larger than kMostTensorBytes, or that the sizes
  // add up to more than kMostGraphBytes or the FLOPs to more than a double holds, with `file` as the place. O((V + E)
  // log V), linear when already sorted. The builder is empty afterwards.
  Graph Build(std::string_view file = {});

 private:
  struct Op {
    std::string name;
    int32_t type;
    OpWork work;
    bool is_backward = false;
  };
  struct Entity {
    size_t producer;  // tensors only
    int64_t bytes;
    std::string name;
    bool is_output;
    bool is_constant = false;      // tensors only
    std::vector<int64_t> shape{};  // tensors and inputs
    std::string type{};            // inputs only
  };
  using Uses = std::vector<std::pair<size_t, size_t>>;  // (entity, op)

  void CheckSizes(std::string_view file) const;
  std::vector<size_t> TopologicalOrder(std::string_view file) const;

  std::string name_;
  std::vector<Op> ops_;
  std::vector<std::string> types_;
  std::vector<Entity> tensors_, parameters_, inputs_;
  Uses tensor_uses_, parameter_uses_, input_uses_;
  std::vector<std::string> notes_;
};

}  // namespace berth
