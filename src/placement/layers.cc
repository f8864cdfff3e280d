#include "placement/layers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <string_view>
#include <utility>

namespace berth {
namespace {

constexpr int32_t kNone = -1;
// A shared weight below this share of all weights does not make a layer of ops that are no products: a table of words
// does, the first state of a layer does not.
constexpr double kLargeWeight = 0.01;
// Recurrent layers have at least this share of the work of the largest.
constexpr double kMinorWork = 0.3;
constexpr size_t kFewBlocks = 8;  // with fewer runs of names a finer level of them is looked at
// Shares of the work that a piece of the order has, where its ops are not larger.
constexpr double kSmallestBlock = 1.0 / 64, kLargestBlock = 1.0 / 16;
constexpr size_t kMostClasses = 400;  // of shared weights; a graph with more is no network of layers

bool IsProduct(OpClass op_class) {
  return op_class == OpClass::kMatMul || op_class == OpClass::kConv || op_class == OpClass::kRecurrent;
}

double LeastTime(const Problem& problem, OpId op) { return std::ranges::min(problem.op_times(op)); }

// The layers that shared weights make.
class SharedWeights {
 public:
  explicit SharedWeights(const Problem& problem)
      : problem_(problem), graph_(problem.graph()), units_(ColocatedOps(problem)) {}

  Layers Find() {
    MakeClasses();
    if (classes_.empty() || classes_.size() > kMostClasses) return {};
    SetKinds();
    if (std::ranges::none_of(kind_, [](LayerKind kind) { return kind == LayerKind::kRecurrent; })) return {};
    Grow();
    return Numbered();
  }

