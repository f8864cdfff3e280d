#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
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

std::string Port(int id, const Dims& dims) {
  std::string text = fmt::format("<port id='{}' precision='FP32'>", id);
  for (const int64_t dim : dims) text += fmt::format("<dim>{}</dim>", dim);
  return text + "</port>";
}

// Ports are numbered from 0, those of outputs after those of inputs. `inside` is what else the layer holds.
std::string Layer(int id, std::string_view type, const std::vector<Dims>& inputs, const std::vector<Dims>& outputs,
                  std::string_view inside = {}) {
  std::string in, out;
  int port = 0;
  for (const Dims& dims : inputs) in += Port(port++, dims);
  for (const Dims& dims : outputs) out += Port(port++, dims);
  return fmt::format("<layer id='{0}' name='{1}{0}' type='{1}'>{2}<input>{3}</input><output>{4}</output></layer>", id,
                     type, inside, in, out);
}

std::string Edge(int from, int from_port, int to, int to_port) {
  return fmt::format("<edge from-layer='{}' from-port='{}' to-layer='{}' to-port='{}'/>", from, from_port, to, to_port);
}

std::string Net(std::string_view layers_and_edges) {
  return fmt::format("<net name='n' version='11'>{}</net>", layers_and_edges);
}

// A net around `layer`, whose id is 1. Of its `inputs` the first is a Parameter, the others are constants.
std::string Alone(const std::string& layer, const std::vector<Dims>& inputs, const Dims& output, int output_port) {
  std::string layers = Layer(0, "Parameter", {}, {inputs.front()}) + layer, edges = Edge(0, 0, 1, 0);
  for (size_t i = 1; i < inputs.size(); ++i) {
    const int id = static_cast<int>(i) + 2;
    layers += Layer(id, "Const", {}, {inputs[i]});
    edges += Edge(id, 0, 1, static_cast<int>(i));
  }
  layers += Layer(2, "Result", {output}, {});
  edges += Edge(1, output_port, 2, 0);
  return Net(fmt::format("<layers>{}</layers><edges>{}</edges>", layers, edges));
}

TEST(ReadIr, OfASequenceTheBatchComesFirst) {
  // X, the first state, lengths, W, R and B of a GRU in both directions over 5 steps.
  const std::vector<Dims> inputs = {{3, 5, 8}, {3, 2, 16}, {3}, {2, 48, 8}, {2, 48, 16}, {2, 48}};
  const std::string layer = Layer(1, "GRUSequence", inputs, {{3, 2, 5, 16}, {3, 2, 16}});
  const Graph graph = ReadIr(Alone(layer, inputs, {3, 2, 5, 16}, 6), "net.xml", IrView::kFolded);
  ASSERT_EQ(graph.num_ops(), 1u);
  EXPECT_EQ(graph.work(OpId{0}).steps, 2 * 5);
  EXPECT_EQ(graph.work(OpId{0}).flops, 3.0 * 5 * 2 * 16 * (6 * (8 + 16) + 23));
}

TEST(ReadIr, AnEinsumCountsItsEquation) {
  const std::vector<Dims> inputs = {{2, 3, 8}, {8, 4, 5}};
  const std::string layer = Layer(1, "Einsum", inputs, {{2, 3, 4, 5}}, "<data equation='bid,dhk->bihk'/>");
  const Graph graph = ReadIr(Alone(layer, inputs, {2, 3, 4, 5}, 2), "net.xml", IrView::kFolded);
  EXPECT_EQ(graph.work(OpId{0}).flops, 2 * 2 * 3 * 8 * 4 * 5);
  EXPECT_EQ(graph.work(OpId{0}).op_class, OpClass::kMatMul);
}

// Its third input, the size of the output, is no bias.
TEST(ReadIr, AConvolutionBackwardsHasNoBias) {
  const std::vector<Dims> inputs = {{1, 8, 5, 5}, {8, 4, 3, 3}, {2}};
  const std::string layer = Layer(1, "ConvolutionBackpropData", inputs, {{1, 4, 11, 11}});
  const Graph graph = ReadIr(Alone(layer, inputs, {1, 4, 11, 11}, 3), "net.xml", IrView::kFolded);
  EXPECT_EQ(graph.work(OpId{0}).flops, 2.0 * 8 * 5 * 5 * 4 * 3 * 3);
}

