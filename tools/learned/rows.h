// Tables with a row per planner: how they are measured, and how they are written.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/common/intervals.h"
#include "tools/learned/common.h"

namespace berth::learned {

struct Row {
  std::string title{}, planner{};
  int seeds = 1;
  int64_t evaluations = 0;
  std::string colour{};  // of its line in the picture; empty: it has none
  int later = 0;         // runs as long as one of these, of others and after them, which the plan of hours counts
  bool search = false;   // one of those of which the best gets a learned row's seconds, too
  // The title of a learned row of the same table: this row is then the best of the searches once more, with as many
  // evaluations as take that row's median seconds of a processor. Measure says which and how many.
  std::string as_long_as{};
  std::vector<Outcome> outcome{};  // by seed; where there are some already, Measure leaves them
  std::string refused{};           // why the planner does not place this problem

  bool learned() const { return !outcome.empty() && outcome[0].learned.has_value(); }
  // Per seed, in seconds, where there is such a thing: what the policy drew while it trained, or what a planner that
  // does not learn found; what was scored without the policy; the policy's own answer.
  std::vector<double> Drawn() const;
  std::vector<double> Starts() const;
  std::vector<double> Likeliest() const;
  // Per seed, the mean cost of what was drawn in the first or the last tenth of the updates.
  std::vector<double> MeanCost(bool first) const;
  double processor() const;  // seconds, the median over the seeds
};

// One problem and what is measured on it.
struct Table {
  std::string title{};
  std::unique_ptr<Setup> setup{};
  std::vector<Row> rows{};
  std::string sentence{};        // under the title; may be empty
  std::string reference_name{};  // of what the best is compared with, like "optimum"; empty: nothing
  double reference = 0;          // in seconds
  const char* unit = "ms";       // of what is written
  double per_second = 1e3;       // such units
  int digits = 2;
  const char* over = "seeds";  // what a picture's medians are over

  Row& Add(Row row) { return rows.emplace_back(std::move(row)); }
};

// Colours of our form and of the papers', and paler ones of their untrained twins.
inline constexpr const char *kOurs = "#1f5fa8", *kOursPale = "#9db9dc", *kPaper = "#b8651b", *kPaperPale = "#e3c19c";

// The same planner with a learning rate of 0. It may be inside of on(...).
std::string Untrained(const std::string& planner);

// A learned row below its untrained twin, which has a paler line.
void AddLearned(Table& table, const std::string& title, const std::string& planner, int seeds, int64_t evaluations,
                const std::string& colour = "", const std::string& pale = "");
// What people do without a search, one evaluation or a few each: planners, `scotch` where it is built in.
std::vector<std::string> Rules();
std::vector<std::string> RulesAndAuto();
// These, and `auto`.
void AddRules(Table& table, int seeds, int64_t evaluations);
// Simple searches on all ops and on groups, and the best of them once more, in the seconds of the row `as_long_as`.
// `form`: where the planner stands in the whole name, like "on(group=layers,planner={})".
void AddSearches(Table& table, int seeds, int64_t evaluations, const std::string& as_long_as,
                 const std::string& form = "{}");

// Runs all of it on all processors, each run on one. Says first, to standard error, how many hours of a processor it
// will take, from what the first evaluations of each learned row take.
void Measure(const Catalogs& catalogs, std::string_view part, std::span<Table> tables);

// Where `pictures` names a folder and a row has a colour, a picture there of the best drawn so far: `name`.svg.
void WritePicture(const Table& table, const std::string& name, const std::string& pictures);

// The heading, the table, and the picture.
void Write(const Table& table, const std::string& name, const std::string& pictures);

// Of StepOn (tools/common/problems.h).
std::unique_ptr<Setup> MakePorts(const Catalogs& catalogs, const std::string& model, const std::string& cluster,
                                 bool training);

}  // namespace berth::learned
