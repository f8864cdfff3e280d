// Which guess decides? What a plan gains, while each guessed number of the machines goes through its range.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"

namespace berth {

// A number that nobody measured and no vendor states. Devices and links that are alike share it, and vary together.
struct Guess {
  std::string what;  // "op_overhead of gpu", "latency of cpu -> gpu"
  double value = 0;  // in the cluster's units: seconds, bytes per second, FLOP/s, a share
  double low = 0, high = 0;
  bool stated = false;                          // the range is the device file's
  std::string low_text, value_text, high_text;  // "2.50 us"
  std::string measure;                          // what measures it
  // The same machines with another number in its place.
  std::function<std::shared_ptr<const Cluster>(double value)> with;
};

// How the source of a number begins that a device file leaves to the device's kind; the kind follows.
inline constexpr std::string_view kDefaultOf = "the default of ";

// What numbers beside those of ops and links enter the scores.
struct GuessScope {
  bool energy = false;  // watts
  bool cuts = false;    // what a part costs, and reading and writing at cuts: of the evaluator `parts`
};

// Each through the range that its file says, else from half to double; shares (efficiencies) end at 1. Numbers that
// enter no score are left out, and zeros, which have no range. Efficiencies that a device file leaves to the device's
// kind are not in the cluster.
std::vector<Guess> FindGuesses(const Cluster& cluster, GuessScope scope);

struct GuessEffect {
  std::string what, low_text, value_text, high_text, measure;
  double low_gain = 0, high_gain = 0;  // at the ends of its range
};

// The gain is the rival's score divided by the plan's, both placements as they are: above 1 the plan is better.
struct GuessReport {
  std::string rival;           // "gpu alone", "one_cut"
  bool on_one_device = false;  // the plan, so that what it gains is no gain of a split
  double gain = 0;
  double least = 0, most = 0;          // over all
  std::vector<GuessEffect> effects{};  // of all guesses that were varied, the one that matters most first
  int64_t evaluations = 0;
  bool stated = false;       // at least one went through a range that its file says
  std::string not_varied{};  // why none was; else empty

  // The first with which the rival is better, or with which the plan is where the rival is known to be better; null
  // where none does that.
  const GuessEffect* turning() const;
};

// Asked twice per guess: what the plan and the rival score on these machines.
using ScoreBoth = std::function<std::pair<double, double>(const std::shared_ptr<const Cluster>& cluster)>;

// Nothing where nothing is guessed. `most_evaluations`: where more would be needed, none is made, and not_varied says
// so.
std::optional<GuessReport> VaryGuesses(const Cluster& cluster, GuessScope scope, std::string rival, double gain,
                                       const ScoreBoth& score, int64_t most_evaluations);

// Of a page, below its first line: "THE GAIN RESTS ON A GUESS: ..." (of one device "THE ADVICE ..."); empty where the
// gain survives, or where there is none since the plans are level.
std::string GuessHeadline(const GuessReport& report);
// Two lines of a page: how the gain varies, and which number decides.
std::string GuessLines(const GuessReport& report);

}  // namespace berth
