#include "report/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "placement/energy.h"
#include "placement/objective_text.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr size_t kNamed = 4;  // tensors that a reason names

// 14.875 ms given as 14.875 in a data set's milliseconds is the same: what rounding can make of one number.
bool Equal(double value, double most) { return std::abs(value - most) <= 1e-12 * most; }

// "1.79 ms (36 %) below 5.00 ms"; no share of a limit of nothing.
std::string Distance(double value, double most, const std::function<std::string(double)>& text) {
  if (Equal(value, most)) return fmt::format("{}, exactly the limit", text(value));
  const double difference = std::abs(value - most);
  const std::string share = most > 0 ? fmt::format(" ({})", Percent(difference / most)) : "";
  return fmt::format("{}, {}{} {} {}", text(value), text(difference), share, value < most ? "below" : "above",
                     text(most));
}

LimitResult Compared(std::string limit, double value, double most, const std::function<std::string(double)>& text) {
  return {.limit = std::move(limit),
          .device = {},
          .value = value,
          .most = most,
          .held = value <= most || Equal(value, most),
          .text = Distance(value, most, text),
          .reason = {}};
}

class Checker {
 public:
  Checker(const Evaluator& evaluator, const PlanReport& report)
      : evaluator_(evaluator), problem_(evaluator.problem()), report_(report) {}

  bool Failed() const { return report_.timeline.score.failed(); }

  LimitResult Fits() const {
    const bool fits = report_.timeline.score.fits();
    const std::string_view rule = MemoryRule(evaluator_.facts());
    return {.limit = "fits",
            .device = {},
            .held = fits,
            .text = Failed()         ? "not known, since the plan could not be scored"
                    : !fits          ? "it does not"
                    : rule == "none" ? "memory is not counted"
                                     : "every device's peak is within its memory",
            .reason = Legible(report_.timeline.infeasible_because)};
  }

  LimitResult Latency(double most) const {
    LimitResult result = Compared("latency", problem_.ToSeconds(report_.timeline.score.time).value, most,
                                  [](double seconds) { return ToString(Seconds{seconds}); });
    if (evaluator_.facts().objective.name == "throughput") result.text += ", per sample of a full pipeline";
    if (result.held) return result;
    result.reason = fmt::format("it is limited by {}", DescribeLimit(problem_, report_.summary));
    if (const Seconds least = problem_.ToSeconds(report_.bound.time); least.value > most) {
      result.reason += fmt::format("; no plan takes less than {} on these devices", ToString(least));
    }
    return result;
  }

  DeviceId DeviceOf(const Limits::Memory& limit) const {
    try {
      return problem_.cluster().Find(limit.device);
    } catch (const Error& error) {
      throw Error("--max-memory: {}", error.what());
    }
  }

  void Memory(const Limits::Memory& limit, std::vector<LimitResult>& results) const {
    if (report_.timeline.memory.empty()) {
      throw Error("--max-memory: {} does not count memory; name another evaluator, or leave the limit out",
                  evaluator_.name());
    }
    if (!limit.device.empty()) {
      results.push_back(Memory(DeviceOf(limit), limit.bytes));
      return;
    }
    for (const DeviceId device : problem_.cluster().ids()) results.push_back(Memory(device, limit.bytes));
  }

  LimitResult Transfers(int64_t most) const {
    LimitResult result =
        Compared("transfers", static_cast<double>(report_.summary.transfers), static_cast<double>(most),
                 [](double count) { return Count(static_cast<int64_t>(count)); });
    if (result.held) return result;
    std::vector<const TransferRun*> sorted;
    for (const TransferRun& transfer : report_.timeline.transfers) {
      if (transfer.part != TransferPart::kReceive) sorted.push_back(&transfer);
    }
    const auto bytes = [&](const TransferRun* transfer) { return TransferBytes(problem_.graph(), *transfer); };
    std::ranges::stable_sort(sorted, std::ranges::greater(), bytes);
    std::vector<std::string> parts;
    for (const TransferRun* transfer : sorted) {
      if (parts.size() == kNamed) break;
      parts.push_back(fmt::format("{} from {} to {} ({})", Shorten(TransferName(problem_.graph(), *transfer), 40),
                                  LegibleName(problem_.cluster(), transfer->from),
                                  LegibleName(problem_.cluster(), transfer->to), ToString(Bytes{bytes(transfer)})));
    }
    result.reason = fmt::format("the largest are {}", JoinAnd(parts));
    return result;
  }

  LimitResult Energy(double most) const {
    RequireWatts(problem_.cluster());
    if (const std::string& why = report_.timeline.untold_because; !why.empty()) {
      return {.limit = "energy", .device = {}, .most = most, .held = false, .text = "not known", .reason = why};
    }
    LimitResult result = Compared("energy", report_.summary.joules, most, JoulesText);
    if (result.held) return result;
    std::vector<std::string> parts;
    for (const DeviceId id : problem_.cluster().ids()) {
      const Device& device = problem_.cluster().device(id);
      const double makespan = report_.summary.makespan;
      const double busy = std::min(report_.summary.devices[Index(id)].busy, makespan);
      parts.push_back(fmt::format("{} takes {} computing and {} idle", LegibleName(problem_.cluster(), id),
                                  JoulesText(problem_.ToSeconds(busy).value * device.watts_busy.value),
                                  JoulesText(problem_.ToSeconds(makespan - busy).value * device.watts_idle.value)));
    }
    result.reason = JoinAnd(parts);
    return result;
  }

