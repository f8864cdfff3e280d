#include "cli/commands.h"
#include "cli/console.h"
#include "cli/listing.h"
#include "report/table.h"

namespace berth {
namespace {

// Shipped files first, then the formulas.
int ListModels(bool json, const Catalogs& catalogs) {
  const auto shipped = ShippedModels();
  if (json) {
    Json files = Json::array();
    for (const auto& [name, path] : shipped) files.push_back({{"name", name}, {"path", path}});
    Print(DumpJson({{"shipped", std::move(files)},
                    {"formulas", ListJson(catalogs.models.Infos())},
                    {"families", ListJson(catalogs.families.Infos())}}));
    return 0;
  }
  Table table({{"model that ships"}, {"file", Table::Align::kLeft, 1}});
  for (const auto& [name, path] : shipped) table.Add({name, path});
  Print((table.empty() ? "" : table.ToString() + "\n") + "Models made by a formula, like lstm_grid(layers=4):\n\n" +
        ListText(catalogs.models.Infos()) + "\nLists of models, for `berth train --on`:\n\n" +
        ListText(catalogs.families.Infos()));
  return 0;
}

}  // namespace

int ListCatalog(const ListArguments& arguments, const Catalogs& catalogs) {
  const std::vector<std::string> known = {"planners", "evaluators", "objectives", "clusters",
                                          "models",   "costs",      "groupings"};
  const auto print = [&](const std::vector<EntryInfo>& entries) {
    Print(arguments.json ? DumpJson({{arguments.what, ListJson(entries)}}) : ListText(entries));
    return 0;
  };
  if (arguments.what == "planners") {
    print(catalogs.planners.Infos());
    if (arguments.json) return 0;
    for (const auto& missing : catalogs.planners.missing()) {
      Print("\n" + Wrap(fmt::format("Not in this build: {}. {} {}.", fmt::join(missing.names, ", "),
                                    missing.names.size() > 1 ? "Each" : "It", missing.needs),
                        ""));
    }
    return 0;
  }
  if (arguments.what == "evaluators") return print(catalogs.evaluators.Infos());
  if (arguments.what == "objectives") return print(catalogs.objectives.Infos());
  if (arguments.what == "groupings") return print(catalogs.groupings.Infos());
  if (arguments.what == "clusters") return print(catalogs.clusters.Infos());
  if (arguments.what == "costs") return print(catalogs.costs.Infos());
  if (arguments.what == "models") return ListModels(arguments.json, catalogs);
  ThrowUnknownName("list", arguments.what, known);
}

}  // namespace berth
