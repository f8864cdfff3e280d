// What the measurements of gdp on many graphs share: the graphs, policies that were trained on some of them, and lines
// of their tables.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/learned/common.h"
#include "tools/learned/rows.h"

namespace berth::learned {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Of gdp on one graph.
inline constexpr const char* kOne = "**gdp**";

// The policy without and with gates made from the whole graph, and one that reads a list schedule.
struct Form {
  const char *suffix, *planner;
};
inline constexpr Form kForms[] = {
    {"", "gdp"}, {", superposition", "gdp(superposition=true)"}, {", list schedule", "gdp(features=scheduled)"}};

struct Effort {
  size_t graphs;  // of kTwo or kEight
  int seeds;
  int64_t updates;        // on each graph, from scratch or before it is seen
  int64_t tuned_updates;  // of a policy that was trained on others
};

Effort Of(bool quick, size_t graphs, int seeds);

// Whether its network has layers of superposition.
bool HasGates(const std::string& planner);

// So many updates of gdp, and its own answer at the end.
inline constexpr int64_t kRollouts = 16, kAnswer = 10;
inline int64_t Evaluations(int64_t updates) { return updates * kRollouts + kAnswer; }

// The geometric mean of ratios, and 95 % of the means of as many drawn from them with repetition.
std::string MeanWithInterval(const std::vector<double>& ratio);

// A table per graph, with these seeds: 20 ops, of which the first row is to find the best placement.
std::vector<Table> MakeSmall(const Catalogs& catalogs, int first, int graphs);

// GDP's networks, two layers each on two GPUs, three of them smaller than their defaults; each with what people do
// without a search.
std::vector<Table> MakeTwo(const Catalogs& catalogs, bool quick, const Effort& effort);
inline constexpr size_t kMostTwo = 6;
// Other sizes of each of these, to learn from: nothing is measured on them. By graph of MakeTwo.
std::vector<std::deque<Table>> MakeOtherSizes(const Catalogs& catalogs, bool quick, const Effort& effort);
// Networks of other families than all of these, and two graphs that are no networks, to learn from.
std::deque<Table> MakeOtherFamilies(const Catalogs& catalogs, bool quick);
std::string Sentences(std::span<const Table> tables);

// Training steps of a family each, on eight GPUs, without GNMT: lessons for large graphs.
inline constexpr const char* kEight[] = {"rnnlm(layers=8,steps=5)", "transformer_xl(layers=8)",
                                         "inception_v3(batch=32)", "amoebanet(batch=32,cells=2)", "wavenet"};

const Row& Find(const Table& table, const std::string& title);
std::vector<double> Found(const Row& row);

// One policy trained on several graphs.
struct Lesson {
  std::shared_ptr<const Scratch> folder{};
  TrainingResult result{};
  double seconds = 0;  // of a processor
};

// Each update has a play on every graph, and follows the sum of their gradients. Of a policy's checkpoints the one is
// kept that answers the graphs of `validation` best, or where there are none, those that it learns on. It answers
// `tests` in the end.
Lesson Learn(const Catalogs& catalogs, const std::string& planner, const std::vector<const Table*>& graphs,
             int64_t updates, uint64_t seed, const std::string& name, const std::vector<const Table*>& validation = {},
             const std::vector<const Table*>& tests = {});
std::vector<const Table*> Without(std::span<const Table> tables, size_t left_out);

// A policy that was trained elsewhere, on a graph that it has not seen.
struct Transfer {
  Lesson before{};
  double zero_shot = 0;  // seconds, of its likeliest placement
  Outcome answer{};      // for what that takes
  Outcome tuned{};       // the policy trained on
  Outcome flat{};        // as many draws of it, with nothing learned from them
  Outcome sure{};        // as `tuned`, from odds as they are
  Outcome drawn{};       // as `flat`, from odds as they are
  Outcome gates{};       // as `tuned`, where only the layers of superposition learn; empty in other forms
  Outcome wide{};        // as `sure`, with kWideRollouts placements in each update
  Outcome wide_drawn{};  // as `drawn`, as many as these
};

// So that twelve updates score about as many placements as 63 of the usual width do.
inline constexpr int64_t kWideRollouts = 80;
inline int64_t WideEvaluations(int64_t updates) { return updates * kWideRollouts + kAnswer; }
// With so many placements in each update.
std::string Wide(const Catalogs& catalogs, const std::string& planner);

// Fills all but `before` and what is wide.
void Tune(const Catalogs& catalogs, const Table& table, int64_t updates, uint64_t seed, Transfer& transfer);
// Fills what is wide.
void TuneWide(const Catalogs& catalogs, const Table& table, int64_t updates, uint64_t seed, Transfer& transfer);

template <typename Item, typename Value>
std::vector<double> Each(const std::vector<Item>& list, const Value& value) {
  std::vector<double> values;
  for (const Item& item : list) values.push_back(value(item));
  return values;
}

// A line of the large table: what a method reaches on each graph, in seconds, by seed.
struct Line {
  std::string title{};
  int64_t evaluations = 0;                     // on the graph; 0: it differs
  std::vector<std::vector<double>> reached{};  // by graph; empty where the method refuses
  std::vector<double> processor{};             // by graph, seconds; empty where that was not measured by itself
};

template <typename Reached>
Line LineOf(const std::string& title, std::span<const Table> tables, const std::string& row, const Reached& reached) {
  Line line{.title = title};
  for (const Table& table : tables) {
    const Row& of = Find(table, row);
    line.reached.push_back(reached(of));
    line.processor.push_back(of.processor());
    line.evaluations = of.evaluations;
  }
  return line;
}

std::vector<Line> RuleLines(std::span<const Table> tables);

// Over the graphs, the geometric mean of what was reached over `reference`; one value per seed. Empty where a graph is
// missing.
std::vector<double> Ratios(const Line& line, const Line& reference);

// What a last column of such a table divides by.
struct Reference {
  std::string name;
  Line line;
};

// In milliseconds; with the seconds per graph where any line has them.
void Print(const std::vector<Line>& lines, const std::vector<Reference>& references,
           const std::vector<std::string>& graphs);
std::vector<std::string> Titles(std::span<const Table> tables);

}  // namespace berth::learned
