#include "report/model_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "report/notes.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr size_t kTypes = 25;

struct TypeTotals {
  int64_t ops = 0, bytes = 0;
  double flops = 0;
  bool bytes_only = false;
  OpClass op_class = OpClass::kOther;
};

std::string TypeTable(const Graph& graph) {
  std::map<std::string_view, TypeTotals> totals;
  double all_bytes = 0;
  for (const OpId op : graph.ops()) {
    const OpWork& work = graph.work(op);
    TypeTotals& type = totals[graph.op_type(op)];
    ++type.ops;
    type.flops += work.flops;
    type.bytes += work.bytes_read + work.bytes_written;
    type.bytes_only |= work.bytes_only;
    type.op_class = work.op_class;
    all_bytes += static_cast<double>(work.bytes_read + work.bytes_written);
  }
  std::vector<std::pair<std::string_view, TypeTotals>> sorted(totals.begin(), totals.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.flops, a.second.bytes) > std::pair(b.second.flops, b.second.bytes);
  });

  using enum Table::Align;
  Table table({{"op type"},
               {"ops", kRight},
               {"FLOPs", kRight},
               {"share", kRight, 1},
               {"bytes moved", kRight},
               {"share", kRight, 2},
               {"class", kLeft, 3},
               {""}});
  const auto share = [](double part, double all) { return Percent(all > 0 ? part / all : 0); };
  for (size_t i = 0; i < std::min(sorted.size(), kTypes); ++i) {
    const auto& [name, type] = sorted[i];
    table.Add({Shorten(name, 30), Count(type.ops), WithPrefix(type.flops, "FLOP"),
               share(type.flops, graph.total_flops()), ToString(Bytes{type.bytes}),
               share(static_cast<double>(type.bytes), all_bytes),
               std::string(kOpClassNames[static_cast<size_t>(type.op_class)]),
               type.bytes_only ? "costed by its bytes only" : ""});
  }
  std::string text = table.ToString();
  if (sorted.size() > kTypes)
    text +=
        fmt::format("  and {}: --json has all\n", Counted(static_cast<int64_t>(sorted.size() - kTypes), "more type"));
  return text;
}

// The longest path in ops, and the most ops that have the same distance from the start: how deep and how wide.
std::pair<int64_t, int64_t> DepthAndWidth(const Graph& graph) {
  std::vector<size_t> level(graph.num_ops());
  std::map<size_t, int64_t> ops_at;
  for (const OpId op : graph.ops()) {
    for (const TensorId tensor : graph.inputs_of(op)) {
      level[Index(op)] = std::max(level[Index(op)], level[Index(graph.producer(tensor))] + 1);
    }
    ++ops_at[level[Index(op)]];
  }
  int64_t width = 0;
  for (const auto& [at, ops] : ops_at) width = std::max(width, ops);
  return {static_cast<int64_t>(ops_at.size()), width};
}

// "input [1, 3, 224, 224] float32 (588 KiB)".
std::string DescribeInput(const Graph& graph, InputId input) {
  std::string text = Shorten(graph.input_name(input), 30);
  if (!graph.input_type(input).empty()) {
    text += fmt::format(" [{}] {}", fmt::join(graph.input_shape(input), ", "), Legible(graph.input_type(input)));
  }
  return fmt::format("{} ({})", text, ToString(Bytes{graph.input_bytes(input)}));
}

}  // namespace

