#include "learn/gdp_neighbours.h"

#include <array>
#include <limits>

namespace berth {
namespace {

constexpr size_t kCandidates = 16;
constexpr double kCrossed = 0.5, kMovedToo = 0.5, kAnotherMove = 0.5;

}  // namespace

Neighbours::Neighbours(const GdpTask& task, const Memory& memory)
    : task_(task),
      memory_(memory),
      moves_(task.moves->units(task.moves->num_levels() - 1), task.moves->structure(task.moves->num_levels() - 1)),
      placement_(task.problem.num_ops()),
      device_of_node_(task.coarse.size()) {}

std::vector<int64_t> Neighbours::Draw(Random& random, const Seen& seen) {
  std::vector<int64_t> chosen;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < kCandidates; ++i) {
    const std::vector<int64_t>& drawn = DrawOne(random);
    if (seen(drawn)) continue;
    if (memory_.model() == nullptr) return drawn;
    const double guess = memory_.model()->Guess(drawn);
    if (guess < least || chosen.empty()) {
      least = guess;
      chosen = drawn;
    }
  }
  return chosen;
}

// The better ones more often.
const std::vector<int64_t>& Neighbours::Parent(Random& random) const {
  const double at = random.Uniform();
  return memory_.parents()[static_cast<size_t>(at * at * static_cast<double>(memory_.parents().size()))].device;
}

const std::vector<int64_t>& Neighbours::DrawOne(Random& random) {
  // Where nothing chooses, few of many moves help, and the best placement has to be climbed from.
  const bool climbs = memory_.model() == nullptr;
  drawn_ = climbs ? memory_.parents().front().device : Parent(random);
  bool moves = true;
  if (!climbs && random.Chance(kCrossed)) {
    Cross(memory_.parents()[random.Below(memory_.parents().size())].device, random);
    moves = random.Chance(kMovedToo);
  }
  if (!moves) return drawn_;
  task_.Place(task_.order, drawn_, placement_);
  do {
    for (const auto& [op, to] : moves_.Draw(shapes_.Draw(random), placement_, random)) placement_[Index(op)] = to;
  } while (!climbs && random.Chance(kAnotherMove));
  task_.coarse.ReadBack(placement_, device_of_node_);
  for (size_t i = 0; i < drawn_.size(); ++i) drawn_[i] = device_of_node_[static_cast<size_t>(task_.order[i])];
  return drawn_;
}

// Nodes, co-location groups or layers have the devices of the other, each with even odds.
void Neighbours::Cross(const std::vector<int64_t>& other, Random& random) {
  const std::array<const Coupling*, 3> couplings = {nullptr, &task_.colocated, &task_.layers};
  const Coupling* const parts = couplings[random.Below(task_.layers.empty() ? 1 : couplings.size())];
  takes_.clear();
  for (size_t i = 0; i < drawn_.size(); ++i) {
    const size_t part = parts == nullptr ? i : (*parts)[i];
    while (takes_.size() <= part) takes_.push_back(random.Chance(0.5) ? 1 : 0);
    if (takes_[part] != 0) drawn_[i] = other[i];
  }
}

}  // namespace berth
