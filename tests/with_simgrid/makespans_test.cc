// `parallel` against SimGrid (Casanova et al. 2014), an independent simulator: the same graphs, placements and
// machines, ops as its Execs, transfers as its Comms; only the choice of which ready op a device starts is made here.
// With latencies and rates as they are (model CM02, all correction factors off) its network is `none` where links are
// fat pipes, and `links` where a medium is a link that its routes share.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/catalogs.h"
#include "placement/testing.h"

namespace berth {
namespace {

namespace sg = simgrid::s4u;

constexpr double kFlops = 1e9;  // of every SimGrid host per time unit

// SimGrid weighs transfers that share a link by their latency, and a link has one bandwidth: a medium's links are
// equal.
Problem WithEqualMedia(const Problem& problem) {
  const Cluster& cluster = problem.cluster();
  std::vector<Device> devices;
  std::vector<Link> links;
  std::map<std::string, Link> first;
  for (const DeviceId from : cluster.ids()) {
    devices.push_back(cluster.device(from));
    for (const DeviceId to : cluster.ids()) {
      const Link& link = cluster.link(from, to);
      links.push_back(link.domain.empty() ? link : first.try_emplace(link.domain, link).first->second);
    }
  }
  OpTimes times{.time = {}, .measured = {}, .source = "random"};
  for (const OpId op : problem.graph().ops()) {
    for (const DeviceId d : cluster.ids()) times.time.push_back(problem.op_time(op, d));
  }
  return Problem(problem.shared_graph(), std::make_shared<const Cluster>("media", std::move(devices), std::move(links)),
                 std::move(times));
}

// One graph on hosts of its own, run by one actor from time 0.
class SimGridRun {
 public:
  SimGridRun(sg::NetZone& zone, const std::string& name, const Problem& problem, std::vector<DeviceId> device,
             bool shared)
      : problem_(problem), graph_(problem.graph()), device_(std::move(device)), running_(problem.num_devices()) {
    const Cluster& cluster = problem.cluster();
    for (const DeviceId d : cluster.ids()) hosts_.push_back(zone.create_host(name + cluster.device(d).name, kFlops));
    std::map<std::string, sg::Link*> media;
    for (const DeviceId from : cluster.ids()) {
      for (const DeviceId to : cluster.ids()) {
        if (from == to) continue;
        const Link& link = cluster.link(from, to);
        const std::string own = std::to_string(Index(from)) + ">" + std::to_string(Index(to));
        sg::Link*& medium = media[shared && !link.domain.empty() ? link.domain : own];
        if (medium == nullptr) {
          medium = zone.create_link(name + (shared && !link.domain.empty() ? link.domain : own), link.bandwidth.value);
          medium->set_latency(link.latency.value);
          medium->set_sharing_policy(shared ? sg::Link::SharingPolicy::SHARED : sg::Link::SharingPolicy::FATPIPE);
          medium->seal();
        }
        zone.add_route(hosts_[Index(from)]->get_netpoint(), hosts_[Index(to)]->get_netpoint(), nullptr, nullptr,
                       {sg::LinkInRoute(medium)}, false);
      }
    }
    sg::Actor::create(name, hosts_[0], [this] { Run(); });
  }

  double makespan() const { return makespan_; }
  size_t ended() const { return ended_; }

 private:
  struct UnderWay {
    OpId op;          // that runs, or whose tensor is sent
    TensorId tensor;  // where `sent`
    DeviceId to;
    bool sent;
  };

  void Run() {
    for (const OpId op : graph_.ops()) {
      missing_.push_back(graph_.inputs_of(op).size());
      if (missing_.back() == 0) ready_[op] = 0;
    }
    while (true) {
      StartOps();
      if (activities_.empty()) break;
      // All that ends at one instant takes effect before ops start.
      for (ssize_t i = sg::Activity::wait_any(activities_); i >= 0; i = sg::Activity::test_any(activities_)) {
        End(static_cast<size_t>(i));
        if (activities_.empty()) break;
      }
    }
    makespan_ = sg::Engine::get_clock();
  }

  void StartOps() {
    for (const DeviceId d : problem_.cluster().ids()) {
      if (running_[Index(d)]) continue;
      const std::pair<const OpId, double>* next = nullptr;
      for (const auto& candidate : ready_) {  // by number
        if (device_[Index(candidate.first)] != d) continue;
        if (next == nullptr || candidate.second < next->second) next = &candidate;
      }
      if (next == nullptr) continue;
      const OpId op = next->first;
      ready_.erase(op);
      running_[Index(d)] = true;
      Add(sg::Exec::init()->set_flops_amount(kFlops * problem_.op_time(op, d))->set_host(hosts_[Index(d)])->start(),
          {.op = op, .tensor = {}, .to = d, .sent = false});
    }
  }

