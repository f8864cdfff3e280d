#include "placement/fusion.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "placement/fusion_patterns.h"
#include "placement/fusion_view.h"

namespace berth {
namespace {

// A kernel of element-wise ops reads and writes through this many pointers at most: registers that are left.
constexpr size_t kMostTensors = 11;

// Ops in the order in which OpenVINO meets them, from its results backwards and the first inputs first: what a group
// has when an op comes depends on it.
std::vector<OpId> DepthFirst(const FusionView& view) {
  std::vector<OpId> order, stack;
  std::vector<uint8_t> done(view.graph().num_ops(), 0);
  for (const OpId op : view.graph().ops()) {
    if (view.is_result(op) || view.consumers(op).empty()) stack.push_back(op);
  }
  while (!stack.empty()) {
    const OpId op = stack.back();
    if (done[Index(op)] != 0) {
      stack.pop_back();
      continue;
    }
    const size_t before = stack.size();
    const auto producers = view.producers(op);
    for (auto producer = producers.rbegin(); producer != producers.rend(); ++producer) {
      if (done[Index(*producer)] == 0) stack.push_back(*producer);
    }
    if (stack.size() > before) continue;
    done[Index(op)] = 1;
    order.push_back(op);
    stack.pop_back();
  }
  return order;
}

class Fuser {
 public:
  explicit Fuser(const Graph& graph)
      : view_(graph),
        group_(graph.num_ops()),
        ops_(graph.num_ops()),
        kind_(graph.num_ops(), Kind::kOther),
        role_(graph.num_ops(), FusionRole::kNone),
        state_(graph.num_ops()),
        pattern_of_(graph.num_ops(), -1),
        position_(graph.num_ops()),
        last_(graph.num_ops()),
        reached_(graph.num_ops(), 0) {
    std::iota(group_.begin(), group_.end(), 0);
    for (const OpId op : graph.ops()) ops_[Index(op)] = {op};
  }

  std::vector<int32_t> Fuse() {
    const std::vector<FusionPattern> patterns = FindFusionPatterns(view_);
    for (size_t i = 0; i < patterns.size(); ++i) {
      for (const OpId op : patterns[i].ops) pattern_of_[Index(op)] = static_cast<int32_t>(i);
    }
    const std::vector<OpId> order = DepthFirst(view_);
    for (size_t i = 0; i < order.size(); ++i) position_[Index(order[i])] = last_[Index(order[i])] = i;
    for (const OpId op : order) {
      if (view_.is_constant(op)) continue;
      if (const int32_t pattern = pattern_of_[Index(op)]; pattern >= 0) {
        const FusionPattern& whole = patterns[static_cast<size_t>(pattern)];
        if (op == whole.last()) Place(whole);
        continue;
      }
      Place(op);
    }
    return std::move(group_);
  }

 private:
  enum class Kind : uint8_t { kOther, kHeaded, kElementwise };
  // Of a group that begins with a convolution or the like.
  struct Headed {
    size_t fused = 0;  // without a bias
    bool has_bias = false, has_sum = false;
  };

  int32_t group(OpId op) const { return group_[Index(op)]; }
  static size_t At(int32_t group) { return static_cast<size_t>(group); }

  void Place(OpId op) {
    switch (view_.role(op)) {
      case FusionRole::kNone:
        return;
      case FusionRole::kConv:
      case FusionRole::kDeconv:
      case FusionRole::kProduct:
      case FusionRole::kInstanceNorm:
        kind_[Index(op)] = Kind::kHeaded;
        role_[Index(op)] = view_.role(op);
        return;
      case FusionRole::kLayerNorm:  // nothing joins the kernel that it begins with, and others join what ends it
        kind_[Index(op)] = Kind::kElementwise;
        return;
      case FusionRole::kActivation:
      case FusionRole::kArithmetic:
      case FusionRole::kBatchNorm:
      case FusionRole::kElementwise:
        break;
    }
    for (const OpId producer : view_.producers(op)) {
      if (JoinHead(op, producer)) return;
    }
    kind_[Index(op)] = Kind::kElementwise;
    JoinElementwise(op, view_.producers(op));
  }

