#include <algorithm>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "placement/search.h"
#include "plan/causes.h"
#include "plan/named_planner.h"
#include "plan/planners.h"

namespace berth {
namespace {

// A flow network in whole numbers: times are multiplied by a power of two such that no placement worth having costs
// more than 2^56. A double has 53 bits, so that what is lost is below the rounding of the sum that a cut stands for,
// and the algorithm's comparisons with zero are exact.
class CutNetwork {
 public:
  // `most`: no cut that is looked for costs more. Where that is nothing, whatever takes time is an arc never to be cut.
  explicit CutNetwork(double most) : shift_(most > 0 ? 55 - std::ilogb(most) : kBeyondAll) {}

  size_t source() const { return source_; }
  size_t AddNode() { return nodes_++; }

  // Paid when `node` is on the sink's side, and when it is on the source's. What is paid on both sides decides nothing.
  void AddTerminal(size_t node, double on_sink_side, double on_source_side) {
    const int64_t to_source = Scaled(on_sink_side), to_sink = Scaled(on_source_side);
    const int64_t both = std::min(to_source, to_sink);
    constant_ += both;
    if (to_source > both) Join(source_, node, to_source - both, 0);
    if (to_sink > both) Join(node, sink_, to_sink - both, 0);
  }

  // `there` is paid when `a` is on the source's side and `b` on the sink's, `back` when it is the other way round.
  void AddArcs(size_t a, size_t b, double there, double back) { Join(a, b, Scaled(there), Scaled(back)); }

  // Solves it and returns the least cost, as a time again.
  double Solve() {
    // The library's compact graph wants its edges in the order of their origins.
    std::vector<size_t> position(arcs_.size()), next(nodes_ + 1, 0);
    for (const Arc& arc : arcs_) ++next[arc.from + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (size_t i = 0; i < arcs_.size(); ++i) position[i] = next[arcs_[i].from]++;
    std::vector<std::pair<size_t, size_t>> ends(arcs_.size());
    std::vector<int64_t> capacity(arcs_.size()), residual(arcs_.size());
    std::vector<Flow::edge_descriptor> reverse(arcs_.size()), predecessor(nodes_);
    for (size_t i = 0; i < arcs_.size(); ++i) {
      ends[position[i]] = {arcs_[i].from, arcs_[i].to};
      capacity[position[i]] = arcs_[i].capacity;
      // Arcs come in pairs, one the reverse of the other.
      reverse[position[i]] = Flow::edge_descriptor(arcs_[i].to, position[i ^ 1]);
    }
    const Flow graph(boost::edges_are_sorted, ends.begin(), ends.end(), nodes_);
    std::vector<long> distance(nodes_);
    color_.assign(nodes_, boost::default_color_type());
    const auto node = get(boost::vertex_index, graph);
    const auto edge = get(boost::edge_index, graph);
    const auto map = [](auto& values, const auto& index) {
      return boost::make_iterator_property_map(values.begin(), index);
    };
    const int64_t flow = boost::boykov_kolmogorov_max_flow(
        graph, map(capacity, edge), map(residual, edge), map(reverse, edge), map(predecessor, node), map(color_, node),
        map(distance, node), node, source_, sink_);
    return std::ldexp(static_cast<double>(flow + constant_), -shift_);
  }

  // Of the cut that Solve found: what the source still reaches.
  bool OnSourceSide(size_t node) const { return color_[node] == boost::black_color; }

 private:
  using Flow = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                  boost::no_property, size_t, size_t>;
  struct Arc {
    size_t from, to;
    int64_t capacity;
  };

  static constexpr int64_t kNever = int64_t{1} << 60;  // an arc that no cut worth having crosses
  static constexpr int kBeyondAll = 4096;              // a power of two by which every time is infinite

  int64_t Scaled(double time) const {
    const double scaled = std::ldexp(time, shift_);
    return scaled < 0x1p57 ? std::llround(scaled) : kNever;
  }

  void Join(size_t a, size_t b, int64_t there, int64_t back) {
    arcs_.push_back({a, b, there});
    arcs_.push_back({b, a, back});
  }

  std::vector<Arc> arcs_;
  size_t nodes_ = 0;
  int shift_;
  size_t source_ = AddNode();
  size_t sink_ = AddNode();
  int64_t constant_ = 0;
  std::vector<boost::default_color_type> color_;
};

// Where one thing happens after another the objective is a sum over ops and transfers: per time unit, what they cost.
// The host, on the source's side, is where graph inputs start and outputs return to; any of the two where they are
// everywhere.
struct CutRates {
  explicit CutRates(const Evaluator& evaluator)
      : io(evaluator.facts().io_host().has_value()), host(evaluator.facts().io_host().value_or(DeviceId{0})) {
    const ObjectiveRates rates = RatesOf(evaluator);
    for (size_t d = 0; d < 2; ++d) computing[d] = rates.computing[d] + rates.whole;
    sending = rates.whole;
  }
  double computing[2];  // by device
  double sending;
  bool io;
  DeviceId host;
  DeviceId other{1 - static_cast<int32_t>(host)};
};

// Serial execution without overheads: ops, and transfers of tensors and, with io on the host, of inputs and outputs.
double SerialCost(const Problem& problem, const CutRates& rates, std::span<const DeviceId> device) {
  const Graph& graph = problem.graph();
  double cost = 0;
  for (const OpId op : graph.ops()) {
    const DeviceId here = device[Index(op)];
    cost += rates.computing[Index(here)] * problem.op_time(op, here);
  }
  const auto any_on = [&](std::span<const OpId> ops, DeviceId there) {
    return std::ranges::any_of(ops, [&](OpId op) { return device[Index(op)] == there; });
  };
  for (const TensorId tensor : graph.tensors()) {
    const DeviceId from = device[Index(graph.producer(tensor))];
    const DeviceId to = from == rates.host ? rates.other : rates.host;
    const bool returned = rates.io && to == rates.host && graph.is_output(tensor);
    if (returned || any_on(graph.consumers(tensor), to)) {
      cost += rates.sending * problem.transfer_time(tensor, from, to);
    }
  }
  for (const InputId input : graph.inputs()) {
    if (!rates.io || !any_on(graph.input_consumers(input), rates.other)) continue;
    cost += rates.sending * problem.transfer_time(graph.input_bytes(input), rates.host, rates.other);
  }
  return cost;
}

// Two devices under serial execution: the least sum of op times and transfers is a minimum cut between the devices
// (Stone 1977, section 3), and so is the least energy, or sum of both. A unit's arcs to source and sink carry its time
// on the other device. A tensor has two helper nodes, one per direction: producer -> helper with the length of the
// transfer, helper -> each consumer never to be cut, so that it is paid once, however many consumers are on the other
// side. Exact for serial execution without an overhead per subgraph where the result fits into memory; else a start,
// and it says so. With io on the host the source itself makes the graph's inputs and takes its outputs. One evaluation.
// The clock is looked at between flows; one flow is not interrupted.
class MinCutPlanner : public NamedPlanner {
  static constexpr double kMuchLess = 16;

