// The evaluator `pieces`: one sample passes through accelerators that are called as a whole.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/parameters.h"
#include "sim/simulators.h"
#include "sim/static_memory.h"

namespace berth {
namespace {

struct PiecesOptions {
  size_t most;  // per accelerator; 0: any number
  bool memory;
};

// The ops of one call of an accelerator, or one op on the host.
struct Piece {
  DeviceId device{};
  int32_t first_op = 0;  // in PiecesWorkspace::ops, up to the next piece's
  int32_t missing = 0;   // what it waits for: edges into it, and the piece before it
  double end = 0;
};

struct PiecesWorkspace : Workspace {
  std::vector<int32_t> depth;        // op x device: pieces of the device on the way to the op, itself included
  std::vector<int32_t> piece_of;     // by op
  std::vector<int32_t> first_piece;  // by device
  std::vector<int32_t> count;        // by device: how many pieces it has that are not empty
  std::vector<Piece> pieces;         // one more than there are
  std::vector<int32_t> ops;          // by piece, then number
  std::vector<int32_t> next_op;      // by piece, while ops are sorted
  std::vector<int32_t> order;        // of the pieces, so that each comes after what it waits for
  std::vector<int32_t> tensor_in;    // by tensor: 1 + the piece that last took it in
  std::vector<size_t> sent_to;       // by device: 1 + the tensor last sent there
  StaticMemory::Workspace memory;
};

// Tarnawski et al. 2020, appendix A (latency) and lip.py, greedy.cpp of msr-fiddle/dnn-partitioning. A CPU has as many
// cores as it needs and finds all data in its memory. An accelerator is called piece by piece: a piece starts when all
// that it consumes from elsewhere is there, takes it in, runs its ops one after another, and hands over what is
// consumed elsewhere; what a piece produces is there at its end. Without staging costs a piece pays the transfers
// between devices instead.
//
// A set of ops that is not contiguous falls into pieces by how often a path to an op has left and entered the set
// (reworkSplitIntoContiguous). Pieces of several accelerators that wait for one another in a circle, which upstream
// refuses, are cut finer, by how often a path has changed the device at all.
class Pieces : public Evaluator {
 public:
  Pieces(const Problem& problem, const PiecesOptions& options, std::string name)
      : Evaluator(problem), options_(options), name_(std::move(name)), memory_(problem) {
    facts_ = {.model = PiecesFacts{.most = options.most}, .tracks_memory = options.memory, .uses_priorities = false};
  }

  const EvaluatorFacts& facts() const override { return facts_; }
  const std::string& name() const override { return name_; }
  std::unique_ptr<Workspace> NewWorkspace() const override { return std::make_unique<PiecesWorkspace>(); }

  Score ScorePlan(const PlanView& plan, Workspace& workspace, std::span<double> starts) const override {
    return Run(
        plan, static_cast<PiecesWorkspace&>(workspace),
        [&](OpId op, double start, double) {
          if (!starts.empty()) starts[Index(op)] = start;
        },
        [](TensorId, DeviceId, DeviceId, TransferPart, double, double) {});
  }

  Timeline Trace(const PlanView& plan) const override {
    PiecesWorkspace work;
    Timeline timeline;
    timeline.ops.resize(problem().num_ops());
    timeline.score = Run(
        plan, work,
        [&](OpId op, double start, double end) {
          timeline.ops[Index(op)] = {.device = plan.device[Index(op)], .start = start, .end = end};
        },
        [&](TensorId tensor, DeviceId from, DeviceId to, TransferPart part, double start, double end) {
          timeline.transfers.push_back(
              {.tensor = tensor, .from = from, .to = to, .start = start, .end = end, .part = part});
        });
    std::ranges::stable_sort(timeline.transfers, {}, [](const TransferRun& run) {
      return std::tuple(run.start, Index(run.tensor), Index(run.to));
    });
    for (const DeviceId d : problem().cluster().ids()) {
      if (TooMany(work, d) && timeline.infeasible_because.empty()) {
        timeline.infeasible_because =
            fmt::format("{} would be called for {} pieces, {} at most", problem().cluster().device(d).name,
                        work.count[Index(d)], options_.most);
      }
    }
    if (options_.memory) memory_.Trace(plan.device, timeline);
    return timeline;
  }