  void Place(const FusionPattern& pattern) {
    for (const OpId op : pattern.ops) Join(group(pattern.last()), group(op));
    if (!pattern.activates) return;
    const int32_t head = group(*pattern.activates);
    const auto own = pattern.ops;
    if (kind_[At(head)] == Kind::kHeaded && role_[At(head)] != FusionRole::kDeconv &&
        view_.IsReadOnlyBy(*pattern.activates, own)) {
      ++state_[At(head)].fused;
      Join(head, group(pattern.last()));
      return;
    }
    kind_[At(group(pattern.last()))] = Kind::kElementwise;
    const OpId source[] = {*pattern.activates};
    JoinElementwise(pattern.last(), source);
  }

  // Behind a convolution, a product or an instance normalisation whose result nobody else reads.
  bool JoinHead(OpId op, OpId producer) {
    const int32_t head = group(producer);
    if (kind_[At(head)] != Kind::kHeaded || !view_.HasOneConsumer(producer)) return false;
    const FusionRole role = role_[At(head)];
    Headed& state = state_[At(head)];
    const bool conv = role == FusionRole::kConv;
    const bool unary = view_.num_operands(op) == 1;
    bool bias = false, sum = false;
    switch (view_.role(op)) {
      case FusionRole::kBatchNorm:
        if ((!conv && role != FusionRole::kDeconv) || state.has_sum || !unary) return false;
        break;
      case FusionRole::kActivation:
        if (role == FusionRole::kDeconv || !unary) return false;
        // Behind a sum these two are not among the activations.
        if (state.has_sum && (view_.Is(op, "Abs") || view_.Is(op, "Sqrt"))) return false;
        break;
      case FusionRole::kArithmetic:
        if (role == FusionRole::kDeconv || state.has_sum) return false;
        if (unary) {
          if (!view_.has_constants(op) || !view_.ConstantsArePerChannel(op, !conv)) return false;
          bias = view_.Is(op, "Add") && state.fused == 0 && !state.has_bias;
        } else {
          sum = conv && state.fused == 0 && IsSum(op);
          if (!sum) return false;
        }
        break;
      default:
        return false;
    }
    if (bias) {
      state.has_bias = true;
    } else {
      ++state.fused;
    }
    state.has_sum = state.has_sum || sum;
    Join(head, group(op));
    return true;
  }
  bool IsSum(OpId op) const {
    const auto producers = view_.producers(op);
    return view_.num_operands(op) == 2 && producers.size() == 2 && !view_.Is(op, "Sub") && !view_.Is(op, "Mul") &&
           !view_.Is(op, "Div") && std::ranges::equal(view_.shape(producers[0]), view_.shape(producers[1]));
  }

  // With groups of element-wise ops that feed it, as long as groups feed one another in no circle.
  void JoinElementwise(OpId op, std::span<const OpId> producers) {
    // What OpenVINO asks to be sure of that; it says yes less often than it could.
    size_t latest_parent = 0;
    for (const OpId producer : producers) latest_parent = std::max(latest_parent, Position(producer));
    size_t first_child = std::numeric_limits<size_t>::max();
    for (const OpId producer : producers) {
      const int32_t from = group(producer), to = group(op);
      if (from == to || kind_[At(from)] != Kind::kElementwise || NumTensors(from, to) > kMostTensors) continue;
      size_t parent = latest_parent, child = first_child;
      for (const OpId member : ops_[At(from)]) {
        for (const OpId other : view_.producers(member)) {
          if (group(other) != from) parent = std::max(parent, Position(other));
        }
        for (const OpId other : view_.consumers(member)) {
          if (group(other) != from && group(other) != to) child = std::min(child, Position(other));
        }
      }
      // Of its two ops the second one comes too late where others read the group.
      const bool second_is_late =
          view_.role(op) == FusionRole::kBatchNorm && child < std::numeric_limits<size_t>::max();
      if (parent >= child || second_is_late || IsBehind(from, to) || IsBehind(to, from)) continue;
      latest_parent = parent;
      first_child = child;
      Join(from, to);
      last_[At(from)] = position_[Index(op)];
    }
  }
  // A group counts as its last op.
  size_t Position(OpId op) const {
    return kind_[At(group(op))] == Kind::kElementwise ? last_[At(group(op))] : position_[Index(op)];
  }

