#include "report/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cluster/device_numbers.h"
#include "report/table.h"

namespace berth {

ProvenanceCount CountProvenance(const Cluster& cluster) {
  ProvenanceCount count;
  const auto add = [&](const Quantity& quantity) {
    ++(quantity.provenance == Provenance::kMeasured ? count.measured
       : quantity.provenance == Provenance::kVendor ? count.vendor
                                                    : count.guess);
  };
  for (const DeviceId id : cluster.ids()) {
    ForEachNumber(cluster.device(id), [&](std::string_view key, std::string_view, const Quantity& number) {
      // What a device file leaves out is no number of it; a memory that is left out is not visited.
      if (number.value > 0 || number.provenance != Provenance::kGuess || key == "memory") add(number);
    });
    for (const DeviceId to : cluster.ids()) {
      if (to == id) continue;
      add(cluster.link(id, to).latency);
      add(cluster.link(id, to).bandwidth);
    }
  }
  return count;
}

std::vector<std::pair<std::string, size_t>> BytesOnlyTypes(const Graph& graph) {
  std::map<std::string, size_t> counts;
  for (const OpId op : graph.ops()) {
    if (graph.work(op).bytes_only) ++counts[std::string(graph.op_type(op))];
  }
  std::vector<std::pair<std::string, size_t>> types(counts.begin(), counts.end());
  std::stable_sort(types.begin(), types.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return types;
}

std::string DescribeDoubtful(const Graph& graph, const DoubtfulSizes& doubtful) {
  return fmt::format("{} of {} ({}) with {} of the work", Count(static_cast<int64_t>(doubtful.ops)),
                     Counted(static_cast<int64_t>(graph.num_ops()), "op"), Percent(doubtful.share_of_ops),
                     Percent(doubtful.share_of_work));
}

std::vector<std::string> HonestyNotes(const Evaluator& evaluator) {
  std::vector<std::string> notes;
  const Problem& problem = evaluator.problem();
  const Cluster& cluster = problem.cluster();
  const ProvenanceCount count = CountProvenance(cluster);
  if (count.guess > 0) {
    notes.push_back(fmt::format("The description of {} has {}: {} guessed, {} from vendors, {} measured.",
                                Legible(cluster.name()), Counted(static_cast<int64_t>(count.all()), "number"),
                                count.guess, count.vendor, count.measured));
  }
  int64_t measured = 0, all = 0;
  for (const OpId op : problem.graph().ops()) {
    for (const DeviceId device : cluster.ids()) {
      all += problem.can_run(op, device) ? 1 : 0;
      measured += problem.measured(op, device) ? 1 : 0;
    }
  }
  notes.push_back(measured == 0     ? fmt::format("All op times are predicted ({}).", problem.cost_source())
                  : measured == all ? fmt::format("All op times were measured ({}).", problem.cost_source())
                                    : fmt::format("Measured: {} of {} op times; the others are predicted ({}).",
                                                  Count(measured), Count(all), problem.cost_source()));
  for (const std::string& note : problem.cost_notes()) notes.push_back(Legible(note));
  if (!problem.kernels().empty() || problem.split_kernels() > 0) {
    int64_t fused = 0;
    for (const Kernel& kernel : problem.kernels()) fused += static_cast<int64_t>(kernel.ops.size());
    const auto kernels = static_cast<int64_t>(problem.kernels().size());
    std::string note =
        fmt::format("{} are {}, because a runtime fuses them: each kernel has one time and stays on one device.",
                    Counted(fused, "op"), Counted(kernels, "kernel"));
    if (problem.split_kernels() > 0) {
      note += fmt::format(" The constraints part {} more, whose ops are timed apart.",
                          Count(static_cast<int64_t>(problem.split_kernels())));
    }
    notes.push_back(std::move(note));
  }
  const auto cuts_cost = [&](DeviceId id) {
    const Device& device = cluster.device(id);
    return device.part_overhead.provenance == Provenance::kMeasured || device.part_overhead.value > 0 ||
           !device.cut_read.empty() || !device.cut_write.empty();
  };
  if (evaluator.facts().Is<PartsFacts>() && std::ranges::none_of(cluster.ids(), cuts_cost)) {
    notes.push_back(
        fmt::format("{} says nothing of what a part costs, so that cuts cost no more than their transfers: `berth "
                    "calibrate` measures it.",
                    Legible(cluster.name())));
  }
  const auto types = BytesOnlyTypes(problem.graph());
  if (!types.empty()) {
    std::vector<std::string> parts;
    for (const auto& [type, ops] : types) {
      if (parts.size() == 4) break;
      parts.push_back(fmt::format("{} {}", Count(static_cast<int64_t>(ops)), Legible(type)));
    }
    if (types.size() > parts.size())
      parts.push_back(Counted(static_cast<int64_t>(types.size() - parts.size()), "more type"));
    notes.push_back(
        fmt::format("No FLOP formula is known for {}: predicted from the bytes that they move.", JoinAnd(parts)));
  }
  constexpr size_t kImporterNotes = 3;
  const auto& from_importer = problem.graph().notes();
  for (size_t i = 0; i < std::min(from_importer.size(), kImporterNotes); ++i)
    notes.push_back(Legible(from_importer[i]));
  if (from_importer.size() > kImporterNotes) {
    notes.push_back(fmt::format("{} on the model: see `berth inspect`.",
                                Counted(static_cast<int64_t>(from_importer.size() - kImporterNotes), "more note")));
  }
  return notes;
}

}  // namespace berth
