#include "base/file.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/problem_factory.h"
#include "report/json.h"
#include "report/model_page.h"
#include "report/table.h"

namespace berth {

int Inspect(const InspectArguments& arguments, const Catalogs& catalogs) {
  CheckWritable(arguments.output);
  const Graph graph = MakeGraph(catalogs, arguments.model.model, arguments.model.shapes, arguments.model.format);
  if (!arguments.output.empty()) WriteFile(arguments.output, WriteGraphJson(graph));
  if (arguments.json) {
    Print(DumpJson(GraphJson(graph)));
  } else {
    Print(ModelPage(graph) + (arguments.output.empty() ? ""
                                                       : fmt::format("\nWritten to {}, in Berth's own format.\n",
                                                                     Printable(arguments.output))));
  }
  return 0;
}

}  // namespace berth
