#include "learn/gdp_neighbours.h"

#include <array>
#include <limits>

namespace berth {
namespace {

constexpr size_t kCandidates = 16;
constexpr double kCrossed = 0.5, kMovedToo = 0.5, kAnotherMove = 0.5, kMovesPriorities = 0.5;

}  // namespace

Neighbours::Neighbours(const GdpTask& task, const Memory& memory, int64_t levels)
    : task_(task),
      memory_(memory),
      moves_(task.move_space().units(task.move_space().num_levels() - 1),
             task.move_space().structure(task.move_space().num_levels() - 1)),
      placement_(task.problem.num_ops()),
      device_of_node_(task.coarse.size()),
      levels_(levels),
      best_{.device = memory.parents().front().device, .priority = memory.parents().front().priority},
      best_cost_(memory.parents().front().cost) {}

void Neighbours::Learn(const Episode& drawn, double cost) {
  if (!(cost < best_cost_)) return;
  best_cost_ = cost;
  best_ = {.device = drawn.device, .priority = drawn.priority};
}

Neighbours::Drawn Neighbours::Draw(Random& random, const Seen& seen) {
  Drawn chosen;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < kCandidates; ++i) {
    const Drawn& drawn = DrawOne(random);
    if (seen(drawn.device, drawn.priority)) continue;
    if (memory_.model() == nullptr) return drawn;
    const double guess = memory_.model()->Guess(drawn.device);
    if (guess < least || chosen.device.empty()) {
      least = guess;
      chosen = drawn;
    }
  }
  return chosen;
}

// The better ones more often.
const Memory::Kept& Neighbours::Parent(Random& random) const {
  const double at = random.Uniform();
  return memory_.parents()[static_cast<size_t>(at * at * static_cast<double>(memory_.parents().size()))];
}

const Neighbours::Drawn& Neighbours::DrawOne(Random& random) {
  // Where nothing chooses, few of many moves help, and the best placement has to be climbed from.
  bool moves = true;
  if (climbs()) {
    drawn_ = best_;
  } else {
    const Memory::Kept& parent = Parent(random);
    drawn_ = {.device = parent.device, .priority = parent.priority};
    if (random.Chance(kCrossed)) {
      Cross(memory_.parents()[random.Below(memory_.parents().size())], random);
      moves = random.Chance(kMovedToo);
    }
  }
  if (!moves) return drawn_;
  if (levels_ > 0 && random.Chance(kMovesPriorities)) {
    MovePriorities(random);
  } else {
    MoveDevices(climbs(), random);
  }
  return drawn_;
}

void Neighbours::MoveDevices(bool once, Random& random) {
  task_.Place(task_.order, drawn_.device, placement_);
  do {
    for (const auto& [op, to] : moves_.Draw(shapes_.Draw(random), placement_, random)) placement_[Index(op)] = to;
  } while (!once && random.Chance(kAnotherMove));
  task_.coarse.ReadBack(placement_, device_of_node_);
  for (size_t i = 0; i < drawn_.device.size(); ++i) {
    drawn_.device[i] = device_of_node_[static_cast<size_t>(task_.order[i])];
  }
}

// One node's to another level, and perhaps those of some that follow it in the order to the same.
void Neighbours::MovePriorities(Random& random) {
  size_t node = random.Below(drawn_.priority.size());
  const auto further = static_cast<int64_t>(1 + random.Below(static_cast<size_t>(levels_ - 1)));
  const int64_t level = (drawn_.priority[node] + further) % levels_;
  do {
    drawn_.priority[node] = level;
  } while (++node < drawn_.priority.size() && random.Chance(kAnotherMove));
}

// Nodes, co-location groups or layers are as in the other, each with even odds.
void Neighbours::Cross(const Memory::Kept& other, Random& random) {
  const std::array<const Coupling*, 3> couplings = {nullptr, &task_.colocated, &task_.layers};
  const Coupling* const parts = couplings[random.Below(task_.layers.empty() ? 1 : couplings.size())];
  takes_.clear();
  for (size_t i = 0; i < drawn_.device.size(); ++i) {
    const size_t part = parts == nullptr ? i : (*parts)[i];
    while (takes_.size() <= part) takes_.push_back(random.Chance(0.5) ? 1 : 0);
    if (takes_[part] == 0) continue;
    drawn_.device[i] = other.device[i];
    if (levels_ > 0) drawn_.priority[i] = other.priority[i];
  }
}

}  // namespace berth