TEST(ReadIr, ACellIsOneStepOfASequence) {
  const std::vector<Dims> lstm = {{3, 8}, {3, 16}, {3, 16}, {64, 8}, {64, 16}, {64}};
  const Graph cell =
      ReadIr(Alone(Layer(1, "LSTMCell", lstm, {{3, 16}, {3, 16}}), lstm, {3, 16}, 6), "net.xml", IrView::kFolded);
  const std::vector<Dims> sequence = {{3, 1, 8}, {3, 1, 16}, {3, 1, 16}, {3}, {1, 64, 8}, {1, 64, 16}, {1, 64}};
  const Graph whole = ReadIr(
      Alone(Layer(1, "LSTMSequence", sequence, {{3, 1, 1, 16}, {3, 1, 16}, {3, 1, 16}}), sequence, {3, 1, 1, 16}, 7),
      "net.xml", IrView::kFolded);
  EXPECT_EQ(cell.work(OpId{0}).flops, whole.work(OpId{0}).flops);
  EXPECT_EQ(cell.work(OpId{0}).flops, 3.0 * 16 * (8 * (8 + 16) + 30));
  EXPECT_EQ(cell.work(OpId{0}).steps, 1);
  // With a bias, or without.
  const auto flops_of = [](std::string_view type, std::vector<Dims> inputs) {
    const int output = static_cast<int>(inputs.size());
    const Graph graph =
        ReadIr(Alone(Layer(1, type, inputs, {{3, 16}}), inputs, {3, 16}, output), "net.xml", IrView::kFolded);
    return graph.work(OpId{0}).flops;
  };
  EXPECT_EQ(flops_of("GRUCell", {{3, 8}, {3, 16}, {48, 8}, {48, 16}, {48}}), 3.0 * 16 * (6 * (8 + 16) + 23));
  EXPECT_EQ(flops_of("GRUCell", {{3, 8}, {3, 16}, {48, 8}, {48, 16}}), 3.0 * 16 * (6 * (8 + 16) + 23));
  EXPECT_EQ(flops_of("RNNCell", {{3, 8}, {3, 16}, {16, 8}, {16, 16}, {16}}), 3.0 * 16 * (2 * (8 + 16) + 4));
}

// --- Loops and branches, as OpenVINO 2026.4 writes them -------------------------------------------------------------

// tanh(x W + h R): x is a slice of a sequence, h the state. Results 9 and 10 are the state and a slice.
const std::string kRecurrence =
    "<layers>" + Layer(0, "Parameter", {}, {{1, 3, 8}}) + Layer(1, "Parameter", {}, {{3, 16}}) +
    Layer(2, "Const", {}, {{8, 16}}) + Layer(3, "Const", {}, {{16, 16}}) +
    Layer(4, "MatMul", {{1, 3, 8}, {8, 16}}, {{1, 3, 16}}) + Layer(5, "MatMul", {{3, 16}, {16, 16}}, {{3, 16}}) +
    Layer(6, "Add", {{1, 3, 16}, {3, 16}}, {{1, 3, 16}}) + Layer(7, "Tanh", {{1, 3, 16}}, {{1, 3, 16}}) +
    Layer(9, "Result", {{1, 3, 16}}, {}) + Layer(10, "Result", {{1, 3, 16}}, {}) + "</layers><edges>" +
    Edge(0, 0, 4, 0) + Edge(2, 0, 4, 1) + Edge(1, 0, 5, 0) + Edge(3, 0, 5, 1) + Edge(4, 2, 6, 0) + Edge(5, 2, 6, 1) +
    Edge(6, 2, 7, 0) + Edge(7, 1, 9, 0) + Edge(7, 1, 10, 0) + "</edges>";

// Over a sequence of 7; `slice` is what the map says of the sequence beside its axis.
std::string Iterator(std::string_view slice) {
  const std::string inside = fmt::format(
      "<port_map><input axis='0' external_port_id='0' internal_layer_id='0' {}/><input external_port_id='1' "
      "internal_layer_id='1'/><output external_port_id='2' internal_layer_id='9'/></port_map><back_edges><edge "
      "from-layer='9' to-layer='1'/></back_edges><body>{}</body>",
      slice, kRecurrence);
  const std::vector<Dims> inputs = {{7, 3, 8}, {3, 16}};
  return Alone(Layer(1, "TensorIterator", inputs, {{3, 16}}, inside), inputs, {3, 16}, 2);
}

