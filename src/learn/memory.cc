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

Memory::Memory(const MemoryOptions& options, int64_t decisions, std::vector<DeviceId> class_of, bool models,
               int64_t levels)
    : options_(options), decisions_(decisions), levels_(levels), class_of_(std::move(class_of)) {
  constexpr int64_t kMostDecisions = int64_t{4} << 20;  // of all parents, and of all that are kept
  const int64_t most = std::max<int64_t>(kMostDecisions / std::max<int64_t>(decisions, 1), 1);
  options_.parents = std::min(options.parents, most);
  options_.kept = std::min(options.kept, most);
  const auto nodes = static_cast<size_t>(decisions);
  if (models && levels == 0 && options.parents > 0 &&
      PairModel::NumFeatures(nodes, class_of_) <= PairModel::kMostFeatures) {
    model_ = std::make_unique<PairModel>(nodes, class_of_);
  }
}

// Devices that may be swapped are counted as they occur.
uint64_t Memory::Key(std::span<const int64_t> device, std::span<const int64_t> priority) const {
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
  for (const int64_t level : priority) hasher.Add(static_cast<uint64_t>(level));
  return hasher.value();
}

void Memory::Add(const Episode& episode) {
  if (episode.cost.empty() || std::isnan(episode.cost.back())) return;
  BERTH_CHECK(std::ssize(episode.device) == decisions_);
  BERTH_CHECK(std::ssize(episode.priority) == (levels_ > 0 ? decisions_ : 0));
  const double cost = episode.cost.back();
  const uint64_t key = Key(episode.device, episode.priority);
  if (options_.distinct) drawn_.insert(key);
  if (std::isinf(cost)) return;
  const Kept added{.cost = cost, .device = episode.device, .priority = episode.priority, .key = key};
  Keep(best_, options_.kept, added);
  Keep(of_all_rounds_, kept_of_all_rounds(), added);
  if (model_ && cost > 0) model_->Learn(episode.device, cost);
}

void Memory::Keep(std::vector<Kept>& best, int64_t most, const Kept& added) const {
  const auto at = std::ranges::upper_bound(best, added.cost, {}, &Kept::cost);
  const auto place = static_cast<size_t>(at - best.begin());
  if (static_cast<int64_t>(place) >= most || std::ranges::count(best, added.key, &Kept::key) > 0) return;
  best.insert(at, added);
  if (std::ssize(best) > most) best.pop_back();
  const size_t devices = class_of_.size();
  if (devices == 0) return;
  const std::vector<float> like_best = NamesOf(best[0].device, devices);
  // Where the best one is the same as before, the others have their names.
  const std::span<Kept> named = place == 0 ? std::span(best).subspan(1) : std::span(best).subspan(place, 1);
  for (Kept& kept : named) NameLikeliest(class_of_, like_best, kept.device);
}

void Memory::BeginRound(bool last) {
  best_.clear();
  if (!last) return;
  const auto kept =
      std::span(of_all_rounds_).first(std::min(of_all_rounds_.size(), static_cast<size_t>(options_.kept)));
  best_.assign(kept.begin(), kept.end());
}

nlohmann::json Memory::Save() const {
  const auto list = [](const std::vector<Kept>& best) {
    nlohmann::json json = nlohmann::json::array();
    for (const Kept& kept : best) {
      json.push_back({{"cost", kept.cost}, {"device", kept.device}});
      if (!kept.priority.empty()) json.back()["priority"] = kept.priority;
    }
    return json;
  };
  return {{"best", list(best_)}, {"of_all_rounds", list(of_all_rounds_)}, {"drawn", drawn_}};
}

std::vector<at::Tensor> Memory::State() const {
  if (!model_) return {};
  const std::span<double> state = model_->state();
  return {torch::from_blob(state.data(), {std::ssize(state)}, torch::kFloat64)};
}

void Memory::Load(const nlohmann::json& json, const std::string& path, size_t devices) {
  JsonObject saved(json, path, "memory");
  const auto list = [&](const char* key, int64_t most) {
    const Error mistake = saved.Mistake(key, "is no list of placements that Berth has saved");
    std::vector<Kept> best;
    for (const nlohmann::json& each : saved.List(key)) {
      if (!each.is_object() || !each.contains("cost") || !each["cost"].is_number() || !each.contains("device") ||
          !each["device"].is_array() || std::ssize(each["device"]) != decisions_ || std::ssize(best) >= most) {
        throw mistake;
      }
      Kept& kept = best.emplace_back(Kept{.cost = each["cost"].get<double>(), .device = {}, .priority = {}, .key = 0});
      for (const nlohmann::json& device : each["device"]) {
        const auto number = device.is_number_integer() ? device.get<int64_t>() : -1;
        if (number < 0 || number >= static_cast<int64_t>(devices)) throw mistake;
        kept.device.push_back(number);
      }
      if (each.contains("priority") != (levels_ > 0)) throw mistake;
      if (levels_ > 0) {
        if (!each["priority"].is_array() || std::ssize(each["priority"]) != decisions_) throw mistake;
        for (const nlohmann::json& level : each["priority"]) {
          const auto number = level.is_number_integer() ? level.get<int64_t>() : -1;
          if (number < 0 || number >= levels_) throw mistake;
          kept.priority.push_back(number);
        }
      }
      kept.key = Key(kept.device, kept.priority);
    }
    return best;
  };
  best_ = list("best", options_.kept);
  of_all_rounds_ = list("of_all_rounds", kept_of_all_rounds());
  drawn_.clear();
  for (const nlohmann::json& key : saved.List("drawn")) {
    if (!key.is_number_unsigned()) throw saved.Mistake("drawn", "expected numbers");
    drawn_.insert(key.get<uint64_t>());
  }
  saved.Finish();
}

}  // namespace berth
