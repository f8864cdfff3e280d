// Turns a Plan into a Score, quickly, or into a Timeline, fully.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/catalog.h"
#include "base/stop_check.h"
#include "placement/objective.h"
#include "placement/plan.h"
#include "placement/problem.h"
#include "placement/timeline.h"

namespace berth {

enum class Contention : uint8_t { kNone, kEgress, kPorts, kLinks };

// What an evaluator computes, with what only that one has. Times are in the problem's unit.
struct ParallelFacts {
  Contention contention = Contention::kNone;
  std::optional<DeviceId> io_host{};  // where graph inputs start and outputs return to; none: everywhere
};
struct SerialFacts {
  double subgraph_overhead = 0;
  bool hetero_subgraphs = false;  // counted as OpenVINO's HETERO makes them, not by phases
  std::optional<DeviceId> io_host{};
};
struct PlacetoFacts {
  double op_gap = 0;    // a device rests after an op that took time
  double bus_hold = 0;  // a port rests after a transfer
};
struct PipelineFacts {
  bool overlap = false;          // computing, sending and receiving at the same time
  bool separate_passes = false;  // the largest forward load plus the largest backward load
};
struct PiecesFacts {
  size_t most = 0;  // pieces that an accelerator may hold; 0: any number
};
struct PartsFacts {};  // convex parts, by device numbers of their own
// Whatever a machine does.
struct MeasuredFacts {
  std::string_view memory_rule = "measured";  // where what gives the times tells the memory by another rule
  bool in_turns = false;                      // one device works at a time
};
using ModelFacts =
    std::variant<ParallelFacts, SerialFacts, PlacetoFacts, PipelineFacts, PiecesFacts, PartsFacts, MeasuredFacts>;

// What an evaluator is; wrappers forward it. `mincut`, the bounds and Verify ask.
struct EvaluatorFacts {
  ModelFacts model{};
  bool deterministic = true;  // the same plan has the same score each time
  bool remembers = false;     // asked again, it gives the score that the plan had: that is no second measurement
  bool exclusive = false;     // one score at a time, as on one machine
  bool stops = false;         // asks Workspace::stop while it works
  bool tracks_memory = true;
  bool uses_priorities = true;  // plans may carry priorities and sequences that change the score
  Objective objective{};        // what its scores' value() is

  template <typename Model>
  bool Is() const {
    return std::holds_alternative<Model>(model);
  }
  // Null where it computes something else.
  template <typename Model>
  const Model* As() const {
    return std::get_if<Model>(&model);
  }
  // For what treats models with transfers and with a host alike: none where the model has no such thing.
  Contention contention() const { return Is<ParallelFacts>() ? As<ParallelFacts>()->contention : Contention::kNone; }
  std::optional<DeviceId> io_host() const {
    if (const auto* parallel = As<ParallelFacts>()) return parallel->io_host;
    if (const auto* serial = As<SerialFacts>()) return serial->io_host;
    return std::nullopt;
  }
};

// The rule by which an evaluator counts peak memory: "berth" (tensors while they are needed), "msr" (all parameters and
// activations of a device, Tarnawski et al. 2020), "placeto" (Addanki et al. 2019), "none". Numbers of different rules
// are not comparable. docs/objectives.md says what each counts.
std::string_view MemoryRule(const EvaluatorFacts& facts);

// What that rule counts, for people: "weights for the whole run, tensors until their last use".
std::string_view DescribeMemoryRule(const EvaluatorFacts& facts);

// What disturbed the scores of an evaluator that measures, so far.
struct Disturbance {
  double stolen = 0;  // of the runs of one plan, the share in which other programs had the cores; the most
  double slowest = 1, fastest = 1;  // by how many times runs took longer than at the device file's speed; 1: not known
  double speed_change() const { return slowest / fastest; }
};

// Scratch memory of one thread; made by an Evaluator, used with that one only. After the first score of a
// kind of plan (bare, with priorities, with a sequence) no call of a simulator allocates.
class Workspace {
 public:
  virtual ~Workspace() = default;

