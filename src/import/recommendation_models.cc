#include <utility>
#include <vector>

#include "import/model_families.h"
#include "import/net_builder.h"

namespace berth {
namespace {

using Value = NetBuilder::Value;

// Naumov et al. 2019, figure 1: what is dense goes through layers, what is sparse through tables; all pairs of the
// results are multiplied, and layers make a probability of that.
Graph MakeDlrm(const Params& params) {
  const int64_t batch = params.Int("batch"), tables = params.Int("tables"), width = params.Int("width");
  NetBuilder net(params.canonical());
  const auto layer = [&](const Value& x, int64_t features, int number) {
    return net.Unary("Relu", net.Linear(x, features, fmt::format("layer{}", number)));
  };
  Value dense = net.Input("dense", {batch, 13});
  {
    const NetBuilder::Scope scope(net, "bottom");
    int number = 0;
    for (const int64_t features : {int64_t{512}, int64_t{256}, width}) dense = layer(dense, features, number++);
  }
  std::vector<Value> results = {dense};
  for (int64_t t = 0; t < tables; ++t) {
    const NetBuilder::Scope scope(net, fmt::format("table{}", t));
    const Value rows = net.Weight("rows", {params.Int("rows"), width});
    const Value ids = net.Input(fmt::format("ids{}", t), {batch, params.Int("lookups")});
    results.push_back(net.Op("ReduceSum", {net.Embed(rows, ids)}, {batch, width}));
  }
  const Value all = net.Reshape(net.Concat(results, 1), {batch, tables + 1, width});
  const Value products = net.MatMul(all, net.Transpose(all, {0, 2, 1}));
  const int64_t pairs = (tables + 1) * tables / 2;
  const Value flat = net.Reshape(products, {batch, (tables + 1) * (tables + 1)});
  Value x = net.Concat({dense, net.Op("Gather", {flat}, {batch, pairs})}, 1);
  {
    const NetBuilder::Scope scope(net, "top");
    x = net.Linear(layer(layer(x, 512, 0), 256, 1), 1, "layer2");
  }
  net.Output(net.Unary("Sigmoid", x));
  return net.Build();
}

}  // namespace

void RegisterRecommendationModels(ModelCatalog& catalog) {
  catalog.Add(
      {.name = "dlrm",
       .sentence = "A recommendation model: tables of embeddings, most of its bytes, beside a few layers.",
       .source = "Naumov et al. 2019, arXiv 1906.00091, figure 1; 13 dense and 26 sparse features as Criteo's data",
       .parameters = {Count("tables", 26, "sparse features, each with its table"), Count("rows", 100000, "of a table"),
                      Count("width", 64, "of a row"), Count("lookups", 8, "rows that an example sums of each table"),
                      Count("batch", 512, "examples at once")}},
      MakeDlrm);
}

}  // namespace berth
