#include "moves/moves.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace berth {

MoveMaker::MoveMaker(const Units& units, const Structure& structure)
    : units_(units),
      structure_(structure),
      graph_(units.problem().graph()),
      stamp_(units.problem().num_ops(), 0),
      first_of_unit_(units.size()) {}

size_t MoveMaker::Size(Random& random) const {
  const double most = std::log(static_cast<double>(std::max<size_t>(graph_.num_ops(), 2)));
  return static_cast<size_t>(std::exp(random.Uniform(std::log(2), most)) + 0.5);
}

bool MoveMaker::Visit(OpId op) {
  if (stamp_[Index(op)] == round_) return false;
  stamp_[Index(op)] = round_;
  chosen_.push_back(op);
  return true;
}

// Half of the time a neighbour's device, so that tensors stay where they are.
DeviceId MoveMaker::Target(std::span<const DeviceId> placement, OpId from, Random& random) const {
  const DeviceId here = placement[Index(from)];
  if (random.Chance(0.5)) {
    const std::span<const TensorId> inputs = graph_.inputs_of(from);
    const size_t outputs = graph_.end_output(from) - graph_.first_output(from);
    if (const size_t ends = inputs.size() + outputs; ends > 0) {
      const size_t end = random.Below(ends);
      DeviceId there = here;
      if (end < inputs.size()) {
        there = placement[Index(graph_.producer(inputs[end]))];
      } else {
        const auto tensor = MakeId<TensorId>(graph_.first_output(from) + end - inputs.size());
        const std::span<const OpId> consumers = graph_.consumers(tensor);
        if (!consumers.empty()) there = placement[Index(consumers[random.Below(consumers.size())])];
      }
      if (there != here) return there;
    }
  }
  const size_t others = units_.problem().num_devices() - 1;
  const size_t drawn = random.Below(others);
  return MakeId<DeviceId>(drawn < Index(here) ? drawn : drawn + 1);
}

void MoveMaker::Segment(Random& random) {
  const size_t first = random.Below(graph_.num_ops());
  const size_t end = std::min(graph_.num_ops(), first + Size(random));
  for (size_t v = first; v < end; ++v) Visit(MakeId<OpId>(v));
}

void MoveMaker::Cluster(std::span<const DeviceId> placement, Random& random) {
  const size_t most = Size(random);
  Visit(MakeId<OpId>(random.Below(graph_.num_ops())));
  const DeviceId here = placement[Index(chosen_.front())];
  const auto visit = [&](OpId op) {
    if (chosen_.size() < most && placement[Index(op)] == here) Visit(op);
  };
  for (size_t i = 0; i < chosen_.size() && chosen_.size() < most; ++i) {
    const OpId op = chosen_[i];
    for (const TensorId tensor : graph_.inputs_of(op)) visit(graph_.producer(tensor));
    for (size_t t = graph_.first_output(op); t < graph_.end_output(op); ++t) {
      for (const OpId consumer : graph_.consumers(MakeId<TensorId>(t))) visit(consumer);
    }
  }
}

// An op joins when all its producers have.
void MoveMaker::Forward(Random& random) {
  const size_t most = Size(random);
  Visit(MakeId<OpId>(random.Below(graph_.num_ops())));
  for (size_t i = 0; i < chosen_.size(); ++i) {
    for (size_t t = graph_.first_output(chosen_[i]); t < graph_.end_output(chosen_[i]); ++t) {
      for (const OpId consumer : graph_.consumers(MakeId<TensorId>(t))) {
        if (chosen_.size() >= most) return;
        const bool closed = std::ranges::all_of(graph_.inputs_of(consumer), [&](TensorId input) {
          return stamp_[Index(graph_.producer(input))] == round_;
        });
        if (closed) Visit(consumer);
      }
    }
  }
}

