// RunParallel: parts of a model on threads of their own.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <openvino/op/ops.hpp>
#include <set>
#include <thread>

#include "base/error.h"
#include "exec/parts.h"
#include "worker/runner.h"
#include "worker/thread_clock.h"

namespace berth {
namespace {

using Output = ov::Output<ov::Node>;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

ov::Shape Turned(const ov::Shape& shape) { return {shape[0], shape[2], shape[3], shape[1]}; }
Output Turn(const Output& output, std::vector<int64_t> order) {
  return std::make_shared<ov::op::v1::Transpose>(output,
                                                 ov::op::v0::Constant::create(ov::element::i64, {4}, std::move(order)));
}

// OpenVINO's CPU kernels keep images with the channels last; what parts share is kept so, too, so that neither side
// turns it around: in a model of convolutions all tensors of four dimensions. Others are as the model has them.
class Layout {
 public:
  explicit Layout(const LoadedModel& model) {
    size_t convolutions = 0, products = 0;
    for (const std::shared_ptr<ov::Node>& node : model.nodes) {
      convolutions += ov::is_type<ov::op::v1::Convolution>(node) || ov::is_type<ov::op::v1::GroupConvolution>(node);
      products += ov::is_type<ov::op::v0::MatMul>(node);
    }
    images_ = convolutions > products;
  }
  bool channels_last(const Output& output) const {
    const ov::PartialShape& shape = output.get_partial_shape();
    return images_ && shape.rank().is_static() && shape.rank().get_length() == 4 && output.get_element_type().is_real();
  }
  // Of the memory that is shared.
  ov::Shape shape(const Output& output) const {
    if (output.get_partial_shape().is_dynamic()) {
      throw Error("the size of tensor '{}' is only known in a run, so devices cannot share it",
                  output.get_names().empty() ? output.get_node()->get_friendly_name() : *output.get_names().begin());
    }
    return channels_last(output) ? Turned(output.get_shape()) : output.get_shape();
  }

 private:
  bool images_;
};

struct CompiledPart {
  size_t device = 0;
  std::vector<int32_t> nodes{}, before{};
  std::vector<Output> takes{}, gives{};  // of the whole model: what it reads of others, and makes for others
  std::vector<Output> results{};         // what is the model's result
  std::shared_ptr<ov::Model> model{};
  ov::CompiledModel compiled{};
  ov::InferRequest request{};
};

class PartBuilder {
 public:
  PartBuilder(const LoadedModel& model, const Parts& parts, const Layout& layout)
      : model_(model), parts_(parts), layout_(layout) {}

  // The part as a model: parameters where tensors come in, results where they go out.
  CompiledPart Build(size_t number) {
    const Part& part = parts_.parts[number];
    CompiledPart built{.device = static_cast<size_t>(part.device), .nodes = part.nodes, .before = part.before};
    copy_.clear();
    channels_last_.clear();
    parameters_.clear();
    for (const int32_t node : part.nodes) Copy(model_.nodes[static_cast<size_t>(node)], number, built);
    ov::ResultVector results;
    for (const int32_t node : part.nodes) {
      for (const Output& output : model_.nodes[static_cast<size_t>(node)]->outputs()) {
        bool leaves = false, is_result = false;
        for (const ov::Input<ov::Node>& consumer : output.get_target_inputs()) {
          const auto known = model_.number.find(consumer.get_node());
          if (known == model_.number.end()) {
            is_result = true;
          } else if (parts_.part_of[static_cast<size_t>(known->second)] != static_cast<int32_t>(number)) {
            leaves = true;
          }
        }
        if (leaves) {
          results.push_back(std::make_shared<ov::op::v0::Result>(layout_.channels_last(output) ? ChannelsLast(output)
                                                                                               : copy_.at(output)));
          built.gives.push_back(output);
        }
        if (is_result) built.results.push_back(output);
      }
    }
    for (const Output& output : built.results) {
      results.push_back(std::make_shared<ov::op::v0::Result>(copy_.at(output)));
    }
    built.model = std::make_shared<ov::Model>(results, parameters_, fmt::format("part{}", number));
    return built;
  }

