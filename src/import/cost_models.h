// Where op times come from, by string: "roofline", "profile(file=cpu.json,devices=cpu)".
#pragma once

#include <memory>
#include <string_view>

#include "base/catalog.h"
#include "placement/costs.h"

namespace berth {

// Cost models that refine others are given the catalog.
class CostCatalog : public Catalog<OpTimes(const CostCatalog&, const Graph&, const Cluster&)> {
 public:
  CostCatalog() : Catalog("cost model") {}
  // `source` of the result is the canonical string again.
  OpTimes MakeTimes(std::string_view text, const Graph& graph, const Cluster& cluster) const {
    return Make(text, *this, graph, cluster);
  }
};

void RegisterCostModels(CostCatalog& catalog);

}  // namespace berth
