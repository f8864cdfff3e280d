// Devices whose profiles differ by no more than noise.
#pragma once

#include <span>

#include "exec/openvino.h"

namespace berth {

// Devices that run the whole model by the same kernels and within 5 % equally fast, which is what another compilation
// may change, get the same op times: the mean of theirs, op by op. A few percent by which two equal devices seem apart
// would decide the order of plans that differ by less. Those that failed, or are further apart, stay as they are.
// Deterministic.
void ShareMeans(std::span<OpMeasurement> devices);

}  // namespace berth