 public:
  using NamedPlanner::NamedPlanner;

  PlannerFacts facts() const override { return {.deterministic_without_seed = true}; }

  std::optional<std::string> Refuses(const Problem& problem, const Evaluator& evaluator) const override {
    if (problem.num_devices() != 2)
      return fmt::format("it places on two devices, the cluster has {}", problem.num_devices());
    if (auto refused = RefusesSeparate(problem)) return refused;
    return NamedPlanner::Refuses(problem, evaluator);
  }

  PlanResult MakePlan(const PlanRequest& request) override {
    Search search(request);
    const Problem& problem = request.problem();
    const Units units(problem);
    const EvaluatorFacts& facts = request.evaluator.facts();
    const CutRates rates(request.evaluator);
    Plan plan{.device = units.AllOn(rates.host)};
    const double most =
        std::min(SerialCost(problem, rates, plan.device), SerialCost(problem, rates, units.AllOn(rates.other)));
    double least = Cut(units, rates, most, plan.device);
    double cost = SerialCost(problem, rates, plan.device);
    // Times are rounded to a share of what a cut may cost: where it costs far less than one device, once more with
    // that.
    bool stopped = false;
    for (double allowed = most; cost > 0 && cost < allowed / kMuchLess;) {
      stopped = search.Interrupted();
      if (stopped) break;
      allowed = cost;
      least = Cut(units, rates, allowed, plan.device);
      cost = SerialCost(problem, rates, plan.device);
    }
    BERTH_CHECK(stopped || std::abs(cost - least) <= 1e-9 * cost, "the cut costs {}, its placement {}", least, cost);

    const Score score = search.Evaluate(plan);
    const auto* serial = facts.As<SerialFacts>();
    const bool optimal = !stopped && serial != nullptr && serial->subgraph_overhead == 0 && score.fits();
    // Overheads and what does not fit only make it longer. The flow adds in another order than a score.
    if (!stopped && serial != nullptr && !optimal) search.Prove(std::min(least * (1 - 2e-9), score.value()));
    PlanResult result =
        search.Finish(optimal, stopped ? "it was stopped before its times were exact" : Note(facts, serial, score));
    GiveCauses(request, result, "on its side of the minimum cut");
    return result;
  }

