// What GDP's policy derives from a problem once.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "learn/gdp_features.h"
#include "learn/gdp_network.h"
#include "learn/node_task.h"
#include "moves/judged_moves.h"

namespace berth {

struct GdpTaskOptions {
  std::string colocation;  // rule by which ops become nodes (MakeCoarseGraph)
  std::string order;       // in which nodes are read: topological, depth_first or shuffled
  GdpFeatures features = GdpFeatures::kExtended;
  bool coupled = true;  // ops of a layer, or of a co-location group, may be drawn together
  bool moves = false;   // placements may be changed by moves
};

// By node in the order, the group that its first op is in; empty where each is one of its own.
using Coupling = std::vector<size_t>;

struct GdpTask : NodeTask {
  // `problem` outlives it.
  GdpTask(const Problem& problem, const GdpTaskOptions& options);

  std::vector<int32_t> order;  // nodes as the network reads them
  at::Tensor mask;             // nodes in this order x devices
  std::vector<double> bytes;   // by node in this order: the tensors that leave it, and its ops' shares of parameters
  GdpInput input{.type = {}, .features = {}, .neighbours = SparseRows(0, {})};
  // What is drawn together: whole layers in the first half of a round, then what co-location joins, in the last
  // quarter and in every second round each op by itself. Each op still has its own odds, from which one number that the
  // group shares chooses: where they are alike, the group moves as a whole, and what is learned of it stays when its
  // ops are drawn by themselves.
  Coupling layers{}, colocated{};  // empty where nothing is
  bool coupled() const { return !layers.empty(); }
  std::vector<int64_t> scheduled{};  // the list schedule's devices, in this order; empty where it is not read
  bool moves() const { return moves_wanted_; }
  // Made when it is first asked for, which an answer alone does not; by any thread.
  const MoveSpace& move_space() const;

 private:
  bool moves_wanted_;
  mutable std::once_flag once_{};
  mutable std::unique_ptr<const MoveSpace> move_space_{};
};

}  // namespace berth
