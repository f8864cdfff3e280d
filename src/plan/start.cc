#include "plan/start.h"

#include "base/error.h"
#include "placement/search.h"
#include "plan/rank.h"

namespace berth {

StartOptions::StartOptions(const Params& params)
    : start(params.Text("start")),
      by_rank(params.Text("order") != "first_come"),
      searches_order(params.Text("order") == "search") {}

std::vector<Parameter> StartOptions::Parameters(bool with_search) {
  std::string sentence = "order of ops in its plans: first_come, none; rank, by the longest path to the end";
  std::vector<std::string> orders = {"first_come", "rank"};
  if (with_search) {
    sentence += "; search, by priorities that begin there and are searched too";
    orders.emplace_back("search");
  }
  return {{.name = "start",
           .type = ParameterType::kChoice,
           .default_value = "simple",
           .sentence = "first placement: simple, the best single device; random, a random one",
           .choices = {"simple", "random"}},
          {.name = "order",
           .type = ParameterType::kChoice,
           .default_value = "first_come",
           .sentence = std::move(sentence),
           .choices = std::move(orders)}};
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
  if (options.by_rank && search.evaluator().facts().uses_priorities) plan.priority = UpwardRank(problem);
  const auto evaluate = [&](std::vector<DeviceId> device, std::string_view cause) {
    plan.device = std::move(device);
    return search.Evaluate(plan.view(), cause);
  };
  if (given != nullptr) {
    evaluate(given->device, "first placement of the search");
    if (options.searches_order && !plan.priority.empty() && !search.Done()) {
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
  return plan;
}

}  // namespace berth
