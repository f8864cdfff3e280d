#include "sim/hetero_subgraphs.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/error.h"

namespace berth {
namespace {

// The numbers of the bits that are set.
template <typename Take>
void ForEachBit(const uint64_t* words, size_t count, const Take& take) {
  for (size_t w = 0; w < count; ++w) {
    for (uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
      take(w * 64 + static_cast<size_t>(std::countr_zero(rest)));
    }
  }
}

void Add(const uint64_t* from, size_t count, uint64_t* to) {
  for (size_t w = 0; w < count; ++w) to[w] |= from[w];
}

bool Meet(const uint64_t* a, const uint64_t* b, size_t count) {
  for (size_t w = 0; w < count; ++w) {
    if ((a[w] & b[w]) != 0) return true;
  }
  return false;
}

void Set(size_t bit, uint64_t* words) { words[bit / 64] |= uint64_t{1} << (bit % 64); }

}  // namespace

HeteroSubgraphs::HeteroSubgraphs(const Graph& graph, std::span<const uint8_t> weights) {
  const auto counts = [&](OpId op) { return weights[Index(op)] == 0; };
  std::vector<std::vector<int32_t>> inputs_of(graph.num_ops());
  for (const InputId input : graph.inputs()) {
    const auto readers = graph.input_consumers(input);
    const auto first = std::ranges::find_if(readers, counts);
    if (first == readers.end()) continue;
    for (const OpId op : readers) {
      if (counts(op)) inputs_of[Index(op)].push_back(num_inputs_);
    }
    first_reader_.push_back(static_cast<int32_t>(*first));
    ++num_inputs_;
  }
  // What reads nothing else reads weights, which are an input of its own.
  for (const OpId op : graph.ops()) {
    const auto is_made = [&](TensorId tensor) { return counts(graph.producer(tensor)); };
    if (!counts(op) || !inputs_of[Index(op)].empty() || std::ranges::any_of(graph.inputs_of(op), is_made)) continue;
    inputs_of[Index(op)].push_back(num_inputs_++);
    first_reader_.push_back(static_cast<int32_t>(op));
  }
  num_nodes_ = num_inputs_ + static_cast<int32_t>(graph.num_ops());
  first_read_.assign(static_cast<size_t>(num_inputs_) + 1, 0);
  takes_part_.assign(static_cast<size_t>(num_inputs_), 1);
  for (const OpId op : graph.ops()) {
    takes_part_.push_back(counts(op) ? 1 : 0);
    if (counts(op)) {
      for (const int32_t input : inputs_of[Index(op)]) read_.push_back(input);
      for (const TensorId tensor : graph.inputs_of(op)) {
        const OpId producer = graph.producer(tensor);
        if (counts(producer)) read_.push_back(num_inputs_ + static_cast<int32_t>(producer));
      }
    }
    first_read_.push_back(static_cast<int32_t>(read_.size()));
  }
  constexpr double kMostBytes = double{1 << 30} * 2;
  if (static_cast<double>(num_nodes_) * static_cast<double>(read_.size()) * 3 / 8 > kMostBytes) {
    throw Error("serial: subgraphs=hetero would need too much memory for {} ops; leave it out", graph.num_ops());
  }
}

size_t HeteroSubgraphs::Count(std::span<const DeviceId> device, std::vector<int32_t>& root) {
  const auto device_of = [&](int32_t node) {
    return device[static_cast<size_t>(node < num_inputs_ ? first_reader_[static_cast<size_t>(node)]
                                                         : node - num_inputs_)];
  };
  is_cut_.assign(read_.size(), 0);
  for (int32_t node = num_inputs_; node < num_nodes_; ++node) {
    for (int32_t at = first_read_[static_cast<size_t>(node)]; at < first_read_[static_cast<size_t>(node) + 1]; ++at) {
      is_cut_[static_cast<size_t>(at)] = device_of(read_[static_cast<size_t>(at)]) != device_of(node) ? 1 : 0;
    }
  }
  do {
    JoinUncut();
    CollectDependencies();
  } while (CutCycles());

  size_t subgraphs = 0;
  const auto ops = static_cast<size_t>(num_nodes_ - num_inputs_);
  smallest_.assign(static_cast<size_t>(num_nodes_), -1);
  root.resize(ops);
  for (size_t op = 0; op < ops; ++op) {
    const auto node = static_cast<int32_t>(op) + num_inputs_;
    root[op] = static_cast<int32_t>(op);
    if (takes_part_[static_cast<size_t>(node)] == 0) continue;
    int32_t& first = smallest_[static_cast<size_t>(Find(node))];
    if (first < 0) {
      first = static_cast<int32_t>(op);
      ++subgraphs;
    }
    root[op] = first;
  }
  return subgraphs;
}

int32_t HeteroSubgraphs::Find(int32_t node) {
  while (parent_[static_cast<size_t>(node)] != node) {
    int32_t& parent = parent_[static_cast<size_t>(node)];
    parent = parent_[static_cast<size_t>(parent)];
    node = parent;
  }
  return node;
}

void HeteroSubgraphs::JoinUncut() {
  parent_.resize(static_cast<size_t>(num_nodes_));
  std::iota(parent_.begin(), parent_.end(), 0);
  for (int32_t node = num_inputs_; node < num_nodes_; ++node) {
    for (int32_t at = first_read_[static_cast<size_t>(node)]; at < first_read_[static_cast<size_t>(node) + 1]; ++at) {
      if (is_cut_[static_cast<size_t>(at)] != 0) continue;
      const int32_t a = Find(node), b = Find(read_[static_cast<size_t>(at)]);
      parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
    }
  }
}

void HeteroSubgraphs::CollectDependencies() {
  owner_.clear();
  before_.clear();
  for (int32_t input = 0; input < num_inputs_; ++input) {
    owner_.push_back(input);
    before_.push_back(-1);
  }
  const auto cuts = static_cast<size_t>(std::ranges::count(is_cut_, uint8_t{1}));
  words_ = (static_cast<size_t>(num_inputs_) + cuts + 63) / 64;
  const size_t size = static_cast<size_t>(num_nodes_) * words_;
  for (Bits* bits : {&reached_, &inside_, &cyclic_}) bits->assign(size, 0);
  for (int32_t input = 0; input < num_inputs_; ++input) Set(static_cast<size_t>(input), Row(reached_, input));
  for (int32_t node = num_inputs_; node < num_nodes_; ++node) {
    for (int32_t at = first_read_[static_cast<size_t>(node)]; at < first_read_[static_cast<size_t>(node) + 1]; ++at) {
      const int32_t from = read_[static_cast<size_t>(at)];
      if (is_cut_[static_cast<size_t>(at)] != 0) {
        Set(owner_.size(), Row(reached_, node));
        owner_.push_back(node);
        before_.push_back(from);
      }
      Add(Row(reached_, from), words_, Row(reached_, node));
    }
  }
  for (int32_t node = 0; node < num_nodes_; ++node) {
    const int32_t own = Find(node);
    ForEachBit(Row(reached_, node), words_, [&](size_t mark) {
      if (Find(owner_[mark]) == own) Set(mark, Row(inside_, node));
      if (before_[mark] >= 0 && Find(before_[mark]) == own) Set(mark, Row(cyclic_, node));
    });
  }
}

bool HeteroSubgraphs::CutCycles() {
  bool has_cut = false;
  through_.resize(words_);
  for (int32_t node = num_inputs_; node < num_nodes_; ++node) {
    const uint64_t* const cyclic = Row(cyclic_, node);
    if (std::all_of(cyclic, cyclic + words_, [](uint64_t word) { return word == 0; })) continue;
    const int32_t own = Find(node);
    // What is before the ways that leave the subgraph and come back, and before the places where they do.
    std::ranges::fill(through_, 0);
    ForEachBit(cyclic, words_, [&](size_t mark) { Add(Row(inside_, before_[mark]), words_, through_.data()); });
    ForEachBit(Row(inside_, node), words_, [&](size_t mark) {
      if (before_[mark] >= 0 && Find(before_[mark]) != own) Add(Row(inside_, owner_[mark]), words_, through_.data());
    });
    for (int32_t at = first_read_[static_cast<size_t>(node)]; at < first_read_[static_cast<size_t>(node) + 1]; ++at) {
      const int32_t from = read_[static_cast<size_t>(at)];
      if (is_cut_[static_cast<size_t>(at)] != 0 || Meet(cyclic, Row(cyclic_, from), words_) ||
          !Meet(through_.data(), Row(inside_, from), words_)) {
        continue;
      }
      is_cut_[static_cast<size_t>(at)] = 1;
      has_cut = true;
    }
  }
  return has_cut;
}

}  // namespace berth
