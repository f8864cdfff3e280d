#include "learn/segment_placer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "base/error.h"
#include "learn/nets.h"
#include "learn/row_blocks.h"

namespace berth {
namespace {

// The segment before; of no rows for the first one.
at::Tensor Before(const at::Tensor& x, int64_t segment, int64_t size) {
  return segment == 0 ? x.slice(0, 0, 0) : RowsOf(x, segment - 1, size);
}

}  // namespace

struct SegmentFunction : torch::autograd::Function<SegmentFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& gate,
                            const at::TensorList&, const SegmentPlacer* placer, int64_t threads) {
    std::vector<at::Tensor> kept{x, gate}, inputs;
    at::Tensor out = placer->Run(x, gate, threads, inputs);
    std::ranges::move(inputs, std::back_inserter(kept));
    context->save_for_backward(std::move(kept));
    context->saved_data["placer"] = reinterpret_cast<int64_t>(placer);
    context->saved_data["threads"] = threads;
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradient) {
    const auto* placer = reinterpret_cast<const SegmentPlacer*>(context->saved_data["placer"].toInt());
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const at::Tensor x = saved[0].detach(), gate = saved[1].detach(), to_out = gradient[0].contiguous();
    const std::vector<at::Tensor> parameters = placer->parameters();
    const int64_t size = placer->shape_.segment, segments = NumBlocks(x.size(0), size);
    at::Tensor to_x = torch::empty_like(x);
    BlockSums sums(segments);  // of the gate, then of the parameters
    const at::AutoGradMode mode(true);
    EachBlock(segments, context->saved_data["threads"].toInt(), [&](size_t part, int64_t segment) {
      const at::Tensor own = RowsOf(x, segment, size).detach().requires_grad_(true);
      const at::Tensor own_gate = gate.detach().requires_grad_(true);
      at::Tensor h = own;
      for (size_t l = 0; l < placer->layers_.size(); ++l) {
        const SegmentPlacer::Layer& layer = placer->layers_[l];
        const at::Tensor u = placer->Gated(layer, h, placer->shape_.gated ? own_gate[static_cast<int64_t>(l)] : gate);
        h = placer->Apply(layer, Before(saved[2 + l], segment, size).detach(), u);
      }
      const at::Tensor out = torch::addmm(placer->head_bias_, h, placer->head_.t());
      std::vector<at::Tensor> wanted{own, own_gate};
      wanted.insert(wanted.end(), parameters.begin(), parameters.end());
      const auto found = torch::autograd::grad({out}, wanted, {RowsOf(to_out, segment, size)}, false, false, true);
      {
        const torch::NoGradGuard no_gradient;
        RowsOf(to_x, segment, size).copy_(found[0]);
      }
      sums.Add(part, std::span(found).subspan(1));
    });
    torch::autograd::variable_list result{to_x};
    std::ranges::move(sums.Whole(parameters.size() + 1), std::back_inserter(result));
    result.emplace_back();
    result.emplace_back();
    return result;
  }
};

SegmentPlacer::SegmentPlacer(const SegmentShape& shape, at::Generator generator) : shape_(shape) {
  BERTH_CHECK(shape.width % shape.heads == 0, "{} heads of width {}", shape.heads, shape.width);
  const auto norm = [&](const std::string& name, at::Tensor& weight, at::Tensor& bias) {
    weight = register_parameter(name, torch::ones({shape.width}));
    bias = register_parameter(name + "_bias", torch::zeros({shape.width}));
  };
  for (int64_t l = 0; l < shape.layers; ++l) {
    const std::string prefix = "layer" + std::to_string(l) + "_";
    Layer layer;
    if (shape.gated) norm(prefix + "gate_norm", layer.gate_norm, layer.gate_norm_bias);
    layer.query = NewWeight(*this, prefix + "query", shape.width, shape.width, generator);
    layer.key = NewWeight(*this, prefix + "key", shape.width, shape.width, generator);
    layer.value = NewWeight(*this, prefix + "value", shape.width, shape.width, generator);
    layer.out = NewWeight(*this, prefix + "out", shape.width, shape.width, generator);
    norm(prefix + "norm", layer.norm, layer.norm_bias);
    layer.in = NewWeight(*this, prefix + "in", shape.inner, shape.width, generator);
    layer.in_bias = register_parameter(prefix + "in_bias", torch::zeros({shape.inner}));
    layer.back = NewWeight(*this, prefix + "back", shape.width, shape.inner, generator);
    layer.back_bias = register_parameter(prefix + "back_bias", torch::zeros({shape.width}));
    norm(prefix + "last_norm", layer.last_norm, layer.last_norm_bias);
    layers_.push_back(layer);
  }
  head_ = NewWeight(*this, "head", shape.outputs, shape.width, generator);
  {
    // Nearly even odds at first: what has not been tried is not ruled out.
    const torch::NoGradGuard no_gradient;
    head_.mul_(0.1);
  }
  head_bias_ = register_parameter("head_bias", torch::zeros({shape.outputs}));
}