 private:
  // A concatenation of channels beside a cut: made of what is shared as it is, where else each of its inputs would be
  // turned around, and its output again.
  bool JoinsChannelsLast(ov::Node& node, size_t number) const {
    const auto* concat = ov::as_type<ov::op::v0::Concat>(&node);
    if (concat == nullptr || !layout_.channels_last(node.output(0))) return false;
    if (concat->get_axis() != 1 && concat->get_axis() != -3) return false;
    const auto elsewhere = [&](const ov::Node* other) {
      const auto known = model_.number.find(other);
      return known != model_.number.end() &&
             parts_.part_of[static_cast<size_t>(known->second)] != static_cast<int32_t>(number);
    };
    const auto comes_in = [&](const Output& input) { return elsewhere(input.get_node()); };
    const auto leaves = [&](const ov::Input<ov::Node>& reader) { return elsewhere(reader.get_node()); };
    return std::ranges::any_of(node.input_values(), comes_in) ||
           std::ranges::any_of(node.output(0).get_target_inputs(), leaves);
  }

  void Copy(const std::shared_ptr<ov::Node>& node, size_t number, CompiledPart& built) {
    const bool turned = JoinsChannelsLast(*node, number);
    ov::OutputVector inputs;
    for (const Output& input : node->input_values()) {
      if (!copy_.contains(input)) copy_.emplace(input, BringIn(input, built));
      inputs.push_back(turned ? ChannelsLast(input) : copy_.at(input));
    }
    const std::shared_ptr<ov::Node> copied =
        turned ? std::make_shared<ov::op::v0::Concat>(inputs, 3) : node->clone_with_new_inputs(inputs);
    copied->set_friendly_name(node->get_friendly_name());
    copied->get_rt_info() = node->get_rt_info();
    for (size_t i = 0; i < node->get_output_size(); ++i) {
      if (turned) channels_last_.emplace(node->output(i), copied->output(i));
      copy_.emplace(node->output(i), turned ? Turn(copied->output(i), {0, 3, 1, 2}) : copied->output(i));
    }
  }

  // The copy of a tensor of the whole model, as others read it.
  Output ChannelsLast(const Output& output) {
    const auto known = channels_last_.find(output);
    return known != channels_last_.end() ? known->second : Turn(copy_.at(output), {0, 2, 3, 1});
  }

  Output BringIn(const Output& input, CompiledPart& built) {
    if (const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(input.get_node_shared_ptr())) {
      const auto copied = std::make_shared<ov::op::v0::Constant>(*constant);
      copied->set_friendly_name(constant->get_friendly_name());
      return copied->output(0);
    }
    const bool turned = model_.number.contains(input.get_node()) && layout_.channels_last(input);
    const auto parameter = std::make_shared<ov::op::v0::Parameter>(
        input.get_element_type(), turned ? ov::PartialShape(layout_.shape(input)) : input.get_partial_shape());
    parameter->set_friendly_name(fmt::format("{}/in{}", input.get_node()->get_friendly_name(), input.get_index()));
    parameters_.push_back(parameter);
    built.takes.push_back(input);
    if (!turned) return parameter->output(0);
    channels_last_.emplace(input, parameter->output(0));
    return Turn(parameter->output(0), {0, 3, 1, 2});
  }

  const LoadedModel& model_;
  const Parts& parts_;
  const Layout& layout_;
  std::map<Output, Output> copy_;
  std::map<Output, Output> channels_last_;  // what is there in that layout, by tensor of the whole model
  ov::ParameterVector parameters_;
};

// Threads wait asleep between runs and spinning within one: to wake a thread takes longer than many a part.
class ParallelRunner : public Runner {
 public:
  ParallelRunner(const LoadedModel& model, ov::Core& core, const std::vector<RuntimeDevice>& devices,
                 const std::vector<int32_t>& device_of_op)
      : model_(model), devices_(devices), layout_(model) {
    if (!model.model->get_sinks().empty())
      throw Error("the model keeps a state between runs, which parts cannot share");
    std::vector<int32_t> device(model.nodes.size());
    for (size_t node = 0; node < device.size(); ++node) {
      device[node] = device_of_op[static_cast<size_t>(model.op_of[node])];
    }
    const Parts parts = CutIntoParts(model.Predecessors(), device);
    PartBuilder builder(model, parts, layout_);
    // One after another: with OpenVINO 2026.4.1 a process under AddressSanitizer that had compiled on threads of its
    // own, since ended, often crashed at its end.
    for (size_t part = 0; part < parts.parts.size(); ++part) {
      parts_.push_back(builder.Build(part));
      Compile(parts_.back(), core);
    }
    Join();
    done_ = std::vector<std::atomic<int64_t>>(parts_.size());
    runs_.resize(parts_.size());
    std::set<size_t> used;
    for (const CompiledPart& part : parts_) used.insert(part.device);
    stolen_.resize(devices.size());
    threads_ = used.size();
    tell_stolen_ = std::ranges::count_if(used, [&](size_t device_used) { return devices[device_used].one_core(); });
    for (const size_t device_used : used) workers_.emplace_back([this, device_used] { Work(device_used); });
  }