  void Add(sg::ActivityPtr activity, const UnderWay& what) {
    activities_.push_back(std::move(activity));
    under_way_.push_back(what);
  }

  void End(size_t i) {
    const UnderWay what = under_way_[i];
    activities_.erase(activities_.begin() + static_cast<ptrdiff_t>(i));
    under_way_.erase(under_way_.begin() + static_cast<ptrdiff_t>(i));
    if (what.sent) return Arrive(what.tensor, what.to);
    ++ended_;
    running_[Index(what.to)] = false;
    for (size_t t = graph_.first_output(what.op); t < graph_.end_output(what.op); ++t) {
      const auto tensor = MakeId<TensorId>(t);
      std::set<DeviceId> destinations;
      for (const OpId c : graph_.consumers(tensor)) destinations.insert(device_[Index(c)]);
      for (const DeviceId to : destinations) {
        if (to == what.to) {
          Arrive(tensor, to);
        } else {
          const auto bytes = static_cast<uint64_t>(graph_.tensor_bytes(tensor));
          Add(sg::Comm::sendto_async(hosts_[Index(what.to)], hosts_[Index(to)], bytes),
              {.op = what.op, .tensor = tensor, .to = to, .sent = true});
        }
      }
    }
  }

  void Arrive(TensorId tensor, DeviceId at) {
    for (const OpId c : graph_.consumers(tensor)) {
      if (device_[Index(c)] == at && --missing_[Index(c)] == 0) ready_[c] = sg::Engine::get_clock();
    }
  }

  const Problem& problem_;
  const Graph& graph_;
  std::vector<DeviceId> device_;
  std::vector<sg::Host*> hosts_;
  std::vector<bool> running_;
  std::vector<size_t> missing_;
  std::map<OpId, double> ready_;
  std::vector<sg::ActivityPtr> activities_;
  std::vector<UnderWay> under_way_;
  double makespan_ = 0;
  size_t ended_ = 0;
};

// SimGrid has one engine per process: all graphs are simulated at once, side by side.
TEST(SimGrid, GivesTheSameMakespans) {
  std::vector<std::string> arguments{"simgrid_test", "--log=xbt_cfg.threshold:warning"};
  for (const char* setting : {"network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1",
                              "network/weight-S:0", "network/TCP-gamma:0", "network/crosstraffic:0",
                              "surf/precision:1e-12", "maxmin/precision:1e-12", "contexts/factory:thread"}) {
    arguments.push_back(std::string("--cfg=") + setting);
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  sg::Engine engine(&argc, argv.data());
  sg::NetZone* const zone = sg::create_full_zone("world");

  const Catalogs catalogs;
  const Random random(1);
  std::vector<std::unique_ptr<Problem>> problems;
  std::vector<std::unique_ptr<SimGridRun>> runs;
  std::vector<double> expected;
  for (uint64_t k = 0; k < 60; ++k) {
    Random draw = random.Fork(k);
    problems.push_back(std::make_unique<Problem>(WithEqualMedia(testing::RandomProblem(
        draw, {.ops = 60, .devices = 2 + k % 4, .zero_lengths = false, .inputs = false, .domains = true}))));
    const Problem& problem = *problems.back();
    const std::vector<DeviceId> device = testing::RandomPlacement(problem, draw);
    for (const bool shared : {false, true}) {
      const auto evaluator =
          catalogs.evaluators.Make(shared ? "parallel(contention=links,io=everywhere)" : "parallel(contention=none,io=everywhere)", problem);
      expected.push_back(evaluator->Trace({.device = device}).score.time);
      runs.push_back(
          std::make_unique<SimGridRun>(*zone, "run" + std::to_string(runs.size()) + "_", problem, device, shared));
    }
  }
  zone->seal();
  engine.run();
  for (size_t k = 0; k < runs.size(); ++k) {
    SCOPED_TRACE(k);
    EXPECT_EQ(runs[k]->ended(), problems[k / 2]->num_ops());
    EXPECT_NEAR(runs[k]->makespan(), expected[k], 1e-9 * expected[k]);
  }
}

}  // namespace
}  // namespace berth
