#include <interfaces/highs_c_api.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "base/error.h"
#include "moves/rank.h"
#include "plan/favourites.h"

namespace berth {
namespace {

// The linear program of the header, in the order of columns x by edge, start by op, makespan.
class Program {
 public:
  Program(const Problem& problem, const std::vector<FavouriteEdge>& edges)
      : problem_(problem), edges_(edges), num_columns_(edges.size() + problem.num_ops() + 1) {
    // Of ops that take about one, as the solver's tolerances are made for.
    for (const OpId op : problem.graph().ops()) time_.push_back(MeanTime(problem.op_times(op)));
    double sum = 0;
    for (const double time : time_) sum += time;
    if (sum > 0) unit_ = sum / static_cast<double>(time_.size());
    AddPrecedence();
    AddFavourites();
  }

  // Nothing where it did not end.
  std::optional<std::pair<std::vector<double>, double>> Solve(const StopCheck& stop) {
    stop_ = &stop;
    const std::unique_ptr<void, decltype(&Highs_destroy)> highs(Highs_create(), &Highs_destroy);
    Check(Highs_setBoolOptionValue(highs.get(), "output_flag", 0));
    // One way through the simplex, whatever machine it is.
    Check(Highs_setStringOptionValue(highs.get(), "solver", "simplex"));
    Check(Highs_setStringOptionValue(highs.get(), "parallel", "off"));
    Check(Highs_setIntOptionValue(highs.get(), "threads", 1));
    Check(Highs_setCallback(highs.get(), &Program::Ask, this));
    Check(Highs_startCallback(highs.get(), kHighsCallbackSimplexInterrupt));
    if (!Pass(highs.get()) || !Run(highs.get())) return std::nullopt;
    std::vector<double> value(num_columns_);
    Check(Highs_getSolution(highs.get(), value.data(), nullptr, nullptr, nullptr));
    const double makespan = value.back();
    // Of all that take no longer one that sends least.
    std::vector<double> cost;
    for (const FavouriteEdge& edge : edges_) cost.push_back(edge.time / unit_);
    cost.resize(num_columns_, 0);
    Check(Highs_changeColsCostByRange(highs.get(), 0, Number(num_columns_) - 1, cost.data()));
    constexpr double kRounding = 1e-9;
    Check(Highs_changeColBounds(highs.get(), Number(num_columns_) - 1, 0, makespan * (1 + kRounding)));
    if (Run(highs.get())) Check(Highs_getSolution(highs.get(), value.data(), nullptr, nullptr, nullptr));
    value.resize(edges_.size());
    return std::pair(std::move(value), makespan * unit_);
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  static HighsInt Number(size_t value) { return static_cast<HighsInt>(value); }
  static void Check(HighsInt status) { BERTH_CHECK(status != kHighsStatusError, "HiGHS does not take the program"); }

  static void Ask(int, const char*, const HighsCallbackDataOut*, HighsCallbackDataIn* answer, void* self) {
    const StopCheck& stop = *static_cast<Program*>(self)->stop_;
    if (answer != nullptr) answer->user_interrupt = stop && stop() ? 1 : 0;
  }

  // Whether it came to an end. There always is a solution: what else ends a simplex is Ask, or digits that are lost.
  static bool Run(void* highs) {
    return Highs_run(highs) != kHighsStatusError && Highs_getModelStatus(highs) == kHighsModelStatusOptimal;
  }

  size_t Start(OpId op) const { return edges_.size() + Index(op); }

  void AddRow(double least) {
    first_.push_back(Number(column_.size()));
    least_.push_back(least);
  }
  void Add(size_t column, double value) {
    column_.push_back(Number(column));
    value_.push_back(value);
  }

  // start(j) >= start(i) + time(i) + x(i, j) transfer(i, j), and the makespan comes after all that nothing consumes.
  void AddPrecedence() {
    const Graph& graph = problem_.graph();
    size_t e = 0;
    std::vector<OpId> consumers;
    for (const OpId op : graph.ops()) {
      consumers.clear();
      for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
        for (const OpId consumer : graph.consumers(MakeId<TensorId>(t))) consumers.push_back(consumer);
      }
      std::ranges::sort(consumers);
      consumers.erase(std::ranges::unique(consumers).begin(), consumers.end());
      for (const OpId consumer : consumers) {
        AddRow(time_[Index(op)] / unit_);
        Add(Start(consumer), 1);
        Add(Start(op), -1);
        // Edges are in the same order; those that take no time are left out of them.
        if (e == edges_.size() || edges_[e].from != op || edges_[e].to != consumer) continue;
        Add(e, -edges_[e].time / unit_);
        ++e;
      }
      if (!consumers.empty()) continue;
      AddRow(time_[Index(op)] / unit_);
      Add(num_columns_ - 1, 1);
      Add(Start(op), -1);
    }
    BERTH_CHECK(e == edges_.size(), "an edge without its op");
  }

  // Of all edges of an op but one, x is 1: of those that leave it, and of those that come to it.
  void AddFavourites() {
    std::vector<std::vector<size_t>> out(problem_.num_ops()), in(problem_.num_ops());
    for (size_t e = 0; e < edges_.size(); ++e) {
      out[Index(edges_[e].from)].push_back(e);
      in[Index(edges_[e].to)].push_back(e);
    }
    for (const auto* side : {&out, &in}) {
      for (const std::vector<size_t>& edges : *side) {
        if (edges.size() < 2) continue;
        AddRow(static_cast<double>(edges.size() - 1));
        for (const size_t e : edges) Add(e, 1);
      }
    }
  }

  // False where a number is too large beside the others: HiGHS takes no coefficients above 1e15.
  bool Pass(void* highs) {
    std::vector<double> cost(num_columns_, 0), lower(num_columns_, 0), upper(num_columns_, kInfinity);
    cost.back() = 1;
    std::fill_n(upper.begin(), edges_.size(), 1);
    const std::vector<double> no_most(least_.size(), kInfinity);
    return Highs_passLp(highs, Number(num_columns_), Number(least_.size()), Number(column_.size()),
                        kHighsMatrixFormatRowwise, kHighsObjSenseMinimize, 0, cost.data(), lower.data(), upper.data(),
                        least_.data(), no_most.data(), first_.data(), column_.data(),
                        value_.data()) != kHighsStatusError;
  }

  const Problem& problem_;
  const std::vector<FavouriteEdge>& edges_;
  const size_t num_columns_;
  std::vector<double> time_;  // by op
  double unit_ = 1;           // of the program's times, in the problem's unit
  // By row.
  std::vector<double> least_;
  std::vector<HighsInt> first_, column_;
  std::vector<double> value_;
  const StopCheck* stop_ = nullptr;
};

}  // namespace

std::optional<Favourites> FavouritesByProgram(const Units& units, const StopCheck& stop) {
  const std::vector<FavouriteEdge> edges = FavouriteEdges(units);
  const size_t num_ops = units.problem().num_ops();
  if (num_ops == 0) return Favourites{.child = {}, .relaxed_makespan = 0};
  const auto solution = Program(units.problem(), edges).Solve(stop);
  if (!solution) return std::nullopt;
  return Favourites{.child = RoundFavourites(num_ops, edges, solution->first), .relaxed_makespan = solution->second};
}

}  // namespace berth