TEST(ReadIr, ALoopDoesItsBodyOncePerSlice) {
  const Graph body = ReadIr(Net(kRecurrence), "net.xml", IrView::kFolded);
  for (const auto view : {IrView::kFolded, IrView::kRaw}) {
    const Graph graph = ReadIr(Iterator("start='0' end='-1' stride='1' part_size='1'"), "net.xml", view);
    const auto ops = graph.ops();
    const auto loop = std::ranges::find_if(ops, [&](OpId op) { return graph.op_type(op) == "TensorIterator"; });
    const OpWork& work = graph.work(*loop);
    EXPECT_EQ(work.flops, 7 * body.total_flops());
    int64_t read = 0, written = 0;
    for (const OpId op : body.ops()) {
      read += body.work(op).bytes_read;
      written += body.work(op).bytes_written;
    }
    EXPECT_EQ(work.bytes_read, 7 * read);
    EXPECT_EQ(work.bytes_written, 7 * written);
    EXPECT_EQ(work.steps, 7 * 4);
    EXPECT_EQ(work.op_class, OpClass::kMatMul);
    EXPECT_EQ(work.sizes, Certainty::kKnown);
    EXPECT_FALSE(work.bytes_only);
    // Those of the body, and the constant that the state begins with.
    EXPECT_EQ(graph.total_parameter_bytes(), body.total_parameter_bytes() + 4 * 3 * 16);
    EXPECT_EQ(graph.num_parameters(), 3u);
  }
}

TEST(ReadIr, CountsSlicesAsOpenVinoDoes) {
  const double once = ReadIr(Net(kRecurrence), "net.xml", IrView::kFolded).total_flops();
  for (const auto& [slice, rounds] : std::vector<std::pair<const char*, int>>{{"", 7},
                                                                              {"start='-1' end='0' stride='-1'", 7},
                                                                              {"start='1' end='-2'", 5},
                                                                              {"end='9223372036854775807'", 7},
                                                                              {"start='2' end='5' part_size='2'", 2}}) {
    EXPECT_EQ(ReadIr(Iterator(slice), "net.xml", IrView::kFolded).total_flops(), rounds * once) << slice;
  }
  // Where nothing is taken apart, by what is put together.
  const std::string together = Replaced(Iterator(""), "<input axis='0' external", "<input external");
  for (const auto& [slice, rounds] :
       std::vector<std::pair<const char*, int>>{{"", 3}, {"start='0' end='3'", 3}, {"part_size='3'", 1}}) {
    const std::string output = fmt::format("<output axis='-2' external_port_id='2' {}", slice);
    EXPECT_EQ(
        ReadIr(Replaced(together, "<output external_port_id='2'", output), "net.xml", IrView::kFolded).total_flops(),
        rounds * once)
        << slice;
  }
  const Graph open = ReadIr(Replaced(Iterator(""), "<input><port id='0' precision='FP32'><dim>7</dim>",
                                     "<input><port id='0' precision='FP32'><dim>-1</dim>"),
                            "net.xml", IrView::kFolded);
  EXPECT_EQ(open.total_flops(), once);
  EXPECT_EQ(open.work(OpId{0}).sizes, Certainty::kUnknown);
  EXPECT_THAT(open.notes().front(), HasSubstr("only a run can tell, counted as 1: TensorIterator1"));
}

