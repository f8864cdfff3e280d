#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "import/model_families.h"
#include "import/readers.h"
#include "import/testing.h"
#include "placement/costs.h"
#include "placement/grouping.h"
#include "placement/testing.h"

namespace berth {
namespace {

using ::testing::HasSubstr;

// x [1,4] -> MatMul with compressed weights -> Add a bias -> Reshape by a constant -> result.
const std::string kSmall = ReadFile(std::string(BERTH_SOURCE_DIR) + "/samples/ir.xml");

std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& text) {
  try {
    ReadIr(text, "net.xml", IrView::kRaw);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReadIr, FoldedKeepsWhatARuntimeExecutes) {
  const Graph graph = ReadIr(kSmall, "net.xml", IrView::kFolded);
  ASSERT_EQ(graph.num_ops(), 3u);
  EXPECT_EQ(graph.op_name(OpId{0}), "product");
  EXPECT_EQ(graph.op_type(OpId{2}), "Reshape");
  EXPECT_EQ(graph.work(OpId{0}).flops, 2 * 3 * 4);
  EXPECT_EQ(graph.work(OpId{0}).bytes_read, 4 * (4 + 12));
  EXPECT_EQ(graph.work(OpId{1}).flops, 3);
  EXPECT_EQ(graph.num_inputs(), 1u);
  EXPECT_EQ(graph.input_bytes(InputId{0}), 16);
  // The decompressed weight counts as it is stored; the shape is no weight.
  ASSERT_EQ(graph.num_parameters(), 2u);
  EXPECT_EQ(graph.parameter_bytes(ParameterId{0}), 24);
  EXPECT_EQ(graph.parameter_bytes(ParameterId{1}), 12);
  EXPECT_TRUE(graph.is_output(TensorId{2}));
}

TEST(ReadIr, RawKeepsEveryLayerAndWeightsStillCostNothing) {
  const Graph graph = ReadIr(kSmall, "net.xml", IrView::kRaw);
  EXPECT_EQ(graph.num_ops(), 9u);
  EXPECT_EQ(graph.num_edges(), 8u);
  EXPECT_EQ(graph.num_parameters(), 2u);
  EXPECT_EQ(graph.total_flops(), ReadIr(kSmall, "net.xml", IrView::kFolded).total_flops());
  for (const OpId op : graph.ops()) {
    const std::string_view type = graph.op_type(op);
    const bool free =
        type == "Const" || type == "Convert" || type == "Parameter" || type == "Result" || type == "Reshape";
    EXPECT_EQ(graph.work(op).bytes_read == 0, free) << type;
    if (type != "Const" && type != "Convert") continue;
    EXPECT_EQ(graph.tensor_bytes(MakeId<TensorId>(graph.first_output(op))), 0);
  }
}

TEST(ReadIr, OfASequenceTheBatchComesFirst) {
  const auto port = [](int id, const std::vector<int>& dims) {
    std::string text = fmt::format("<port id='{}' precision='FP32'>", id);
    for (const int dim : dims) text += fmt::format("<dim>{}</dim>", dim);
    return text + "</port>";
  };
  // X, the first state, lengths, W, R and B of a GRU in both directions over 5 steps.
  const std::vector<std::vector<int>> inputs = {{3, 5, 8}, {3, 2, 16}, {3}, {2, 48, 8}, {2, 48, 16}, {2, 48}};
  std::string layers, ports, edges;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int number = static_cast<int>(i);
    layers += fmt::format("<layer id='{}' name='input{}' type='Parameter'><output>{}</output></layer>", i, i,
                          port(0, inputs[i]));
    ports += port(number, inputs[i]);
    edges += fmt::format("<edge from-layer='{}' from-port='0' to-layer='6' to-port='{}'/>", i, i);
  }
  layers += fmt::format("<layer id='6' name='gru' type='GRUSequence'><input>{}</input><output>{}{}</output></layer>",
                        ports, port(6, {3, 2, 5, 16}), port(7, {3, 2, 16}));
  layers += fmt::format("<layer id='7' name='y' type='Result'><input>{}</input></layer>", port(0, {3, 2, 5, 16}));
  edges += "<edge from-layer='6' from-port='6' to-layer='7' to-port='0'/>";
  const Graph graph =
      ReadIr(fmt::format("<net name='gru' version='11'><layers>{}</layers><edges>{}</edges></net>", layers, edges),
             "net.xml", IrView::kFolded);
  ASSERT_EQ(graph.num_ops(), 1u);
  EXPECT_EQ(graph.work(OpId{0}).steps, 2 * 5);
  EXPECT_EQ(graph.work(OpId{0}).flops, 3.0 * 5 * 2 * 16 * (6 * (8 + 16) + 23));
}

TEST(ReadIr, ReadsEveryPublishedFile) {
  const std::string folder = std::string(BERTH_SHARED_DIR) + "/models/openvino-ir";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no models in " << folder;
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".xml") continue;
    const std::string path = entry.path().string(), content = ReadFile(path);
    EXPECT_TRUE(LooksLikeIr(content)) << path;
    const Graph raw = ReadIr(content, path, IrView::kRaw), folded = ReadIr(content, path, IrView::kFolded);
    EXPECT_GT(raw.num_ops(), folded.num_ops()) << path;
    EXPECT_EQ(raw.total_flops(), folded.total_flops()) << path;
    EXPECT_EQ(raw.total_parameter_bytes(), folded.total_parameter_bytes()) << path;
    if (path.ends_with("pointpillars_ov_nn.xml")) {
      EXPECT_EQ(raw.num_ops(), 310u);
      EXPECT_GT(raw.total_parameter_bytes(), 30'000'000);
      EXPECT_THAT(raw.notes().front(), HasSubstr("taken as 1, because the file leaves it open"));
    }
    ++count;
  }
  EXPECT_EQ(count, 8u);
}

