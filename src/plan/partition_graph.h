// A problem as graph partitioners want it: units as vertices, transfers as edges without a direction, whole numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "moves/clusters.h"
#include "placement/search.h"
#include "plan/named_planner.h"

namespace berth {

// Of the units that must share a device. Sums of all weights of a kind stay within 32 bits, which partitioners count
// in.
class PartitionGraph {
 public:
  explicit PartitionGraph(const Units& units);

  size_t size() const { return units_.size(); }
  // The neighbours of vertex v are neighbours()[firsts()[v] .. firsts()[v + 1]), with as many ties.
  const std::vector<int32_t>& firsts() const { return first_; }
  const std::vector<int32_t>& neighbours() const { return neighbour_; }
  const std::vector<int32_t>& ties() const { return tie_; }    // transfer times, at least 1
  const std::vector<int32_t>& times() const { return time_; }  // of work on the fastest device
  const std::vector<int32_t>& bytes() const { return bytes_; }

  // The devices that parts are for, the fastest first, and by part the share of the work that its speed gives it. They
  // sum up to 1.
  const std::vector<DeviceId>& devices() const { return devices_; }
  const std::vector<double>& work_shares() const { return work_share_; }

  // A device per op.
  std::vector<DeviceId> Placement(std::span<const int32_t> part) const;

 private:
  const Units& units_;
  std::vector<DeviceId> devices_;
  std::vector<int32_t> first_, neighbour_, tie_, time_, bytes_;
  std::vector<double> work_share_;
};

// What planners have in common that ask a library for a partition.
class Partitioner : public NamedPlanner {
 public:
  Partitioner(const Params& params, std::string library) : NamedPlanner(params), library_(std::move(library)) {}

  PlannerFacts facts() const override;
  std::optional<std::string> Refuses(const Problem& problem, const Evaluator& evaluator) const override;

 private:
  std::string library_;
};

// Scores what a partitioner has found, made legal, by first come and, where the evaluator can, by rank.
class PartitionTrials {
 public:
  PartitionTrials(Search& search, const Units& units);

  // One or two evaluations.
  void Try(const std::vector<DeviceId>& device);
  PlanResult Finish(const PlanRequest& request);

 private:
  static constexpr const char* kCause = "in its part of the partition";
  Search& search_;
  const Units& units_;
  std::vector<double> rank_;
};

}  // namespace berth
