#include "graph/doubtful_sizes.h"

namespace berth {

std::optional<DoubtfulSizes> FindDoubtful(const Graph& graph, Certainty certainty) {
  const auto moved = [](const OpWork& work) { return static_cast<double>(work.bytes_read + work.bytes_written); };
  DoubtfulSizes found;
  double flops = 0, all_flops = 0, bytes = 0, all_bytes = 0;
  for (const OpId op : graph.ops()) {
    const OpWork& work = graph.work(op);
    all_flops += work.flops;
    all_bytes += moved(work);
    if (work.sizes != certainty) continue;
    if (found.ops++ == 0) found.first = op;
    flops += work.flops;
    bytes += moved(work);
  }
  if (found.ops == 0) return std::nullopt;
  found.share_of_ops = static_cast<double>(found.ops) / static_cast<double>(graph.num_ops());
  found.share_of_work = all_flops > 0 ? flops / all_flops : all_bytes > 0 ? bytes / all_bytes : 1;
  return found;
}

}  // namespace berth
