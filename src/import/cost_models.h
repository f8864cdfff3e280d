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
  // `source` of the result is the canonical string again. Throws Error, also where `text` is the bare name of a file.
  OpTimes MakeTimes(std::string_view text, const Graph& graph, const Cluster& cluster) const;
};

void RegisterCostModels(CostCatalog& catalog);

}  // namespace berth