// An op joins when all its consumers have.
void MoveMaker::Backward(Random& random) {
  const size_t most = Size(random);
  Visit(MakeId<OpId>(random.Below(graph_.num_ops())));
  for (size_t i = 0; i < chosen_.size(); ++i) {
    for (const TensorId input : graph_.inputs_of(chosen_[i])) {
      if (chosen_.size() >= most) return;
      const OpId producer = graph_.producer(input);
      bool closed = true;
      for (size_t t = graph_.first_output(producer); t < graph_.end_output(producer) && closed; ++t) {
        closed = std::ranges::all_of(graph_.consumers(MakeId<TensorId>(t)),
                                     [&](OpId c) { return stamp_[Index(c)] == round_; });
      }
      if (closed) Visit(producer);
    }
  }
}

// The chosen ops, with the rest of their units, that are elsewhere and can run there. O(ops of these units).
void MoveMaker::MoveAll(std::span<const DeviceId> placement, DeviceId to) {
  // A unit moves once, for its first chosen op.
  for (const OpId op : chosen_) first_of_unit_[units_.unit_of(op)] = op;
  for (const OpId op : chosen_) {
    OpId& first = first_of_unit_[units_.unit_of(op)];
    first = std::min(first, op);
  }
  for (const OpId op : chosen_) {
    const size_t unit = units_.unit_of(op);
    if (placement[Index(op)] == to || first_of_unit_[unit] != op || !units_.can_run(unit, to)) continue;
    for (const OpId o : units_.ops(unit)) moves_.emplace_back(o, to);
  }
}

void MoveMaker::Swap(std::span<const DeviceId> placement, Random& random) {
  const size_t a = random.Below(units_.size()), b = random.Below(units_.size());
  const DeviceId from = placement[Index(units_.ops(a).front())], to = placement[Index(units_.ops(b).front())];
  if (from == to || !units_.can_run(a, to) || !units_.can_run(b, from)) return;
  for (const OpId op : units_.ops(a)) moves_.emplace_back(op, to);
  for (const OpId op : units_.ops(b)) moves_.emplace_back(op, from);
}

void MoveMaker::Part(Random& random) {
  if (structure_.num_parts() == 0) return;
  for (const OpId op : structure_.part(random.Below(structure_.num_parts()))) Visit(op);
}

void MoveMaker::Exchange(std::span<const DeviceId> placement, Random& random) {
  if (structure_.num_parts() < 2) return;
  const size_t a = random.Below(structure_.num_parts()), b = random.Below(structure_.num_parts());
  if (structure_.partition_of(a) != structure_.partition_of(b)) return;
  const DeviceId from = placement[Index(structure_.part(a).front())], to = placement[Index(structure_.part(b).front())];
  if (from == to) return;
  for (const auto& [part, goal] : {std::pair(a, to), std::pair(b, from)}) {
    for (const OpId op : structure_.part(part)) Visit(op);
    MoveAll(placement, goal);
    chosen_.clear();
  }
}

void MoveMaker::Boundary(std::span<const DeviceId> placement, Random& random) {
  const std::vector<OpId>& order = structure_.order().ops;
  const auto at = [&](size_t position) { return placement[Index(order[position])]; };
  const size_t begin = random.Below(order.size());
  size_t boundary = begin + 1;
  while (boundary < order.size() && at(boundary) == at(begin)) ++boundary;
  if (boundary == order.size()) return;
  const size_t length = Size(random);
  const bool up = random.Chance(0.5);
  const DeviceId from = at(up ? boundary : boundary - 1), to = at(up ? boundary - 1 : boundary);
  // Only what is on the one device: others may have ops between.
  size_t position = boundary;
  for (size_t left = length; left > 0;) {
    if (up ? position == order.size() : position == 0) break;
    const size_t here = up ? position++ : --position;
    if (at(here) != from) continue;
    Visit(order[here]);
    --left;
  }
  MoveAll(placement, to);
  chosen_.clear();
}

// By a share of all that there is between the least and the most urgent: drawn evenly over the orders of magnitude.
void MoveMaker::Urgency(std::span<const double> priority, Random& random) {
  if (range_ == 0) {
    const auto [least, most] = std::ranges::minmax(priority);
    range_ = std::max(most - least, 1e-9);
  }
  const size_t op = random.Below(priority.size());
  const double by = range_ * std::exp(random.Uniform(std::log(1e-3), 0)) * (random.Chance(0.5) ? 1 : -1);
  priorities_.emplace_back(MakeId<OpId>(op), priority[op] + by);
}