  LimitResult GapLimit(double most) const {
    const Objective& objective = evaluator_.facts().objective;
    const double gap = report_.gap();
    LimitResult result = {.limit = "gap",
                          .device = {},
                          .value = gap,
                          .most = most,
                          .held = gap <= most || Equal(gap, most),
                          .text = {},
                          .reason = {}};
    if (!(report_.bound.value() > 0) && gap > 0) {
      result.text = "not known";
      result.reason = report_.bound.reason.empty() ? "no lower bound is known for this execution model"
                                                   : "lower bound: " + report_.bound.reason;
      return result;
    }
    result.text =
        fmt::format("{} is {} above its lower bound, the limit is {}", objective.name, Percent(gap), Percent(most));
    if (result.held) return result;
    result.reason = fmt::format("{} is {}, and its lower bound {} ({})", objective.name,
                                ObjectiveText(problem_, objective, report_.timeline.score.value()),
                                ObjectiveText(problem_, objective, report_.bound.value()), report_.bound.reason);
    return result;
  }

 private:
  LimitResult Memory(DeviceId device, int64_t most) const {
    const DeviceMemory& memory = report_.timeline.memory[Index(device)];
    LimitResult result = Compared("memory", static_cast<double>(memory.peak_bytes), static_cast<double>(most),
                                  [](double bytes) { return ToString(Bytes{static_cast<int64_t>(bytes)}); });
    result.device = problem_.cluster().device(device).name;
    if (result.held) return result;
    std::vector<std::string> parts;
    for (const MemoryHolder& holder : memory.holders) {
      if (parts.size() == kNamed) break;
      parts.push_back(DescribeHolder(problem_.graph(), holder));
    }
    if (memory.holders.size() > parts.size())
      parts.push_back(fmt::format("{} more", memory.holders.size() - parts.size()));
    result.reason = fmt::format("at {} it holds {}", ToString(problem_.ToSeconds(memory.peak_time)), JoinAnd(parts));
    return result;
  }

  const Evaluator& evaluator_;
  const Problem& problem_;
  const PlanReport& report_;
};

}  // namespace

Limits::Memory ParseMemoryLimit(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == 0) throw Error("'{}' names no device: write gpu0=4GiB, or 4GiB for each device", text);
  const bool named = equals != std::string_view::npos;
  return {.device = named ? std::string(text.substr(0, equals)) : std::string(),
          .bytes = ParseBytes(named ? text.substr(equals + 1) : text).value};
}

std::vector<LimitResult> CheckLimits(const Evaluator& evaluator, const PlanReport& report, const Limits& limits) {
  const Checker checker(evaluator, report);
  std::vector<LimitResult> results = {checker.Fits()};
  if (checker.Failed()) return results;
  if (limits.seconds) results.push_back(checker.Latency(*limits.seconds));
  for (const Limits::Memory& memory : limits.memory) checker.Memory(memory, results);
  if (limits.transfers) results.push_back(checker.Transfers(*limits.transfers));
  if (limits.joules) results.push_back(checker.Energy(*limits.joules));
  if (limits.gap) results.push_back(checker.GapLimit(*limits.gap));
  return results;
}

bool AllHeld(const std::vector<LimitResult>& results) {
  return std::ranges::all_of(results, [](const LimitResult& result) { return result.held; });
}

std::string LimitLines(const std::vector<LimitResult>& results) {
  std::string text;
  for (const LimitResult& result : results) {
    const std::string what = result.device.empty() ? result.limit : result.limit + " of " + Legible(result.device);
    std::string line = fmt::format("{}: {}", what, result.text);
    if (!result.reason.empty()) line += ": " + result.reason;
    const std::string head = fmt::format("{:<7} ", result.held ? "held" : "MISSED");
    text += head + Wrap(line, std::string(head.size(), ' '), PageWidth()).substr(head.size());
  }
  return text;
}

Json LimitsJson(const std::vector<LimitResult>& results) {
  Json list = Json::array();
  for (const LimitResult& result : results) {
    Json entry = {{"limit", result.limit}};
    if (!result.device.empty()) entry["device"] = result.device;
    entry["held"] = result.held;
    if (result.limit != "fits" && result.limit != "constraints") {
      entry["value"] = result.value;
      entry["most"] = result.most;
    }
    entry["text"] = result.text;
    entry["reason"] = result.reason;
    list.push_back(std::move(entry));
  }
  return list;
}

Json CheckJson(const Evaluator& evaluator, const PlanReport& report, const std::vector<LimitResult>& results) {
  Json json = PlanJson(evaluator, report);
  json["passed"] = AllHeld(results);
  json["limits"] = LimitsJson(results);
  return json;
}

}  // namespace berth