at::Tensor SegmentPlacer::Norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const {
  return torch::layer_norm(x, {shape_.width}, weight, bias);
}

at::Tensor SegmentPlacer::Gated(const Layer& layer, const at::Tensor& h, const at::Tensor& gate) const {
  return shape_.gated ? Norm(h * gate, layer.gate_norm, layer.gate_norm_bias) : h;
}

at::Tensor SegmentPlacer::Apply(const Layer& layer, const at::Tensor& before, const at::Tensor& u) const {
  const at::Tensor context = before.size(0) == 0 ? u : torch::cat({before, u});
  const auto heads = [&](const at::Tensor& x, const at::Tensor& weight) {
    return torch::mm(x, weight.t()).view({1, x.size(0), shape_.heads, -1}).transpose(1, 2);
  };
  const at::Tensor attended =
      at::scaled_dot_product_attention(heads(u, layer.query), heads(context, layer.key), heads(context, layer.value));
  const at::Tensor joined = attended.transpose(1, 2).reshape({u.size(0), shape_.width});
  const at::Tensor y = Norm(u + torch::mm(joined, layer.out.t()), layer.norm, layer.norm_bias);
  const at::Tensor inner = torch::relu(torch::addmm(layer.in_bias, y, layer.in.t()));
  return Norm(y + torch::addmm(layer.back_bias, inner, layer.back.t()), layer.last_norm, layer.last_norm_bias);
}

at::Tensor SegmentPlacer::Run(const at::Tensor& x, const at::Tensor& gate, int64_t threads,
                              std::vector<at::Tensor>& inputs) const {
  const torch::NoGradGuard no_gradient;
  const int64_t size = shape_.segment, segments = NumBlocks(x.size(0), size);
  at::Tensor h = x;
  for (size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    at::Tensor u = h;
    if (shape_.gated) {
      u = torch::empty_like(h);
      EachBlock(segments, threads, [&](size_t, int64_t segment) {
        RowsOf(u, segment, size).copy_(Gated(layer, RowsOf(h, segment, size), gate[static_cast<int64_t>(l)]));
      });
    }
    at::Tensor next = torch::empty_like(h);
    EachBlock(segments, threads, [&](size_t, int64_t segment) {
      RowsOf(next, segment, size).copy_(Apply(layer, Before(u, segment, size), RowsOf(u, segment, size)));
    });
    inputs.push_back(u);
    h = next;
  }
  at::Tensor out = torch::empty({x.size(0), shape_.outputs}, x.options());
  EachBlock(segments, threads, [&](size_t, int64_t segment) {
    RowsOf(out, segment, size).copy_(torch::addmm(head_bias_, RowsOf(h, segment, size), head_.t()));
  });
  return out;
}

at::Tensor SegmentPlacer::Forward(const at::Tensor& x, const at::Tensor& gate, int64_t threads) const {
  BERTH_CHECK(x.size(1) == shape_.width && (!shape_.gated || gate.size(0) == shape_.layers));
  const at::Tensor used = shape_.gated ? gate : torch::zeros({0}, x.options());
  if (!at::GradMode::is_enabled()) {
    std::vector<at::Tensor> inputs;
    return Run(x, used, threads, inputs);
  }
  const std::vector<at::Tensor> parameters = this->parameters();
  return SegmentFunction::apply(x.contiguous(), used, at::TensorList(parameters), this, threads);
}

}  // namespace berth
