#include "base/error.h"
#include "import/ir_net.h"
#include "import/ir_work.h"

namespace berth {
namespace {

class GraphMaker {
 public:
  GraphMaker(const IrNet& net, IrView view, const std::string& path)
      : net_(net), view_(view), path_(path), work_(net, path), builder_(net.name) {}

  Graph Make() {
    AddOps();
    if (builder_.num_ops() == 0) {
      throw Error("{}: has inputs, constants and results alone; a model with a layer that computes was expected",
                  path_);
    }
    for (size_t i = 0; i < net_.layers.size(); ++i) Connect(i);
    for (const std::string& note : net_.notes) builder_.AddNote(note);
    if (!unknown_.empty()) {
      builder_.AddNote(fmt::format("costed by their bytes, no formula is known: {}", fmt::join(unknown_, ", ")));
    }
    builder_.AddNote(
        view_ == IrView::kRaw
            ? "raw view: every layer of the IR is an op; constants and what is made of them cost and transfer nothing"
            : "folded view: constants are parameters, inputs and results are no ops");
    return builder_.Build(path_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  const IrLayer& layer(size_t i) const { return net_.layers[i]; }
  bool is_op(size_t i) const { return op_[i] != kNone; }

  void AddOps() {
    op_.assign(net_.layers.size(), kNone);
    entity_.resize(net_.layers.size());
    parameter_.assign(net_.layers.size(), kNone);
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      const IrLayer& l = layer(i);
      const bool ends = l.type == "Parameter" || l.type == "Result";
      if (view_ == IrView::kFolded && (work_.is_constant(i) || ends)) {
        if (l.type != "Parameter") continue;
        for (const IrPort& port : l.outputs) {
          entity_[i].push_back(builder_.AddInput(work_.BytesOf(port), l.name));
          builder_.SetInputShape(entity_[i].back(), port.dims, port.type);
        }
        continue;
      }
      op_[i] = builder_.AddOp(
          l.name, l.type,
          work_.is_constant(i) || ends ? OpWork{.op_class = OpClass::kDataMovement} : work_.Of(i, unknown_));
      for (const IrPort& port : l.outputs) {
        entity_[i].push_back(builder_.AddTensor(op_[i], work_.is_constant(i) ? 0 : work_.BytesOf(port)));
        builder_.SetShape(entity_[i].back(), port.dims);
        if (work_.is_constant(i)) builder_.MarkConstant(entity_[i].back());
      }
    }
  }

  void Connect(size_t i) {
    if (layer(i).type == "Result" && view_ == IrView::kFolded) {
      for (const IrLayer::Source& source : layer(i).inputs) {
        if (is_op(source.layer)) builder_.MarkOutput(entity_[source.layer][source.output]);
      }
      return;
    }
    if (!is_op(i)) return;
    for (size_t k = 0; k < layer(i).inputs.size(); ++k) {
      const auto [source, output] = layer(i).inputs[k];
      if (is_op(source)) {
        builder_.Consume(entity_[source][output], op_[i]);
      } else if (!work_.is_constant(source)) {
        builder_.UseInput(entity_[source][output], op_[i]);
      }
      if (work_.ReadsWeight(i, k)) {
        if (parameter_[source] == kNone)
          parameter_[source] = builder_.AddParameter(work_.stored_bytes(source), layer(source).name);
        builder_.UseParameter(parameter_[source], op_[i]);
      }
    }
    if (work_.is_constant(i)) return;
    for (const IrWeight& weight : work_.BodyWeights(i)) {
      builder_.UseParameter(builder_.AddParameter(weight.bytes, weight.name), op_[i]);
    }
  }

  const IrNet& net_;
  const IrView view_;
  const std::string& path_;
  const IrWork work_;
  GraphBuilder builder_;
  std::vector<size_t> op_;                   // or kNone
  std::vector<std::vector<size_t>> entity_;  // by output: a tensor, or an input in the folded view
  std::vector<size_t> parameter_;            // or kNone
  std::vector<std::string> unknown_;
};

}  // namespace

Graph BuildIrGraph(const IrNet& net, IrView view, const std::string& path) {
  return GraphMaker(net, view, path).Make();
}

}  // namespace berth
