#include "learn/nets.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "learn/row_blocks.h"

namespace berth {
namespace {

SparseRows::Half MakeHalf(int64_t rows, std::span<const std::pair<int32_t, int32_t>> entries,
                          std::span<const double> weight, bool transposed) {
  SparseRows::Half half;
  half.start.assign(static_cast<size_t>(rows) + 1, 0);
  const auto row_of = [&](const auto& entry) { return static_cast<size_t>(transposed ? entry.second : entry.first); };
  for (const auto& entry : entries) ++half.start[row_of(entry) + 1];
  for (size_t v = 0; v < static_cast<size_t>(rows); ++v) half.start[v + 1] += half.start[v];
  half.column.resize(entries.size());
  half.weight.resize(weight.size());
  std::vector<int32_t> at(half.start.begin(), half.start.end() - 1);
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto to = static_cast<size_t>(at[row_of(entries[i])]++);
    half.column[to] = transposed ? entries[i].first : entries[i].second;
    if (!weight.empty()) half.weight[to] = weight[i];
  }
  return half;
}

template <typename T>
void SumRows(const T* x, T* out, int64_t batch, int64_t rows, int64_t width, const SparseRows::Half& half) {
  const bool weighted = !half.weight.empty();
  for (int64_t b = 0; b < batch; ++b, x += rows * width, out += rows * width) {
    for (int64_t v = 0; v < rows; ++v) {
      T* to = out + v * width;
      std::fill(to, to + width, T{0});
      const auto end = static_cast<size_t>(half.start[static_cast<size_t>(v) + 1]);
      for (auto p = static_cast<size_t>(half.start[static_cast<size_t>(v)]); p < end; ++p) {
        const T* from = x + half.column[p] * width;
        const T factor = weighted ? static_cast<T>(half.weight[p]) : T{1};
        for (int64_t k = 0; k < width; ++k) to[k] += factor * from[k];
      }
    }
  }
}

at::Tensor Sum(const at::Tensor& x, const SparseRows::Half& half) {
  const at::Tensor from = x.contiguous();
  at::Tensor out = torch::empty_like(from);
  const int64_t rows = from.size(-2), width = from.size(-1), batch = from.numel() / std::max<int64_t>(rows * width, 1);
  BERTH_CHECK(rows + 1 == static_cast<int64_t>(half.start.size()), "{} rows in x", rows);
  if (from.scalar_type() == torch::kFloat64) {
    SumRows(from.data_ptr<double>(), out.data_ptr<double>(), batch, rows, width, half);
  } else {
    SumRows(from.data_ptr<float>(), out.data_ptr<float>(), batch, rows, width, half);
  }
  return out;
}

struct GatherSumFunction : torch::autograd::Function<GatherSumFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const SparseRows* rows) {
    context->saved_data["rows"] = reinterpret_cast<int64_t>(rows);
    return Sum(x, rows->forward());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradient) {
    const auto* rows = reinterpret_cast<const SparseRows*>(context->saved_data["rows"].toInt());
    return {Sum(gradient[0], rows->backward()), at::Tensor()};
  }
};

// Of rows first .. end - 1; `largest` receives the column that each number is from, -1 where there is none.
template <typename T>
void MaxRows(const T* x, T* out, int32_t* largest, size_t first, size_t end, size_t width,
             const SparseRows::Half& half) {
  for (size_t v = first; v < end; ++v) {
    T* const to = out + v * width;
    int32_t* const from_column = largest + v * width;
    std::fill(to, to + width, T{0});
    std::fill(from_column, from_column + width, -1);
    for (auto p = static_cast<size_t>(half.start[v]); p < static_cast<size_t>(half.start[v + 1]); ++p) {
      const int32_t column = half.column[p];
      const T* from = x + static_cast<size_t>(column) * width;
      for (size_t k = 0; k < width; ++k) {
        const bool larger = from_column[k] < 0 || from[k] > to[k];
        to[k] = larger ? from[k] : to[k];
        from_column[k] = larger ? column : from_column[k];
      }
    }
  }
}

// Of channels first .. end - 1 of all rows.
template <typename T>
void ScatterRows(const T* gradient, const int32_t* largest, T* to_x, size_t rows, size_t width, size_t first,
                 size_t end) {
  for (size_t v = 0; v < rows; ++v, gradient += width, largest += width) {
    for (size_t k = first; k < end; ++k) {
      if (largest[k] >= 0) to_x[static_cast<size_t>(largest[k]) * width + k] += gradient[k];
    }
  }
}