 private:
  // O((ops + edges) x devices).
  template <typename OnOp, typename OnTransfer>
  Score Run(const PlanView& plan, PiecesWorkspace& work, const OnOp& on_op, const OnTransfer& on_transfer) const {
    CountReentries(plan, work);
    MakePieces(plan, work);
    if (!OrderPieces(work)) {
      CountDeviceChanges(plan, work);
      MakePieces(plan, work);
      const bool in_order = OrderPieces(work);
      BERTH_CHECK(in_order, "pieces by device changes wait for one another");
    }
    work.tensor_in.assign(problem().graph().num_tensors(), 0);
    work.sent_to.assign(problem().num_devices(), 0);
    Score score;
    for (const int32_t p : work.order) {
      RunPiece(plan, work, p, on_op, on_transfer);
      score.time = std::max(score.time, work.pieces[static_cast<size_t>(p)].end);
    }
    for (const DeviceId d : problem().cluster().ids()) {
      if (TooMany(work, d)) score.outcome = Outcome::kImpossible;
    }
    if (options_.memory) memory_.Count(plan.device, work.memory, score);
    return score;
  }

  bool TooMany(const PiecesWorkspace& work, DeviceId device) const {
    return options_.most > 0 && static_cast<size_t>(work.count[Index(device)]) > options_.most;
  }

  // --- Which op belongs to which piece: piece_of gets its number within its device, from 0
  // ----------------------------

  void CountReentries(const PlanView& plan, PiecesWorkspace& work) const {
    const Graph& graph = problem().graph();
    const size_t devices = problem().num_devices();
    work.depth.assign(graph.num_ops() * devices, 0);
    work.piece_of.resize(graph.num_ops());
    for (const OpId op : graph.ops()) {
      int32_t* const row = work.depth.data() + Index(op) * devices;
      const DeviceId own = plan.device[Index(op)];
      int32_t piece = 1;
      for (const TensorId tensor : graph.inputs_of(op)) {
        const OpId producer = graph.producer(tensor);
        const int32_t* const before = work.depth.data() + Index(producer) * devices;
        for (size_t d = 0; d < devices; ++d) row[d] = std::max(row[d], before[d]);
        piece = std::max(piece, before[Index(own)] + (plan.device[Index(producer)] != own ? 1 : 0));
      }
      row[Index(own)] = piece;
      work.piece_of[Index(op)] = piece - 1;
    }
  }

  // The phases of `serial`, all host devices taken as one: no path goes back to an earlier one, so nothing waits in a
  // circle.
  void CountDeviceChanges(const PlanView& plan, PiecesWorkspace& work) const {
    const Graph& graph = problem().graph();
    const auto same = [&](DeviceId a, DeviceId b) { return a == b || (problem().on_host(a) && problem().on_host(b)); };
    for (const OpId op : graph.ops()) {
      int32_t phase = 0;
      for (const TensorId tensor : graph.inputs_of(op)) {
        const size_t producer = Index(graph.producer(tensor));
        phase =
            std::max(phase, work.piece_of[producer] + (same(plan.device[producer], plan.device[Index(op)]) ? 0 : 1));
      }
      work.piece_of[Index(op)] = phase;
    }
  }

  // Numbers the pieces over all devices, an accelerator's one after another, then the ops on the host; sorts the ops by
  // piece, and counts what each waits for. A number that a device has no op for is an empty piece.
  void MakePieces(const PlanView& plan, PiecesWorkspace& work) const {
    const Graph& graph = problem().graph();
    const size_t devices = problem().num_devices();
    work.first_piece.assign(devices + 1, 0);
    int32_t on_host = 0;
    for (const OpId op : graph.ops()) {
      const DeviceId d = plan.device[Index(op)];
      int32_t& most = work.first_piece[Index(d) + 1];
      if (problem().on_host(d)) {
        work.piece_of[Index(op)] = on_host++;
      } else {
        most = std::max(most, work.piece_of[Index(op)] + 1);
      }
    }
    for (size_t d = 0; d < devices; ++d) work.first_piece[d + 1] += work.first_piece[d];
    const int32_t on_accelerators = work.first_piece[devices];
    work.pieces.assign(static_cast<size_t>(on_accelerators + on_host) + 1, {});
    for (const OpId op : graph.ops()) {
      const DeviceId d = plan.device[Index(op)];
      int32_t& number = work.piece_of[Index(op)];
      number += problem().on_host(d) ? on_accelerators : work.first_piece[Index(d)];
      ++work.pieces[static_cast<size_t>(number) + 1].first_op;
    }
    for (size_t p = 1; p < work.pieces.size(); ++p) work.pieces[p].first_op += work.pieces[p - 1].first_op;
    SortOps(plan, work);
    CountPieces(work);
    for (const OpId op : graph.ops()) {
      Piece& piece = PieceOf(work, op);
      for (const TensorId tensor : graph.inputs_of(op)) {
        if (&PieceOf(work, graph.producer(tensor)) != &piece) ++piece.missing;
      }
    }
  }

