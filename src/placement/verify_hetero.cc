#include "placement/verify_hetero.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace berth {
namespace {

struct Read {
  size_t from, by;  // nodes
  bool is_cut;
};

bool Meet(const std::set<size_t>& a, const std::set<size_t>& b) {
  return std::ranges::any_of(a, [&](size_t one) { return b.contains(one); });
}

// Nodes are ops, then graph inputs, then the weights of ops that read nothing else. Reads are numbered as they are
// listed; after them come the graph inputs themselves.
class SlowCount {
 public:
  SlowCount(const Graph& graph, std::span<const DeviceId> device) : ops_(graph.num_ops()) {
    const auto counts = [&](OpId op) { return !graph.makes_constants(op); };
    for (const OpId op : graph.ops()) {
      if (counts(op)) nodes_.push_back(Index(op));
    }
    for (const TensorId tensor : graph.tensors()) {
      const OpId from = graph.producer(tensor);
      if (!counts(from)) continue;
      for (const OpId by : graph.consumers(tensor)) {
        if (counts(by)) reads_.push_back({Index(from), Index(by), device[Index(from)] != device[Index(by)]});
      }
    }
    for (const InputId input : graph.inputs()) {
      const size_t node = ops_ + Index(input);
      bool is_read = false;
      DeviceId on{};
      for (const OpId by : graph.input_consumers(input)) {
        if (!counts(by)) continue;
        if (!is_read) on = device[Index(by)];
        is_read = true;
        reads_.push_back({node, Index(by), device[Index(by)] != on});
      }
      if (is_read) nodes_.push_back(node);
    }
    std::set<size_t> reading;
    for (const Read& read : reads_) reading.insert(read.by);
    for (const OpId op : graph.ops()) {
      if (!counts(op) || reading.contains(Index(op))) continue;
      nodes_.push_back(ops_ + graph.num_inputs() + Index(op));
      reads_.push_back({nodes_.back(), Index(op), false});
    }
  }

  size_t Run() {
    do {
      FindSubgraphs();
      FindMarks();
    } while (CutMore());
    std::set<size_t> subgraphs;
    for (const size_t node : nodes_) {
      if (node < ops_) subgraphs.insert(subgraph_.at(node));
    }
    return subgraphs.size();
  }

 private:
  void FindSubgraphs() {
    for (const size_t node : nodes_) subgraph_[node] = node;
    for (bool changed = true; changed;) {
      changed = false;
      for (const Read& read : reads_) {
        if (read.is_cut) continue;
        size_t &a = subgraph_[read.from], &b = subgraph_[read.by];
        if (a == b) continue;
        a = b = std::min(a, b);
        changed = true;
      }
    }
  }

  std::set<size_t> ReachedFrom(size_t start) const {
    std::set<size_t> reached{start};
    for (size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const Read& read : reads_) {
        if (reached.contains(read.from)) reached.insert(read.by);
      }
    }
    return reached;
  }

  void FindMarks() {
    inside_.clear();
    cyclic_.clear();
    for (size_t r = 0; r < reads_.size(); ++r) {
      const Read& read = reads_[r];
      if (!read.is_cut) continue;
      for (const size_t node : ReachedFrom(read.by)) {
        if (subgraph_.at(node) == subgraph_.at(read.by)) inside_[node].insert(r);
        if (subgraph_.at(node) == subgraph_.at(read.from)) cyclic_[node].insert(r);
      }
    }
    for (const size_t input : nodes_) {
      if (input < ops_) continue;
      for (const size_t node : ReachedFrom(input)) {
        if (subgraph_.at(node) == subgraph_.at(input)) inside_[node].insert(reads_.size() + input);
      }
    }
  }

  bool CutMore() {
    std::set<size_t> more;
    for (const size_t node : nodes_) {
      if (cyclic_[node].empty()) continue;
      std::set<size_t> through;
      for (const size_t r : cyclic_[node])
        through.insert(inside_[reads_[r].from].begin(), inside_[reads_[r].from].end());
      for (const size_t r : inside_[node]) {
        if (r >= reads_.size() || subgraph_.at(reads_[r].from) == subgraph_.at(node)) continue;
        through.insert(inside_[reads_[r].by].begin(), inside_[reads_[r].by].end());
      }
      for (size_t r = 0; r < reads_.size(); ++r) {
        const Read& read = reads_[r];
        if (read.by != node || read.is_cut) continue;
        if (!Meet(cyclic_[read.from], cyclic_[node]) && Meet(inside_[read.from], through)) more.insert(r);
      }
    }
    for (const size_t r : more) reads_[r].is_cut = true;
    return !more.empty();
  }

  size_t ops_;
  std::vector<size_t> nodes_;
  std::vector<Read> reads_;
  std::map<size_t, size_t> subgraph_;                   // by node
  std::map<size_t, std::set<size_t>> inside_, cyclic_;  // by node
};

}  // namespace

size_t CountHeteroSubgraphs(const Graph& graph, std::span<const DeviceId> device) {
  return SlowCount(graph, device).Run();
}

}  // namespace berth
