#include "learn/message_passing.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/error.h"

// Compiled once per generation of processors, of which the program takes its own when it starts. (The sanitizers cannot
// start such functions.)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define BERTH_FOR_EACH_PROCESSOR [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define BERTH_FOR_EACH_PROCESSOR
#endif
// What such functions call must become part of them.
#define BERTH_INLINE [[gnu::always_inline]] inline

namespace berth {
namespace {

// One graph's values are a vector per row, of its channels and zeros behind them, so that a gather is a sum of vectors.
template <typename T, int64_t kWidth>
class Passer {
 public:
  // `keep`: what Backward needs of every round; Forward alone needs room for one.
  Passer(const SparseRows& rows, const std::vector<at::Tensor>& layers, int64_t rounds, bool keep)
      : rows_(rows),
        n_(static_cast<size_t>(rows.rows())),
        d_(static_cast<size_t>(layers[0].size(0))),
        rounds_(static_cast<size_t>(rounds)),
        trace_(keep ? rounds_ : 1) {
    for (size_t i = 0; i < 4; ++i) {
      Layer& layer = layers_[i];
      const at::Tensor weight = layers[2 * i].contiguous(), bias = layers[2 * i + 1].contiguous();
      for (size_t o = 0; o < d_; ++o) {
        layer.bias.at[o] = bias.template const_data_ptr<T>()[o];
        for (size_t k = 0; k < d_; ++k) {
          layer.by_input[k].at[o] = layer.by_output[o].at[k] = weight.template const_data_ptr<T>()[o * d_ + k];
        }
      }
    }
    for (Round& round : trace_) {
      for (Rows* each : {&round.x, &round.sum}) each->resize(n_);
      for (Rows& each : round.after) each.resize(n_);
    }
    for (Rows* each : {&x_, &to_x_, &to_now_, &a_, &b_}) each->resize(n_);
  }

  BERTH_INLINE void Forward(const T* x, T* out) {
    Run(x);
    Store(to_now_, out);
  }

  BERTH_INLINE void Backward(const T* x, const T* gradient, T* to_x) {
    Run(x);
    Load(gradient, to_now_);
    std::ranges::fill(to_x_, Row{});
    for (size_t r = rounds_; r-- > 0;) {
      Round& round = trace_[r];
      for (size_t v = 0; v < n_; ++v) to_x_[v].at += to_now_[v].at;
      Gate(round.after[3], to_now_);
      BackThrough(layers_[3], to_now_, round.after[2], a_);
      Gate(round.after[2], a_);
      BackThrough(layers_[2], a_, round.sum, b_);
      Gather(rows_.backward(), b_, a_);
      Gate(round.after[1], a_);
      BackThrough(layers_[1], a_, round.after[0], b_);
      Gate(round.after[0], b_);
      BackThrough(layers_[0], b_, round.x, to_now_);
    }
    for (size_t v = 0; v < n_; ++v) to_x_[v].at += to_now_[v].at;
    Store(to_x_, to_x);
  }

  // Of a layer's weights and bias, summed over all calls of Backward.
  std::pair<at::Tensor, at::Tensor> Gradients(size_t layer) const {
    const auto d = static_cast<int64_t>(d_);
    std::pair<at::Tensor, at::Tensor> gradients{torch::empty({d, d}, torch::CppTypeToScalarType<T>::value),
                                                torch::empty({d}, torch::CppTypeToScalarType<T>::value)};
    for (size_t o = 0; o < d_; ++o) {
      for (size_t k = 0; k < d_; ++k) {
        gradients.first.template mutable_data_ptr<T>()[o * d_ + k] = layers_[layer].to_weight[k].at[o];
      }
      gradients.second.template mutable_data_ptr<T>()[o] = layers_[layer].to_bias.at[o];
    }
    return gradients;
  }