// x = tanh(x R), until the trip count of constant 3 or the condition, which layer 2 of the body makes. In the weights
// the condition to begin stands at byte 0, the trip count at byte 8.
std::string Loop(const std::string& condition, std::string_view other_edge = {}) {
  const std::string body = "<layers>" + Layer(0, "Parameter", {}, {{3, 16}}) + Layer(1, "Const", {}, {{16, 16}}) +
                           condition + Layer(3, "MatMul", {{3, 16}, {16, 16}}, {{3, 16}}) +
                           Layer(4, "Tanh", {{3, 16}}, {{3, 16}}) + Layer(5, "Result", {{3, 16}}, {}) +
                           Layer(6, "Result", {{}}, {}) + "</layers><edges>" + Edge(0, 0, 3, 0) + Edge(1, 0, 3, 1) +
                           Edge(3, 2, 4, 0) + Edge(4, 1, 5, 0) + Edge(2, 0, 6, 0) + "</edges>";
  const std::string inside = fmt::format(
      "<port_map><input external_port_id='2' internal_layer_id='0'/><output external_port_id='3' "
      "internal_layer_id='5'/><output external_port_id='-1' internal_layer_id='6' "
      "purpose='execution_condition'/></port_map><back_edges><edge from-layer='5' "
      "to-layer='0'/>{}</back_edges><body>{}</body>",
      other_edge, body);
  return Net("<layers>" + Layer(0, "Parameter", {}, {{3, 16}}) +
             Layer(1, "Loop", {{}, {}, {3, 16}}, {{3, 16}}, inside) + Layer(2, "Result", {{3, 16}}, {}) +
             Layer(3, "Const", {}, {{}}, "<data element_type='i64' shape='' offset='8' size='8'/>") +
             Layer(4, "Const", {}, {{}}, "<data element_type='boolean' shape='' offset='0' size='1'/>") +
             "</layers><edges>" + Edge(0, 0, 1, 2) + Edge(3, 0, 1, 0) + Edge(4, 0, 1, 1) + Edge(1, 3, 2, 0) +
             "</edges>");
}

// What a round of it computes.
constexpr double kRound = 3 * 16 * (2 * 16 + 1);

class ReadIrLoop : public ::testing::Test {
 protected:
  ReadIrLoop() { std::filesystem::create_directories(folder_); }
  ~ReadIrLoop() override { std::filesystem::remove_all(folder_); }

  Graph Read(const std::string& text, const std::string& weights) const {
    std::ofstream(folder_ + "/net.bin", std::ios::binary) << weights;
    return ReadIr(text, folder_ + "/net.xml", IrView::kFolded, WeightsBeside(folder_ + "/net.xml"));
  }
  // The condition to begin, then the trip count.
  static std::string Weights(int64_t trips, char begins = 1) {
    std::string weights(16, '\0');
    weights[0] = begins;
    for (size_t byte = 0; byte < 8; ++byte)
      weights[8 + byte] = static_cast<char>(static_cast<uint64_t>(trips) >> 8 * byte & 0xff);
    return weights;
  }

  const std::string folder_ = ::testing::TempDir() + "/berth_ir_loop";
  // Conditions: a constant whose content is not read, or is what the loop's own begins with; what only a run tells.
  const std::string always_ = Layer(2, "Const", {}, {{}}), maybe_ = Layer(2, "Bucketize", {}, {{}}),
                    as_begun_ = Layer(2, "Const", {}, {{}}, "<data element_type='boolean' offset='0' size='1'/>");
};

TEST_F(ReadIrLoop, HasAsManyRoundsAsItsTripCount) {
  const Graph five = Read(Loop(always_), Weights(5));
  EXPECT_EQ(five.total_flops(), 5 * kRound);
  EXPECT_EQ(five.work(OpId{0}).sizes, Certainty::kKnown);
  // The trip count and the condition are no weights.
  EXPECT_EQ(five.total_parameter_bytes(), 4 * 16 * 16);
  EXPECT_EQ(Read(Loop(always_), Weights(0)).total_flops(), 0);
  // A condition that is handed on from round to round ends nothing.
  const Graph handed_on =
      Read(Loop(Layer(2, "Parameter", {}, {{}}), "<edge from-layer='6' to-layer='2'/>"), Weights(5));
  EXPECT_EQ(handed_on.total_flops(), 5 * kRound);
  EXPECT_EQ(handed_on.work(OpId{0}).sizes, Certainty::kKnown);
}

TEST_F(ReadIrLoop, EndsWhereAConstantConditionIsFalse) {
  std::string weights = Weights(5, 0);
  EXPECT_EQ(Read(Loop(always_), weights).total_flops(), 0) << "it does not begin";
  std::string text = Loop(Layer(2, "Const", {}, {{}}, "<data element_type='boolean' offset='1' size='1'/>"));
  EXPECT_EQ(Read(text, Weights(5)).total_flops(), kRound) << "it goes on no further";
  EXPECT_EQ(Read(Loop(as_begun_), Weights(5)).total_flops(), 5 * kRound);
}

