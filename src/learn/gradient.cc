#include "learn/gradient.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/in_parallel.h"

namespace berth {

bool Gradient::finite() const { return std::isfinite(loss) && std::isfinite(norm); }

int64_t PlaysTogether(const Policy& policy, int64_t episodes) {
  return std::max<int64_t>(policy.recalled_at_once() / std::max<int64_t>(episodes, 1), 1);
}

std::optional<Gradient> GradientOf(const Policy& policy, const std::vector<LearnCase>& cases,
                                   std::span<const Play> plays, size_t episodes, const EpisodeLoss& loss,
                                   int64_t threads, Ranks& ranks, const StopCheck& stop) {
  struct Part {
    std::vector<at::Tensor> gradient{};  // undefined where nothing depends on a parameter
    double loss = 0;
    std::vector<double> entropy{};  // by play

    void Pack(Parcel& parcel) {
      parcel(gradient);
      parcel(loss);
      parcel(entropy);
    }
  };
  struct Which {
    const Play* play;
    size_t episode;
  };
  std::vector<at::Tensor> parameters;
  std::vector<bool> learns;
  for (const auto& parameter : policy.named_parameters()) {
    parameters.push_back(parameter.value());
    learns.push_back(policy.learns(parameter.key()));
  }
  const auto used = [&](const Play& play) { return std::min(episodes, play.weight.size()); };
  const auto at_once = static_cast<size_t>(std::max<int64_t>(policy.recalled_at_once(), 1));
  const size_t together =
      plays.empty() ? 1 : static_cast<size_t>(PlaysTogether(policy, static_cast<int64_t>(used(plays[0]))));
  std::vector<Part> parts((plays.size() + together - 1) / together);
  // A part of one play is computed where that was played: other ranks may have less of it than Recall needs.
  std::vector<size_t> mine;
  for (size_t number = 0; number < parts.size(); ++number) {
    if (IsOf(ranks, number)) mine.push_back(number);
  }
  const int64_t inside = std::max<int64_t>(threads / std::max<int64_t>(std::ssize(mine), 1), 1);
  InParallel(std::ssize(mine), threads, [&](size_t nth) {
    UseOneThread();
    const size_t number = mine[nth];
    Part& part = parts[number];
    part.gradient.resize(parameters.size());
    std::vector<Which> list;
    const auto own = plays.subspan(number * together, std::min(together, plays.size() - number * together));
    for (const Play& play : own) {
      for (size_t i = 0; i < used(play); ++i) list.push_back({&play, i});
    }
    part.entropy.assign(own.size(), 0);
    for (size_t first = 0; first < list.size() && !(stop && stop()); first += at_once) {
      const std::span batch = std::span(list).subspan(first, std::min(at_once, list.size() - first));
      std::vector<Played> played;
      for (const auto& [play, episode] : batch) {
        played.push_back({.task = *cases[play->index].task, .episode = *play->episodes[episode]});
      }
      const std::vector<std::unique_ptr<Likelihood>> likelihoods = policy.Recall(played, inside);
      at::Tensor sum;
      for (size_t i = 0; i < batch.size(); ++i) {
        const auto& [play, episode] = batch[i];
        const at::Tensor one = loss(*play, episode, *likelihoods[i]);
        part.loss += one.item<double>();
        part.entropy[static_cast<size_t>(play - own.data())] +=
            likelihoods[i]->entropy.mean().item<double>() / static_cast<double>(used(*play));
        sum = sum.defined() ? sum + one : one;
      }
      const auto gradient = torch::autograd::grad({sum}, parameters, {}, false, false, true);
      for (size_t p = 0; p < gradient.size(); ++p) {
        if (!gradient[p].defined()) continue;
        part.gradient[p] = part.gradient[p].defined() ? part.gradient[p] + gradient[p] : gradient[p];
      }
    }
  });
  const auto pack = [&](Parcel& parcel, size_t number) { parts[number].Pack(parcel); };
  if (ShareOut(ranks, parts.size(), stop && stop(), pack)) return std::nullopt;
  Gradient whole;
  double squares = 0;
  for (size_t p = 0; p < parameters.size(); ++p) {
    at::Tensor sum = torch::zeros_like(parameters[p]);
    for (const Part& part : parts) {
      if (learns[p] && part.gradient[p].defined()) sum += part.gradient[p];
    }
    squares += sum.to(torch::kFloat64).square().sum().item<double>();
    whole.by_parameter.push_back(std::move(sum));
  }
  // A play whose case has no score yet has no part in it.
  const auto playing =
      static_cast<double>(std::ranges::count_if(plays, [&](const Play& play) { return used(play) > 0; }));
  for (const Part& part : parts) {
    whole.loss += part.loss;
    for (const double entropy : part.entropy) whole.entropy += entropy / std::max(playing, 1.0);
  }
  whole.norm = std::sqrt(squares);
  return whole;
}

void Follow(const Gradient& gradient, const Policy& policy, torch::optim::Adam& adam, double learning_rate,
            double clip_norm) {
  const std::vector<at::Tensor> parameters = policy.parameters();
  const bool clips = clip_norm > 0 && gradient.norm > clip_norm;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const at::Tensor& whole = gradient.by_parameter[p];
    parameters[p].mutable_grad() = clips ? whole * (clip_norm / gradient.norm) : whole;
  }
  for (auto& group : adam.param_groups()) {
    static_cast<torch::optim::AdamOptions&>(group.options()).lr(learning_rate);
  }
  adam.step();
}

}  // namespace berth
