#include "report/guesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "base/error.h"
#include "cluster/cluster_numbers.h"
#include "cluster/device_numbers.h"
#include "report/json.h"
#include "report/table.h"

namespace berth {
namespace {

constexpr const char* kDetect = "berth cluster detect";
constexpr const char* kProfile = "berth profile";
constexpr const char* kCalibrate = "berth calibrate";
constexpr const char* kMeter = "a power meter";
constexpr const char* kSizes = "tools/onnxruntime/measure.py";
// OpenVINO drives GPUs of Intel alone.
constexpr const char* kGpu = "tools/onnxruntime/measure.py (NVIDIA) or berth cluster detect (Intel)";
constexpr const char* kBench = "a benchmark of the link";

// Where a number stands in a cluster.
using Place = std::function<Quantity&(ClusterNumbers&)>;

struct Found {
  std::string key;                  // of the number: "op_overhead"
  std::vector<std::string> places;  // devices or links
  std::vector<Place> all;
  Quantity quantity;
  std::string measure;
};

std::string TextOf(const std::string& key, double value) {
  if (key == "latency" || key == "op_overhead" || key == "part_overhead") return ToString(Seconds{value});
  if (key == "bandwidth" || key == "memory_bandwidth" || key.starts_with("cut_")) return WithPrefix(value, "B/s");
  if (key.starts_with("peak")) return WithPrefix(value, "FLOP/s");
  if (key.starts_with("watts")) return WithPrefix(value, "W");
  if (key == "half_rate_outputs") return Count(std::llround(value));
  return Percent(value);
}

class Finder {
 public:
  explicit Finder(const Cluster& cluster) : cluster_(cluster) {}

  void Add(const std::string& key, const std::string& place, size_t alike, const Quantity& quantity,
           const char* measure, Place where) {
    if (quantity.provenance != Provenance::kGuess || !(quantity.value > 0)) return;
    auto [at, fresh] = position_.try_emplace({key, alike, quantity.value, quantity.low, quantity.high, quantity.source},
                                             found_.size());
    if (fresh) found_.push_back({.key = key, .places = {}, .all = {}, .quantity = quantity, .measure = measure});
    found_[at->second].places.push_back(place);
    found_[at->second].all.push_back(std::move(where));
  }

  std::vector<Guess> Guesses() const {
    std::vector<Guess> guesses;
    for (const Found& found : found_) {
      constexpr size_t kNamed = 2;
      const std::string of = found.places.size() <= kNamed
                                 ? JoinAnd(found.places)
                                 : fmt::format("{} and {} more", found.places.front(), found.places.size() - 1);
      const Quantity& quantity = found.quantity;
      const double value = quantity.value;
      const bool share = found.key.starts_with("efficiency"), ranged = quantity.has_range();
      Guess guess{.what = fmt::format("{} of {}", found.key, of),
                  .value = value,
                  .low = ranged ? quantity.low : value / 2,
                  .high = ranged  ? quantity.high
                          : share ? std::min(1.0, 2 * value)
                                  : 2 * value,
                  .stated = ranged,
                  .low_text = {},
                  .value_text = TextOf(found.key, value),
                  .high_text = {},
                  .measure = found.measure,
                  .with = {}};
      guess.low_text = TextOf(found.key, guess.low);
      guess.high_text = TextOf(found.key, guess.high);
      guess.with = [&cluster = cluster_, all = found.all](double other) {
        ClusterNumbers numbers(cluster);
        for (const Place& place : all) place(numbers).value = other;
        return std::make_shared<const Cluster>(std::move(numbers).Make());
      };
      guesses.push_back(std::move(guess));
    }
    return guesses;
  }