 private:
  // 1. Ops that use one weight are a class, where they are products or the weight is large, and there are several.
  void MakeClasses() {
    const double all_bytes = static_cast<double>(graph_.total_parameter_bytes());
    std::vector<int32_t> parent(graph_.num_ops());
    std::iota(parent.begin(), parent.end(), 0);
    const auto find = [&](int32_t v) {
      while (parent[static_cast<size_t>(v)] != v) {
        int32_t& up = parent[static_cast<size_t>(v)];
        up = parent[static_cast<size_t>(up)];
        v = up;
      }
      return v;
    };
    std::vector<uint8_t> is_shared(graph_.num_ops(), 0);
    for (const ParameterId parameter : graph_.parameters()) {
      const bool large = static_cast<double>(graph_.parameter_bytes(parameter)) >= kLargeWeight * all_bytes;
      OpId first{-1};
      for (const OpId op : graph_.parameter_consumers(parameter)) {
        if (graph_.is_backward(op) || (!large && !IsProduct(graph_.work(op).op_class))) continue;
        if (first == OpId{-1}) {
          first = op;
          continue;
        }
        is_shared[Index(first)] = is_shared[Index(op)] = 1;
        const int32_t a = find(static_cast<int32_t>(first)), b = find(static_cast<int32_t>(op));
        parent[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
      }
    }
    std::map<int32_t, size_t> class_of;
    for (const OpId op : graph_.ops()) {
      if (is_shared[Index(op)] == 0) continue;
      const auto [found, added] = class_of.try_emplace(find(static_cast<int32_t>(op)), classes_.size());
      if (added) classes_.emplace_back();
      classes_[found->second].push_back(op);
    }
  }

  // 2. Steps that follow one another make a layer recurrent.
  void SetKinds() {
    std::vector<double> work;
    for (const std::vector<OpId>& ops : classes_) {
      double sum = 0;
      for (const OpId op : ops) sum += LeastTime(problem_, op);
      work.push_back(sum);
      Follow({&ops.front(), 1}, ops.back());
      const bool recurrent = std::ranges::any_of(ops, [&](OpId op) { return op != ops.front() && Follows(op); });
      kind_.push_back(recurrent ? LayerKind::kRecurrent : LayerKind::kBefore);
    }
    double most = 0;
    for (size_t c = 0; c < classes_.size(); ++c) {
      if (kind_[c] == LayerKind::kRecurrent) most = std::max(most, work[c]);
    }
    std::vector<OpId> first_recurrent;
    for (size_t c = 0; c < classes_.size(); ++c) {
      if (kind_[c] != LayerKind::kRecurrent) continue;
      if (work[c] < kMinorWork * most) kind_[c] = LayerKind::kHelper;
      first_recurrent.push_back(classes_[c].front());
    }
    if (first_recurrent.empty()) return;
    Follow(first_recurrent, MakeId<OpId>(graph_.num_ops() - 1));
    for (size_t c = 0; c < classes_.size(); ++c) {
      if (kind_[c] == LayerKind::kBefore && std::ranges::any_of(classes_[c], [&](OpId op) { return Follows(op); })) {
        kind_[c] = LayerKind::kAfter;
      }
    }
  }

  // Marks these ops and what depends on them in the forward pass, up to `last`.
  void Follow(std::span<const OpId> from, OpId last) {
    ++round_;
    stamp_.resize(graph_.num_ops(), 0);
    for (const OpId op : from) stamp_[Index(op)] = round_;
    // Ids are a topological order, so that one pass is enough.
    for (size_t v = Index(std::ranges::min(from)); v <= Index(last); ++v) {
      const auto op = MakeId<OpId>(v);
      if (stamp_[v] != round_ || graph_.is_backward(op)) continue;
      for (size_t t = graph_.first_output(op); t < graph_.end_output(op); ++t) {
        for (const OpId consumer : graph_.consumers(MakeId<TensorId>(t))) stamp_[Index(consumer)] = round_;
      }
    }
  }
  bool Follows(OpId op) const { return stamp_[Index(op)] == round_; }

  // 3. Units join the layer with which they exchange most bytes, those that exchange most first.
  void Grow() {
    const size_t units = units_.num_groups();
    std::vector<std::vector<std::pair<int32_t, double>>> neighbours(units);
    for (const Quotient::Edge& edge : MakeQuotient(problem_, units_).edges) {
      // What has no bytes still belongs together.
      const double weight = static_cast<double>(edge.bytes) + 1;
      neighbours[Index(edge.from)].emplace_back(static_cast<int32_t>(edge.to), weight);
      neighbours[Index(edge.to)].emplace_back(static_cast<int32_t>(edge.from), weight);
    }
    label_.assign(units, kNone);
    struct Offer {
      double bytes;
      int32_t unit, label;
      bool operator<(const Offer& other) const {
        return std::tuple(bytes, -unit, -label) < std::tuple(other.bytes, -other.unit, -other.label);
      }
    };
    std::priority_queue<Offer> offers;
    std::vector<std::vector<std::pair<int32_t, double>>> exchanged(units);  // by unit: layer, bytes
    const auto assign = [&](int32_t unit, int32_t label) {
      label_[static_cast<size_t>(unit)] = label;
      for (const auto& [other, bytes] : neighbours[static_cast<size_t>(unit)]) {
        if (label_[static_cast<size_t>(other)] != kNone) continue;
        auto& known = exchanged[static_cast<size_t>(other)];
        auto found = std::ranges::find(known, label, &std::pair<int32_t, double>::first);
        if (found == known.end()) found = known.insert(known.end(), {label, 0.0});
        found->second += bytes;
        offers.push({found->second, other, label});
      }
    };
    for (size_t c = 0; c < classes_.size(); ++c) {
      for (const OpId op : classes_[c]) {
        const GroupId unit = units_.group_of(op);
        // Of two classes that constraints tie together the first.
        if (label_[Index(unit)] == kNone) label_[Index(unit)] = static_cast<int32_t>(c);
      }
    }
    for (size_t unit = 0; unit < units; ++unit) {
      if (label_[unit] != kNone) assign(static_cast<int32_t>(unit), label_[unit]);
    }
    while (!offers.empty()) {
      const Offer offer = offers.top();
      offers.pop();
      if (label_[static_cast<size_t>(offer.unit)] == kNone) assign(offer.unit, offer.label);
    }
    // What is joined to nothing goes with what stands before it.
    int32_t last = 0;
    for (int32_t& label : label_) label = last = label == kNone ? last : label;
  }

  // 4. Numbers by first op, and stacks by when the layers can work.
  Layers Numbered() const {
    Layers result{.layer_of = std::vector<int32_t>(graph_.num_ops()), .layers = {}, .recurrent = true};
    std::vector<int32_t> number(classes_.size(), kNone);
    std::vector<size_t> order(classes_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, {}, [&](size_t c) { return classes_[c].front(); });
    const std::vector<int32_t> depth = Depths();
    int32_t stack = 0, busy_until = 0;
    for (const size_t c : order) {
      Layer layer{.kind = kind_[c]};
      if (layer.kind == LayerKind::kRecurrent) {
        // Not the first step, which may begin on constants alone: a decoder's does.
        const auto second = depth[Index(classes_[c][1])];
        const auto [first_end, last_end] =
            std::pair(depth[Index(classes_[c].front())], depth[Index(classes_[c].back())]);
        const int32_t begin = std::min(second, last_end), end = std::max(first_end, last_end);
        if (busy_until > 0 && begin > busy_until) {
          ++stack;
          busy_until = 0;
        }
        busy_until = std::max(busy_until, end);
        layer.stack = stack;
      }
      number[c] = static_cast<int32_t>(result.layers.size());
      result.layers.push_back(layer);
    }
    for (const OpId op : graph_.ops()) {
      result.layer_of[Index(op)] = number[static_cast<size_t>(label_[Index(units_.group_of(op))])];
    }
    return result;
  }

  // By op of the forward pass: the most ops on a way to it.
  std::vector<int32_t> Depths() const {
    std::vector<int32_t> depth(graph_.num_ops(), 0);
    for (const OpId op : graph_.ops()) {
      for (const TensorId tensor : graph_.inputs_of(op)) {
        depth[Index(op)] = std::max(depth[Index(op)], depth[Index(graph_.producer(tensor))] + 1);
      }
    }
    return depth;
  }

  const Problem& problem_;
  const Graph& graph_;
  const Grouping units_;
  std::vector<std::vector<OpId>> classes_;
  std::vector<LayerKind> kind_;  // by class
  std::vector<int32_t> label_;   // by unit: its class
  std::vector<uint32_t> stamp_;  // by op: the round in which it was reached
  uint32_t round_ = 0;
};

// The first `levels` parts of a name, without the op's own: "stack0/layer3" of "/stack0/layer3/filter/Conv".
std::string_view Beginning(std::string_view name, size_t levels) {
  if (name.starts_with('/')) name.remove_prefix(1);
  const size_t own = name.rfind('/');
  if (own == std::string_view::npos) return {};
  name = name.substr(0, own);
  size_t end = 0;
  for (size_t level = 0; level < levels && end != std::string_view::npos; ++level) {
    end = name.find('/', level == 0 ? 0 : end + 1);
  }
  return name.substr(0, end);
}

// By position in the order: the number of its block; at least kFewBlocks of them, or nothing.
std::vector<int32_t> BlocksByName(const Problem& problem, const ForwardOrder& order) {
  for (size_t levels = 1; levels <= 4; ++levels) {
    std::vector<int32_t> block;
    std::string_view last;
    int32_t current = 0;
    for (const OpId op : order.ops) {
      const std::string_view name = Beginning(problem.graph().op_name(op), levels);
      if (!block.empty() && name != last) ++current;
      last = name;
      block.push_back(current);
    }
    // As many runs as ops tell nothing.
    const auto runs = static_cast<size_t>(current) + 1;
    if (runs >= kFewBlocks && runs * 3 <= order.ops.size()) return block;
  }
  return {};
}

std::vector<int32_t> BlocksByCrossing(const Problem& problem, const ForwardOrder& order) {
  double whole = 0;
  for (const OpId op : problem.graph().ops()) whole += LeastTime(problem, op);
  std::vector<double> work(order.ops.size(), 0);
  for (const OpId op : problem.graph().ops()) {
    work[static_cast<size_t>(order.position_of[Index(op)])] += LeastTime(problem, op);
  }
  std::vector<int32_t> block(order.ops.size(), 0);
  int32_t current = 0;
  for (size_t first = 0; first < order.ops.size(); ++current) {
    // The next cut: where least crosses, of the places that leave neither too little nor too much in the block.
    double held = work[first];
    size_t cut = order.ops.size();
    for (size_t p = first + 1; p < order.ops.size() && held <= kLargestBlock * whole; ++p) {
      if (held >= kSmallestBlock * whole && (cut == order.ops.size() || order.crossing[p] < order.crossing[cut]))
        cut = p;
      held += work[p];
    }
    if (held <= kLargestBlock * whole) {
      cut = order.ops.size();  // all that is left is one
    } else if (cut == order.ops.size()) {
      cut = first + 1;  // an op that is larger than a block
    }
    std::fill(block.begin() + static_cast<std::ptrdiff_t>(first), block.begin() + static_cast<std::ptrdiff_t>(cut),
              current);
    first = cut;
  }
  return block;
}

}  // namespace

ForwardOrder MakeForwardOrder(const Problem& problem) {
  const Graph& graph = problem.graph();
  const Grouping units = ColocatedOps(problem);
  ForwardOrder order{.ops = {}, .crossing = {}, .position_of = std::vector<int32_t>(graph.num_ops())};
  std::vector<std::pair<OpId, GroupId>> first;
  for (const GroupId unit : units.groups()) {
    const std::span<const OpId> ops = units.ops_of(unit);
    const auto forward = std::ranges::find_if(ops, [&](OpId op) { return !graph.is_backward(op); });
    first.emplace_back(forward == ops.end() ? ops.front() : *forward, unit);
  }
  std::ranges::sort(first);
  for (size_t p = 0; p < first.size(); ++p) {
    order.ops.push_back(first[p].first);
    for (const OpId op : units.ops_of(first[p].second)) order.position_of[Index(op)] = static_cast<int32_t>(p);
  }
  // A tensor crosses all places between the first and the last group that touch it, whichever makes it.
  std::vector<int64_t> change(first.size() + 1, 0);
  for (const TensorId tensor : graph.tensors()) {
    int32_t least = order.position_of[Index(graph.producer(tensor))], most = least;
    for (const OpId op : graph.consumers(tensor)) {
      least = std::min(least, order.position_of[Index(op)]);
      most = std::max(most, order.position_of[Index(op)]);
    }
    change[static_cast<size_t>(least) + 1] += graph.tensor_bytes(tensor);
    change[static_cast<size_t>(most) + 1] -= graph.tensor_bytes(tensor);
  }
  int64_t crossing = 0;
  for (size_t p = 0; p < first.size(); ++p) order.crossing.push_back(crossing += change[p]);
  return order;
}

Layers FindLayers(const Problem& problem) {
  if (Layers layers = SharedWeights(problem).Find(); layers.recurrent) return layers;
  const ForwardOrder order = MakeForwardOrder(problem);
  std::vector<int32_t> block = BlocksByName(problem, order);
  if (block.empty()) block = BlocksByCrossing(problem, order);
  Layers layers;
  for (const OpId op : problem.graph().ops()) {
    layers.layer_of.push_back(block[static_cast<size_t>(order.position_of[Index(op)])]);
  }
  layers.layers.resize(block.empty() ? 0 : static_cast<size_t>(block.back()) + 1);
  return layers;
}

}  // namespace berth
