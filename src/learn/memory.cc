#include "learn/memory.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json_object.h"
#include "learn/device_mask.h"

namespace berth {

// Devices that may be swapped are counted as they occur.
uint64_t Memory::Key(std::span<const int64_t> device) const {
  std::vector<int64_t> name(class_of_.size(), -1);
  std::vector<int64_t> used(class_of_.size(), 0);  // by class
  Hasher hasher;
  for (const int64_t each : device) {
    if (class_of_.empty()) {
      hasher.Add(static_cast<uint64_t>(each));
      continue;
    }
    const auto index = static_cast<size_t>(each);
    const size_t of = Index(class_of_[index]);
    if (name[index] < 0) name[index] = used[of]++;
    hasher.Add(static_cast<uint64_t>(of)).Add(static_cast<uint64_t>(name[index]));
  }
  return hasher.value();
}

void Memory::Add(const Episode& episode) {
  if (episode.cost.empty() || std::isnan(episode.cost.back())) return;
  BERTH_CHECK(std::ssize(episode.device) == decisions_);
  const double cost = episode.cost.back();
  drawn_.insert(Key(episode.device));
  if (std::isinf(cost) || most_ == 0) return;
  Keep(best_, {.cost = cost, .device = episode.device});
  Keep(of_all_rounds_, {.cost = cost, .device = episode.device});
}

void Memory::Keep(std::vector<Kept>& best, Kept added) const {
  const auto at = std::ranges::upper_bound(best, added.cost, {}, &Kept::cost);
  if (at - best.begin() >= most_) return;
  const uint64_t key = Key(added.device);
  if (std::ranges::any_of(best, [&](const Kept& kept) { return Key(kept.device) == key; })) return;
  best.insert(at, std::move(added));
  if (std::ssize(best) > most_) best.pop_back();
  const size_t devices = class_of_.size();
  if (devices == 0) return;
  std::vector<float> like_best(best[0].device.size() * devices, 0);
  for (size_t i = 0; i < best[0].device.size(); ++i) {
    like_best[i * devices + static_cast<size_t>(best[0].device[i])] = 1;
  }
  for (Kept& kept : std::span(best).subspan(1)) NameLikeliest(class_of_, like_best, kept.device);
}

void Memory::BeginRound(bool last) {
  if (last) {
    best_ = of_all_rounds_;
  } else {
    best_.clear();
  }
}

nlohmann::json Memory::Save() const {
  const auto list = [](const std::vector<Kept>& best) {
    nlohmann::json json = nlohmann::json::array();
    for (const Kept& kept : best) json.push_back({{"cost", kept.cost}, {"device", kept.device}});
    return json;
  };
  return {{"best", list(best_)}, {"of_all_rounds", list(of_all_rounds_)}, {"drawn", drawn_}};
}

void Memory::Load(const nlohmann::json& json, const std::string& path, size_t devices) {
  JsonObject saved(json, path, "memory");
  const auto list = [&](const char* key) {
    const Error mistake = saved.Mistake(key, "is no list of placements that Berth has saved");
    std::vector<Kept> best;
    for (const nlohmann::json& each : saved.List(key)) {
      if (!each.is_object() || !each.contains("cost") || !each["cost"].is_number() || !each.contains("device") ||
          !each["device"].is_array() || std::ssize(each["device"]) != decisions_ || std::ssize(best) >= most_) {
        throw mistake;
      }
      Kept& kept = best.emplace_back(Kept{.cost = each["cost"].get<double>(), .device = {}});
      for (const nlohmann::json& device : each["device"]) {
        const auto number = device.is_number_integer() ? device.get<int64_t>() : -1;
        if (number < 0 || number >= static_cast<int64_t>(devices)) throw mistake;
        kept.device.push_back(number);
      }
    }
    return best;
  };
  best_ = list("best");
  of_all_rounds_ = list("of_all_rounds");
  drawn_.clear();
  for (const nlohmann::json& key : saved.List("drawn")) {
    if (!key.is_number_unsigned()) throw saved.Mistake("drawn", "expected numbers");
    drawn_.insert(key.get<uint64_t>());
  }
  saved.Finish();
}

}  // namespace berth
