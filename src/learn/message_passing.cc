#include "learn/message_passing.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace berth {
namespace {

constexpr int64_t kLanes = 8;

// One graph's values are held by channel: width x stride, where the stride is the number of rows, rounded up. What
// stands behind the last row is never gathered, and its gradient is 0.
template <typename T>
class Passer {
 public:
  Passer(const SparseRows& rows, const std::vector<at::Tensor>& layers, int64_t rounds)
      : rows_(rows),
        n_(rows.rows()),
        d_(layers[0].size(0)),
        stride_((n_ + kLanes - 1) / kLanes * kLanes),
        rounds_(static_cast<size_t>(rounds)),
        trace_(rounds_ + 1) {
    for (size_t i = 0; i < 4; ++i) {
      weight_[i] = layers[2 * i].contiguous();
      bias_[i] = layers[2 * i + 1].contiguous();
      turned_[i] = weight_[i].t().contiguous();
      weight_gradient[i] = torch::zeros_like(weight_[i]);
      bias_gradient[i] = torch::zeros_like(bias_[i]);
    }
    for (Round& round : trace_) {
      round.x.resize(size());
      for (auto& values : round.after) values.resize(size());
      round.sum.resize(size());
    }
    for (auto* values : {&to_x_, &to_now_, &a_, &b_}) values->resize(size());
  }

  void Forward(const T* x, T* out) {
    Run(x);
    Store(trace_[rounds_].x, out);
  }

  void Backward(const T* x, const T* gradient, T* to_x) {
    Run(x);
    Load(gradient, to_now_);
    std::ranges::fill(to_x_, T{0});
    for (size_t r = rounds_; r-- > 0;) {
      Round& round = trace_[r];
      for (size_t i = 0; i < size(); ++i) to_x_[i] += to_now_[i];
      Gate(round.after[3], to_now_);
      BackThrough(3, to_now_, round.after[2], a_);
      Gate(round.after[2], a_);
      BackThrough(2, a_, round.sum, b_);
      Gather(rows_.backward(), b_, a_);
      Gate(round.after[1], a_);
      BackThrough(1, a_, round.after[0], b_);
      Gate(round.after[0], b_);
      BackThrough(0, b_, round.x, to_now_);
    }
    for (size_t i = 0; i < size(); ++i) to_x_[i] += to_now_[i];
    Store(to_x_, to_x);
  }

  std::array<at::Tensor, 4> weight_gradient, bias_gradient;

 private:
  using Values = std::vector<T>;
  struct Round {
    Values x;                     // before it
    std::array<Values, 4> after;  // each layer and its ReLU; the last is 0 where a row is empty
    Values sum;
  };

  size_t size() const { return static_cast<size_t>(d_ * stride_); }

  void Run(const T* x) {
    Load(x, trace_[0].x);
    for (size_t r = 0; r < rounds_; ++r) {
      Round& round = trace_[r];
      Layer(0, round.x, round.after[0]);
      Layer(1, round.after[0], round.after[1]);
      Gather(rows_.forward(), round.after[1], round.sum);
      Layer(2, round.sum, round.after[2]);
      Layer(3, round.after[2], round.after[3]);
      Values& next = trace_[r + 1].x;
      for (int64_t c = 0; c < d_; ++c) {
        for (int64_t v = 0; v < n_; ++v) {
          if (IsEmpty(v)) round.after[3][At(c, v)] = 0;
        }
      }
      for (size_t i = 0; i < size(); ++i) next[i] = trace_[0].x[i] + round.after[3][i];
    }
  }

  size_t At(int64_t channel, int64_t row) const { return static_cast<size_t>(channel * stride_ + row); }
  bool IsEmpty(int64_t v) const {
    const auto& start = rows_.forward().start;
    return start[static_cast<size_t>(v)] == start[static_cast<size_t>(v) + 1];
  }

  void Load(const T* from, Values& to) const {
    for (int64_t c = 0; c < d_; ++c) {
      for (int64_t v = 0; v < stride_; ++v) to[At(c, v)] = v < n_ ? from[v * d_ + c] : T{0};
    }
  }
  void Store(const Values& from, T* to) const {
    for (int64_t c = 0; c < d_; ++c) {
      for (int64_t v = 0; v < n_; ++v) to[v * d_ + c] = from[At(c, v)];
    }
  }

  // out = matrix * in, plus a bias per channel or 0. Four channels at a time, so that sums stay in registers.
  void Multiply(const T* matrix, const T* bias, const Values& in, Values& out) const {
    for (int64_t o = 0; o < d_; ++o) {
      T* __restrict to = out.data() + o * stride_;
      std::fill(to, to + stride_, bias == nullptr ? T{0} : bias[o]);
      const T* w = matrix + o * d_;
      int64_t i = 0;
      for (; i + 4 <= d_; i += 4) {
        const T* __restrict from = in.data() + i * stride_;
        for (int64_t v = 0; v < stride_; ++v) {
          to[v] += (w[i] * from[v] + w[i + 1] * from[v + stride_]) +
                   (w[i + 2] * from[v + 2 * stride_] + w[i + 3] * from[v + 3 * stride_]);
        }
      }
      for (; i < d_; ++i) {
        const T* __restrict from = in.data() + i * stride_;
        for (int64_t v = 0; v < stride_; ++v) to[v] += w[i] * from[v];
      }
    }
  }

  void Layer(size_t layer, const Values& in, Values& out) const {
    Multiply(weight_[layer].template const_data_ptr<T>(), bias_[layer].template const_data_ptr<T>(), in, out);
    // A NaN stays one.
    for (T& value : out) value = value < 0 ? T{0} : value;
  }

