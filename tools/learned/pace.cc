#include "tools/learned/pace.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "exec/statistics.h"
#include "tools/learned/gdp_lessons.h"

namespace berth::learned {
namespace {

// Where a search is first as good as `target`; infinite where it never is.
Improvement Reaches(const Outcome& outcome, double target) {
  for (const Improvement& each : outcome.improvements) {
    if (each.found <= target * (1 + 1e-9)) return each;
  }
  return {.evaluations = -1, .found = kInfinity, .processor = kInfinity};
}

std::string Times(double factor) {
  if (!std::isfinite(factor)) return "never";
  return factor < 1 ? fmt::format("{:.2g}", factor) : fmt::format("{:.1f}", factor);
}

// Of those rows that end level, the one that takes fewer seconds.
const Row& Best(const Table& table, const Racer& racer) {
  const auto rank = [](const Row& of) { return std::pair(Median(Found(of)), of.processor()); };
  const Row* best = nullptr;
  for (const std::string& title : racer.rows) {
    const Row& row = Find(table, title);
    if (best == nullptr || rank(row) < rank(*best)) best = &row;
  }
  return *best;
}

}  // namespace

void PrintPace(std::span<const Table> tables, const Racer& quick, const Racer& slow) {
  fmt::print(
      "| graph | {} | it ends at, ms | it has that after, evaluations | seconds | whole search, seconds | {} has it "
      "after, evaluations | seconds | evaluations, factor | seconds, factor | whole search, factor in evaluations | in "
      "seconds "
      "|\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
      slow.name, quick.name);
  std::vector<double> evaluations, seconds, whole_asked, whole;
  size_t never = 0;
  for (const Table& table : tables) {
    const Row& best = Best(table, slow);
    const double target = Median(Found(best));
    const auto reach = [target](const Row& row) {
      std::vector<double> asked, took;
      for (const Outcome& outcome : row.outcome) {
        const Improvement at = Reaches(outcome, target);
        asked.push_back(at.evaluations < 0 ? kInfinity : static_cast<double>(at.evaluations));
        took.push_back(at.processor);
      }
      return std::pair(Median(asked), Median(took));
    };
    const auto [own_asked, own_took] = reach(best);
    const auto [asked, took] = reach(Best(table, quick));
    const bool reached = std::isfinite(asked);
    if (reached) {
      evaluations.push_back(own_asked / asked);
      seconds.push_back(own_took / took);
      whole_asked.push_back(static_cast<double>(best.evaluations) / asked);
      whole.push_back(best.processor() / took);
    } else {
      ++never;
    }
    fmt::print("| {} | {} | {:.2f} | {:.0f} | {:.1f} | {:.1f} | {} | {} | {} | {} | {} | {} |\n", table.title,
               best.title, target * 1e3, own_asked, own_took, best.processor(),
               reached ? fmt::format("{:.0f}", asked) : "never", reached ? fmt::format("{:.1f}", took) : "",
               reached ? Times(own_asked / asked) : "", reached ? Times(own_took / took) : "",
               reached ? Times(static_cast<double>(best.evaluations) / asked) : "",
               reached ? Times(best.processor() / took) : "");
  }
  if (evaluations.empty()) {
    fmt::print("| geometric mean |  |  |  |  |  |  |  | never reached |  |  |  |\n\n");
    return;
  }
  fmt::print("| geometric mean{} |  |  |  |  |  |  |  | {} | {} | {} | {} |\n\n",
             never == 0 ? "" : fmt::format(" over the {} that it reaches", evaluations.size()),
             Times(GeometricMean(evaluations)), Times(GeometricMean(seconds)), Times(GeometricMean(whole_asked)),
             Times(GeometricMean(whole)));
}

}  // namespace berth::learned