TEST_F(ReadIrLoop, ThatARunMayLeaveEarlyIsEstimated) {
  const Graph graph = Read(Loop(maybe_), Weights(5));
  EXPECT_EQ(graph.total_flops(), 5 * kRound);
  EXPECT_EQ(graph.work(OpId{0}).sizes, Certainty::kEstimated);
  EXPECT_THAT(graph.notes().front(), HasSubstr("that a run may leave early, counted with all their rounds: Loop1"));
}

TEST_F(ReadIrLoop, OfUnknownLengthCountsOneRoundAndSaysSo) {
  for (const int64_t endless : {int64_t{-1}, int64_t{INT32_MAX}, INT64_MAX}) {
    const Graph graph = Read(Loop(maybe_), Weights(endless));
    EXPECT_EQ(graph.total_flops(), kRound);
    EXPECT_EQ(graph.work(OpId{0}).sizes, Certainty::kUnknown);
    EXPECT_THAT(graph.notes().front(), HasSubstr("only a run can tell, counted as 1: Loop1"));
  }
  for (const std::string& cut : {std::string(), Weights(5).substr(0, 12)}) {
    const Graph graph = Read(Loop(always_), cut);
    EXPECT_EQ(graph.total_flops(), kRound);
    EXPECT_EQ(graph.work(OpId{0}).sizes, Certainty::kUnknown);
    EXPECT_THAT(graph.notes().front(), HasSubstr("stands among weights that could not be read, counted as 1: Loop1"));
  }
  // Without weights nothing is read, whatever lies beside the file.
  Read(Loop(always_), Weights(5));
  const Graph foreign = ReadIr(Loop(always_), folder_ + "/net.pb", IrView::kFolded);
  EXPECT_EQ(foreign.total_flops(), kRound);
  EXPECT_THAT(foreign.notes().front(), HasSubstr("only a run can tell, counted as 1: Loop1"));
}

// As TensorFlow writes `while i < limit: x = tanh(x R); i += step`, the condition made of the next i. In the weights
// the condition to begin stands at byte 0, the trip count (-1), the first i, the limit and the step at 8, 16, 24
// and 32.
std::string CountingLoop(std::string_view compare, std::string_view of_body = "i64") {
  const auto number = [](int id, int offset, std::string_view type = "i64") {
    return Layer(id, "Const", {}, {{}}, fmt::format("<data element_type='{}' offset='{}'/>", type, offset));
  };
  std::string body = "<layers>" + Layer(0, "Parameter", {}, {{3, 16}}) + Layer(1, "Const", {}, {{16, 16}}) +
                     Layer(2, "Parameter", {}, {{}}) + Layer(3, "MatMul", {{3, 16}, {16, 16}}, {{3, 16}}) +
                     Layer(4, "Tanh", {{3, 16}}, {{3, 16}}) + Layer(5, "Result", {{3, 16}}, {}) +
                     Layer(6, "Result", {{}}, {}) + Layer(7, "Result", {{}}, {}) + Layer(8, "Add", {{}, {}}, {{}}) +
                     Layer(9, compare, {{}, {}}, {{}}) + number(10, 24) + number(11, 32) + "</layers><edges>" +
                     Edge(0, 0, 3, 0) + Edge(1, 0, 3, 1) + Edge(3, 2, 4, 0) + Edge(4, 1, 5, 0) + Edge(2, 0, 8, 0) +
                     Edge(11, 0, 8, 1) + Edge(8, 2, 9, 0) + Edge(10, 0, 9, 1) + Edge(8, 2, 7, 0) + Edge(9, 2, 6, 0) +
                     "</edges>";
  for (const int id : {2, 8, 9, 10, 11}) {
    const size_t at = body.find("<port", body.find("<output>", body.find(fmt::format("<layer id='{}'", id))));
    body.replace(body.find("FP32", at), 4, id == 9 ? "BOOL" : of_body);
  }
  const std::string inside =
      "<port_map><input external_port_id='2' internal_layer_id='0'/><input external_port_id='3' "
      "internal_layer_id='2'/><output external_port_id='4' internal_layer_id='5'/><output external_port_id='-1' "
      "internal_layer_id='6' purpose='execution_condition'/></port_map><back_edges><edge from-layer='5' "
      "to-layer='0'/><edge from-layer='7' to-layer='2'/></back_edges><body>" +
      body + "</body>";
  return Net("<layers>" + Layer(0, "Parameter", {}, {{3, 16}}) +
             Layer(1, "Loop", {{}, {}, {3, 16}, {}}, {{3, 16}}, inside) + Layer(2, "Result", {{3, 16}}, {}) +
             number(3, 8) + number(4, 0, "boolean") + number(5, 16) + "</layers><edges>" + Edge(0, 0, 1, 2) +
             Edge(3, 0, 1, 0) + Edge(4, 0, 1, 1) + Edge(5, 0, 1, 3) + Edge(1, 4, 2, 0) + "</edges>");
}

