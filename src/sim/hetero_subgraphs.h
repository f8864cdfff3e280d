// The subgraphs that OpenVINO's HETERO makes of a plan: the fewest connected ones that do not wait for each other, as
// its plugin finds them. Source: OpenVINO 2026, plugins/hetero, what its SubgraphCollector does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "placement/problem.h"

namespace berth {

// Of one thread.
class HeteroSubgraphs {
 public:
  // `weights`: by op, whether it makes constants alone; such ops take no part. Throws Error for a graph for which Count
  // could need more than 2 GiB.
  HeteroSubgraphs(const Graph& graph, std::span<const uint8_t> weights);

  // How many there are. Writes the smallest op of its subgraph for each op into `root`; of an op that takes no part
  // itself. Ops of one device that a tensor joins are one subgraph; a graph input belongs to its first reader's device,
  // and joins what reads it there. Where a subgraph would wait for another one that waits for it, tensors on the way
  // are cut by the plugin's rule, until that finds no more. In rare cases two subgraphs are left that wait for each
  // other, and the count is too low. O(rounds x nodes x cuts), and nodes x cuts x 3 / 8 bytes.
  size_t Count(std::span<const DeviceId> device, std::vector<int32_t>& root);

 private:
  using Bits = std::vector<uint64_t>;

  int32_t Find(int32_t node);
  void JoinUncut();
  void CollectDependencies();
  // Cuts what closes a cycle; false where nothing does.
  bool CutCycles();
  uint64_t* Row(Bits& bits, int32_t node) { return bits.data() + static_cast<size_t>(node) * words_; }

  // Nodes: graph inputs that something reads, one for each op that reads nothing else, then ops. What a node reads is
  // read_[first_read_[node]] ..., by number of the node that makes it; a cut is one of these.
  int32_t num_inputs_ = 0, num_nodes_ = 0;
  std::vector<int32_t> first_read_, read_, first_reader_;
  std::vector<uint8_t> takes_part_;  // by node
  std::vector<uint8_t> is_cut_;      // by place in read_
  std::vector<int32_t> parent_;      // union-find, the smallest node is the root
  std::vector<int32_t> smallest_;    // by root: the first op of its subgraph

  // A mark is a graph input, or a cut. By mark: the node that has it, and the one before it (-1 of a graph input).
  std::vector<int32_t> owner_, before_;
  size_t words_ = 0;
  // By node, a bit per mark: what it depends on, of these what its own subgraph owns, and of these cuts that its own
  // subgraph is before.
  Bits reached_, inside_, cyclic_, through_;
};

}  // namespace berth
