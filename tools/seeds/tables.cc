#include "tools/seeds/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "exec/statistics.h"
#include "tools/common/intervals.h"

namespace berth::seeds {
namespace {

constexpr const char* kHuman = "human";
constexpr const char* kHdp = "hdp";
constexpr const char* kGdp = "gdp";
constexpr double kAlike = 1e-3;  // what differs by no more is as good: what a cell's improvements are told by

// What all seeds of a method found on a task.
class Row {
 public:
  Row() = default;
  explicit Row(std::vector<const Cell*> cells) : cells_(std::move(cells)) {}

  bool empty() const { return cells_.empty(); }
  size_t seeds() const { return cells_.size(); }
  const std::vector<const Cell*>& cells() const { return cells_; }
  int64_t Count(Found found) const {
    return std::ranges::count(cells_, found, [](const Cell* c) { return c->found; });
  }

  // Of the seeds that found a plan.
  template <typename Member>
  std::vector<double> Of(const Member& member) const {
    std::vector<double> values;
    for (const Cell* cell : cells_) {
      if (cell->found == Found::kPlan) values.push_back(static_cast<double>(member(*cell)));
    }
    return values;
  }
  std::vector<double> times() const {
    return Of([](const Cell& cell) { return cell.time; });
  }
  // The median, where every seed found a plan: what ratios are made of.
  std::optional<double> time() const {
    if (empty() || Count(Found::kPlan) != static_cast<int64_t>(seeds())) return std::nullopt;
    return Median(times());
  }