struct GatherMaxFunction : torch::autograd::Function<GatherMaxFunction> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const SparseRows* rows,
                            int64_t threads) {
    const at::Tensor from = x.contiguous();
    at::Tensor out = torch::empty_like(from), largest = torch::empty(from.sizes(), torch::kInt32);
    const auto width = static_cast<size_t>(x.size(1));
    const auto fill = [&]<typename T>(const T* values, T* to) {
      int32_t* const columns = largest.data_ptr<int32_t>();
      EachBlock(NumBlocks(x.size(0), kWholeRows), threads, [&](size_t, int64_t block) {
        const int64_t first = block * kWholeRows, end = std::min(first + kWholeRows, x.size(0));
        MaxRows(values, to, columns, static_cast<size_t>(first), static_cast<size_t>(end), width, rows->forward());
      });
    };
    if (from.scalar_type() == torch::kFloat64) {
      fill(from.const_data_ptr<double>(), out.data_ptr<double>());
    } else {
      fill(from.const_data_ptr<float>(), out.data_ptr<float>());
    }
    context->save_for_backward({largest});
    context->saved_data["threads"] = threads;
    return out;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradient) {
    const at::Tensor largest = context->get_saved_variables()[0], from = gradient[0].contiguous();
    at::Tensor to_x = torch::zeros_like(from);
    // In blocks of channels, so that each sum has one thread; as many as a line of the cache holds.
    const int64_t width = from.size(1), size = from.size(0) <= kWholeRows ? std::max<int64_t>(width, 1) : 16;
    const auto fill = [&]<typename T>(const T* values, T* to) {
      const int32_t* const columns = largest.const_data_ptr<int32_t>();
      EachBlock(NumBlocks(width, size), context->saved_data["threads"].toInt(), [&](size_t, int64_t block) {
        const int64_t first = block * size, end = std::min(first + size, width);
        ScatterRows(values, columns, to, static_cast<size_t>(from.size(0)), static_cast<size_t>(width),
                    static_cast<size_t>(first), static_cast<size_t>(end));
      });
    };
    if (from.scalar_type() == torch::kFloat64) {
      fill(from.const_data_ptr<double>(), to_x.data_ptr<double>());
    } else {
      fill(from.const_data_ptr<float>(), to_x.data_ptr<float>());
    }
    return {to_x, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Generator MakeGenerator(Random& random) { return at::detail::createCPUGenerator(random.Next()); }

SparseRows::SparseRows(int64_t rows, std::span<const std::pair<int32_t, int32_t>> entries,
                       std::span<const double> weight)
    : forward_(MakeHalf(rows, entries, weight, false)), backward_(MakeHalf(rows, entries, weight, true)) {
  BERTH_CHECK(weight.empty() || weight.size() == entries.size());
}

at::Tensor GatherSum(const at::Tensor& x, const SparseRows& rows) { return GatherSumFunction::apply(x, &rows); }

at::Tensor GatherMax(const at::Tensor& x, const SparseRows& rows, int64_t threads) {
  BERTH_CHECK(x.dim() == 2 && x.size(0) == rows.rows() && rows.forward().weight.empty());
  return GatherMaxFunction::apply(x, &rows, threads);
}

at::Tensor MaskedLogSoftmax(const at::Tensor& logits, const at::Tensor& mask) {
  return torch::log_softmax(logits + mask, -1).clamp_min(kMaskedLogProbability);
}

void GlorotUniform(at::Tensor weight, at::Generator generator) {
  const torch::NoGradGuard no_gradient;
  const double range = std::sqrt(6.0 / static_cast<double>(weight.size(0) + weight.size(1)));
  weight.uniform_(-range, range, std::move(generator));
}

at::Tensor NewWeight(torch::nn::Module& of, const std::string& name, int64_t out, int64_t in,
                     at::Generator& generator) {
  at::Tensor weight = torch::empty({out, in});
  GlorotUniform(weight, generator);
  return of.register_parameter(name, weight);
}

Mlp::Mlp(std::span<const int64_t> sizes, at::Generator generator, at::ScalarType type) {
  BERTH_CHECK(sizes.size() >= 2);
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    torch::nn::Linear layer(sizes[i], sizes[i + 1]);
    layer->to(type);
    GlorotUniform(layer->weight, generator);
    torch::nn::init::zeros_(layer->bias);
    layers_.push_back(register_module("layer" + std::to_string(i), layer));
  }
}

at::Tensor Mlp::forward(at::Tensor x) const {
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = torch::linear(x, layers_[i]->weight, layers_[i]->bias);
    if (i + 1 < layers_.size()) x = torch::relu(x);
  }
  return x;
}

at::Tensor Dropout(const at::Tensor& x, double probability, Random* random) {
  if (random == nullptr || probability <= 0) return x;
  // Four numbers of 16 bits from each of 64: torch's generator takes a call for each, longer than the layer before.
  const auto dropped = static_cast<uint64_t>(std::lround(probability * 65536));
  const auto kept = static_cast<float>(1 / (1 - probability));
  // Room for a multiple of four.
  at::Tensor mask = torch::empty({(x.numel() + 3) / 4 * 4}, torch::kFloat32);
  float* to = mask.mutable_data_ptr<float>();
  for (float* const end = to + mask.numel(); to < end; to += 4) {
    const uint64_t bits = random->Next();
    for (int k = 0; k < 4; ++k) to[k] = (bits >> (16 * k) & 0xffff) < dropped ? 0 : kept;
  }
  mask = mask.narrow(0, 0, x.numel()).view(x.sizes());
  return x * mask;
}

}  // namespace berth
