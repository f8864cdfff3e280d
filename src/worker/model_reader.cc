#include "worker/model_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <openvino/pass/serialize.hpp>
#include <ostream>
#include <sstream>

#include "base/error.h"
#include "worker/loaded_model.h"

namespace berth {
namespace {

// Takes everything and keeps what is as small as a number, by offset: other weights are not asked for.
class Numbers : public std::streambuf {
 public:
  std::vector<std::pair<int64_t, std::vector<uint8_t>>> kept{};

 protected:
  int_type overflow(int_type c) override {
    ++written_;
    return traits_type::not_eof(c);
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    if (count > 0 && count <= static_cast<std::streamsize>(sizeof(int64_t)))
      kept.push_back({written_, {bytes, bytes + count}});
    written_ += count;
    return count;
  }
  // The writer asks where it is.
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override { return written_; }

 private:
  std::streamsize written_ = 0;
};

std::string NameOf(const ov::Output<ov::Node>& input) { return input.get_node()->get_friendly_name(); }

// The first axis counts as a batch where a model leaves it open, where it is one of several and of size one, and of
// images and larger tensors.
bool HasBatch(const ov::PartialShape& shape) {
  return shape.size() >= 1 && (shape[0].is_dynamic() || (shape.size() >= 2 && shape[0] == 1) || shape.size() >= 4);
}

// Throws Error for sizes that no input has.
void SetAskedSizes(ov::Model& model, const nlohmann::json& asked, const nlohmann::json& batch,
                   std::vector<std::string>& batches) {
  std::vector<std::string> names, taken;
  std::map<ov::Output<ov::Node>, ov::PartialShape> shapes;
  bool has_batch = false, all_given = true;
  for (const ov::Output<ov::Node>& input : model.inputs()) {
    names.push_back(NameOf(input));
    ov::PartialShape shape = input.get_partial_shape();
    bool given = false;
    for (const auto& [name, sizes] : asked.items()) {
      if (!NamesOf(input).contains(name)) continue;
      const auto dims = sizes.get<std::vector<int64_t>>();
      if (shape.rank().is_static() && shape.size() != dims.size()) {
        throw Error("--shape {}={}: this input has {} dimensions, not {}", name, fmt::join(dims, ","), shape.size(),
                    dims.size());
      }
      shape = ov::PartialShape(std::vector<ov::Dimension>(dims.begin(), dims.end()));
      given = true;
      taken.push_back(name);
    }
    if (shape.rank().is_dynamic()) {
      throw Error("the file does not say what shape its input '{0}' has; give it, like --shape {0}=1,224,224,3",
                  NameOf(input));
    }
    all_given = all_given && given;
    if (!given && !batch.is_null() && HasBatch(shape)) {
      shape[0] = batch.get<int64_t>();
      has_batch = true;
    } else if (!given && shape.size() > 0 && shape[0].is_dynamic()) {
      shape[0] = 1;
      batches.push_back(NameOf(input));
    }
    shapes.emplace(input, shape);
  }
  for (const auto& [name, sizes] : asked.items()) {
    if (std::ranges::count(taken, name) == 0)
      throw Error("--shape {}=...: there is no input of that name; its inputs are: {}", name, fmt::join(names, ", "));
  }
  if (!batch.is_null() && all_given && !names.empty()) {
    throw Error("--batch {}: every input has a --shape of its own; leave one of the two out", batch.get<int64_t>());
  }
  if (!batch.is_null() && !has_batch) {
    throw Error(
        "--batch {}: there is no input of which it is plain which axis is the batch; set sizes with --shape: {}",
        batch.get<int64_t>(), fmt::join(names, ", "));
  }
  model.reshape(shapes);
}

std::string Version() { return ov::get_openvino_version().buildNumber; }

template <typename Read>
nlohmann::json Named(const nlohmann::json& question, const Read& read) {
  const std::string path = question.at("model");
  try {
    return read(path);
  } catch (const Error& error) {
    throw Error("{}: {}", path, error.what());
  } catch (const std::exception& exception) {
    throw Error("{}: OpenVINO does not take it: {}", path, Brief(exception));
  }
}

}  // namespace

nlohmann::json ReadAsIr(const nlohmann::json& question, ov::Core& core) {
  return Named(question, [&](const std::string& path) -> nlohmann::json {
    const std::shared_ptr<ov::Model> model = ReadModelFile(path, core);
    std::vector<std::string> batches;
    SetAskedSizes(*model, question.at("inputs"), question.at("batch"), batches);
    FoldConstants(model);
    model->set_friendly_name(std::filesystem::path(path).stem().string());
    for (const std::shared_ptr<ov::Node>& node : model->get_ordered_ops()) {
      for (const ov::Output<ov::Node>& output : node->outputs()) {
        if (output.get_partial_shape().rank().is_static()) continue;
        throw Error("how many dimensions the tensor '{}' has depends on data; give --shape for every input",
                    node->get_friendly_name());
      }
    }
    std::ostringstream xml;
    Numbers numbers;
    std::ostream weights(&numbers);
    ov::pass::Serialize(xml, weights).run_on_model(model);
    return {{"xml", xml.str()}, {"batches", batches}, {"numbers", numbers.kept}, {"version", Version()}};
  });
}

nlohmann::json ReadTensorSizes(const nlohmann::json& question, ov::Core& core) {
  return Named(question, [&](const std::string& path) -> nlohmann::json {
    const std::shared_ptr<ov::Model> model = ReadModelFile(path, core);
    SetSizes(*model, question.at("inputs"));
    nlohmann::json tensors = nlohmann::json::object();
    for (const std::shared_ptr<ov::Node>& node : model->get_ordered_ops()) {
      for (const ov::Output<ov::Node>& output : node->outputs()) {
        if (output.get_partial_shape().is_dynamic()) continue;
        for (const std::string& name : output.get_names()) tensors[name] = output.get_shape();
      }
    }
    return {{"tensors", tensors}, {"version", Version()}};
  });
}

}  // namespace berth