 private:
  const Cluster& cluster_;
  std::map<std::tuple<std::string, size_t, double, double, double, std::string>, size_t> position_;
  std::vector<Found> found_;
};

// A command is a text to copy.
std::string Named(std::string measure) {
  const size_t begin = measure.find("berth ");
  if (begin == std::string::npos) return measure;
  measure.insert(std::min(measure.find(" (", begin), measure.size()), "`");
  measure.insert(begin, "`");
  return measure;
}

// How far the gain moves, as a factor.
double Reach(const GuessEffect& effect) {
  return std::abs(std::log(std::max(effect.low_gain, 1e-300) / std::max(effect.high_gain, 1e-300)));
}

// Plans whose times are closer than this are as good as one another, and it is what two decimals of a factor show.
constexpr double kAsGood = 0.005;

bool RivalIsBetter(double gain) { return gain < 1 - kAsGood; }
bool PlanIsBetter(double gain) { return gain > 1 + kAsGood; }

bool Turns(const GuessEffect& effect, double gain) {
  return RivalIsBetter(gain) ? PlanIsBetter(std::max(effect.low_gain, effect.high_gain))
                             : RivalIsBetter(std::min(effect.low_gain, effect.high_gain));
}

// Equal for devices whose entries in a device file say the same, wherever they stand in the machine.
std::string DescriptionOf(const Device& device) {
  std::string text = device.kind;
  ForEachNumber(device, [&](std::string_view key, std::string_view entry, const Quantity& number) {
    text += fmt::format("; {} {} {} {} {} {}", NumberName(key, entry), number.value, number.low, number.high,
                        static_cast<int>(number.provenance), number.source);
  });
  return text;
}

const char* DetectOf(const Device& device) { return device.kind == "gpu" ? kGpu : kDetect; }

// What measures a number of a device; null where it enters no score.
const char* MeasureOf(const Device& device, std::string_view key, GuessScope scope) {
  if (key == "memory") return nullptr;
  if (key == "watts") return scope.energy ? kMeter : nullptr;
  if (key == "part_overhead" || key.starts_with("cut_")) return scope.cuts ? kCalibrate : nullptr;
  if (key == "efficiency") return device.kind == "gpu" ? kGpu : kProfile;
  if (key == "half_rate_outputs") return kSizes;
  return DetectOf(device);
}

Quantity& NumberNamed(Device& device, std::string_view name) {
  Quantity* found = nullptr;
  ForEachNumber(device, [&](std::string_view key, std::string_view entry, Quantity& number) {
    if (NumberName(key, entry) == name) found = &number;
  });
  BERTH_CHECK(found != nullptr, "a device has no number {}", name);
  return *found;
}

}  // namespace

std::vector<Guess> FindGuesses(const Cluster& cluster, GuessScope scope) {
  Finder finder(cluster);
  std::map<std::string, size_t> descriptions;  // numbered from 1
  for (const DeviceId id : cluster.ids()) {
    const size_t described =
        descriptions.try_emplace(DescriptionOf(cluster.device(id)), descriptions.size() + 1).first->second;
    ForEachNumber(cluster.device(id), [&](std::string_view key, std::string_view entry, const Quantity& number) {
      const char* measure = MeasureOf(cluster.device(id), key, scope);
      if (measure == nullptr) return;
      const std::string name = NumberName(key, entry);
      // What is guessed of a kind is one guess, also for devices that differ.
      const size_t alike = number.source.starts_with(kDefaultOf) ? 0 : described;
      finder.Add(name, LegibleName(cluster, id), alike, number, measure,
                 [d = Index(id), name](ClusterNumbers& numbers) -> Quantity& {
                   return NumberNamed(numbers.devices[d], name);
                 });
    });
  }
  for (const DeviceId from : cluster.ids()) {
    for (const DeviceId to : cluster.ids()) {
      if (from == to) continue;
      const std::string name = fmt::format("{} -> {}", LegibleName(cluster, from), LegibleName(cluster, to));
      const bool from_cpu = cluster.device(from).kind == "cpu", to_cpu = cluster.device(to).kind == "cpu";
      const bool gpu = cluster.device(from).kind == "gpu" || cluster.device(to).kind == "gpu";
      const char* measure = from_cpu && to_cpu ? kDetect : gpu && (from_cpu || to_cpu) ? kSizes : kBench;
      // What is guessed in the same words is one guess.
      finder.Add("latency", name, 0, cluster.link(from, to).latency, measure,
                 [from, to](ClusterNumbers& numbers) -> Quantity& { return numbers.link(from, to).latency; });
      finder.Add("bandwidth", name, 0, cluster.link(from, to).bandwidth, measure,
                 [from, to](ClusterNumbers& numbers) -> Quantity& { return numbers.link(from, to).bandwidth; });
    }
  }
  return finder.Guesses();
}

const GuessEffect* GuessReport::turning() const {
  for (const GuessEffect& effect : effects) {
    if (Turns(effect, gain)) return &effect;
  }
  return nullptr;
}

std::optional<GuessReport> VaryGuesses(const Cluster& cluster, GuessScope scope, std::string rival, double gain,
                                       const ScoreBoth& score, int64_t most_evaluations) {
  const std::vector<Guess> guesses = FindGuesses(cluster, scope);
  if (guesses.empty()) return std::nullopt;
  GuessReport report{.rival = std::move(rival), .gain = gain, .least = gain, .most = gain};
  const int64_t needed = 4 * std::ssize(guesses);
  if (needed > most_evaluations) {
    report.not_varied =
        fmt::format("that takes {}, too many for the budget with a model of this size", Counted(needed, "evaluation"));
    return report;
  }
  for (const Guess& guess : guesses) {
    GuessEffect effect{.what = guess.what,
                       .low_text = guess.low_text,
                       .value_text = guess.value_text,
                       .high_text = guess.high_text,
                       .measure = guess.measure};
    const auto gain_at = [&](double value) {
      const auto [plan, other] = score(guess.with(value));
      report.evaluations += 2;
      const double varied = other / plan;
      report.least = std::min(report.least, varied);
      report.most = std::max(report.most, varied);
      return varied;
    };
    report.stated = report.stated || guess.stated;
    effect.low_gain = gain_at(guess.low);
    effect.high_gain = gain_at(guess.high);
    report.effects.push_back(std::move(effect));
  }
  std::ranges::stable_sort(report.effects, std::greater<>(), Reach);
  return report;
}

std::string GuessHeadline(const GuessReport& report) {
  if (RivalIsBetter(report.gain)) {
    return Line(fmt::format("A BETTER PLAN IS KNOWN: {} is {} better; a larger --budget or another --planner finds it.",
                            report.rival, Factor(1 / report.gain)));
  }
  const GuessEffect* turning = report.turning();
  if (turning == nullptr || !PlanIsBetter(report.gain)) return {};
  return Line(fmt::format("THE {} RESTS ON A GUESS: with {} at {} instead of {}, {} is better.",
                          report.on_one_device ? "ADVICE" : "GAIN", turning->what,
                          turning->low_gain < turning->high_gain ? turning->low_text : turning->high_text,
                          turning->value_text, report.rival));
}

std::string GuessLines(const GuessReport& report) {
  if (!report.not_varied.empty()) return Field("guesses", "not varied: " + report.not_varied);
  std::string text =
      Field("guesses",
            fmt::format("{} over {}; {} to {} with {} from half to double{} ({})", Factor(report.gain), report.rival,
                        Factor(report.least), Factor(report.most),
                        report.effects.size() == 1 ? "the guessed number"
                                                   : fmt::format("each of {} guessed numbers", report.effects.size()),
                        report.stated ? " or through the range that its file says" : "",
                        Counted(report.evaluations, "evaluation")));
  const GuessEffect* turning = report.turning();
  const GuessEffect& first = turning != nullptr ? *turning : report.effects.front();
  const bool least_at_low = first.low_gain < first.high_gain;
  const double least = std::min(first.low_gain, first.high_gain), most = std::max(first.low_gain, first.high_gain);
  const auto turned_at = [&](bool low, const std::string& better, double by) {
    return fmt::format("{}: at {} instead of {}, {} is {} better; {} measures it", first.what,
                       low ? first.low_text : first.high_text, first.value_text, better, Factor(by),
                       Named(first.measure));
  };
  if (turning != nullptr && !RivalIsBetter(report.gain)) {
    text += Field("decides", turned_at(least_at_low, report.rival, 1 / least));
  } else if (turning != nullptr) {
    text += Field("decides", turned_at(!least_at_low, "this plan", most));
  } else {
    text += Field("decides", fmt::format("no single one; the gain depends most on {} ({} to {}), which {} measures",
                                         first.what, Factor(least), Factor(most), Named(first.measure)));
  }
  return text;
}

Json GuessJson(const GuessReport& report) {
  Json json = {{"rival", report.rival},
               {"gain", report.gain},
               {"least_gain", report.least},
               {"most_gain", report.most},
               {"evaluations", report.evaluations},
               {"survives", report.turning() == nullptr},
               {"not_varied_because", report.not_varied.empty() ? Json() : Json(report.not_varied)},
               {"numbers", Json::array()}};
  if (!report.not_varied.empty()) json["survives"] = Json();
  for (const GuessEffect& effect : report.effects) {
    json["numbers"].push_back({{"what", effect.what},
                               {"guessed", effect.value_text},
                               {"low", effect.low_text},
                               {"high", effect.high_text},
                               {"gain_at_low", effect.low_gain},
                               {"gain_at_high", effect.high_gain},
                               {"turns_the_advice", Turns(effect, report.gain)},
                               {"measure_with", effect.measure}});
  }
  return json;
}

}  // namespace berth
