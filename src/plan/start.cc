#include "plan/start.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "moves/rank.h"
#include "placement/search.h"

namespace berth {

namespace {

constexpr std::array<const char*, 4> kOrderNames = {"first_come", "rank", "search", "sequence"};

}  // namespace

StartOptions::StartOptions(const Params& params)
    : start(params.Text("start")),
      order(static_cast<SearchOrder>(std::ranges::find(kOrderNames, params.Text("order")) - kOrderNames.begin())) {}

PlannerFacts::Space StartOptions::space() const {
  switch (order) {
    case SearchOrder::kFirstCome:
      return PlannerFacts::Space::kPlacement;
    case SearchOrder::kSequence:
      return PlannerFacts::Space::kSequence;
    default:
      return PlannerFacts::Space::kPriorities;
  }
}

std::vector<Parameter> StartOptions::Parameters(SearchOrder last) {
  std::string sentence = "order of ops in its plans: first_come, none; rank, by the longest path to the end";
  if (last >= SearchOrder::kSearch) sentence += "; search, by priorities that begin there and are searched too";
  if (last >= SearchOrder::kSequence) {
    sentence += "; sequence, by an order of all ops that is searched too, in which a device waits for its next one";
  }
  return {{.name = "start",
           .type = ParameterType::kChoice,
           .default_value = "simple",
           .sentence = "first placement: simple, the best single device; random, a random one; fastest, each op on the "
                       "device that runs it fastest, even where another planner gives one to begin with",
           .choices = {"simple", "random", "fastest"}},
          {.name = "order",
           .type = ParameterType::kChoice,
           .default_value = "first_come",
           .sentence = std::move(sentence),
           .choices = {kOrderNames.begin(), kOrderNames.begin() + static_cast<ptrdiff_t>(last) + 1}}};
}

std::vector<double> PrioritiesOf(const Plan& plan) {
  if (!plan.sequence) return plan.priority;
  std::vector<double> priority(plan.device.size());
  double left = static_cast<double>(priority.size());
  for (const OpId op : plan.sequence->ops) priority[Index(op)] = left--;
  return priority;
}

Plan StartPlan(Search& search, const Units& units, const Plan* given, const StartOptions& options) {
  const Problem& problem = units.problem();
  Plan plan;
  if (options.order != SearchOrder::kFirstCome && search.evaluator().facts().uses_priorities)
    plan.priority = UpwardRank(problem);
  const auto evaluate = [&](std::vector<DeviceId> device, std::string_view cause) {
    plan.device = std::move(device);
    return search.Evaluate(plan.view(), cause);
  };
  if (options.start == "fastest") {
    plan.device.resize(problem.num_ops());
    for (size_t unit = 0; unit < units.size(); ++unit) units.Put(plan.device, unit, units.fastest(unit));
    evaluate(units.Legal(plan.device), "on its fastest device");
  } else if (given != nullptr) {
    evaluate(given->device, "first placement of the search");
    if (options.order == SearchOrder::kSequence && given->sequence && !search.Done()) {
      search.Evaluate(given->view(), "first placement of the search");
    } else if (options.searches_order() && !plan.priority.empty() && !search.Done()) {
      if (std::vector<double> given_priority = PrioritiesOf(*given); !given_priority.empty()) {
        plan.priority = std::move(given_priority);
        evaluate(given->device, "first placement of the search");
      }
    }
  } else if (options.start == "random") {
    const std::vector<double> even(problem.num_devices(), 1);
    evaluate(units.Draw(search.random(), even), "drawn at random");
  } else {
    const std::vector<DeviceId> class_of = InterchangeableDevices(search.evaluator());
    for (const DeviceId device : problem.cluster().ids()) {
      if (class_of[Index(device)] != device || search.Done()) continue;
      evaluate(units.AllOn(device), fmt::format("all on {}", problem.cluster().device(device).name));
    }
  }
  plan.device = search.best().device;
  plan.priority = search.best().priority;
  plan.sequence = search.best().sequence;
  return plan;
}

}  // namespace berth