  static void Gate(const Values& after, Values& gradient) {
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = after[i] > 0 ? gradient[i] : T{0};
  }

  // The gradient of a layer's parameters, and of its input.
  void BackThrough(size_t layer, const Values& gradient, const Values& in, Values& to_in) {
    T* to_weight = weight_gradient[layer].template mutable_data_ptr<T>();
    T* to_bias = bias_gradient[layer].template mutable_data_ptr<T>();
    for (int64_t o = 0; o < d_; ++o) {
      const T* g = gradient.data() + o * stride_;
      for (int64_t i = 0; i < d_; ++i) to_weight[o * d_ + i] += Dot(g, in.data() + i * stride_);
      for (int64_t v = 0; v < n_; ++v) to_bias[o] += g[v];
    }
    Multiply(turned_[layer].template const_data_ptr<T>(), nullptr, gradient, to_in);
  }

  T Dot(const T* a, const T* b) const {
    T lane[kLanes] = {};
    for (int64_t v = 0; v < stride_; v += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) lane[l] += a[v + l] * b[v + l];
    }
    T sum = 0;
    for (const T value : lane) sum += value;
    return sum;
  }

  void Gather(const SparseRows::Half& half, const Values& from, Values& to) const {
    for (int64_t c = 0; c < d_; ++c) {
      const T* source = from.data() + c * stride_;
      for (int64_t v = 0; v < stride_; ++v) {
        T sum = 0;
        if (v < n_) {
          const auto end = static_cast<size_t>(half.start[static_cast<size_t>(v) + 1]);
          for (auto p = static_cast<size_t>(half.start[static_cast<size_t>(v)]); p < end; ++p) {
            sum += source[half.column[p]];
          }
        }
        to[At(c, v)] = sum;
      }
    }
  }

  const SparseRows& rows_;
  int64_t n_, d_, stride_;
  size_t rounds_;
  std::array<at::Tensor, 4> weight_, bias_, turned_;
  std::vector<Round> trace_;
  Values to_x_, to_now_, a_, b_;
};

template <typename T>
at::Tensor ForwardAll(const at::Tensor& x, const std::vector<at::Tensor>& layers, const SparseRows& rows,
                      int64_t rounds) {
  Passer<T> passer(rows, layers, rounds);
  at::Tensor out = torch::empty_like(x);
  const int64_t each = x.size(1) * x.size(2);
  for (int64_t b = 0; b < x.size(0); ++b) {
    passer.Forward(x.const_data_ptr<T>() + b * each, out.mutable_data_ptr<T>() + b * each);
  }
  return out;
}

template <typename T>
torch::autograd::variable_list BackwardAll(const at::Tensor& x, const at::Tensor& gradient,
                                           const std::vector<at::Tensor>& layers, const SparseRows& rows,
                                           int64_t rounds) {
  Passer<T> passer(rows, layers, rounds);
  at::Tensor to_x = torch::empty_like(x);
  const int64_t each = x.size(1) * x.size(2);
  for (int64_t b = 0; b < x.size(0); ++b) {
    passer.Backward(x.const_data_ptr<T>() + b * each, gradient.const_data_ptr<T>() + b * each,
                    to_x.mutable_data_ptr<T>() + b * each);
  }
  torch::autograd::variable_list all = {to_x};
  for (size_t i = 0; i < 4; ++i) {
    all.push_back(passer.weight_gradient[i]);
    all.push_back(passer.bias_gradient[i]);
  }
  all.resize(all.size() + 2);  // rows and rounds
  return all;
}

struct PassFunction : torch::autograd::Function<PassFunction> {
  using Tensor = at::Tensor;
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& w0, const Tensor& b0,
                        const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& b2, const Tensor& w3,
                        const Tensor& b3, const SparseRows* rows, int64_t rounds) {
    context->saved_data["rows"] = reinterpret_cast<int64_t>(rows);
    context->saved_data["rounds"] = rounds;
    const Tensor from = x.contiguous();
    context->save_for_backward({from, w0, b0, w1, b1, w2, b2, w3, b3});
    const std::vector<Tensor> layers = {w0, b0, w1, b1, w2, b2, w3, b3};
    return from.scalar_type() == torch::kFloat64 ? ForwardAll<double>(from, layers, *rows, rounds)
                                                 : ForwardAll<float>(from, layers, *rows, rounds);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradient) {
    const auto* rows = reinterpret_cast<const SparseRows*>(context->saved_data["rows"].toInt());
    const int64_t rounds = context->saved_data["rounds"].toInt();
    torch::autograd::variable_list saved = context->get_saved_variables();
    const Tensor x = saved[0], from = gradient[0].contiguous();
    const std::vector<Tensor> layers(saved.begin() + 1, saved.end());
    return x.scalar_type() == torch::kFloat64 ? BackwardAll<double>(x, from, layers, *rows, rounds)
                                              : BackwardAll<float>(x, from, layers, *rows, rounds);
  }
};

}  // namespace

at::Tensor PassMessages(const at::Tensor& x, const std::vector<at::Tensor>& layers, const SparseRows& rows,
                        int64_t rounds) {
  BERTH_CHECK(layers.size() == 8 && x.dim() == 3 && x.size(1) == rows.rows() && x.size(2) == layers[0].size(0));
  BERTH_CHECK(rows.forward().weight.empty(), "messages have no weights");
  return PassFunction::apply(x, layers[0], layers[1], layers[2], layers[3], layers[4], layers[5], layers[6], layers[7],
                             &rows, rounds);
}

}  // namespace berth
