#include "import/instance.h"

#include <utility>

#include "base/error.h"

namespace berth {

OpTimes Instance::TimesOn(const Cluster& cluster_of_user) const {
  std::vector<const std::vector<double>*> columns;
  for (const DeviceId id : cluster_of_user.ids()) {
    const Device& device = cluster_of_user.device(id);
    const auto column = times_by_kind.find(device.kind);
    if (column == times_by_kind.end()) {
      std::vector<std::string> kinds;
      for (const auto& [kind, times_of_kind] : times_by_kind) kinds.push_back(kind);
      throw Error("{}: there are no costs for device {} of kind {}; the file has costs for {}: name another cluster",
                  graph->name(), device.name, device.kind, fmt::join(kinds, " and "));
    }
    columns.push_back(&column->second);
  }
  OpTimes result{.time = {}, .measured = {}, .source = "file"};
  result.time.reserve(graph->num_ops() * columns.size());
  for (const OpId op : graph->ops()) {
    for (const std::vector<double>* column : columns) result.time.push_back((*column)[Index(op)]);
  }
  return result;
}

Problem Instance::On(std::shared_ptr<const Cluster> cluster_of_user) const {
  OpTimes times_there = TimesOn(*cluster_of_user);
  return Problem(graph, std::move(cluster_of_user), std::move(times_there), options);
}

}  // namespace berth