TEST(ReadIr, SaysWhereAFileIsWrong) {
  EXPECT_EQ(ErrorOf(Replaced(kSmall, "layer id=\"4\"", "layer id=\"3\"")),
            "net.xml:14: layer id 3 is there already; give each layer its own");
  EXPECT_EQ(ErrorOf(Replaced(kSmall, "to-layer=\"8\"", "to-layer=\"80\"")),
            "net.xml:34: no layer has the id 80; remove the edge or add the layer");
  EXPECT_EQ(ErrorOf(Replaced(kSmall, "from-port=\"2\" to-layer=\"8\"", "from-port=\"7\" to-layer=\"8\"")),
            "net.xml:34: layer flat has no port 7 there; correct from-port");
  EXPECT_EQ(ErrorOf(Replaced(kSmall, "<dim>4</dim>", "<dim>four</dim>")),
            "net.xml:5: <dim> is 'four'; expected an integer from -1 to 2147483647");
  EXPECT_EQ(ErrorOf(Replaced(kSmall, "type=\"MatMul\"", "type=\"Result\"")),
            "net.xml:30: layer sum reads from product, which is a Result; read from what the Result reads");
  EXPECT_THAT(ErrorOf(kSmall.substr(0, 900)), HasSubstr("net.xml:"));
  EXPECT_EQ(ErrorOf(Replaced(kSmall, "<edge from-layer=\"4\" from-port=\"0\" to-layer=\"5\" to-port=\"1\"/>", "")),
            "net.xml:16: nothing comes in at port 1 of layer sum; the file is cut or was edited");
  EXPECT_EQ(ErrorOf("<model/>"), "net.xml: has no <net>; an OpenVINO IR was expected");
  EXPECT_EQ(ErrorOf("<net name='n'><layers/></net>"),
            "net.xml: <layers> is missing or empty; there is nothing to place");
  try {
    ReadIr("<net name='n'><layers><layer id='0' name='w' type='Const'/></layers></net>", "net.xml", IrView::kFolded);
    ADD_FAILURE() << "a graph without ops";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "net.xml: has inputs, constants and results alone; a model with a layer that computes was expected");
  }
  EXPECT_THAT(ErrorOf(Replaced(kSmall, "from-layer=\"0\" from-port=\"0\" to-layer=\"3\"",
                               "from-layer=\"7\" from-port=\"2\" to-layer=\"3\"")),
              HasSubstr("cycle"));
  EXPECT_THAT(ErrorOf(Replaced(kSmall, "<dim>1</dim><dim>4</dim>", "<dim>2000000000</dim><dim>2000000000</dim>")),
              HasSubstr("check the dimensions"));
}

