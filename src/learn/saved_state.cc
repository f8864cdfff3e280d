// The file that a state is saved in.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json_object.h"
#include "base/system_limits.h"
#include "learn/checkpoint.h"
#include "learn/learner_state.h"

namespace berth {
namespace {

constexpr int64_t kCheckpointVersion = 8;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostCounted = 1'000'000'000'000'000;  // sums of which no number overflows

// What else of a result is counted; checkpoints of older versions lack these.
template <typename Result>
auto Counts(Result& found) {
  return std::array{std::pair("failures", &found.failures), std::pair("set_up", &found.set_up),
                    std::pair("best_after", &found.best_after)};
}

nlohmann::json FoundJson(const PlanResult& found) {
  nlohmann::json json = {{"evaluations", found.evaluations},
                         {"runs", found.score.runs},
                         {"spread", std::isfinite(found.score.spread) ? found.score.spread : 0},
                         {"device", nlohmann::json::array()}};
  for (const DeviceId device : found.plan.device) json["device"].push_back(Index(device));
  if (!found.plan.priority.empty()) json["priority"] = found.plan.priority;
  const Score& score = found.score;
  json["score"] = {score.time, score.fits(), score.excess_bytes};
  if (score.outcome == Outcome::kImpossible) json["impossible"] = true;  // it may lack memory as well
  for (const auto& [key, count] : Counts(found)) json[key] = *count;
  json["failure"] = found.failure;
  if (score.objective) json["score"].push_back(*score.objective);
  return json;
}

// What FoundJson wrote of a case; `place` says where it stands.
PlanResult FoundOf(const nlohmann::json& json, const Problem& problem, const std::string& path,
                   const std::string& place) {
  JsonObject object(json, path, place);
  PlanResult found{.evaluations = object.Int("evaluations", 0, kMostCounted)};
  for (const auto& device : object.List("device")) {
    if (!device.is_number_unsigned() || device.get<uint64_t>() >= problem.num_devices()) {
      throw object.Mistake("device", fmt::format("{} is none of the {} devices", device.dump(), problem.num_devices()));
    }
    found.plan.device.push_back(MakeId<DeviceId>(device.get<size_t>()));
  }
  if (object.Has("priority")) {
    for (const auto& priority : object.List("priority")) {
      if (!priority.is_number()) throw object.Mistake("priority", "expected numbers");
      found.plan.priority.push_back(priority.get<double>());
    }
    if (found.plan.priority.size() != problem.num_ops()) {
      throw object.Mistake("priority", fmt::format("expected one for each of {} ops", problem.num_ops()));
    }
  }
  const nlohmann::json& score = object.List("score");
  const auto is_number = [](const nlohmann::json& value) { return value.is_number() || value.is_null(); };
  if (score.size() < 3 || score.size() > 4 || !is_number(score[0]) || !score[1].is_boolean() ||
      !score[2].is_number_integer() || (score.size() == 4 && !is_number(score[3]))) {
    throw object.Mistake("score", "expected the time, whether it fits, the bytes that it lacks, and an objective");
  }
  // JSON knows no infinity.
  const auto number = [](const nlohmann::json& value) { return value.is_null() ? kCannotRun : value.get<double>(); };
  const auto excess = score[2].get<int64_t>();
  found.score = {.time = number(score[0]),
                 .outcome = score[1].get<bool>()                      ? Outcome::kFits
                            : excess > 0 && !object.Has("impossible") ? Outcome::kTooBig
                                                                      : Outcome::kImpossible,
                 .excess_bytes = excess};
  if (object.Has("impossible")) object.Bool("impossible");
  for (const auto& [key, count] : Counts(found)) {
    if (object.Has(key)) *count = object.Int(key, 0, kMostCounted);
  }
  if (object.Has("failure")) found.failure = object.Text("failure");
  if (score.size() > 3) found.score.objective = number(score[3]);
  // A score that is the mean of several is not asked for once more where it is adopted.
  found.score.runs = static_cast<int32_t>(object.Int("runs", 0, std::numeric_limits<int32_t>::max()));
  found.score.spread = object.Number("spread");
  object.Finish();
  if (found.plan.device.empty()) return found;
  if (const auto violation = FindViolation(problem, found.plan.view())) throw object.Mistake("device", *violation);
  return found;
}

// What only one of two lists with commas has.
std::pair<std::string, std::string> Differing(const std::string& a, const std::string& b) {
  const std::vector<std::string> of_a = SplitList(a), of_b = SplitList(b);
  const auto only = [](const std::vector<std::string>& these, const std::vector<std::string>& those) {
    std::vector<std::string> list;
    std::ranges::copy_if(these, std::back_inserter(list),
                         [&](const std::string& each) { return std::ranges::count(those, each) == 0; });
    return list.empty() ? "none" : fmt::format("{}", fmt::join(list, ", "));
  };
  return {only(of_a, of_b), only(of_b, of_a)};
}

}  // namespace

void SaveState(const std::string& path, const LearnerState& state, const CheckpointOrigin& origin,
               const std::vector<const Search*>& searches) {
  nlohmann::json meta = {{"berth_checkpoint", kCheckpointVersion},
                         {"method", origin.method},
                         {"shape", state.policy->shape()},
                         {"updates", state.updates},
                         {"planned_updates", origin.planned_updates},
                         {"evaluations", state.evaluations},
                         {"failures", state.failures},
                         {"cases", searches.size()},
                         {"rule", state.rule.Save()}};
  for (const double reference : state.reference) {
    meta["reference"].push_back(std::isnan(reference) ? nlohmann::json() : nlohmann::json(reference));
  }
  for (const Search* search : searches) meta["found"].push_back(FoundJson(search->Found()));
  meta["next_evaluation"] = state.next_evaluation;
  for (const Memory& memory : state.memories) meta["memory"].push_back(memory.Save());
  Checkpoint checkpoint{.meta = std::move(meta)};
  const auto add = [&](std::string name, const at::Tensor& tensor) {
    checkpoint.tensors.emplace_back(std::move(name), tensor);
  };
  for (const auto& parameter : state.policy->named_parameters()) add("policy." + parameter.key(), parameter.value());
  for (const auto& parameter : state.policy->named_parameters()) {
    const auto found = state.adam->state().find(parameter.value().unsafeGetTensorImpl());
    if (found == state.adam->state().end()) continue;  // before the first step
    const auto& moments = static_cast<const torch::optim::AdamParamState&>(*found->second);
    checkpoint.meta["adam_step"] = moments.step();
    add("adam.first." + parameter.key(), moments.exp_avg());
    add("adam.second." + parameter.key(), moments.exp_avg_sq());
  }
  for (size_t i = 0; i < state.critics.size(); ++i) {
    const std::vector<at::Tensor> parts = state.critics[i]->State();
    for (size_t k = 0; k < parts.size(); ++k) add(fmt::format("critic.{}.{}", i, k), parts[k]);
  }
  for (size_t i = 0; i < state.memories.size(); ++i) {
    for (const at::Tensor& part : state.memories[i].State()) add(fmt::format("memory.{}", i), part);
  }
  WriteFile(path, checkpoint.ToBytes());
}

namespace {

// A checkpoint that this program can read, of a policy of this shape.
Checkpoint ParseCheckpoint(const std::string& bytes, const std::string& path, const Policy& policy) {
  Checkpoint checkpoint = Checkpoint::Parse(bytes, path);
  JsonObject meta(checkpoint.meta, path);
  if (const int64_t version = meta.Int("berth_checkpoint", 0, kMost); version != kCheckpointVersion) {
    throw Error("{}: a checkpoint of version {}; this program reads version {}: train it anew", path, version,
                kCheckpointVersion);
  }
  if (const std::string shape = meta.Text("shape"); shape != policy.shape()) {
    const auto [theirs, ours] = Differing(shape, policy.shape());
    throw Error(
        "{}: the checkpoint is of another policy: it has '{}', this one '{}'; give the planner, the "
        "parameters and the machines of its training (the policy of `tabular` also needs a graph of its training)",
        path, theirs, ours);
  }
  return checkpoint;
}

}  // namespace

std::string ReadCheckpoint(const std::string& path) {
  // It is in memory twice: as it was read, and as tensors.
  const std::optional<Bytes> left = MemoryLeft();
  const int64_t most = std::max(int64_t{4} << 30, left ? left->value / 2 : 0);
  return ReadFile(path, {.what = "checkpoint", .most_bytes = most});
}

void LoadPolicy(const std::string& bytes, const std::string& path, Policy& policy) {
  ParseCheckpoint(bytes, path, policy).CopyTo("policy.", policy.parameters(), path);
}

void LoadState(const std::string& bytes, const std::string& path, LearnerState& state, const CheckpointOrigin& origin,
               const std::vector<Search*>& searches) {
  const Checkpoint checkpoint = ParseCheckpoint(bytes, path, *state.policy);
  JsonObject meta(checkpoint.meta, path);
  const std::string method = meta.Text("method");
  const int64_t cases = meta.Int("cases", 0, kMost), planned = meta.Int("planned_updates", 0, kMost);
  if (method != origin.method || cases != std::ssize(searches) || planned != origin.planned_updates) {
    throw Error("{}: the checkpoint is of {} on {} graphs over {} updates, not of {} on {} over {}: resume with these",
                path, method, cases, planned, origin.method, searches.size(), origin.planned_updates);
  }
  checkpoint.CopyTo("policy.", state.policy->parameters(), path);
  state.adam->state().clear();
  if (meta.Has("adam_step")) {
    const int64_t step = meta.Int("adam_step", 0, kMost);
    std::vector<at::Tensor> first, second;
    for (const at::Tensor& parameter : state.policy->parameters()) {
      first.push_back(torch::zeros_like(parameter));
      second.push_back(torch::zeros_like(parameter));
      auto moments = std::make_unique<torch::optim::AdamParamState>();
      moments->step(step).exp_avg(first.back()).exp_avg_sq(second.back());
      state.adam->state()[parameter.unsafeGetTensorImpl()] = std::move(moments);
    }
    checkpoint.CopyTo("adam.first.", first, path);
    checkpoint.CopyTo("adam.second.", second, path);
  }
  state.updates = meta.Int("updates", 0, kMostCounted);
  state.evaluations = meta.Int("evaluations", 0, kMostCounted);
  state.failures = meta.Int("failures", 0, kMostCounted);
  state.rule.Load(meta.Text("rule"), path);
  std::vector<at::Tensor> critics;
  for (const auto& critic : state.critics) std::ranges::copy(critic->State(), std::back_inserter(critics));
  checkpoint.CopyTo("critic.", critics, path);
  std::vector<at::Tensor> models;
  for (const Memory& memory : state.memories) std::ranges::copy(memory.State(), std::back_inserter(models));
  checkpoint.CopyTo("memory.", models, path);
  const auto one_each = [&](const char* key) -> const nlohmann::json& {
    const nlohmann::json& list = meta.List(key);
    if (list.size() != searches.size()) throw meta.Mistake(key, fmt::format("expected {} entries", searches.size()));
    return list;
  };
  if (!state.memories.empty()) {
    const nlohmann::json& memory = one_each("memory");
    for (size_t i = 0; i < searches.size(); ++i) {
      state.memories[i].Load(memory[i], path, searches[i]->problem().num_devices());
    }
  }
  const nlohmann::json &found = one_each("found"), &reference = one_each("reference"),
                       &next = one_each("next_evaluation");
  for (size_t i = 0; i < searches.size(); ++i) {
    searches[i]->Adopt(FoundOf(found[i], searches[i]->problem(), path, fmt::format("found[{}]", i)));
    if (!next[i].is_number_unsigned() || next[i].get<uint64_t>() > uint64_t{kMost} / 2)
      throw meta.Mistake("next_evaluation", "expected numbers");
    state.next_evaluation[i] = next[i].get<int64_t>();
    searches[i]->Lend(std::max<int64_t>(state.next_evaluation[i] - searches[i]->next_number(), 0));
    if (!reference[i].is_number() && !reference[i].is_null()) throw meta.Mistake("reference", "expected numbers");
    state.reference[i] = reference[i].is_null() ? std::numeric_limits<double>::quiet_NaN() : reference[i].get<double>();
  }
}

}  // namespace berth