  void SortOps(const PlanView& plan, PiecesWorkspace& work) const {
    const Graph& graph = problem().graph();
    work.ops.resize(graph.num_ops());
    work.next_op.clear();
    for (const Piece& piece : work.pieces) work.next_op.push_back(piece.first_op);
    for (const OpId op : graph.ops()) {
      const auto p = static_cast<size_t>(work.piece_of[Index(op)]);
      work.pieces[p].device = plan.device[Index(op)];
      work.ops[static_cast<size_t>(work.next_op[p]++)] = static_cast<int32_t>(op);
    }
  }

  // An accelerator's pieces run in order: each waits for the one before it.
  void CountPieces(PiecesWorkspace& work) const {
    work.count.assign(problem().num_devices(), 0);
    for (const DeviceId d : problem().cluster().ids()) {
      for (int32_t p = work.first_piece[Index(d)]; p < work.first_piece[Index(d) + 1]; ++p) {
        if (!IsEmpty(work, p)) ++work.count[Index(d)];
        if (FollowsAnother(work, p)) ++work.pieces[static_cast<size_t>(p)].missing;
      }
    }
  }

  static Piece& PieceOf(PiecesWorkspace& work, OpId op) {
    return work.pieces[static_cast<size_t>(work.piece_of[Index(op)])];
  }

  // Whether p - 1 is a piece of the same accelerator.
  bool FollowsAnother(const PiecesWorkspace& work, int32_t p) const {
    return p < work.first_piece.back() && !std::ranges::binary_search(work.first_piece, p);
  }

  static bool IsEmpty(const PiecesWorkspace& work, int32_t p) {
    const auto i = static_cast<size_t>(p);
    return work.pieces[i].first_op == work.pieces[i + 1].first_op;
  }

  // --- When each runs
  // ---------------------------------------------------------------------------------------------------

  // Fills work.order; false when pieces wait for one another in a circle.
  bool OrderPieces(PiecesWorkspace& work) const {
    const Graph& graph = problem().graph();
    const auto count = static_cast<int32_t>(work.pieces.size()) - 1;
    work.order.clear();
    for (int32_t p = 0; p < count; ++p) {
      if (work.pieces[static_cast<size_t>(p)].missing == 0) work.order.push_back(p);
    }
    const auto release = [&](int32_t p) {
      if (--work.pieces[static_cast<size_t>(p)].missing == 0) work.order.push_back(p);
    };
    for (size_t next = 0; next < work.order.size(); ++next) {
      const int32_t p = work.order[next];
      if (p + 1 < count && FollowsAnother(work, p + 1)) release(p + 1);
      ForEachOp(work, p, [&](OpId op) {
        for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
          for (const OpId consumer : graph.consumers(MakeId<TensorId>(t))) {
            if (work.piece_of[Index(consumer)] != p) release(work.piece_of[Index(consumer)]);
          }
        }
      });
    }
    return work.order.size() == static_cast<size_t>(count);
  }

  // When all that the piece consumes from elsewhere is there, and the piece before it on its device has ended.
  double ReadyTime(PiecesWorkspace& work, int32_t p) const {
    const Graph& graph = problem().graph();
    double ready = FollowsAnother(work, p) ? work.pieces[static_cast<size_t>(p) - 1].end : 0;
    ForEachOp(work, p, [&](OpId op) {
      for (const TensorId tensor : graph.inputs_of(op)) {
        const OpId producer = graph.producer(tensor);
        if (work.piece_of[Index(producer)] != p) ready = std::max(ready, PieceOf(work, producer).end);
      }
    });
    return ready;
  }