  ~ParallelRunner() override {
    ending_ = true;
    ++round_;
    round_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  OneRun Run() override {
    ready_ = finished_ = 0;
    go_ = false;
    ++round_;
    round_.notify_all();
    while (ready_.load(std::memory_order_acquire) < threads_) std::this_thread::yield();
    // The main thread sleeps while the others spin: it may share a core with them.
    started_ = ThreadClock::Now(CLOCK_MONOTONIC);
    go_.store(true, std::memory_order_release);
    for (size_t seen = finished_.load(); seen < threads_; seen = finished_.load()) finished_.wait(seen);
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
    OneRun run{.parts = runs_};
    for (const PartRun& part : runs_) run.seconds = std::max(run.seconds, part.end);
    for (const double stolen : stolen_) run.stolen += stolen / static_cast<double>(std::max<int64_t>(tell_stolen_, 1));
    return run;
  }

  std::vector<ov::Tensor> Outputs() override {
    std::vector<ov::Tensor> outputs;
    for (const std::shared_ptr<ov::op::v0::Result>& result : model_.model->get_results()) {
      const Output source = result->input_value(0);
      const auto found = result_of_.find(source);
      if (found == result_of_.end()) {
        outputs.emplace_back();  // an input or a constant that is passed on: nothing computes it
        continue;
      }
      const auto& [part, position] = found->second;
      outputs.push_back(parts_[part].request.get_output_tensor(position));
    }
    return outputs;
  }

  nlohmann::json Describe() const override {
    nlohmann::json parts = nlohmann::json::array(), transfers = nlohmann::json::array();
    for (const CompiledPart& part : parts_) {
      std::vector<int32_t> ops;
      for (const int32_t node : part.nodes) {
        const int32_t op = model_.op_of[static_cast<size_t>(node)];
        if (model_.named[static_cast<size_t>(node)] && std::ranges::count(ops, op) == 0) ops.push_back(op);
      }
      parts.push_back({{"device", part.device}, {"ops", ops}, {"before", part.before}});
    }
    // Once per tensor and device that does not make it.
    std::map<std::pair<Output, size_t>, size_t> sent;
    for (size_t reader = 0; reader < parts_.size(); ++reader) {
      for (const Output& tensor : parts_[reader].takes) {
        const auto made = maker_.find(tensor);
        if (made == maker_.end() || parts_[made->second].device == parts_[reader].device) continue;
        sent.emplace(std::pair(tensor, parts_[reader].device), reader);
      }
    }
    for (const auto& [key, reader] : sent) {
      const Output& tensor = key.first;
      const size_t maker = maker_.at(tensor);
      transfers.push_back({{"names", tensor.get_names()},
                           {"from_part", maker},
                           {"to_part", reader},
                           {"bytes", shared_.at(tensor).get_byte_size()}});
    }
    return {{"subgraphs", parts_.size()}, {"parts", parts}, {"transfers", transfers}};
  }

 private:
  void Compile(CompiledPart& part, ov::Core& core) {
    const RuntimeDevice& device = devices_[part.device];
    part.compiled = CompileFor(core, part.model, device);
    part.request = part.compiled.create_infer_request();
  }

  // Memory for what parts share.
  void Join() {
    for (size_t number = 0; number < parts_.size(); ++number) {
      CompiledPart& part = parts_[number];
      for (size_t i = 0; i < part.gives.size(); ++i) {
        const Output& output = part.gives[i];
        const ov::Tensor tensor(output.get_element_type(), layout_.shape(output));
        shared_.emplace(output, tensor);
        maker_.emplace(output, number);
        part.request.set_output_tensor(i, tensor);
      }
      for (size_t i = 0; i < part.results.size(); ++i) {
        result_of_.emplace(part.results[i], std::pair(number, part.gives.size() + i));
      }
    }
    const ov::ParameterVector& parameters = model_.model->get_parameters();
    for (CompiledPart& part : parts_) {
      for (size_t i = 0; i < part.takes.size(); ++i) {
        const auto parameter =
            std::ranges::find_if(parameters, [&](const auto& one) { return one.get() == part.takes[i].get_node(); });
        part.request.set_input_tensor(i, parameter != parameters.end()
                                             ? model_.inputs[static_cast<size_t>(parameter - parameters.begin())]
                                             : shared_.at(part.takes[i]));
      }
    }
  }

  // A processor's thread spins within a run: waking one takes longer than many a part. That of another device has no
  // core of its own, and would take time from one that computes.
  static void Wait(bool spins) { spins ? Pause() : std::this_thread::yield(); }

  void Work(size_t device) {
    PinTo(devices_[device].cores);
    const bool spins = devices_[device].is_cpu(), one_core = devices_[device].one_core();
    for (int64_t round = 0;;) {
      round_.wait(round);
      round = round_.load();
      if (ending_) return;
      try {
        OnThisThread(one_core, [&] {
          ready_.fetch_add(1, std::memory_order_acq_rel);
          while (!go_.load(std::memory_order_acquire)) Wait(spins);
          const ThreadClock clock;
          for (size_t number = 0; number < parts_.size(); ++number) {
            if (parts_[number].device == device) RunPart(number, round, spins);
          }
          if (one_core) stolen_[device] = clock.stolen();
        });
      } catch (...) {
        const std::lock_guard lock(mutex_);
        thrown_ = std::current_exception();
        failed_ = round;
      }
      finished_.fetch_add(1);
      finished_.notify_all();
    }
  }

  void RunPart(size_t number, int64_t round, bool spins) {
    CompiledPart& part = parts_[number];
    for (const int32_t before : part.before) {
      while (done_[static_cast<size_t>(before)].load(std::memory_order_acquire) != round) {
        if (failed_.load(std::memory_order_relaxed) == round) return;
        Wait(spins);
      }
    }
    const double begin = ThreadClock::Now(CLOCK_MONOTONIC) - started_;
    part.request.infer();
    runs_[number] = {begin, ThreadClock::Now(CLOCK_MONOTONIC) - started_};
    done_[number].store(round, std::memory_order_release);
  }

  const LoadedModel& model_;
  const std::vector<RuntimeDevice>& devices_;
  const Layout layout_;
  std::vector<CompiledPart> parts_;
  std::map<Output, ov::Tensor> shared_;
  std::map<Output, size_t> maker_;                         // the part that makes what others read
  std::map<Output, std::pair<size_t, size_t>> result_of_;  // its part and output there

  std::vector<std::thread> workers_;
  size_t threads_ = 0;
  int64_t tell_stolen_ = 0;  // of these, those of which it is known
  std::atomic<int64_t> round_ = 0, failed_ = -1;
  std::atomic<size_t> ready_ = 0, finished_ = 0;
  std::atomic<bool> go_ = false, ending_ = false;
  std::vector<std::atomic<int64_t>> done_;  // by part, the last round in which it ran
  double started_ = 0;
  std::vector<PartRun> runs_;
  std::vector<double> stolen_;  // by device
  std::mutex mutex_;
  std::exception_ptr thrown_;
};

}  // namespace

std::unique_ptr<Runner> RunParallel(const LoadedModel& model, ov::Core& core, const std::vector<RuntimeDevice>& devices,
                                    const std::vector<int32_t>& device_of_op) {
  return std::make_unique<ParallelRunner>(model, core, devices, device_of_op);
}

}  // namespace berth