// By a tiny random amount: of equal ones the smaller op number would go first.
void MoveMaker::Overtake(std::span<const double> priority, Random& random) {
  if (path_.waits.empty()) return;
  const auto [op, before] = path_.waits[random.Below(path_.waits.size())];
  const double of_op = priority[Index(op)], of_before = priority[Index(before)];
  const double tiny = 1e-9 * random.Uniform() * (std::abs(of_op) + std::abs(of_before));
  if (random.Chance(0.5)) {
    priorities_.emplace_back(op, of_before + tiny);
  } else {
    priorities_.emplace_back(before, of_op - tiny);
  }
}

PlanChange MoveMaker::Draw(MoveShape shape, std::span<const DeviceId> placement, std::span<const double> priority,
                           Random& random) {
  priorities_.clear();
  if (shape == MoveShape::kUrgency) {
    Urgency(priority, random);
  } else if (shape == MoveShape::kOvertake) {
    Overtake(priority, random);
  } else {
    return {.moves = Draw(shape, placement, random)};
  }
  return {.priorities = priorities_};
}

bool MoveMaker::KeepsApart(std::span<const DeviceId> placement, std::span<const std::pair<OpId, DeviceId>> moves) {
  if (!units_.has_rules()) return true;
  trial_.assign(placement.begin(), placement.end());
  for (const auto& [op, device] : moves) trial_[Index(op)] = device;
  return std::ranges::all_of(
      moves, [&](const auto& move) { return units_.Fits(trial_, units_.unit_of(move.first), move.second); });
}

std::span<const std::pair<OpId, DeviceId>> MoveMaker::Draw(MoveShape shape, std::span<const DeviceId> placement,
                                                           Random& random) {
  moves_.clear();
  chosen_.clear();
  ++round_;
  if (units_.problem().num_devices() < 2 || graph_.num_ops() == 0) return moves_;
  switch (shape) {
    case MoveShape::kOne:
      Visit(units_.ops(random.Below(units_.size())).front());
      break;
    case MoveShape::kSegment:
      Segment(random);
      break;
    case MoveShape::kCluster:
      Cluster(placement, random);
      break;
    case MoveShape::kForward:
      Forward(random);
      break;
    case MoveShape::kBackward:
      Backward(random);
      break;
    case MoveShape::kSwap:
      Swap(placement, random);
      break;
    case MoveShape::kPart:
      Part(random);
      break;
    case MoveShape::kExchange:
      Exchange(placement, random);
      break;
    case MoveShape::kBoundary:
      Boundary(placement, random);
      break;
    case MoveShape::kCritical:
      if (!path_.ops.empty()) Visit(path_.ops[random.Below(path_.ops.size())]);
      break;
    case MoveShape::kUrgency:
    case MoveShape::kOvertake:
      break;
  }
  if (!chosen_.empty()) MoveAll(placement, Target(placement, chosen_[random.Below(chosen_.size())], random));
  if (!KeepsApart(placement, moves_)) moves_.clear();
  return moves_;
}

MoveShape ShapeChooser::Draw(Random& random) const {
  double left = random.Uniform() * std::accumulate(weight_.begin(), weight_.end(), 0.0);
  for (size_t i = 0; i + 1 < kMoveShapes; ++i) {
    left -= weight_[i];
    if (left < 0) return static_cast<MoveShape>(i);
  }
  return static_cast<MoveShape>(kMoveShapes - 1);
}

void ShapeChooser::Report(MoveShape shape, bool helped) {
  // A slow mean of what each try brought, never near zero, so that no shape is forgotten.
  double& weight = weight_[static_cast<size_t>(shape)];
  weight = std::max(0.2, 0.98 * weight + (helped ? 0.4 : 0));
}

}  // namespace berth