TEST(ReadIr, AnyDamageIsAnErrorOrAGraph) {
  Random random(99);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = testing::Damaged(kSmall, random, "0123456789-<>\"/");
    try {
      ReadIr(text, "net.xml", random.Chance(0.5) ? IrView::kRaw : IrView::kFolded);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

// --- The networks of HSDAG
// -------------------------------------------------------------------------------------------------

Problem IrProblem(std::string_view name) {
  ModelCatalog models("model");
  RegisterIrModels(models);
  return testing::UnitProblem(models.Make(name), 2);
}

struct Size {
  size_t nodes, edges;
  bool operator==(const Size&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Size& size) { return out << size.nodes << "/" << size.edges; }

Size Raw(const Problem& problem) { return {problem.num_ops(), problem.graph().num_edges()}; }
Size Coarse(const Problem& problem, std::string_view rule) {
  GroupingCatalog groupings("grouping");
  RegisterGroupings(groupings);
  const Grouping grouping = groupings.Make(fmt::format("colocation(rule={})", rule), problem, {});
  const Quotient quotient = MakeQuotient(problem, grouping);
  EXPECT_TRUE(quotient.acyclic);
  return {grouping.num_groups(), quotient.edges.size()};
}

TEST(IrModels, ResNet50HasTheSizesThatHsdagPrints) {
  const Problem problem = IrProblem("ir_resnet50");
  EXPECT_EQ(Raw(problem), (Size{396, 411}));
  EXPECT_EQ(Coarse(problem, "paper"), (Size{237, 252}));
  EXPECT_EQ(Coarse(problem, "code"), (Size{237, 252}));
}

TEST(IrModels, InceptionV3HasTheSizesThatHsdagPrints) {
  const Problem problem = IrProblem("ir_inception_v3");
  EXPECT_EQ(Raw(problem), (Size{728, 764}));
  EXPECT_EQ(Coarse(problem, "paper"), (Size{435, 471}));
  EXPECT_EQ(Coarse(problem, "code"), (Size{424, 460}));
  EXPECT_EQ(problem.graph().op_types().size(), 16u);
}

TEST(IrModels, BertHasTheSizesThatHsdagPrints) {
  const Problem problem = IrProblem("ir_bert_base");
  EXPECT_EQ(Raw(problem), (Size{1009, 1071}));
  EXPECT_EQ(Coarse(problem, "code").nodes, 768u);
}

// Parameters and operations as the papers and model zoos count them; a multiply-add is two.
TEST(IrModels, HaveTheWeightsAndOperationsOfTheNetworksTheyAre) {
  struct Expected {
    const char* name;
    double parameters, flops;
  };
  for (const Expected& expected : {Expected{"ir_resnet50", 25.5e6, 8.2e9}, Expected{"ir_inception_v3", 23.8e6, 11.4e9},
                                   Expected{"ir_bert_base", 109.5e6, 22.4e9}}) {
    for (const char* view : {"raw", "folded"}) {
      const Problem problem = IrProblem(fmt::format("{}(view={})", expected.name, view));
      EXPECT_NEAR(static_cast<double>(problem.graph().total_parameter_bytes()) / 2 / expected.parameters, 1, 0.01)
          << expected.name;
      EXPECT_NEAR(problem.graph().total_flops() / expected.flops, 1, 0.03)
          << expected.name << problem.graph().total_flops();
    }
  }
}

TEST(IrModels, FoldedIsWhatRawExecutes) {
  for (const char* name : {"ir_resnet50", "ir_inception_v3", "ir_bert_base"}) {
    const Problem raw = IrProblem(name), folded = IrProblem(fmt::format("{}(view=folded)", name));
    EXPECT_LT(folded.num_ops(), raw.num_ops());
    EXPECT_EQ(folded.graph().total_flops(), raw.graph().total_flops());
    EXPECT_EQ(folded.graph().total_parameter_bytes(), raw.graph().total_parameter_bytes());
  }
}

}  // namespace
}  // namespace berth
