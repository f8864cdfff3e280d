#include "worker/op_clock.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "exec/statistics.h"
#include "worker/kernels.h"

namespace berth {
namespace {

double MiddleMean(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t quarter = values.size() / 4;
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(quarter);
  const auto end = values.end() - static_cast<std::ptrdiff_t>(quarter);
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

}  // namespace

OpClock::OpClock(const LoadedModel& model, const ov::CompiledModel& compiled, std::vector<double> weights,
                 CounterOf counters)
    : weights_(std::move(weights)), counters_(counters), kinds_(model.ops, OpTimeKind::kAbsent) {
  for (size_t op = 0; op < model.ops; ++op) {
    if (model.found[op]) kinds_[op] = OpTimeKind::kNone;
  }
  const std::shared_ptr<const ov::Model> runtime = compiled.get_runtime_model();
  const auto order = runtime->get_ordered_ops();
  std::vector<int32_t> kernel_of_node(model.nodes.size(), -1);
  std::unordered_map<const ov::Node*, size_t> number;
  std::vector<std::vector<int32_t>> named;  // nodes, by kernel
  for (const RuntimeKernel& kernel : KernelsOf(model, order)) {
    number.emplace(kernel.node.get(), kernels_.size());
    kernel_of_name_.emplace(kernel.node->get_friendly_name(), kernels_.size());
    for (const int32_t node : kernel.nodes) {
      if (kernel_of_node[static_cast<size_t>(node)] < 0) {
        kernel_of_node[static_cast<size_t>(node)] = static_cast<int32_t>(kernels_.size());
      }
    }
    kernels_.push_back({});
    named.emplace_back(kernel.nodes.begin(), kernel.nodes.end());
  }
  Join(model, kernel_of_node);
  // An op that became several kernels: the first has it by now, and so have the others that name it.
  for (size_t kernel = 0; kernel < kernels_.size(); ++kernel) {
    if (!kernels_[kernel].ops.empty()) continue;
    std::set<int32_t> ops;
    for (const int32_t node : named[kernel]) ops.insert(model.op_of[static_cast<size_t>(node)]);
    kernels_[kernel].ops.assign(ops.begin(), ops.end());
  }

  // What holds no op goes with its first reader, at the end with what it reads.
  const auto belongs = [&](const ov::Node* node) -> std::optional<size_t> {
    const auto known = number.find(node);
    if (known == number.end() || kernels_[known->second].ops.empty()) return std::nullopt;
    return known->second;
  };
  for (auto kernel = order.rbegin(); kernel != order.rend(); ++kernel) {
    const auto known = number.find(kernel->get());
    if (known == number.end() || !kernels_[known->second].ops.empty()) continue;
    std::optional<size_t> other;
    for (const ov::Output<ov::Node>& output : (*kernel)->outputs()) {
      for (const auto& reader : output.get_target_inputs()) {
        if (!other) other = belongs(reader.get_node());
      }
    }
    for (size_t i = 0; i < (*kernel)->get_input_size() && !other; ++i)
      other = belongs((*kernel)->get_input_node_ptr(i));
    if (other) kernels_[known->second].ops = kernels_[*other].ops;
  }
}

// Puts every op into a kernel: the one that names a node of it, or that to which its first named consumer belongs.
void OpClock::Join(const LoadedModel& model, const std::vector<int32_t>& kernel_of_node) {
  std::vector<std::set<int32_t>> kernels_of_op(model.ops);
  for (size_t node = 0; node < model.nodes.size(); ++node) {
    if (kernel_of_node[node] >= 0) kernels_of_op[static_cast<size_t>(model.op_of[node])].insert(kernel_of_node[node]);
  }
  const std::vector<std::vector<int32_t>> before = model.Predecessors();
  std::vector<int32_t> leads_to = kernel_of_node;
  for (size_t node = model.nodes.size(); node-- > 0;) {
    for (const int32_t from : before[node]) {
      // Consumers come later: the last one that writes is the first one.
      if (kernel_of_node[static_cast<size_t>(from)] < 0 && leads_to[node] >= 0) {
        leads_to[static_cast<size_t>(from)] = leads_to[node];
      }
    }
  }
  for (size_t node = 0; node < model.nodes.size(); ++node) {
    for (const int32_t from : before[node]) {
      if (leads_to[node] < 0) leads_to[node] = leads_to[static_cast<size_t>(from)];
    }
  }
  for (size_t node = 0; node < model.nodes.size(); ++node) {
    const auto op = static_cast<size_t>(model.op_of[node]);
    if (!kernels_of_op[op].empty() || leads_to[node] < 0 || !model.named[node]) continue;
    kernels_of_op[op].insert(leads_to[node]);
    kinds_[op] = OpTimeKind::kJoined;
  }
  for (size_t op = 0; op < model.ops; ++op) {
    for (const int32_t kernel : kernels_of_op[op]) {
      kernels_[static_cast<size_t>(kernel)].ops.push_back(static_cast<int32_t>(op));
    }
  }
  // What a reader or a pass put in between says nothing of an op that has a kernel by its own name.
  std::vector<std::set<int32_t>> own_kernels(model.ops);
  for (size_t node = 0; node < model.nodes.size(); ++node) {
    if (kernel_of_node[node] >= 0 && model.named[node]) {
      own_kernels[static_cast<size_t>(model.op_of[node])].insert(kernel_of_node[node]);
    }
  }
  for (size_t op = 0; op < model.ops; ++op) {
    if (own_kernels[op].empty()) own_kernels[op] = kernels_of_op[op];
  }
  GatherOps(own_kernels);
  for (const Kernel& kernel : kernels_) {
    for (const int32_t op : kernel.ops) {
      OpTimeKind& kind = kinds_[static_cast<size_t>(op)];
      if (kind == OpTimeKind::kJoined) continue;
      if (kernel.ops.size() > 1) {
        kind = OpTimeKind::kShared;
      } else if (kind < OpTimeKind::kOwn) {
        kind = OpTimeKind::kOwn;
      }
    }
  }
}

void OpClock::GatherOps(const std::vector<std::set<int32_t>>& kernels_of_op) {
  std::vector<size_t> first(kernels_.size());  // of the kernels that an op joins; the first one is its own
  std::iota(first.begin(), first.end(), size_t{0});
  const auto find = [&](size_t kernel) {
    while (first[kernel] != kernel) kernel = first[kernel];
    return kernel;
  };
  for (const std::set<int32_t>& kernels : kernels_of_op) {
    for (const int32_t kernel : kernels) {
      const size_t a = find(static_cast<size_t>(kernel)), b = find(static_cast<size_t>(*kernels.begin()));
      first[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<size_t, std::vector<int32_t>> ops;
  for (size_t op = 0; op < kernels_of_op.size(); ++op) {
    if (!kernels_of_op[op].empty()) {
      ops[find(static_cast<size_t>(*kernels_of_op[op].begin()))].push_back(static_cast<int32_t>(op));
    }
  }
  for (auto& [kernel, together] : ops) {
    if (together.size() > 1) ops_of_kernels_.push_back(std::move(together));
  }
}

void OpClock::Add(const std::vector<ov::ProfilingInfo>& counters, double seconds) {
  ++runs_;
  const bool warms_up = runs_ == 1;
  if (!warms_up) run_times_.push_back(seconds);
  std::vector<double> told(kernels_.size(), 0);
  for (const ov::ProfilingInfo& counter : counters) {
    auto kernel = kernel_of_name_.find(counter.node_name);
    // HETERO puts "subgraph3: " before the name that its runtime model has.
    if (const size_t colon = counter.node_name.find(": ");
        kernel == kernel_of_name_.end() && colon != std::string::npos && counter.node_name.starts_with("subgraph")) {
      kernel = kernel_of_name_.find(counter.node_name.substr(colon + 2));
    }
    if (kernel != kernel_of_name_.end()) told[kernel->second] += 1e-6 * static_cast<double>(counter.real_time.count());
  }
  for (size_t k = 0; k < kernels_.size(); ++k) {
    Kernel& kernel = kernels_[k];
    if (counters_ == CounterOf::kAllRuns) {
      kernel.sum = told[k] * static_cast<double>(runs_);
      if (warms_up) kernel.first = kernel.sum;
    } else if (!warms_up) {
      kernel.seconds.push_back(told[k]);
    }
  }
}

double OpClock::TimeOf(const Kernel& kernel) const {
  if (run_times_.empty()) return 0;
  if (counters_ == CounterOf::kLastRun) return MiddleMean(kernel.seconds);
  const auto runs = static_cast<double>(run_times_.size());
  const double all = std::accumulate(run_times_.begin(), run_times_.end(), 0.0);
  const double steady = all > 0 ? MiddleMean(Quotients(run_times_, slowdowns_)) * runs / all : 1;
  return steady * std::max(0.0, kernel.sum - kernel.first) / runs;
}

std::vector<double> OpClock::Totals() const {
  std::vector<double> totals(counters_ == CounterOf::kAllRuns ? 1 : run_times_.size(), 0);
  for (const Kernel& kernel : kernels_) {
    for (size_t run = 0; run < totals.size(); ++run) {
      totals[run] += counters_ == CounterOf::kAllRuns ? TimeOf(kernel) : kernel.seconds[run];
    }
  }
  return totals;
}

std::vector<double> OpClock::Seconds() const {
  std::vector<double> seconds(kinds_.size(), 0);
  for (const Kernel& kernel : kernels_) {
    const double time = TimeOf(kernel);
    double sum = 0;
    // The 1 shares a kernel among ops that compute nothing.
    for (const int32_t op : kernel.ops) sum += weights_[static_cast<size_t>(op)] + 1;
    for (const int32_t op : kernel.ops) {
      seconds[static_cast<size_t>(op)] += time * (weights_[static_cast<size_t>(op)] + 1) / sum;
    }
  }
  return seconds;
}

double OpClock::Unassigned() const {
  double all = 0, unassigned = 0;
  for (const Kernel& kernel : kernels_) {
    const double time = TimeOf(kernel);
    all += time;
    if (kernel.ops.empty()) unassigned += time;
  }
  return all > 0 ? unassigned / all : 0;
}

}  // namespace berth