 private:
  static std::string Note(const EvaluatorFacts& facts, const SerialFacts* serial, const Score& score) {
    if (serial == nullptr) return "the minimum cut is exact for serial execution only; here it is a starting point";
    if (serial->subgraph_overhead > 0) {
      return "the minimum cut does not count the overhead per subgraph: it is a starting point";
    }
    if (!score.fits()) return "the minimum cut does not fit into memory: it is a starting point";
    return facts.objective.is_time() ? "a minimum cut: no placement is faster"
                                     : "a minimum cut: no placement is better";
  }

  // Writes the placement of a minimum cut and returns what it costs.
  static double Cut(const Units& units, const CutRates& rates, double most, std::span<DeviceId> placement) {
    const Problem& problem = units.problem();
    const Graph& graph = problem.graph();
    const DeviceId host = rates.host, other = rates.other;
    CutNetwork network(most);
    std::vector<size_t> node(units.size());
    for (size_t unit = 0; unit < units.size(); ++unit) {
      node[unit] = network.AddNode();
      network.AddTerminal(node[unit], rates.computing[Index(other)] * units.time(unit, other),
                          rates.computing[Index(host)] * units.time(unit, host));
    }
    const auto add_nodes = [&](std::span<const OpId> ops, std::vector<size_t>& nodes) {
      for (const OpId op : ops) nodes.push_back(node[units.unit_of(op)]);
    };
    std::vector<size_t> consumers;
    for (const TensorId tensor : graph.tensors()) {
      consumers.clear();
      add_nodes(graph.consumers(tensor), consumers);
      const size_t producer = node[units.unit_of(graph.producer(tensor))];
      if (rates.io && graph.is_output(tensor)) {
        if (problem.constraints().forbids(tensor, other, host)) {
          // Results return all the same; that costs what it costs.
          std::vector<size_t> returned = {network.source()};
          AddTensor(network, producer, returned, 0, rates.sending * problem.transfer_time(tensor, other, host));
        } else {
          consumers.push_back(network.source());
        }
      }
      AddTensor(network, producer, consumers, SentIn(problem, rates, tensor, host, other),
                SentIn(problem, rates, tensor, other, host));
    }
    for (const InputId input : graph.inputs()) {
      if (!rates.io) break;
      consumers.clear();
      add_nodes(graph.input_consumers(input), consumers);
      AddTensor(network, network.source(), consumers,
                rates.sending * problem.transfer_time(graph.input_bytes(input), host, other), 0);
    }
    const double least = network.Solve();
    for (size_t unit = 0; unit < units.size(); ++unit) {
      units.Put(placement, unit, network.OnSourceSide(node[unit]) ? host : other);
    }
    return least;
  }

  // What may not be sent costs more than any cut.
  static double SentIn(const Problem& problem, const CutRates& rates, TensorId tensor, DeviceId from, DeviceId to) {
    return problem.constraints().forbids(tensor, from, to) ? kCannotRun
                                                           : rates.sending * problem.transfer_time(tensor, from, to);
  }

  // `there` is paid once when the producer is on the source's side and any consumer is not, `back` the other way round.
  static void AddTensor(CutNetwork& network, size_t producer, std::vector<size_t>& consumers, double there,
                        double back) {
    std::ranges::sort(consumers);
    const auto repeated = std::ranges::unique(consumers);
    consumers.erase(repeated.begin(), repeated.end());
    std::erase(consumers, producer);
    if (consumers.empty()) return;
    const bool from_or_to_host = producer == network.source() || consumers.front() == network.source();
    if (consumers.size() == 1 && !from_or_to_host) {
      network.AddArcs(producer, consumers.front(), there, back);
      return;
    }
    const size_t sent_there = network.AddNode(), sent_back = network.AddNode();
    network.AddArcs(producer, sent_there, there, 0);
    network.AddArcs(sent_back, producer, back, 0);
    for (const size_t consumer : consumers) {
      network.AddArcs(sent_there, consumer, kCannotRun, 0);
      network.AddArcs(consumer, sent_back, kCannotRun, 0);
    }
  }
};

}  // namespace

void RegisterMinCut(PlannerCatalog& catalog) {
  catalog.Add({.name = "mincut",
               .sentence = "The exact optimum for two devices under serial execution, by maximum flow.",
               .source = "Stone 1977; flow: Boykov and Kolmogorov 2004"},
              [](const Params& params, const PlannerCatalog&) { return std::make_unique<MinCutPlanner>(params); });
}

}  // namespace berth