  template <typename OnOp, typename OnTransfer>
  void RunPiece(const PlanView& plan, PiecesWorkspace& work, int32_t p, const OnOp& on_op,
                const OnTransfer& on_transfer) const {
    const Graph& graph = problem().graph();
    Piece& piece = work.pieces[static_cast<size_t>(p)];
    double now = ReadyTime(work, p);
    const auto pass = [&](double length) {
      const double start = now;
      now += length;
      return start;
    };
    const DeviceId device = piece.device;
    const bool pays = !problem().on_host(device);
    if (pays) {
      ForEachOp(work, p, [&](OpId op) {
        for (const TensorId tensor : graph.inputs_of(op)) {
          const OpId producer = graph.producer(tensor);
          if (work.piece_of[Index(producer)] == p || work.tensor_in[Index(tensor)] == p + 1) continue;
          work.tensor_in[Index(tensor)] = p + 1;
          const DeviceId from = plan.device[Index(producer)];
          if (!problem().has_staging() && from == device) continue;
          const double start =
              pass(problem().has_staging() ? problem().staging(tensor) : problem().transfer_time(tensor, from, device));
          on_transfer(tensor, from, device, TransferPart::kReceive, start, now);
        }
      });
    }
    ForEachOp(work, p, [&](OpId op) {
      const double start = pass(problem().op_time(op, device));
      on_op(op, start, now);
    });
    if (pays) {
      ForEachOp(work, p, [&](OpId op) {
        for (size_t t = graph.first_output(op); t < graph.end_output(op); ++t) {
          HandOver(plan, work, p, MakeId<TensorId>(t), [&](DeviceId to, double length) {
            const double start = pass(length);
            on_transfer(MakeId<TensorId>(t), device, to, TransferPart::kSend, start, now);
          });
        }
      });
    }
    piece.end = now;
  }

  // What a piece pays to make a tensor known outside: its staging once, or a transfer to each other device.
  template <typename Pay>
  void HandOver(const PlanView& plan, PiecesWorkspace& work, int32_t p, TensorId tensor, const Pay& pay) const {
    const DeviceId device = work.pieces[static_cast<size_t>(p)].device;
    for (const OpId consumer : problem().graph().consumers(tensor)) {
      if (work.piece_of[Index(consumer)] == p) continue;
      if (problem().has_staging()) return pay(device, problem().staging(tensor));
      const DeviceId to = plan.device[Index(consumer)];
      if (to == device || work.sent_to[Index(to)] == Index(tensor) + 1) continue;
      work.sent_to[Index(to)] = Index(tensor) + 1;
      pay(to, problem().transfer_time(tensor, device, to));
    }
  }

  template <typename Function>
  static void ForEachOp(const PiecesWorkspace& work, int32_t p, const Function& function) {
    const auto i = static_cast<size_t>(p);
    for (int32_t k = work.pieces[i].first_op; k < work.pieces[i + 1].first_op; ++k) {
      function(static_cast<OpId>(work.ops[static_cast<size_t>(k)]));
    }
  }

  PiecesOptions options_;
  std::string name_;
  EvaluatorFacts facts_;
  StaticMemory memory_;
};

}  // namespace

void RegisterPieces(EvaluatorCatalog& catalog) {
  catalog.Add(
      {.name = "pieces",
       .sentence = "the time of one sample when accelerators are called as a whole, and CPUs have cores without number",
       .source = "Tarnawski et al. 2020, appendix A",
       .parameters = {Whole("q", "1", "contiguous pieces that an accelerator may hold; 0: any number", 0),
                      Choice("memory", {"msr", "none"},
                             "what counts as a device's memory: the parameters of its ops, or nothing")}},
      [](const Params& params, const EvaluatorContext& context) -> std::unique_ptr<Evaluator> {
        const Problem& problem = context.problem;
        for (const OpId op : problem.graph().ops()) {
          if (problem.graph().is_backward(op)) {
            throw Error("pieces follows one sample forward, and op {} of {} is of a backward pass; use pipeline",
                        problem.graph().op_name(op), problem.graph().name());
          }
        }
        return std::make_unique<Pieces>(
            problem,
            PiecesOptions{.most = static_cast<size_t>(params.Int("q")), .memory = params.Text("memory") == "msr"},
            params.canonical());
      });
}

}  // namespace berth
