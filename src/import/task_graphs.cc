#include <bit>
#include <utility>
#include <vector>

#include "import/model_families.h"

namespace berth {
namespace {

constexpr double kBytesPerNumber = 8;

OpWork Work(OpClass op_class, double flops, double read, double written) {
  return {.flops = flops,
          .bytes_read = static_cast<int64_t>(read),
          .bytes_written = static_cast<int64_t>(written),
          .op_class = op_class,
          .data_type = DataType::kF64};
}

// A matrix of tiles x tiles blocks, each of size x size numbers; one op per block and step: tiles (tiles + 1) (tiles +
// 2) / 6 ops. Operation counts of LAPACK (Blackford and Dongarra 1999, working note 41), for one block.
Graph MakeCholesky(const Params& params) {
  const size_t tiles = static_cast<size_t>(params.Int("tiles"));
  const double b = static_cast<double>(params.Int("size")), block = b * b * kBytesPerNumber;
  GraphBuilder builder(params.canonical());
  // The newest version of each block: a tensor, or none while it is still the input's.
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<size_t> newest(tiles * tiles, kNone);
  const size_t matrix = builder.AddInput(static_cast<int64_t>(block), "block");
  const auto add = [&](std::string name, std::string_view type, double flops, size_t target,
                       std::vector<size_t> others) {
    const double count = static_cast<double>(others.size()) + 1;
    const size_t op = builder.AddOp(std::move(name), type, Work(OpClass::kMatMul, flops, count * block, block));
    others.push_back(target);
    for (const size_t other : others) {
      if (newest[other] == kNone) {
        builder.UseInput(matrix, op);
      } else {
        builder.Consume(newest[other], op);
      }
    }
    newest[target] = builder.AddTensor(op, static_cast<int64_t>(block));
    return newest[target];
  };
  const auto at = [&](size_t row, size_t column) { return row * tiles + column; };
  for (size_t k = 0; k < tiles; ++k) {
    builder.MarkOutput(add(fmt::format("potrf_{}", k), "Potrf", b * b * b / 3, at(k, k), {}));
    for (size_t i = k + 1; i < tiles; ++i)
      builder.MarkOutput(add(fmt::format("trsm_{}_{}", i, k), "Trsm", b * b * b, at(i, k), {at(k, k)}));
    for (size_t i = k + 1; i < tiles; ++i) {
      add(fmt::format("syrk_{}_{}", i, k), "Syrk", b * b * b, at(i, i), {at(i, k)});
      for (size_t j = k + 1; j < i; ++j)
        add(fmt::format("gemm_{}_{}_{}", i, j, k), "Gemm", 2 * b * b * b, at(i, j), {at(i, k), at(j, k)});
    }
  }
  return builder.Build();
}

// Topcuoglu et al. 2002, section 5.2: 2 m - 1 ops that split the input of m points recursively, then log2(m) ranks of m
// butterfly ops. `size` numbers (complex, so two each) stand for every point.
Graph MakeFft(const Params& params) {
  const size_t points = static_cast<size_t>(params.Int("points"));
  if (!std::has_single_bit(points)) throw Error("model fft: points={} is not a power of two", points);
  const double size = static_cast<double>(params.Int("size")), bytes = 2 * kBytesPerNumber * size;
  GraphBuilder builder(params.canonical());

  // The splits form a tree: node i has the children 2 i and 2 i + 1, the leaves hold one point each.
  std::vector<size_t> halves(2 * points);
  const size_t input = builder.AddInput(static_cast<int64_t>(bytes * static_cast<double>(points)), "signal");
  for (size_t node = 1; node < 2 * points; ++node) {
    const double share = bytes * static_cast<double>(points >> (std::bit_width(node) - 1));
    const size_t op =
        builder.AddOp(fmt::format("split_{}", node), "Split", Work(OpClass::kDataMovement, 0, share, share));
    if (node == 1) {
      builder.UseInput(input, op);
    } else {
      builder.Consume(halves[node / 2], op);
    }
    halves[node] = builder.AddTensor(op, static_cast<int64_t>(node < points ? share / 2 : share));
  }

  std::vector<size_t> rank(halves.begin() + static_cast<std::ptrdiff_t>(points), halves.end());
  for (size_t distance = 1; distance < points; distance *= 2) {
    std::vector<size_t> next(points);
    for (size_t i = 0; i < points; ++i) {
      // A complex product and sum per point and op: 8 operations.
      const size_t op = builder.AddOp(fmt::format("butterfly_{}_{}", distance, i), "Butterfly",
                                      Work(OpClass::kElementwise, 8 * size, 2 * bytes, bytes));
      builder.Consume(rank[i], op);
      builder.Consume(rank[i ^ distance], op);
      next[i] = builder.AddTensor(op, static_cast<int64_t>(bytes));
    }
    rank = std::move(next);
  }
  for (const size_t tensor : rank) builder.MarkOutput(tensor);
  return builder.Build();
}

}  // namespace

void RegisterTaskGraphs(ModelCatalog& catalog) {
  catalog.Add({.name = "cholesky",
               .sentence = "The factorisation of a matrix by blocks: no neural network; tiles=10 has 220 ops.",
               .source = "Buttari et al. 2009, arXiv 0709.1272, algorithm 1",
               .parameters = {{.name = "tiles",
                               .type = ParameterType::kInt,
                               .default_value = "10",
                               .sentence = "blocks along a side",
                               .least = 1,
                               .most = 200},
                              Count("size", 512, "numbers along a side of a block")}},
              MakeCholesky);
  catalog.Add({.name = "fft",
               .sentence = "A fast Fourier transform: splits, then butterflies; points=32 has 223 ops.",
               .source = "Topcuoglu et al. 2002, section 5.2",
               .parameters = {{.name = "points",
                               .type = ParameterType::kInt,
                               .default_value = "32",
                               .sentence = "a power of two",
                               .least = 1,
                               .most = 65536},
                              Count("size", 65536, "complex numbers that stand for one point")}},
              MakeFft);
}

}  // namespace berth