std::string ModelPage(const Graph& graph) {
  const auto count = [](size_t number) { return Count(static_cast<int64_t>(number)); };
  const auto [depth, width] = DepthAndWidth(graph);
  int64_t widest_tensor = 0;
  for (const TensorId tensor : graph.tensors()) widest_tensor = std::max(widest_tensor, graph.tensor_bytes(tensor));
  const double ops = static_cast<double>(graph.num_ops());
  std::string text = fmt::format("{}\n\n", Legible(graph.name()));
  if (const auto unknown = FindDoubtful(graph, Certainty::kUnknown)) {
    text += Field("UNKNOWN",
                  fmt::format("the sizes of {}: guessed, from {} '{}' on", DescribeDoubtful(graph, *unknown),
                              Legible(graph.op_type(unknown->first)), Shorten(graph.op_name(unknown->first), 40)));
  }
  if (const auto estimated = FindDoubtful(graph, Certainty::kEstimated)) {
    text +=
        Field("estimated", fmt::format("the sizes of {}: the data of a run decide, from {} '{}' on",
                                       DescribeDoubtful(graph, *estimated), Legible(graph.op_type(estimated->first)),
                                       Shorten(graph.op_name(estimated->first), 40)));
  }
  text += Field("ops", fmt::format("{} (the longest path has {}, at most {} are equally far from the start)",
                                   count(graph.num_ops()), Count(depth), Count(width)));
  text += fmt::format("  edges        {} ({:.2f} per op)\n", count(graph.num_edges()),
                      ops > 0 ? static_cast<double>(graph.num_edges()) / ops : 0.0);
  text += fmt::format("  work         {}\n", WithPrefix(graph.total_flops(), "FLOP"));
  text += fmt::format("  weights      {} in {}\n", ToString(Bytes{graph.total_parameter_bytes()}),
                      Counted(static_cast<int64_t>(graph.num_parameters()), "parameter"));
  text += fmt::format("  tensors      {} in {}, the largest {}\n", ToString(Bytes{graph.total_tensor_bytes()}),
                      count(graph.num_tensors()), ToString(Bytes{widest_tensor}));
  std::vector<std::string> inputs;
  for (const InputId input : graph.inputs()) {
    if (inputs.size() == 6) {
      inputs.push_back(fmt::format("{} more", graph.num_inputs() - 6));
      break;
    }
    inputs.push_back(DescribeInput(graph, input));
  }
  if (!inputs.empty()) text += Field("inputs", JoinAnd(inputs));
  text += fmt::format("  fingerprint  {:016x}\n\n", graph.structural_fingerprint());
  text += TypeTable(graph);
  const auto without_formula = BytesOnlyTypes(graph);
  std::vector<std::string> notes;
  if (!without_formula.empty()) {
    std::vector<std::string> names;
    for (const auto& [type, number] : without_formula)
      names.push_back(fmt::format("{} {}", Count(static_cast<int64_t>(number)), Legible(type)));
    notes.push_back(fmt::format("No formula is known for {}: costed by their bytes only.", JoinAnd(names)));
  }
  for (const std::string& note : graph.notes()) notes.push_back(Legible(note));
  if (!notes.empty()) text += "\nNotes:\n";
  for (const std::string& note : notes) text += Item(note);
  return text;
}

std::vector<TypeTimes> TimesByType(const Problem& problem) {
  const Graph& graph = problem.graph();
  std::vector<TypeTimes> types(graph.op_types().size());
  for (const OpId op : graph.ops()) {
    TypeTimes& type = types[graph.op_type_index(op)];
    type.op_type = graph.op_type(op);
    ++type.ops;
    type.seconds.resize(problem.num_devices());
    for (const DeviceId device : problem.cluster().ids()) {
      type.seconds[Index(device)] += problem.can_run(op, device) ? problem.ToSeconds(problem.op_time(op, device)).value
                                                                 : std::numeric_limits<double>::infinity();
    }
  }
  const auto cost = [](const TypeTimes& type) {
    double sum = 0;
    for (const double seconds : type.seconds) sum += std::isfinite(seconds) ? seconds : 0;
    return sum;
  };
  std::erase_if(types, [](const TypeTimes& type) { return type.ops == 0; });
  std::ranges::stable_sort(types, std::ranges::greater(), cost);
  return types;
}

std::string TypeTimesPage(const Problem& problem) {
  using enum Table::Align;
  const Cluster& cluster = problem.cluster();
  std::vector<DeviceId> devices;
  std::vector<Table::Column> columns = {{"op type"}, {"ops", kRight}};
  for (const DeviceId device : cluster.ids()) {
    if (cluster.class_of(device) != device) continue;
    devices.push_back(device);
    columns.push_back({"on " + Shorten(cluster.device(device).name, 20), kRight, devices.size() > 2 ? 2 : 0});
    columns.push_back({"share", kRight, devices.size() > 2 ? 3 : 1});
  }
  Table table(std::move(columns));
  std::vector<double> total(problem.num_devices());
  const std::vector<TypeTimes> types = TimesByType(problem);
  for (const TypeTimes& type : types) {
    for (const DeviceId device : devices) total[Index(device)] += type.seconds[Index(device)];
  }
  const auto row = [&](std::string name, size_t ops, const std::vector<double>& seconds) {
    std::vector<std::string> cells = {std::move(name), Count(static_cast<int64_t>(ops))};
    for (const DeviceId device : devices) {
      const double time = seconds[Index(device)], all = total[Index(device)];
      cells.push_back(std::isfinite(time) ? ToString(Seconds{time}) : "cannot run");
      cells.push_back(std::isfinite(time) && std::isfinite(all) && all > 0 ? Percent(time / all) : "-");
    }
    table.Add(std::move(cells));
  };
  for (size_t i = 0; i < std::min(types.size(), kTypes); ++i) {
    row(Shorten(types[i].op_type, 30), types[i].ops, types[i].seconds);
  }
  row("all", problem.num_ops(), total);
  std::string text = Wrap(fmt::format("On {}, one op after another, nothing sent (costs {}):", Legible(cluster.name()),
                                      Legible(problem.cost_source())),
                          "") +
                     table.ToString();
  if (types.size() > kTypes) {
    text +=
        fmt::format("  and {}: --json has all\n", Counted(static_cast<int64_t>(types.size() - kTypes), "more type"));
  }
  return text;
}

}  // namespace berth
