#include "import/body_work.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "placement/fusion_view.h"

namespace berth {

void AddBytes(int64_t& total, int64_t bytes, std::string_view where) {
  if (__builtin_add_overflow(total, bytes, &total))
    throw Error("{}: its tensors are more than 2^63 bytes; check the sizes of the inputs", where);
}

OpWork WorkInTurn(std::span<const OpWork> ops, std::string_view where) {
  OpWork total;
  double most = -1;
  int64_t steps = 0;
  for (const OpWork& work : ops) {
    total.flops += work.flops;
    if (work.bytes_written > kBytesOfOneNumber) steps = std::min(steps + work.steps, kMostSteps);
    AddBytes(total.bytes_read, work.bytes_read, where);
    AddBytes(total.bytes_written, work.bytes_written, where);
    total.sizes = std::max(total.sizes, work.sizes);
    if (work.flops <= most) continue;
    most = work.flops;
    total.op_class = work.op_class;
    total.data_type = work.data_type;
  }
  total.steps = std::max<int64_t>(steps, 1);
  return total;
}

OpWork Repeated(OpWork work, int64_t rounds, std::string_view where) {
  work.flops *= static_cast<double>(rounds);
  for (int64_t* bytes : {&work.bytes_read, &work.bytes_written}) {
    if (__builtin_mul_overflow(*bytes, rounds, bytes))
      throw Error("{} moves more than 2^63 bytes in {} rounds", where, rounds);
  }
  if (__builtin_mul_overflow(work.steps, rounds, &work.steps)) work.steps = kMostSteps;
  work.steps = std::clamp<int64_t>(work.steps, 1, kMostSteps);
  return work;
}

OpWork LargerBranch(const OpWork& first, const OpWork& second) {
  const auto effort = [](const OpWork& work) {
    return std::pair(work.flops, static_cast<double>(work.bytes_read) + static_cast<double>(work.bytes_written));
  };
  OpWork work = effort(second) > effort(first) ? second : first;
  work.sizes = std::max(first.sizes, second.sizes);
  if (effort(first) != effort(second)) work.sizes = std::max(work.sizes, Certainty::kEstimated);
  return work;
}

}  // namespace berth