  // How many tensors a kernel of both would read and write; numbers are part of it.
  size_t NumTensors(int32_t a, int32_t b) const {
    const Graph& graph = view_.graph();
    std::set<TensorId> tensors;
    std::set<ParameterId> parameters;
    std::set<InputId> inputs;
    const auto inside = [&](OpId op) { return group(op) == a || group(op) == b; };
    for (const int32_t part : {a, b}) {
      for (const OpId op : ops_[At(part)]) {
        for (const TensorId tensor : graph.inputs_of(op)) {
          const bool is_number = graph.is_constant(tensor) && graph.tensor_bytes(tensor) <= kBytesOfOneNumber;
          if (!is_number && !inside(graph.producer(tensor))) tensors.insert(tensor);
        }
        for (const ParameterId parameter : graph.parameters_of(op)) {
          if (graph.parameter_bytes(parameter) > kBytesOfOneNumber) parameters.insert(parameter);
        }
        inputs.insert(graph.graph_inputs_of(op).begin(), graph.graph_inputs_of(op).end());
        for (size_t i = graph.first_output(op); i < graph.end_output(op); ++i) {
          const auto tensor = MakeId<TensorId>(i);
          if (graph.is_output(tensor) || !std::ranges::all_of(graph.consumers(tensor), inside)) tensors.insert(tensor);
        }
      }
    }
    return tensors.size() + parameters.size() + inputs.size();
  }

  // Whether `to` needs something of `from` by way of other groups. Groups whose ops all come before those of `from`
  // cannot be on the way.
  bool IsBehind(int32_t from, int32_t to) {
    size_t first = std::numeric_limits<size_t>::max();
    for (const OpId op : ops_[At(from)]) first = std::min(first, position_[Index(op)]);
    ++round_;
    std::vector<int32_t> stack;
    const auto visit = [&](int32_t other) {
      if (other == from || other == to || reached_[At(other)] == round_) return;
      reached_[At(other)] = round_;
      stack.push_back(other);
    };
    for (const OpId op : ops_[At(to)]) {
      for (const OpId producer : view_.producers(op)) visit(group(producer));
    }
    while (!stack.empty()) {
      const int32_t at = stack.back();
      stack.pop_back();
      const auto late = [&](OpId op) { return position_[Index(op)] > first; };
      if (std::ranges::none_of(ops_[At(at)], late)) continue;
      for (const OpId op : ops_[At(at)]) {
        for (const OpId producer : view_.producers(op)) {
          if (group(producer) == from) return true;
          visit(group(producer));
        }
      }
    }
    return false;
  }

  void Join(int32_t group, int32_t other) {
    if (group == other) return;
    std::vector<OpId>& to = ops_[At(group)];
    for (const OpId op : ops_[At(other)]) {
      group_[Index(op)] = group;
      to.push_back(op);
    }
    ops_[At(other)].clear();
  }

  const FusionView view_;
  std::vector<int32_t> group_;          // by op
  std::vector<std::vector<OpId>> ops_;  // by group
  std::vector<Kind> kind_;              // by group
  std::vector<FusionRole> role_;        // by group: its head's
  std::vector<Headed> state_;           // by group
  std::vector<int32_t> pattern_of_;     // by op; -1: none
  std::vector<size_t> position_;        // by op, in OpenVINO's order
  std::vector<size_t> last_;            // by group: the position of the op that joined last
  std::vector<int64_t> reached_;        // by group: the last round of IsBehind
  int64_t round_ = 0;
};

}  // namespace

Grouping FusedOps(const Graph& graph) {
  const auto is_backward = [&](OpId op) { return graph.is_backward(op); };
  if (std::ranges::any_of(graph.ops(), is_backward)) {
    std::vector<int32_t> alone(graph.num_ops());
    std::iota(alone.begin(), alone.end(), 0);
    return Grouping(graph, alone);
  }
  return Grouping(graph, Fuser(graph).Fuse());
}

}  // namespace berth
