#include "cli/commands.h"
#include "cli/console.h"
#include "cli/listing.h"
#include "report/cluster_page.h"
#include "report/json.h"

namespace berth {

int ShowCluster(const ClusterArguments& arguments, const Catalogs& catalogs) {
  if (arguments.cluster.empty()) {
    const auto infos = catalogs.clusters.Infos();
    Print(arguments.json ? DumpJson({{"clusters", ListJson(infos)}}) : ListText(infos));
    return 0;
  }
  if (arguments.yaml && arguments.json) throw Error("cluster show: --yaml and --json are two forms; give one of them");
  const Cluster cluster = ReadCluster(arguments.cluster, catalogs.clusters);
  Print(arguments.yaml   ? WriteCluster(cluster)
        : arguments.json ? DumpJson(ClusterJson(cluster))
                         : ClusterPage(cluster));
  return 0;
}

}  // namespace berth
