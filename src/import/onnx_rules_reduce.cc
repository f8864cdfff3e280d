// Shapes of reductions, of what picks the largest, and of losses.

#include "base/error.h"
#include "import/onnx_fold.h"
#include "import/onnx_rule.h"

namespace berth {
namespace {

using onnx::TensorProto;

bool Reduce(Inference& i) {
  if (!i.Has(0)) return false;
  bool known = true;
  const std::vector<int64_t> axes = Axes(i.node, 1, known);
  const Dims& input = i.DimsOf(0);
  const bool keeps = i.node.attributes.Int("keepdims", 1) != 0;
  const bool all = axes.empty() && i.node.attributes.Int("noop_with_empty_axes", 0) == 0;
  std::vector<bool> reduced(input.size(), all);
  if (known) {
    for (const int64_t axis : axes) reduced[Axis(i.node, axis, input.size())] = true;
  } else if (!keeps) {
    return i.Lack("its axes are not known");
  } else {
    i.Guess();
  }
  Dims dims;
  for (size_t axis = 0; axis < input.size(); ++axis) {
    if (!reduced[axis]) dims.push_back(input[axis]);
    if (reduced[axis] && keeps) dims.push_back(1);
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

bool ArgReduce(Inference& i) {
  if (!i.Has(0)) return false;
  Dims dims = i.DimsOf(0);
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", 0), dims.size());
  if (i.node.attributes.Int("keepdims", 1) != 0) {
    dims[axis] = 1;
  } else {
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  }
  return i.Set(0, TensorProto::INT64, std::move(dims));
}

// Opset 1 has the number as an attribute; one that only a run tells is at most the axis's size.
bool TopK(Inference& i) {
  if (!i.Has(0, 1)) return false;
  Dims dims = i.DimsOf(0);
  const size_t axis = Axis(i.node, i.node.attributes.Int("axis", -1), dims.size());
  if (i.In(1) == nullptr) {
    dims[axis] = i.node.attributes.Int("k", 1);
  } else if (const auto k = ScalarInput(i, 1)) {
    dims[axis] = ToInt(*k);
  } else {
    i.Estimate();
  }
  if (dims[axis] > i.DimsOf(0)[axis]) return i.Fail(fmt::format("it picks {} of {}", dims[axis], i.DimsOf(0)[axis]));
  return i.Set(0, i.TypeOf(0), dims) && i.Set(1, TensorProto::INT64, dims);
}

// Scores (N, C, ...) and labels (N, ...): one number, or one per label; and the logarithms of the probabilities.
bool Loss(Inference& i) {
  if (!i.Has(0, 2) || !i.Has(1)) return false;
  const bool each = i.node.attributes.Text("reduction", "mean") == "none";
  return i.Set(0, i.TypeOf(0), each ? i.DimsOf(1) : Dims{}) && i.Set(1, i.TypeOf(0), i.DimsOf(0));
}

// --- Sizes that only the data decide -----------------------------------------------------------------------

bool NonZero(Inference& i) {
  if (!i.Has(0)) return false;
  const int64_t elements = CheckedElements(i.DimsOf(0), i.node.where);
  int64_t count = elements;
  if (const Content* content = i.node.InputContent(0)) {
    count = std::ranges::count_if(*content, [](long double number) { return number != 0; });
  } else if (i.In(0)->density >= 0) {
    count = static_cast<int64_t>(static_cast<double>(elements) * i.In(0)->density + 0.5);
    i.Estimate("sizes that only a run's data tell, counted as they are on average");
  } else {
    i.Estimate();
  }
  return i.Set(0, TensorProto::INT64, {static_cast<int64_t>(i.Rank(0)), count});
}

bool NonMaxSuppression(Inference& i) {
  if (!i.Has(0) || !i.Has(1)) return false;
  int64_t boxes = DimAt(i.DimsOf(0), 1);
  if (const auto most = ScalarInput(i, 2)) boxes = std::clamp<int64_t>(ToInt(*most), 0, boxes);
  if (i.In(2) == nullptr) boxes = 0;
  if (boxes > 0) i.Estimate();
  const int64_t batch_classes = Multiply(DimAt(i.DimsOf(1), 0), DimAt(i.DimsOf(1), 1), i.node);
  return i.Set(0, TensorProto::INT64, {Multiply(batch_classes, boxes, i.node), 3});
}

// Single elements, or slices along an axis; each stands once in the first output.
bool Unique(Inference& i) {
  if (!i.Has(0)) return false;
  const bool whole = !i.node.attributes.Has("axis");
  Dims dims = whole ? Dims{CheckedElements(i.DimsOf(0), i.node.where)} : i.DimsOf(0);
  int64_t& count = dims[whole ? 0 : Axis(i.node, i.node.attributes.Int("axis", 0), dims.size())];
  const int64_t all = count;
  if (const std::optional<DistinctSlices> distinct = FindDistinct(i.node)) {
    count = static_cast<int64_t>(distinct->first.size());
  } else {
    i.Estimate();
  }
  const int64_t different = count;
  return i.Set(0, i.TypeOf(0), std::move(dims)) && i.Set(1, TensorProto::INT64, {different}) &&
         i.Set(2, TensorProto::INT64, {all}) && i.Set(3, TensorProto::INT64, {different});
}

// The condition says what is kept; where it is shorter, the rest is not.
bool Compress(Inference& i) {
  if (!i.Has(0) || !i.Has(1)) return false;
  const bool whole = !i.node.attributes.Has("axis");
  Dims dims = whole ? Dims{CheckedElements(i.DimsOf(0), i.node.where)} : i.DimsOf(0);
  int64_t& kept = dims[whole ? 0 : Axis(i.node, i.node.attributes.Int("axis", 0), dims.size())];
  const int64_t most = std::min(kept, DimAt(i.DimsOf(1), 0));
  if (const Content* condition = i.node.InputContent(1)) {
    const auto end =
        condition->begin() + static_cast<ptrdiff_t>(std::min<size_t>(condition->size(), static_cast<size_t>(most)));
    kept = std::count_if(condition->begin(), end, [](long double number) { return number != 0; });
  } else if (i.In(1)->density >= 0) {
    kept = static_cast<int64_t>(static_cast<double>(most) * i.In(1)->density + 0.5);
    i.Estimate("sizes that only a run's data tell, counted as they are on average");
  } else {
    kept = most;
    i.Estimate();
  }
  return i.Set(0, i.TypeOf(0), std::move(dims));
}

constexpr ShapeRuleEntry kReductionShapeRules[] = {
    {"ReduceL1", Reduce},
    {"ReduceL2", Reduce},
    {"ReduceLogSum", Reduce},
    {"ReduceLogSumExp", Reduce},
    {"ReduceMax", Reduce},
    {"ReduceMean", Reduce},
    {"ReduceMin", Reduce},
    {"ReduceProd", Reduce},
    {"ReduceSum", Reduce},
    {"ReduceSumSquare", Reduce},
    {"ArgMax", ArgReduce},
    {"ArgMin", ArgReduce},
    {"CumProd", LikeFirst},
    {"CumSum", LikeFirst},
    {"TopK", TopK},
    {"NegativeLogLikelihoodLoss", Loss},
    {"SoftmaxCrossEntropyLoss", Loss},
    {"NonZero", NonZero},
    {"NonMaxSuppression", NonMaxSuppression},
    {"Unique", Unique},
    {"Compress", Compress},
};

}  // namespace

std::span<const ShapeRuleEntry> ReductionShapeRules() { return kReductionShapeRules; }

}  // namespace berth