  // Told before a score is asked for: its number in the search, by which noise is drawn.
  int64_t evaluation = 0;
  // Told once: what asks whether to give up. Evaluators whose facts say `stops` ask it while they work.
  StopCheck stop{};
  // Told by the evaluator, of the last score that failed: why, in one line.
  std::string failure{};
};

// What is different in a plan: ops on other devices, and ops with other priorities. Later entries win.
struct PlanChange {
  std::span<const std::pair<OpId, DeviceId>> moves{};
  std::span<const std::pair<OpId, double>> priorities{};  // only of a plan that has priorities
};

// A plan that is changed by moves, scored as it changes. Not thread-safe. Planners use it through Walk (search.h).
class Session {
 public:
  virtual ~Session() = default;
  // The score with this change of what is committed; changes nothing.
  virtual Score TryChange(const PlanChange& change) = 0;
  Score Try(std::span<const std::pair<OpId, DeviceId>> moves) { return TryChange({.moves = moves}); }
  Score Try(OpId op, DeviceId device) {
    const std::pair<OpId, DeviceId> move(op, device);
    return Try(std::span(&move, 1));
  }
  // Makes the last Try permanent.
  virtual void Commit() = 0;
  virtual const Score& score() const = 0;  // of what is committed
  virtual std::span<const DeviceId> device() const = 0;
};

// Bound to one Problem, which must outlive it. Const calls are safe from many threads, each with a workspace of its
// own, unless facts().exclusive.
class Evaluator {
 public:
  explicit Evaluator(const Problem& problem) : problem_(problem) {}
  virtual ~Evaluator() = default;
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  const Problem& problem() const { return problem_; }
  virtual const EvaluatorFacts& facts() const = 0;
  // Its own string again, canonical: "parallel(contention=ports)".
  virtual const std::string& name() const = 0;

  virtual std::unique_ptr<Workspace> NewWorkspace() const = 0;

  // The score of a plan without FindViolation (not checked here). `starts`, when not empty, receives each op's start
  // time. This is the inner loop of every search: no allocation after the workspace's first call. Throws nothing: a
  // plan that cannot be run has the outcome kFailed, and Workspace::failure says why.
  virtual Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts = {}) const = 0;

  // Everything. score is bit for bit that of ScorePlan where facts().deterministic.
  virtual Timeline Trace(const PlanView& plan) const = 0;

  virtual Disturbance disturbance() const { return {}; }

  // Changes scored one after another; the default scores each in full. A sequence does not outlive a move, since it
  // names the transfers of one placement: sessions leave it out. What scores in full uses `workspace`, which must
  // outlive the session.
  virtual std::unique_ptr<Session> NewSession(const PlanView& start, Workspace& workspace) const;

 private:
  const Problem& problem_;
};

class EvaluatorCatalog;

// What an evaluator is made from.
struct EvaluatorContext {
  const Problem& problem;              // outlives the evaluator
  const EvaluatorCatalog& evaluators;  // from which wrappers make what they wrap
  std::string model{};                 // the model's file, for what runs it; empty: there is none
};

class EvaluatorCatalog : public Catalog<std::unique_ptr<Evaluator>(const EvaluatorContext&)> {
 public:
  using Catalog::Catalog;
  std::unique_ptr<Evaluator> Make(std::string_view text, const Problem& problem, const std::string& model = {}) const {
    return Catalog::Make(text, {.problem = problem, .evaluators = *this, .model = model});
  }
};

// What breaks the rules of `evaluator`'s execution model in a timeline that it made for `plan`: two ops at once on a
// device, an op before its inputs have arrived, a port with two transfers, wrong lengths, memory that does not add up,
// a score that is not what the timeline shows. One line each; empty when it holds. Independent of the simulators' code.
std::vector<std::string> Verify(const Evaluator& evaluator, const PlanView& plan, const Timeline& timeline);

}  // namespace berth
