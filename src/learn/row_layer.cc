#include "learn/row_layer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "learn/row_blocks.h"

namespace berth {
namespace {

constexpr int64_t kBlock = 2048;  // its values stay in the cache of a core

int64_t BlockSize(int64_t rows) { return rows <= kWholeRows ? kWholeRows : kBlock; }

at::Tensor Joined(const std::vector<at::Tensor>& x, int64_t block, int64_t size) {
  if (x.size() == 1) return RowsOf(x[0], block, size);
  std::vector<at::Tensor> rows;
  for (const at::Tensor& each : x) rows.push_back(RowsOf(each, block, size));
  return torch::cat(rows, 1);
}

at::Tensor Forward(const std::vector<at::Tensor>& x, const at::Tensor& weight, const at::Tensor& bias,
                   Activation activation, int64_t threads) {
  const torch::NoGradGuard no_gradient;
  const int64_t rows = x[0].size(0), size = BlockSize(rows);
  at::Tensor out = torch::empty({rows, weight.size(0)}, weight.options());
  EachBlock(NumBlocks(rows, size), threads, [&](size_t, int64_t block) {
    at::Tensor to = RowsOf(out, block, size);
    torch::addmm_out(to, bias, Joined(x, block, size), weight.t());
    if (activation == Activation::kSigmoid) to.sigmoid_();
    if (activation == Activation::kRelu) to.relu_();
  });
  return out;
}

// Of what comes before the activation, from the gradient of what comes after it.
at::Tensor BackThrough(Activation activation, const at::Tensor& gradient, const at::Tensor& out) {
  switch (activation) {
    case Activation::kNone:
      return gradient;
    case Activation::kSigmoid:
      return at::sigmoid_backward(gradient, out);
    case Activation::kRelu:
      return at::threshold_backward(gradient, out, 0);
  }
  BERTH_CHECK(false);
}

struct RowLayerFunction : torch::autograd::Function<RowLayerFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::TensorList& x,
                            const at::Tensor& weight, const at::Tensor& bias, int64_t activation, int64_t threads) {
    std::vector<at::Tensor> kept = x.vec();
    at::Tensor out = Forward(kept, weight, bias, static_cast<Activation>(activation), threads);
    kept.push_back(weight);
    kept.push_back(out);
    context->save_for_backward(std::move(kept));
    context->saved_data["activation"] = activation;
    context->saved_data["threads"] = threads;
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradient) {
    const torch::NoGradGuard no_gradient;
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const std::vector<at::Tensor> x(saved.begin(), saved.end() - 2);
    const at::Tensor &weight = saved[saved.size() - 2], &out = saved.back(), from = gradient[0].contiguous();
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const int64_t size = BlockSize(out.size(0)), blocks = NumBlocks(out.size(0), size);
    std::vector<at::Tensor> to_x(x.size());  // only of those that want it
    for (size_t i = 0; i < x.size(); ++i) {
      if (context->needs_input_grad(i)) to_x[i] = torch::empty_like(x[i]);
    }
    const bool any = std::ranges::any_of(to_x, [](const at::Tensor& each) { return each.defined(); });
    BlockSums sums(blocks);
    EachBlock(blocks, context->saved_data["threads"].toInt(), [&](size_t part, int64_t block) {
      const at::Tensor of = BackThrough(activation, RowsOf(from, block, size), RowsOf(out, block, size));
      sums.Add(part, std::array{torch::mm(of.t(), Joined(x, block, size)), of.sum(0)});
      if (!any) return;
      const at::Tensor joined = torch::mm(of, weight);
      int64_t first = 0;
      for (size_t i = 0; i < x.size(); first += x[i++].size(1)) {
        if (to_x[i].defined()) RowsOf(to_x[i], block, size).copy_(joined.narrow(1, first, x[i].size(1)));
      }
    });
    torch::autograd::variable_list result = to_x;
    std::ranges::move(sums.Whole(2), std::back_inserter(result));
    result.resize(result.size() + 2);  // activation and threads
    return result;
  }
};

}  // namespace

at::Tensor RowLayer(const std::vector<at::Tensor>& x, const at::Tensor& weight, const at::Tensor& bias,
                    Activation activation, int64_t threads) {
  BERTH_CHECK(!x.empty());
  if (!at::GradMode::is_enabled()) return Forward(x, weight, bias, activation, threads);
  return RowLayerFunction::apply(at::TensorList(x), weight, bias, static_cast<int64_t>(activation), threads);
}

}  // namespace berth