 private:
  // One vector. (As an argument of a template the bare type would lose its attribute, and its alignment is that of the
  // oldest processor.)
  struct alignas(std::min<size_t>(kWidth * sizeof(T), 64)) Row {
    typedef T Vector __attribute__((vector_size(static_cast<size_t>(kWidth) * sizeof(T))));
    Vector at{};
  };
  using Vector = typename Row::Vector;
  using Rows = std::vector<Row>;
  struct Layer {
    Rows by_input = Rows(kWidth), by_output = by_input;  // weights: a row per input, per output
    Row bias{};
    Rows to_weight = by_input;  // gradients; to_weight has a row per input
    Row to_bias{};
  };
  struct Round {
    Rows x;                     // before it
    std::array<Rows, 4> after;  // each layer and its ReLU; the last is 0 where a row is empty
    Rows sum;
  };

  // Leaves what comes out in to_now_.
  BERTH_INLINE void Run(const T* x) {
    Load(x, x_);
    to_now_ = x_;
    const auto& start = rows_.forward().start;
    for (size_t r = 0; r < rounds_; ++r) {
      Round& round = trace_[std::min(r, trace_.size() - 1)];
      round.x.swap(to_now_);
      Through(layers_[0], round.x, round.after[0]);
      Through(layers_[1], round.after[0], round.after[1]);
      Gather(rows_.forward(), round.after[1], round.sum);
      Through(layers_[2], round.sum, round.after[2]);
      Through(layers_[3], round.after[2], round.after[3]);
      for (size_t v = 0; v < n_; ++v) {
        if (start[v] == start[v + 1]) round.after[3][v] = Row{};
        to_now_[v].at = x_[v].at + round.after[3][v].at;
      }
    }
  }

  BERTH_INLINE void Load(const T* from, Rows& to) const {
    for (size_t v = 0; v < n_; ++v) {
      for (size_t c = 0; c < d_; ++c) to[v].at[c] = from[v * d_ + c];
    }
  }
  BERTH_INLINE void Store(const Rows& from, T* to) const {
    for (size_t v = 0; v < n_; ++v) {
      for (size_t c = 0; c < d_; ++c) to[v * d_ + c] = from[v].at[c];
    }
  }

  BERTH_INLINE void Through(const Layer& layer, const Rows& in, Rows& out) const {
    for (size_t v = 0; v < n_; ++v) {
      Vector sum = layer.bias.at;
      for (size_t k = 0; k < d_; ++k) sum += in[v].at[k] * layer.by_input[k].at;
      out[v].at = sum < 0 ? Vector{} : sum;  // a NaN stays one
    }
  }

  BERTH_INLINE static void Gate(const Rows& after, Rows& gradient) {
    for (size_t v = 0; v < gradient.size(); ++v) {
      gradient[v].at = after[v].at > 0 ? gradient[v].at : Vector{};
    }
  }

  // The gradient of a layer's parameters, and of its input.
  BERTH_INLINE void BackThrough(Layer& layer, const Rows& gradient, const Rows& in, Rows& to_in) {
    for (size_t v = 0; v < n_; ++v) {
      Vector sum{};
      for (size_t k = 0; k < d_; ++k) sum += gradient[v].at[k] * layer.by_output[k].at;
      to_in[v].at = sum;
      layer.to_bias.at += gradient[v].at;
    }
    // Four inputs at a time stay in registers; there is room behind the last.
    for (size_t k = 0; k < d_; k += 4) {
      Vector first{}, second{}, third{}, fourth{};
      for (size_t v = 0; v < n_; ++v) {
        first += in[v].at[k] * gradient[v].at;
        second += in[v].at[k + 1] * gradient[v].at;
        third += in[v].at[k + 2] * gradient[v].at;
        fourth += in[v].at[k + 3] * gradient[v].at;
      }
      layer.to_weight[k].at += first;
      layer.to_weight[k + 1].at += second;
      layer.to_weight[k + 2].at += third;
      layer.to_weight[k + 3].at += fourth;
    }
  }

