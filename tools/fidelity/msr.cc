// Tarnawski et al. 2020 (msr-fiddle/dnn-partitioning).
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "import/readers.h"
#include "import/split_file.h"
#include "placement/bound.h"
#include "sim/simulators.h"
#include "tools/fidelity/fidelity.h"

namespace berth {
namespace {

using nlohmann::json;

// An instance under one of the data set's two models.
class Model {
 public:
  Model(const std::string& path, const std::string& evaluator, size_t least_accelerators = 0)
      : instance_(ReadMsr(ReadFile(path), path, {.least_accelerators = least_accelerators})),
        problem_(instance_.ToProblem()) {
    EvaluatorCatalog catalog("evaluator");
    RegisterPipeline(catalog);
    RegisterPieces(catalog);
    evaluator_ = catalog.Make(evaluator, problem_);
  }

  Score OfSplit(const std::string& path) const { return OfPlan(ReadSplit(ReadFile(path), path, instance_)); }
  Score OnOneAccelerator() const { return OfPlan({.device = std::vector<DeviceId>(problem_.num_ops(), DeviceId{0})}); }
  double Bound() const { return LowerBound(*evaluator_).time; }

 private:
  Score OfPlan(const Plan& plan) const { return evaluator_->ScorePlan(plan.view(), *evaluator_->NewWorkspace()); }

  Instance instance_;
  Problem problem_;
  std::unique_ptr<Evaluator> evaluator_;
};

// "LayerGraphs/gnmt_training" as split files are named after it: "LayerGraphs_gnmt_training".
std::string SplitName(std::string name) {
  std::ranges::replace(name, '/', '_');
  return name;
}

// The split that human experts made for a layer graph; the one for inference where there is none for training.
std::string ExpertFile(const std::string& folder, const std::string& name) {
  const std::string model = name.substr(name.find('/') + 1);
  const std::string own = fmt::format("{}/human-experts/{}_expert.json", folder, model);
  if (std::filesystem::exists(own)) return own;
  return fmt::format("{}/human-experts/{}_inference_expert.json", folder, model.substr(0, model.find('_')));
}

FidelityRow Row(std::string what, double published, const Score& score, bool published_fits = true) {
  return {.what = std::move(what),
          .published = published,
          .ours = score.time,
          .published_fits = published_fits,
          .fits = score.fits()};
}

void AddThroughput(const std::string& folder, const json& known, std::vector<FidelityTable>& tables) {
  FidelityTable splits{
      .title = "MSR, throughput: splits",
      .text =
          "The largest load, in ms, of the best known splits: contiguous optima, which the published program finds, "
          "and the best that are not contiguous, which a search found and the published program scored. `pipeline`, "
          "memory `msr`. Tarnawski et al. 2020, section 3.",
      .tolerance = 1e-5};
  FidelityTable experts{.title = "MSR, throughput: human experts",
                        .text =
                            "The same for the splits that human experts made; the backward pass follows where a split "
                            "has the forward pass alone.",
                        .tolerance = 1e-5};
  FidelityTable single{
      .title = "MSR, throughput: all on one accelerator", .text = "The load in ms.", .tolerance = 1e-5};
  FidelityTable bounds{
      .title = "MSR, throughput: lower bounds",
      .text = "In ms: the work as if it could be divided, or the largest colour class if that is more.",
      .tolerance = 1e-9};
  for (const auto& [name, values] : known.items()) {
    const Model model(fmt::format("{}/throughput-inputs/{}.json", folder, name), "pipeline");
    const auto split = [&](std::string_view kind) {
      return model.OfSplit(fmt::format("{}/best_splits/{}.{}.json", folder, SplitName(name), kind));
    };
    splits.rows.push_back(Row(name + ", contiguous", values["contig_opt_exact"], split("contig")));
    splits.rows.push_back(Row(name + ", any", values["nc_best"], split("nc")));
    if (values["expert"].is_number())
      experts.rows.push_back(Row(name, values["expert"], model.OfSplit(ExpertFile(folder, name))));
    const Score one = model.OnOneAccelerator();
    single.rows.push_back(Row(name, values["one_acc"], one, one.fits()));
    bounds.rows.push_back({.what = name,
                           .published = std::max(values["lb_work"].get<double>(), values["lb_maxclass"].get<double>()),
                           .ours = model.Bound()});
  }
  for (FidelityTable* table : {&splits, &experts, &single, &bounds}) tables.push_back(std::move(*table));
}

void AddLatency(const std::string& folder, const json& known, std::vector<FidelityTable>& tables) {
  FidelityTable splits{.title = "MSR, latency: splits",
                       .text =
                           "The time of one sample, in ms, of the best known splits with one piece per accelerator "
                           "(`pieces`) and with any number (`pieces(q=0)`), found by a search and scored by the "
                           "published program. Memory `msr`. Tarnawski et al. 2020, appendix A.",
                       .tolerance = 1e-5};
  FidelityTable experts{.title = "MSR, latency: human experts",
                        .text =
                            "The same for the splits that human experts made for throughput; most do not fit into "
                            "these instances' smaller memory.",
                        .tolerance = 1e-5};
  FidelityTable bounds{.title = "MSR, latency: lower bounds",
                       .text = "In ms: the longest path, each node on its faster device.",
                       .tolerance = 1e-5};
  for (const auto& [name, values] : known.items()) {
    const std::string path = fmt::format("{}/latency-inputs/{}.json", folder, name);
    const Model one(path, "pieces"), any(path, "pieces(q=0)");
    const auto split = [&](std::string_view kind) {
      return fmt::format("{}/best_splits/latency_{}.{}.json", folder, SplitName(name), kind);
    };
    splits.rows.push_back(Row(name + ", one piece", values["best_q1"], one.OfSplit(split("q1"))));
    splits.rows.push_back(Row(name + ", any number", values["best_anyq"], any.OfSplit(split("anyq"))));
    bounds.rows.push_back({.what = name, .published = values["lb_cp"], .ours = one.Bound()});
    if (!values.contains("expert")) continue;
    // The experts had six accelerators; one instance has five.
    constexpr size_t kExperts = 6;
    FidelityRow row = Row(name, values["expert"], Model(path, "pieces", kExperts).OfSplit(ExpertFile(folder, name)),
                          !values["expert_oom"]);
    if (values["k"] < kExperts) row.note = fmt::format("{} accelerators, one more than the instance has", kExperts);
    experts.rows.push_back(std::move(row));
  }
  for (FidelityTable* table : {&splits, &experts, &bounds}) tables.push_back(std::move(*table));
}

}  // namespace

std::vector<FidelityTable> MsrFidelity(const std::string& shared) {
  const std::string folder = shared + "/data/msr-dnn-partitioning";
  if (!std::filesystem::exists(folder)) return {};
  const json known = ReadJson(folder + "/best_known.json");
  std::vector<FidelityTable> tables;
  AddThroughput(folder, known["throughput"], tables);
  AddLatency(folder, known["latency"], tables);
  return tables;
}

}  // namespace berth