  // The median time with its interval, and what became of the seeds that found no plan.
  std::string Time(double factor, int digits) const {
    std::vector<std::string> parts;
    if (const std::vector<double> found = times(); !found.empty()) parts.push_back(WithInterval(found, factor, digits));
    for (const auto& [what, name] :
         {std::pair(Found::kTooBig, "OOM"), std::pair(Found::kRefuses, "refuses"), std::pair(Found::kFails, "fails")}) {
      if (const int64_t count = Count(what); count == static_cast<int64_t>(seeds()) && count > 0) {
        parts.emplace_back(name);
      } else if (count > 0) {
        parts.push_back(fmt::format("{} in {} of {}", name, count, seeds()));
      }
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

 private:
  std::vector<const Cell*> cells_;
};

// Finds the cells of a selection.
class Book {
 public:
  Book(const Selection& selection, const Results& results) : selection_(selection), results_(results) {}

  Row Find(const Task& task, const Method& method) const {
    std::vector<const Cell*> cells;
    if (NameOf(task, method).find(selection_.only) == std::string::npos) return {};
    for (int seed = 1; seed <= (method.searches ? selection_.seeds : 1); ++seed) {
      if (const Cell* cell = results_.Find(task.Ask(method, seed, selection_.limits))) cells.push_back(cell);
    }
    return Row(std::move(cells));
  }
  // By what the planner's name ends with, aside from the parentheses of on(...): "rnn" is "on(...,planner=rnn)".
  Row Find(const Task& task, std::string_view planner) const {
    for (const Method& method : task.methods) {
      if (method.planner == planner || method.planner.ends_with(fmt::format("planner={})", planner))) {
        return Find(task, method);
      }
    }
    return {};
  }
  bool Has(const Task& task) const {
    return std::ranges::any_of(task.methods, [&](const Method& method) { return !Find(task, method).empty(); });
  }

 private:
  const Selection& selection_;
  const Results& results_;
};

std::vector<const Task*> Of(std::span<const Task> tasks, const Book& book, Paper paper, std::string_view machine = {}) {
  std::vector<const Task*> found;
  for (const Task& task : tasks) {
    if (task.paper == paper && (machine.empty() || task.machine == machine) && book.Has(task)) found.push_back(&task);
  }
  return found;
}

// All methods of these tasks, by title, in the order in which they first come.
std::vector<Method> MethodsOf(const std::vector<const Task*>& tasks) {
  std::vector<Method> methods;
  for (const Task* task : tasks) {
    for (const Method& method : task->methods) {
      if (std::ranges::find(methods, method.title, &Method::title) == methods.end()) methods.push_back(method);
    }
  }
  return methods;
}

std::string Line(const std::vector<std::string>& cells) { return fmt::format("| {} |\n", fmt::join(cells, " | ")); }

// The first `left` columns are names.
std::string Head(const std::vector<std::string>& titles, size_t left) {
  std::string rule = "|";
  for (size_t i = 0; i < titles.size(); ++i) rule += i < left ? "---|" : "---:|";
  return Line(titles) + rule + "\n";
}

// By how many per cent `other` takes longer than `time`; empty where one of them is not there.
std::string Longer(std::optional<double> other, std::optional<double> time) {
  return other && time ? fmt::format("{:+.1f} %", 100 * (*other / *time - 1)) : "";
}

// How many times as much one method needs for its best, or one nearly as good, as another needs for that, seed by seed:
// the median. Empty where a seed of one has no plan; "never" where at most half of the seeds of `quick` get there.
template <typename Member>
std::string Speed(const Row& slow, const Row& quick, const Member& needed, std::vector<double>& all) {
  if (!slow.time() || !quick.time()) return "";
  std::vector<double> ratios;
  for (const Cell* const long_search : slow.cells()) {
    const auto same = std::ranges::find_if(
        quick.cells(), [&](const Cell* cell) { return cell->question.seed == long_search->question.seed; });
    if (same == quick.cells().end() || long_search->on.empty()) continue;
    // Both are held to the same.
    const auto as_good = [&](const Improvement& each) { return each.time <= (1 + kAlike) * long_search->time; };
    const auto slowly = std::ranges::find_if(long_search->on, as_good);
    const auto there = std::ranges::find_if((*same)->on, as_good);
    const bool reached = there != (*same)->on.end();
    ratios.push_back(reached ? needed(*slowly) / std::max(needed(*there), 1e-6) : 0);
  }
  if (ratios.empty()) return "";
  std::ranges::sort(ratios);
  if (ratios[(ratios.size() - 1) / 2] == 0) return "never";
  const double median = Median(ratios);
  all.push_back(median);
  return fmt::format("{:.2g}x", median);
}

double Evaluations(const Improvement& each) { return static_cast<double>(each.evaluations); }
double Seconds(const Improvement& each) { return each.seconds; }

// --- HSDAG: inference ------------------------------------------------------------------------------------------------

std::string HsdagTables(std::span<const Task> tasks, const Book& book) {
  std::string text;
  for (const char* machine : kHsdagMachines) {
    const std::vector<const Task*> columns = Of(tasks, book, Paper::kHsdag, machine);
    if (columns.empty()) continue;
    std::vector<std::string> titles = {"method"};
    for (const Task* task : columns) {
      titles.push_back(task->title + ", ms");
      titles.emplace_back("speed-up, %");
      titles.emplace_back("search, s");
    }
    text += fmt::format("### Inference on {}, as HSDAG's tables 2 and 5\n\n{}", machine, Head(titles, 1));
    for (const Method& method : MethodsOf(columns)) {
      std::vector<std::string> cells = {method.title};
      bool any = false;
      for (const Task* task : columns) {
        const Row row = book.Find(*task, method);
        any = any || !row.empty();
        const std::optional<double> cpu = book.Find(*task, "single(device=cpu)").time(), time = row.time();
        const std::vector<double> seconds = row.Of([](const Cell& cell) { return cell.seconds; });
        cells.push_back(row.Time(1e3, 3));
        cells.push_back(cpu && time ? fmt::format("{:.1f}", 100 * (1 - *time / *cpu)) : "");
        cells.push_back(seconds.empty() ? "" : fmt::format("{:.1f}", Median(seconds)));
      }
      if (any) text += Line(cells);
    }
    text += "\n";
  }
  return text;
}

// --- Placeto: training on two and four GPUs --------------------------------------------------------------------------

std::string PlacetoTable(std::span<const Task> tasks, const Book& book) {
  std::vector<const Task*> rows = Of(tasks, book, Paper::kPlaceto);
  std::erase_if(rows, [](const Task* task) { return task->machine == kHost; });
  if (rows.empty()) return "";
  std::string text =
      "### Training on K80s, as Placeto's table\n\n" +
      Head({"graph", "CPU only, s", "one GPU", "GPUs", "`human`", "`scotch`", "published placement", "`placeto`",
            "`rnn`", "evaluations of `placeto`", "of `rnn`", "`rnn` takes longer by", "`rnn` needs more evaluations"},
           1);
  std::vector<double> factors;
  for (const Task* task : rows) {
    std::string cpu;
    for (const Task& host : tasks) {
      if (host.machine == kHost && host.graph == task->graph) cpu = book.Find(host, "single").Time(1, 3);
    }
    const Row placeto = book.Find(*task, "placeto"), rnn = book.Find(*task, "rnn");
    // Until its best.
    const auto needed = [](const Row& row) {
      const std::vector<double> values =
          row.Of([](const Cell& cell) { return cell.on.empty() ? 0.0 : Evaluations(cell.on.back()); });
      return values.empty() ? "" : fmt::format("{:.0f}", Median(values));
    };
    const auto time = [&](std::string_view planner) { return book.Find(*task, planner).Time(1, 4); };
    text += Line({task->title, cpu, time("single"), std::to_string(task->devices), time("human"), time("scotch"),
                  time(kPublished), placeto.Time(1, 4), rnn.Time(1, 4), needed(placeto), needed(rnn),
                  Longer(rnn.time(), placeto.time()), Speed(rnn, placeto, Evaluations, factors)});
  }
  if (!factors.empty()) {
    text += fmt::format("\n`rnn` over `placeto` in evaluations, geometric mean of {}: {:.2g}x.\n", factors.size(),
                        GeometricMean(factors));
  }
  return text + "\n";
}

// --- GO: training on P100s -------------------------------------------------------------------------------------------

std::string GoTable(std::span<const Task> tasks, const Book& book) {
  const std::vector<const Task*> rows = Of(tasks, book, Paper::kGo);
  if (rows.empty()) return "";
  std::string text = "### Training on P100s, as GO's table of placements\n\n" +
                     Head({"graph", "GPUs", "`gdp`, s", "`human`", "`metis`", "`hdp`", "`human` takes longer by",
                           "`hdp` takes longer by", "search speed-up over `hdp`"},
                          1);
  std::vector<double> over_human, over_hdp, speed;
  for (const Task* task : rows) {
    const Row gdp = book.Find(*task, kGdp), human = book.Find(*task, kHuman), hdp = book.Find(*task, kHdp);
    if (gdp.time() && human.time()) over_human.push_back(*human.time() / *gdp.time());
    if (gdp.time() && hdp.time()) over_hdp.push_back(*hdp.time() / *gdp.time());
    text += Line({task->title, std::to_string(task->devices), gdp.Time(1, 4), human.Time(1, 4),
                  book.Find(*task, "metis").Time(1, 4), hdp.Time(1, 4), Longer(human.time(), gdp.time()),
                  Longer(hdp.time(), gdp.time()), Speed(hdp, gdp, Seconds, speed)});
  }
  const auto mean = [](const std::vector<double>& ratios) {
    return ratios.empty() ? "" : fmt::format("{:+.1f} % ({})", 100 * (GeometricMean(ratios) - 1), ratios.size());
  };
  text += Line({"geometric mean (of so many)", "", "", "", "", "", mean(over_human), mean(over_hdp),
                speed.empty() ? "" : fmt::format("{:.2g}x ({})", GeometricMean(speed), speed.size())});
  return text + "\n";
}

// --- All methods and all cells ---------------------------------------------------------------------------------------

std::string Overview(std::string_view title, const std::vector<const Task*>& tasks, const Book& book) {
  if (tasks.empty()) return "";
  std::string text = fmt::format("### All methods: {}\n\n", title) +
                     Head({"method", "problems", "a plan with every seed", "OOM", "refuses", "fails",
                           "time over `human`, geometric mean (of so many)", "over the bound, likewise", "search, s"},
                          1);
  for (const Method& method : MethodsOf(tasks)) {
    int64_t problems = 0, found = 0, too_big = 0, refuses = 0, fails = 0;
    std::vector<double> over_human, over_bound, seconds;
    for (const Task* task : tasks) {
      const Row row = book.Find(*task, method);
      if (row.empty()) continue;
      ++problems;
      too_big += row.Count(Found::kTooBig) > 0 ? 1 : 0;
      refuses += row.Count(Found::kRefuses) > 0 ? 1 : 0;
      fails += row.Count(Found::kFails) > 0 ? 1 : 0;
      const std::optional<double> time = row.time(), human = book.Find(*task, kHuman).time();
      if (!time) continue;
      ++found;
      if (human) over_human.push_back(*time / *human);
      if (const double bound = row.cells().front()->bound; bound > 0) over_bound.push_back(*time / bound);
      seconds.push_back(Median(row.Of([](const Cell& cell) { return cell.seconds; })));
    }
    if (problems == 0) continue;
    const auto mean = [](const std::vector<double>& ratios) {
      return ratios.empty() ? "" : fmt::format("{:.3f} ({})", GeometricMean(ratios), ratios.size());
    };
    text += Line({method.title, std::to_string(problems), std::to_string(found), std::to_string(too_big),
                  std::to_string(refuses), std::to_string(fails), mean(over_human), mean(over_bound),
                  seconds.empty() ? "" : fmt::format("{:.1f}", Median(seconds))});
  }
  return text + "\n";
}

// "clock", or "clock, evaluations" where seeds differ; of what did not search, why.
std::string Endings(const Row& row) {
  std::vector<std::string> endings;
  for (const Cell* cell : row.cells()) {
    std::string ending = cell->found == Found::kRefuses || cell->found == Found::kFails ? cell->why : cell->ended;
    std::ranges::replace(ending, '|', '/');
    if (std::ranges::find(endings, ending) == endings.end()) endings.push_back(std::move(ending));
  }
  return fmt::format("{}", fmt::join(endings, ", "));
}

std::string EveryCell(const Task& task, const Book& book) {
  const int digits = task.mode == "training" ? 2 : 3;
  std::string text;
  for (const Method& method : task.methods) {
    const Row row = book.Find(task, method);
    if (row.empty()) continue;
    if (text.empty()) {
      const Cell& first = *row.cells().front();
      text =
          fmt::format("#### {}\n\n{} ops; bound {:.{}f} ms.\n\n{}", task.Name(), first.ops, first.bound * 1e3, digits,
                      Head({"method", "seeds", "time, ms", "above the bound", "most memory on a device, GB",
                            "evaluations", "search, s", "ended by"},
                           1));
    }
    const auto median = [&](const auto& member, int places) {
      std::vector<double> values;
      for (const Cell* cell : row.cells()) {
        if (cell->found == Found::kPlan || cell->found == Found::kTooBig) {
          values.push_back(static_cast<double>(member(*cell)));
        }
      }
      return values.empty() ? "" : fmt::format("{:.{}f}", Median(values), places);
    };
    const std::vector<double> gaps = row.Of([](const Cell& cell) { return cell.gap(); });
    const bool bounded = row.cells().front()->bound > 0 && !gaps.empty();
    text += Line({method.title, std::to_string(row.seeds()), row.Time(1e3, digits),
                  bounded ? fmt::format("{:.1f} %", 100 * Median(gaps)) : "",
                  median([](const Cell& cell) { return static_cast<double>(cell.memory) / 1e9; }, 2),
                  median([](const Cell& cell) { return cell.evaluations; }, 0),
                  median([](const Cell& cell) { return cell.seconds; }, 2), Endings(row)});
  }
  return text.empty() ? text : text + "\n";
}

// Where the cells are from, and what they were allowed.
std::string Provenance(std::span<const Task> tasks, const Selection& selection, const Results& results) {
  std::map<std::string, int64_t> from;
  int64_t there = 0;
  const std::vector<Question> questions = Questions(tasks, selection);
  for (const Question& question : questions) {
    if (const Cell* cell = results.Find(question)) {
      ++from[cell->from];
      ++there;
    }
  }
  std::vector<std::string> places;
  for (const auto& [place, count] : from) places.push_back(fmt::format("{} ({})", place, count));
  return fmt::format("{} of {} cells{}, from {}. Limits of a cell: {} evaluations and {:g} s, on one thread; {}.\n\n",
                     there, questions.size(), selection.only.empty() ? "" : fmt::format(" with \"{}\"", selection.only),
                     places.empty() ? "nowhere" : fmt::format("{}", fmt::join(places, "; ")),
                     selection.limits.evaluations, selection.limits.seconds, Counted(selection.seeds, "seed"));
}

}  // namespace

std::string Tables(std::span<const Task> tasks, const Selection& selection, const Results& results) {
  const Book book(selection, results);
  std::vector<const Task*> inference, training, all;
  for (const Task& task : tasks) {
    if (!book.Has(task)) continue;
    all.push_back(&task);
    if (task.machine != kHost) (task.mode == "training" ? training : inference).push_back(&task);
  }
  std::string text = Provenance(tasks, selection, results);
  text += HsdagTables(tasks, book);
  text += PlacetoTable(tasks, book);
  text += GoTable(tasks, book);
  text += Overview("inference", inference, book);
  text += Overview("training", training, book);
  if (!all.empty()) text += "### Every cell\n\n";
  for (const Task* task : all) text += EveryCell(*task, book);
  return text;
}

}  // namespace berth::seeds
