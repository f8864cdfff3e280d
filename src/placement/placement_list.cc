#include "placement/placement_list.h"

#include <algorithm>

#include "base/error.h"

namespace berth {

std::vector<DeviceId> ParsePlacementList(std::string_view text, const std::string& path, const Problem& problem) {
  constexpr std::string_view kSeparators = " \t\r\n,;[]()\"'";
  const Graph& graph = problem.graph();
  std::vector<DeviceId> placement(graph.num_ops());
  size_t count = 0;
  for (size_t at = text.find_first_not_of(kSeparators); at != std::string_view::npos; ++count) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = text.find_first_not_of(kSeparators, end);
    if (count >= graph.num_ops()) continue;
    const OpId op = graph.op_at_file_position(count);
    try {
      placement[Index(op)] = problem.cluster().Find(word);
    } catch (const Error& error) {
      throw Error("{}: entry {} (op {}): {}", path, count + 1, graph.op_name(op), error.what());
    }
  }
  if (count != graph.num_ops()) {
    throw Error("{}: it has {}, the model has {}; write one device per op, in the order of the model's file", path,
                Counted(static_cast<int64_t>(count), "device"), Counted(static_cast<int64_t>(graph.num_ops()), "op"));
  }
  return placement;
}

}  // namespace berth
