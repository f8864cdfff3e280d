// A cluster whose numbers may be changed, since a Cluster's never do.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.h"

namespace berth {

struct ClusterNumbers {
  // O(devices^2).
  explicit ClusterNumbers(const Cluster& cluster) : name(cluster.name()) {
    for (const DeviceId from : cluster.ids()) {
      devices.push_back(cluster.device(from));
      for (const DeviceId to : cluster.ids()) links.push_back(cluster.link(from, to));
    }
  }
  Link& link(DeviceId from, DeviceId to) { return links[Index(from) * devices.size() + Index(to)]; }
  // Throws Error as Cluster does.
  Cluster Make() && { return Cluster(std::move(name), std::move(devices), std::move(links)); }

  std::string name;
  std::vector<Device> devices;
  std::vector<Link> links;  // row-major; those from a device to itself mean nothing
};

}  // namespace berth
