#include "placement/timeline.h"

namespace berth {

int64_t TransferBytes(const Graph& graph, const TransferRun& transfer) {
  return transfer.is_input ? graph.input_bytes(MakeId<InputId>(Index(transfer.tensor)))
                           : graph.tensor_bytes(transfer.tensor);
}

std::string_view TransferName(const Graph& graph, const TransferRun& transfer) {
  return transfer.is_input ? graph.input_name(MakeId<InputId>(Index(transfer.tensor)))
                           : graph.tensor_name(transfer.tensor);
}

}  // namespace berth