TEST_F(ReadIrLoop, ThatCountsItselfHasTheRoundsThatItCounts) {
  const auto weights = [](int64_t first, int64_t limit, int64_t step) {
    std::string bytes = Weights(-1);
    for (const int64_t each : {first, limit, step}) bytes += Weights(each).substr(8);
    return bytes;
  };
  struct Case {
    const char* compare;
    int64_t first, limit, step;
    int rounds;
  };
  for (const Case& one :
       {Case{"Less", 0, 10, 1, 10}, Case{"Less", 0, 10, 3, 4}, Case{"Less", 20, 10, 1, 1},
        Case{"LessEqual", 0, 10, 1, 11}, Case{"Greater", 5, 0, -1, 5}, Case{"NotEqual", 0, 6, 2, 3}}) {
    const Graph graph = Read(CountingLoop(one.compare), weights(one.first, one.limit, one.step));
    EXPECT_EQ(graph.work(OpId{0}).sizes, Certainty::kKnown) << one.compare;
    // A round adds and compares, too.
    EXPECT_EQ(graph.total_flops(), one.rounds * (kRound + 2)) << one.compare;
  }
  // The trip count is an upper bound; where it is not read the loop may end earlier.
  for (const auto& [trips, rounds] : {std::pair(5, 5), std::pair(20, 10)}) {
    const std::string bytes = weights(0, 10, 1).replace(8, 8, Weights(trips).substr(8));
    const Graph graph = Read(CountingLoop("Less"), bytes);
    EXPECT_EQ(graph.total_flops(), rounds * (kRound + 2));
    EXPECT_EQ(graph.work(OpId{0}).sizes, Certainty::kKnown);
  }
  const std::string unread = Replaced(CountingLoop("Less"), "<data element_type='i64' offset='8'/>", "");
  EXPECT_EQ(Read(unread, weights(0, 10, 1)).total_flops(), 10 * (kRound + 2));
  EXPECT_EQ(Read(unread, weights(0, 10, 1)).work(OpId{0}).sizes, Certainty::kEstimated);
  // It never ends; it overflows; it does not count in whole numbers; its first number cannot be read; it divides.
  const auto unknown = [&](const std::string& text, const std::string& bytes) {
    EXPECT_EQ(Read(text, bytes).work(OpId{0}).sizes, Certainty::kUnknown) << text;
  };
  unknown(CountingLoop("Less"), weights(0, 10, 0));
  unknown(CountingLoop("NotEqual"), weights(1, 0, INT64_MAX));
  unknown(CountingLoop("Less", "FP32"), weights(0, 10, 1));
  unknown(CountingLoop("Less"), weights(0, 10, 1).substr(0, 20));
  unknown(CountingLoop("Divide"), weights(0, 10, 1));
}

TEST_F(ReadIrLoop, WithinALoopMultipliesItsRounds) {
  // Seven slices, in each of them the loop of five rounds.
  const std::string inner = Loop(always_);
  const size_t from = inner.find("<layers>"), to = inner.rfind("</net>");
  const std::string inside = fmt::format(
      "<port_map><input axis='0' external_port_id='0' internal_layer_id='0'/><output external_port_id='1' "
      "internal_layer_id='2'/></port_map><body>{}</body>",
      inner.substr(from, to - from));
  const std::vector<Dims> inputs = {{21, 16}};
  const std::string text =
      Replaced(Alone(Layer(1, "TensorIterator", inputs, {{3, 16}}, inside), inputs, {3, 16}, 1),
               "<input axis='0' external_port_id='0'", "<input axis='0' part_size='3' external_port_id='0'");
  const Graph graph = Read(text, Weights(5));
  EXPECT_EQ(graph.total_flops(), 7 * 5 * kRound);
  EXPECT_EQ(graph.work(OpId{0}).steps, 7 * 5 * 2);
  EXPECT_EQ(graph.total_parameter_bytes(), 4 * 16 * 16);
}

