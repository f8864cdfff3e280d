#include "placement/partial_schedule.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/error.h"

namespace berth {
namespace {

constexpr size_t kBlock = 128;  // gaps per block, at most

// The shortest op of a device, or the shortest transfer of a port, as far as that is cheap to know.
std::vector<Calendar> DeviceCalendars(const Problem& problem) {
  std::vector<double> shortest(problem.num_devices(), kNever);
  for (const OpId op : problem.graph().ops()) {
    const std::span<const double> times = problem.op_times(op);
    for (size_t d = 0; d < times.size(); ++d) shortest[d] = std::min(shortest[d], times[d]);
  }
  return {shortest.begin(), shortest.end()};
}

std::vector<Calendar> PortCalendars(const Problem& problem, bool incoming) {
  // A given time may be any, a constant's is none.
  const bool by_latency = !problem.has_explicit_transfers() && !problem.graph().has_constants();
  std::vector<Calendar> ports;
  for (const DeviceId device : problem.cluster().ids()) {
    double shortest = kNever;
    for (const DeviceId other : problem.cluster().ids()) {
      if (other == device) continue;
      const auto [from, to] = incoming ? std::pair(other, device) : std::pair(device, other);
      shortest = std::min(shortest, problem.latency()[Index(from) * problem.num_devices() + Index(to)]);
    }
    ports.emplace_back(by_latency ? shortest : 0);
  }
  return ports;
}

}  // namespace

Calendar::Calendar(double shortest) : shortest_(shortest) {
  blocks_.push_back({.gaps = {{0, kNever}}});
  block_end_.push_back(kNever);
  block_longest_.push_back(kNever);
}

double Calendar::FirstGap(double from, double length) const {
  // A gap's length is rounded: whoever differs by that little is looked at.
  const double enough = length * (1 - 0x1p-50);
  size_t block = static_cast<size_t>(std::ranges::lower_bound(block_end_, from) - block_end_.begin());
  for (; block < blocks_.size(); ++block) {
    if (block_longest_[block] < enough) continue;
    const std::vector<Gap>& gaps = blocks_[block].gaps;
    for (auto gap = std::ranges::lower_bound(gaps, from, {}, &Gap::end); gap != gaps.end(); ++gap) {
      const double start = std::max(from, gap->start);
      if (start + length <= gap->end) return start;
    }
  }
  BERTH_CHECK(false, "the last gap has no end");
  return kNever;
}

void Calendar::Book(double start, double end) {
  end_ = std::max(end_, end);
  const size_t block = static_cast<size_t>(std::ranges::lower_bound(block_end_, end) - block_end_.begin());
  // The only gap that can hold it is the first that ends at or after `end`.
  const std::vector<Gap>& gaps = blocks_[block].gaps;
  const size_t index = static_cast<size_t>(std::ranges::lower_bound(gaps, end, {}, &Gap::end) - gaps.begin());
  const Gap gap = gaps[index];
  BERTH_CHECK(gap.start <= start, "booked twice");
  std::array<Gap, 2> pieces;
  size_t count = 0;
  // What takes no time divides a gap: nobody may run across it. Otherwise what is left is of use to what fits by
  // FirstGap's own sum; a difference is rounded otherwise, and would forget a place that has been promised.
  const auto is_left = [&](double from, double to) { return end > start ? from + shortest_ <= to : from < to; };
  if (is_left(gap.start, start)) pieces[count++] = {gap.start, start};
  if (is_left(end, gap.end)) pieces[count++] = {end, gap.end};
  if (count > 0 || end > start) Replace(block, index, std::span(pieces).first(count));
}

void Calendar::Replace(size_t block, size_t gap, std::span<const Gap> pieces) {
  std::vector<Gap>& gaps = blocks_[block].gaps;
  const auto at = gaps.erase(gaps.begin() + static_cast<ptrdiff_t>(gap));
  gaps.insert(at, pieces.begin(), pieces.end());
  const auto offset = static_cast<ptrdiff_t>(block);
  if (gaps.empty()) {
    blocks_.erase(blocks_.begin() + offset);
    block_end_.erase(block_end_.begin() + offset);
    block_longest_.erase(block_longest_.begin() + offset);
    return;
  }
  if (gaps.size() > kBlock) {
    Block upper{.gaps = {gaps.begin() + kBlock / 2, gaps.end()}};
    gaps.resize(kBlock / 2);
    blocks_.insert(blocks_.begin() + offset + 1, std::move(upper));
    block_end_.insert(block_end_.begin() + offset + 1, 0);
    block_longest_.insert(block_longest_.begin() + offset + 1, 0);
    Summarise(block + 1);
  }
  Summarise(block);
}

void Calendar::Summarise(size_t block) {
  double longest = 0;
  for (const Gap& gap : blocks_[block].gaps) longest = std::max(longest, gap.end - gap.start);
  block_longest_[block] = longest;
  block_end_[block] = blocks_[block].gaps.back().end;
}

size_t Calendar::num_gaps() const {
  size_t count = 0;
  for (const Block& block : blocks_) count += block.gaps.size();
  return count;
}

PartialSchedule::PartialSchedule(const Problem& problem, Contention contention, bool insertion,
                                 std::optional<DeviceId> io_host)
    : problem_(problem),
      contention_(contention == Contention::kLinks ? Contention::kPorts : contention),
      insertion_(insertion),
      device_(problem.num_ops(), -1),
      start_(problem.num_ops(), 0),
      end_(problem.num_ops(), 0),
      arrival_(problem.graph().num_tensors() * problem.num_devices(), kNever),
      input_arrival_(io_host ? problem.graph().num_inputs() * problem.num_devices() : 0, kNever),
      io_host_(io_host),
      devices_(DeviceCalendars(problem)),
      egress_(PortCalendars(problem, false)),
      ingress_(PortCalendars(problem, true)),
      resident_bytes_(problem.num_devices(), 0),
      parameter_there_(problem.graph().num_parameters() * problem.num_devices(), 0) {
  if (!io_host) return;
  for (const InputId input : problem.graph().inputs()) {
    arrival(true, static_cast<int32_t>(input), *io_host) = 0;
    resident_bytes_[Index(*io_host)] += problem.graph().input_bytes(input);
  }
}

// The first instant from `request` on at which both ports are free for `length`, the transfers that the op at hand has
// been promised already counted in.
PartialSchedule::Instants PartialSchedule::FirstStart(DeviceId from, DeviceId to, double request, double length) const {
  const Calendar& out = egress_[Index(from)];
  const Calendar& in = ingress_[Index(to)];
  const bool both = contention_ == Contention::kPorts;
  double start = request;
  std::optional<double> alone;
  for (;;) {
    start = out.FirstGap(start, length);
    if (both) {
      const double later = in.FirstGap(start, length);
      if (later > start) {
        start = later;
        continue;
      }
    }
    const auto clash = std::ranges::find_if(wanted_, [&](const Transfer& other) {
      return (both || other.from == from) && start < other.end && other.start < start + length;
    });
    if (!alone) alone = start;
    if (clash == wanted_.end()) return {start, *alone};
    start = clash->end;
  }
}

double PartialSchedule::Arrival(TensorId tensor, DeviceId to) {
  const OpId producer = problem_.graph().producer(tensor);
  const DeviceId from = device(producer);
  const double request = end_[Index(producer)];
  if (from == to) return request;
  const auto id = static_cast<int32_t>(tensor);
  const double known = arrival(false, id, to);
  return known < kNever ? known : Send(false, id, from, to, request, problem_.transfer_time(tensor, from, to));
}

double PartialSchedule::InputArrival(InputId input, DeviceId to) {
  const auto id = static_cast<int32_t>(input);
  const double known = arrival(true, id, to);
  if (known < kNever) return known;
  return Send(true, id, *io_host_, to, 0, problem_.transfer_time(problem_.graph().input_bytes(input), *io_host_, to));
}

// Promised to the op at hand; its end.
double PartialSchedule::Send(bool is_input, int32_t id, DeviceId from, DeviceId to, double request, double length) {
  const auto [start, alone] =
      contention_ == Contention::kNone ? Instants{request, request} : FirstStart(from, to, request, length);
  wanted_.push_back({is_input, id, from, to, start, start + length, alone, length});
  return start + length;
}

// `there`: when all is there that is sent already; `ready`: when all is, as things stand. Each other transfer could at
// best be alone; and the port of the device, where it has one, takes one after another from the first of them on. Both
// only grow, since ports only become busier.
double PartialSchedule::LeastArrival(double there, double ready) const {
  if (contention_ == Contention::kNone || wanted_.size() < 2) return ready;
  double least = there, first = kNever;
  for (const Transfer& transfer : wanted_) {
    least = std::max(least, transfer.alone + transfer.length);
    first = std::min(first, transfer.alone);
  }
  if (contention_ == Contention::kPorts) {
    for (const Transfer& transfer : wanted_) first += transfer.length;
    least = std::max(least, first);
  }
  return std::min(least, ready);
}

PartialSchedule::Slot PartialSchedule::Find(OpId op, DeviceId device) {
  wanted_.clear();
  const double length = problem_.op_time(op, device);
  if (length == kCannotRun) return {kCannotRun, kCannotRun, kCannotRun};
  double there = 0, ready = 0;
  const auto wait = [&](const auto& arrival) {
    const size_t sent = wanted_.size();
    const double at = arrival();
    ready = std::max(ready, at);
    if (wanted_.size() == sent) there = std::max(there, at);
  };
  if (io_host_) {
    for (const InputId input : problem_.graph().graph_inputs_of(op)) wait([&] { return InputArrival(input, device); });
  }
  const std::span<const TensorId> inputs = problem_.graph().inputs_of(op);
  if (contention_ == Contention::kNone || inputs.size() < 2) {
    for (const TensorId tensor : inputs) wait([&] { return Arrival(tensor, device); });
  } else {
    // Ports serve requests in the order in which they are made.
    by_request_.assign(inputs.begin(), inputs.end());
    std::ranges::stable_sort(by_request_, {}, [&](TensorId t) { return end_[Index(problem_.graph().producer(t))]; });
    for (const TensorId tensor : by_request_) wait([&] { return Arrival(tensor, device); });
  }
  const Calendar& calendar = devices_[Index(device)];
  const double start = insertion_ ? calendar.FirstGap(ready, length) : std::max(ready, calendar.end());
  return {start, start + length, LeastArrival(there, ready)};
}

PartialSchedule::Slot PartialSchedule::Place(OpId op, DeviceId device) {
  BERTH_CHECK(!placed(op), "op {} is placed twice", Index(op));
  const Graph& graph = problem_.graph();
  resident_bytes_[Index(device)] += added_bytes(op, device);
  for (const ParameterId parameter : graph.parameters_of(op)) {
    parameter_there_[Index(parameter) * problem_.num_devices() + Index(device)] = 1;
  }
  const Slot slot = Find(op, device);
  BERTH_CHECK(slot.start < kCannotRun, "op {} cannot run on device {}", Index(op), Index(device));
  for (const Transfer& transfer : wanted_) {
    arrival(transfer.is_input, transfer.id, device) = transfer.end;
    if (contention_ != Contention::kNone) egress_[Index(transfer.from)].Book(transfer.start, transfer.end);
    if (contention_ == Contention::kPorts) ingress_[Index(device)].Book(transfer.start, transfer.end);
    if (!transfer.is_input) transfers_.push_back(transfer);
  }
  devices_[Index(device)].Book(slot.start, slot.end);
  device_[Index(op)] = static_cast<int32_t>(device);
  start_[Index(op)] = slot.start;
  end_[Index(op)] = slot.end;
  makespan_ = std::max(makespan_, slot.end);
  placed_.push_back(op);
  return slot;
}

int64_t PartialSchedule::added_bytes(OpId op, DeviceId to) const {
  const Graph& graph = problem_.graph();
  int64_t bytes = 0;
  for (const ParameterId parameter : graph.parameters_of(op)) {
    if (parameter_there_[Index(parameter) * problem_.num_devices() + Index(to)] == 0)
      bytes += graph.parameter_bytes(parameter);
  }
  for (const TensorId tensor : graph.inputs_of(op)) {
    const bool there =
        device(graph.producer(tensor)) == to || arrival_[Index(tensor) * problem_.num_devices() + Index(to)] < kNever;
    if (!there) bytes += graph.tensor_bytes(tensor);
  }
  if (io_host_) {
    for (const InputId input : graph.graph_inputs_of(op)) {
      const bool there = input_arrival_[Index(input) * problem_.num_devices() + Index(to)] < kNever;
      if (!there) bytes += graph.input_bytes(input);
    }
  }
  for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t)
    bytes += graph.tensor_bytes(MakeId<TensorId>(t));
  return bytes;
}

Sequence PartialSchedule::InOrder() const {
  // At one instant: what takes no time before what does, and then as they were placed, which is after their producers.
  std::vector<size_t> order(placed_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return std::tuple(start(placed_[i]), end(placed_[i]), i); });
  Sequence sequence;
  for (const size_t i : order) sequence.ops.push_back(placed_[i]);
  order.resize(transfers_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return std::tuple(transfers_[i].start, transfers_[i].end, i); });
  for (const size_t i : order) sequence.transfers.emplace_back(TensorId{transfers_[i].id}, transfers_[i].to);
  return sequence;
}

}  // namespace berth