  BERTH_INLINE void Gather(const SparseRows::Half& half, const Rows& from, Rows& to) const {
    for (size_t v = 0; v < n_; ++v) {
      Vector sum{};
      for (int32_t p = half.start[v]; p < half.start[v + 1]; ++p) {
        sum += from[static_cast<size_t>(half.column[static_cast<size_t>(p)])].at;
      }
      to[v].at = sum;
    }
  }

  const SparseRows& rows_;
  size_t n_, d_, rounds_;
  std::array<Layer, 4> layers_;
  std::vector<Round> trace_;
  Rows x_, to_x_, to_now_, a_, b_;
};

// The narrow ones, which the published networks have, are worth code for each processor.
BERTH_FOR_EACH_PROCESSOR void Forward(Passer<float, 8>& passer, const float* x, float* out) { passer.Forward(x, out); }
BERTH_FOR_EACH_PROCESSOR void Forward(Passer<float, 16>& passer, const float* x, float* out) { passer.Forward(x, out); }
BERTH_FOR_EACH_PROCESSOR void Backward(Passer<float, 8>& passer, const float* x, const float* gradient, float* to_x) {
  passer.Backward(x, gradient, to_x);
}
BERTH_FOR_EACH_PROCESSOR void Backward(Passer<float, 16>& passer, const float* x, const float* gradient, float* to_x) {
  passer.Backward(x, gradient, to_x);
}
template <typename T, int64_t kWidth>
void Forward(Passer<T, kWidth>& passer, const T* x, T* out) {
  passer.Forward(x, out);
}
template <typename T, int64_t kWidth>
void Backward(Passer<T, kWidth>& passer, const T* x, const T* gradient, T* to_x) {
  passer.Backward(x, gradient, to_x);
}

// Calls visit(passer) with one that is wide enough.
template <typename T, typename Visit>
auto WithPasser(const SparseRows& rows, const std::vector<at::Tensor>& layers, int64_t rounds, bool keep,
                const Visit& visit) {
  const int64_t width = layers[0].size(0);
  const auto with = [&]<int64_t kWidth>(std::integral_constant<int64_t, kWidth>) {
    Passer<T, kWidth> passer(rows, layers, rounds, keep);
    return visit(passer);
  };
  if constexpr (std::is_same_v<T, float>) {  // double is for tests
    if (width <= 8) return with(std::integral_constant<int64_t, 8>());
    if (width <= 16) return with(std::integral_constant<int64_t, 16>());
  }
  BERTH_CHECK(width <= kMostChannels, "messages of {} channels", width);
  return with(std::integral_constant<int64_t, kMostChannels>());
}

template <typename T>
at::Tensor ForwardAll(const at::Tensor& x, const std::vector<at::Tensor>& layers, const SparseRows& rows,
                      int64_t rounds) {
  return WithPasser<T>(rows, layers, rounds, false, [&](auto& passer) {
    at::Tensor out = torch::empty_like(x);
    const int64_t each = x.size(1) * x.size(2);
    for (int64_t b = 0; b < x.size(0); ++b) {
      Forward(passer, x.const_data_ptr<T>() + b * each, out.mutable_data_ptr<T>() + b * each);
    }
    return out;
  });
}

template <typename T>
torch::autograd::variable_list BackwardAll(const at::Tensor& x, const at::Tensor& gradient,
                                           const std::vector<at::Tensor>& layers, const SparseRows& rows,
                                           int64_t rounds) {
  return WithPasser<T>(rows, layers, rounds, true, [&](auto& passer) {
    at::Tensor to_x = torch::empty_like(x);
    const int64_t each = x.size(1) * x.size(2);
    for (int64_t b = 0; b < x.size(0); ++b) {
      Backward(passer, x.const_data_ptr<T>() + b * each, gradient.const_data_ptr<T>() + b * each,
               to_x.mutable_data_ptr<T>() + b * each);
    }
    torch::autograd::variable_list all = {to_x};
    for (size_t i = 0; i < 4; ++i) {
      const auto [weight, bias] = passer.Gradients(i);
      all.push_back(weight);
      all.push_back(bias);
    }
    all.resize(all.size() + 2);  // rows and rounds
    return all;
  });
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