TEST(ReadIr, AnIfIsTheBranchThatComputesMore) {
  const auto branch = [](std::string_view name, const std::string& layers, const std::string& edges) {
    return fmt::format("<{0}><layers>{1}{2}{3}</layers><edges>{4}</edges></{0}>", name,
                       Layer(0, "Parameter", {}, {{3, 16}}), layers, Layer(9, "Result", {{3, 16}}, {}), edges);
  };
  const std::string inside =
      branch("then_body", Layer(1, "Const", {}, {{16, 16}}) + Layer(2, "MatMul", {{3, 16}, {16, 16}}, {{3, 16}}),
             Edge(0, 0, 2, 0) + Edge(1, 0, 2, 1) + Edge(2, 2, 9, 0)) +
      branch("else_body", Layer(1, "ReLU", {{3, 16}}, {{3, 16}}), Edge(0, 0, 1, 0) + Edge(1, 1, 9, 0));
  const std::string net =
      Net("<layers>" + Layer(0, "Parameter", {}, {{}}) + Layer(1, "If", {{}, {3, 16}}, {{3, 16}}, inside) +
          Layer(2, "Result", {{3, 16}}, {}) + Layer(3, "Parameter", {}, {{3, 16}}) + "</layers><edges>" +
          Edge(0, 0, 1, 0) + Edge(3, 0, 1, 1) + Edge(1, 2, 2, 0) + "</edges>");
  const Graph graph = ReadIr(net, "net.xml", IrView::kFolded);
  EXPECT_EQ(graph.work(OpId{0}).flops, 2 * 3 * 16 * 16);
  EXPECT_EQ(graph.work(OpId{0}).sizes, Certainty::kEstimated);
  EXPECT_EQ(graph.total_parameter_bytes(), 4 * 16 * 16);
  EXPECT_THAT(graph.notes().front(), HasSubstr("counted as the branch that computes more: If1"));
}

TEST(ReadIr, SaysWhatIsWrongWithABody) {
  EXPECT_THAT(ErrorOf(Replaced(Iterator(""), "axis='0' external_port_id='0'", "axis='0' external_port_id='5'")),
              HasSubstr("layer TensorIterator1 has no input port 5; correct external_port_id"));
  EXPECT_THAT(ErrorOf(Replaced(Iterator(""), "axis='0'", "axis='3'")),
              HasSubstr("axis is '3'; expected an integer from -3 to 2"));
  EXPECT_THAT(ErrorOf(Replaced(Loop(Layer(2, "Const", {}, {{}})), "internal_layer_id='6'", "internal_layer_id='66'")),
              HasSubstr("no layer has the id 66; correct internal_layer_id or add the layer"));
  EXPECT_THAT(ErrorOf(Replaced(Iterator(""), kRecurrence, "<layers/>")), HasSubstr("<body> has no <layer>"));
  EXPECT_THAT(ErrorOf(Replaced(Loop(Layer(2, "Const", {}, {{}})), "internal_layer_id='6'", "internal_layer_id='1'")),
              HasSubstr("layer Const1 of the body is no Result; correct internal_layer_id"));
  EXPECT_THAT(ErrorOf(Replaced(Replaced(Iterator(""), "<body>", "<then_body>"), "</body>", "</then_body>")),
              HasSubstr("layer TensorIterator1 has neither the <body> of a loop alone, nor"));
  std::string nested = kRecurrence;
  for (int depth = 0; depth < 40; ++depth) {
    nested = fmt::format("<layers><layer id='0' name='l' type='Loop'><body>{}</body></layer></layers>", nested);
  }
  EXPECT_THAT(ErrorOf(Net(nested)), HasSubstr("bodies are nested more than 32 deep"));
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
            "net.xml:34: no layer has the id 80; correct to-layer or add the layer");
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
  EXPECT_EQ(ErrorOf("<net name='n'><layers/></net>"), "net.xml:1: <net> has no <layer>");
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
  const std::string whole[] = {kSmall, Iterator("start='0' end='-1' part_size='1'"), Loop(Layer(2, "Const", {}, {{}}))};
  for (int round = 0; round < 3000; ++round) {
    const std::string text = testing::Damaged(whole[round % 3], random, "0123456789-<>\"/'");
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
