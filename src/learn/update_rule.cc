#include "learn/update_rule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_object.h"

namespace berth {
namespace {

bool Asked(double cost) { return !std::isnan(cost); }

}  // namespace

std::vector<double> UpdateRule::Rewards(const Episode& episode, double worst, double reference,
                                        double seconds_per_unit) const {
  std::vector<double> reward(episode.cost.size());
  for (size_t i = 0; i < reward.size(); ++i) {
    const double cost = episode.cost[i];
    const bool failed = std::isinf(cost);
    const double least = std::max(cost, LeastCost(reference));
    const double time = !failed                       ? cost
                        : options_.failed_seconds > 0 ? options_.failed_seconds / seconds_per_unit
                                                      : 10 * worst;
    switch (options_.reward) {
      case Reward::kInverse:
        reward[i] = 1 / (failed ? options_.failed_cost : least * seconds_per_unit);
        break;
      case Reward::kNegative:
        reward[i] = -time * seconds_per_unit;
        break;
      case Reward::kSquareRoot:
        reward[i] = -std::sqrt(time * seconds_per_unit);
        break;
      case Reward::kRelativeRoot: {
        constexpr double kFloor = -10;
        reward[i] = failed ? kFloor : std::max(-std::sqrt(time / reference), kFloor);
        break;
      }
      case Reward::kSlower:
        reward[i] = std::sqrt(time * seconds_per_unit);
        break;
      case Reward::kLog:
        reward[i] = -std::log((failed ? time : least) / reference);
        break;
    }
  }
  return reward;
}

// The weight of each step before any baseline.
std::vector<double> UpdateRule::Credits(const Episode& episode, std::span<const double> reward, double start) const {
  const size_t steps = reward.size();
  std::vector<double> credit(steps, 0);
  const auto before = [&](size_t i) { return i == 0 ? start : reward[i - 1]; };
  switch (options_.credit) {
    case Credit::kOwn: {
      double factor = 1;
      for (size_t i = 0; i < steps; ++i) credit[i] = (factor *= options_.gamma) * reward[i];
      break;
    }
    case Credit::kBuffer: {
      double sum = 0;
      for (size_t i = 0; i < steps; ++i) sum = options_.gamma * sum + reward[i];
      std::ranges::fill(credit, sum);
      break;
    }
    case Credit::kToGo:
      if (options_.gamma == 1) {  // without the rounding of a long sum
        for (size_t i = 0; i < steps; ++i) credit[i] = reward[steps - 1] - before(i);
      } else {
        double later = 0;
        for (size_t i = steps; i-- > 0;) credit[i] = later = reward[i] - before(i) + options_.gamma * later;
      }
      break;
    case Credit::kTerminal:
      std::ranges::fill(credit, reward[steps - 1]);
      break;
    case Credit::kBestFuture: {
      double best = -std::numeric_limits<double>::infinity();
      for (size_t i = steps; i-- > 0;) credit[i] = (best = std::max(best, reward[i])) - before(i);
      break;
    }
    case Credit::kIncremental:
      for (size_t i = 0; i < steps; ++i) credit[i] = reward[i] - before(i);
      break;
  }
  BERTH_CHECK(credit.size() == episode.cost.size());
  return credit;
}

std::vector<std::vector<double>> UpdateRule::Weigh(int64_t task, std::span<const Episode* const> episodes,
                                                   double reference, double seconds_per_unit, int64_t update) {
  if (options_.failures_until > 0 && update >= options_.failures_until) {
    const auto failed = [](const Episode* episode) {
      return std::ranges::any_of(episode->cost, [](double cost) { return std::isinf(cost); });
    };
    std::vector<const Episode*> left;
    std::ranges::remove_copy_if(episodes, std::back_inserter(left), failed);
    std::vector<std::vector<double>> weight, of_left;
    if (!left.empty()) of_left = Weigh(task, left, reference, seconds_per_unit);
    for (size_t i = 0, next = 0; i < episodes.size(); ++i) {
      weight.push_back(failed(episodes[i]) ? std::vector<double>(episodes[i]->cost.size(), 0.0) : of_left[next++]);
    }
    return weight;
  }
  double worst = reference;
  for (const Episode* episode : episodes) {
    for (const double cost : episode->cost) {
      if (std::isfinite(cost)) worst = std::max(worst, cost);
    }
  }
  std::vector<std::vector<double>> weight;
  double sum = 0, count = 0;
  for (const Episode* episode : episodes) {
    const std::vector<double> reward = Rewards(*episode, worst, reference, seconds_per_unit);
    Episode start;
    start.cost = {episode->start_cost};
    const bool has_start = Asked(episode->start_cost);
    weight.push_back(Credits(*episode, reward, has_start ? Rewards(start, worst, reference, seconds_per_unit)[0] : 0));
    for (const double credit : weight.back()) sum += credit, ++count;
  }
  const double mean = sum / count;

  switch (options_.baseline) {
    case Baseline::kNone:
      break;
    case Baseline::kBatch:
      for (auto& credits : weight) {
        for (double& credit : credits) credit -= mean;
      }
      break;
    case Baseline::kElite: {
      std::vector<double> all;
      for (const auto& credits : weight) all.insert(all.end(), credits.begin(), credits.end());
      const auto next = all.begin() + static_cast<std::ptrdiff_t>(std::min((all.size() + 3) / 4, all.size() - 1));
      std::ranges::nth_element(all, next, std::greater());
      // Where all of the quarter are as good as the next one, or more than those, how much they are better than the
      // rest.
      double rest = *next;
      if (rest == *std::ranges::max_element(all)) {
        for (const double credit : all) {
          if (credit < *next && (rest == *next || credit > rest)) rest = credit;
        }
      }
      for (auto& credits : weight) {
        for (double& credit : credits) credit = std::max(credit - rest, 0.0);
      }
      break;
    }
    case Baseline::kMoving: {
      const bool begins = !std::isnan(options_.first_baseline);
      const auto [at, is_new] = moving_.try_emplace(task, begins ? options_.first_baseline : mean);
      if (begins || !is_new) at->second = 0.9 * at->second + 0.1 * mean;
      for (auto& credits : weight) {
        for (double& credit : credits) credit -= at->second;
      }
      break;
    }
    case Baseline::kWindow: {
      auto& window = window_[task];
      // All episodes of the update first, so that their order does not matter.
      for (const auto& credits : weight) {
        window.resize(std::max(window.size(), credits.size()));
        for (size_t i = 0; i < credits.size(); ++i) {
          window[i].push_back(credits[i]);
          while (window[i].size() > std::max(static_cast<size_t>(options_.window), weight.size()))
            window[i].pop_front();
        }
      }
      for (auto& credits : weight) {
        for (size_t i = 0; i < credits.size(); ++i) {
          double past = 0;
          for (const double value : window[i]) past += value;
          credits[i] -= past / static_cast<double>(window[i].size());
        }
      }
      break;
    }
  }
  if (options_.normalise) {
    double squares = 0, centre = 0;
    for (const auto& credits : weight) {
      for (const double credit : credits) centre += credit / count;
    }
    for (const auto& credits : weight) {
      for (const double credit : credits) squares += (credit - centre) * (credit - centre);
    }
    const double deviation = std::sqrt(squares / count);
    if (deviation > 1e-12) {
      for (auto& credits : weight) {
        for (double& credit : credits) credit /= deviation;
      }
    }
  }
  return weight;
}

at::Tensor UpdateRule::Loss(const Likelihood& now, const Episode& episode, std::span<const double> weight,
                            double entropy_weight) const {
  const auto decisions = static_cast<int64_t>(episode.step_of.size());
  at::Tensor each = torch::empty({decisions}, torch::kFloat64);
  double* values = each.data_ptr<double>();
  for (int64_t i = 0; i < decisions; ++i) {
    values[i] = weight[static_cast<size_t>(episode.step_of[static_cast<size_t>(i)])];
  }
  each = each.to(now.log_prob.scalar_type());
  at::Tensor gain;
  if (options_.clip_ratio > 0) {
    const at::Tensor old =
        torch::tensor(at::ArrayRef<float>(episode.log_prob), torch::kFloat32).to(now.log_prob.scalar_type());
    const at::Tensor ratio = torch::exp(now.log_prob - old);
    gain = torch::minimum(ratio * each, torch::clamp(ratio, 1 - options_.clip_ratio, 1 + options_.clip_ratio) * each);
  } else {
    gain = now.log_prob * each;
  }
  const at::Tensor entropy = now.entropy_weight.defined() ? now.entropy * now.entropy_weight : now.entropy;
  return -gain.sum() - entropy_weight * entropy.sum();
}

std::string UpdateRule::Save() const {
  nlohmann::json json;
  json["moving"] = nlohmann::json::array();
  for (const auto& [task, value] : moving_) json["moving"].push_back({task, value});
  json["window"] = nlohmann::json::array();
  for (const auto& [task, steps] : window_) json["window"].push_back({task, steps});
  return json.dump();
}

void UpdateRule::Load(const std::string& text, const std::string& path) {
  moving_.clear();
  window_.clear();
  const nlohmann::json json = ParseJson(text, path);
  JsonObject saved(json, path, "rule");
  // Pairs of a task and what is kept of it.
  const auto each = [&](const char* key, const auto& keep) {
    const Error mistake = saved.Mistake(key, "is no baseline that Berth has saved");
    for (const nlohmann::json& entry : saved.List(key)) {
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_integer()) throw mistake;
      keep(entry[0].get<int64_t>(), entry[1], mistake);
    }
  };
  // JSON knows no infinity and no NaN.
  const auto number = [](const nlohmann::json& value, const Error& mistake) {
    if (!value.is_number() && !value.is_null()) throw mistake;
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  };
  each("moving", [&](int64_t task, const nlohmann::json& value, const Error& mistake) {
    moving_[task] = number(value, mistake);
  });
  each("window", [&](int64_t task, const nlohmann::json& steps, const Error& mistake) {
    if (!steps.is_array()) throw mistake;
    for (const nlohmann::json& step : steps) {
      if (!step.is_array()) throw mistake;
      std::deque<double>& rewards = window_[task].emplace_back();
      for (const nlohmann::json& value : step) rewards.push_back(number(value, mistake));
    }
  });
  saved.Finish();
}

}  // namespace berth
