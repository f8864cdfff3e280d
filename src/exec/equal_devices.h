// Devices whose profiles differ by no more than noise.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/openvino.h"

namespace berth {

// Devices that run the whole model by the same kernels and within 5 % equally fast, which is what another compilation
// may change: groups of one or more, the fastest first. Within 15 % where they have the same pace in the device file,
// so that `detect` found them equal: what they seem apart is then also the speed of the machine. Those that failed are
// in none. Deterministic.
std::vector<std::vector<size_t>> EqualDevices(std::span<const OpMeasurement> devices);

// Gives the devices of each such group the same op times: the mean of theirs, op by op. A few percent by which two
// equal devices seem apart would decide the order of plans that differ by less. Deterministic.
void ShareMeans(std::span<OpMeasurement> devices);

}  // namespace berth
