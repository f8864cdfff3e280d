#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "import/import.h"

namespace berth {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Reads back what was written; everything that a Graph says must be the same.
void ExpectRoundTrip(const Graph& graph) {
  const std::string text = WriteGraphJson(graph);
  const Graph again = ReadGraphJson(text, "graph.json");
  EXPECT_EQ(again.structural_fingerprint(), graph.structural_fingerprint());
  EXPECT_EQ(again.name(), graph.name());
  EXPECT_EQ(again.notes(), graph.notes());
  ASSERT_EQ(again.num_ops(), graph.num_ops());
  for (const OpId op : graph.ops()) {
    EXPECT_EQ(again.op_name(op), graph.op_name(op));
    EXPECT_EQ(again.op_type(op), graph.op_type(op));
    EXPECT_EQ(again.work(op), graph.work(op));
    EXPECT_EQ(again.is_backward(op), graph.is_backward(op));
    EXPECT_EQ(again.op_at_file_position(Index(op)), graph.op_at_file_position(Index(op)));
  }
  for (const TensorId tensor : graph.tensors()) {
    EXPECT_EQ(again.tensor_name(tensor), graph.tensor_name(tensor));
    EXPECT_EQ(again.is_constant(tensor), graph.is_constant(tensor));
    EXPECT_TRUE(std::ranges::equal(again.tensor_shape(tensor), graph.tensor_shape(tensor)));
  }
  for (const ParameterId parameter : graph.parameters())
    EXPECT_EQ(again.parameter_name(parameter), graph.parameter_name(parameter));
  for (const InputId input : graph.inputs()) {
    EXPECT_EQ(again.input_name(input), graph.input_name(input));
    EXPECT_EQ(again.input_type(input), graph.input_type(input));
    EXPECT_TRUE(std::ranges::equal(again.input_shape(input), graph.input_shape(input)));
  }
  EXPECT_EQ(WriteGraphJson(again), text);
}

TEST(GraphJson, ReadsBackEveryShippedModelAndFormula) {
  ModelCatalog catalog("model");
  RegisterSyntheticModels(catalog);
  for (const char* model :
       {"inception_v3", "gpt2_decode_p128", "lstm_lm_4l_fused", "chain(parameter_bytes=12)", "fork_join(rounds=3)",
        "layered(ops=300)", "lstm_grid(layers=3,steps=5)", "transformer(layers=2)"}) {
    SCOPED_TRACE(model);
    ExpectRoundTrip(ReadModel(model, catalog));
  }
}

TEST(GraphJson, ReadsBackRandomGraphsInAnyOrder) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    GraphBuilder builder("random \"quoted\" \\ name");
    const size_t count = 1 + random.Below(20);
    std::vector<size_t> rank(count);
    for (size_t i = 0; i < count; ++i) rank[i] = i;
    random.Shuffle(std::span(rank));
    std::vector<std::vector<size_t>> tensors(count);
    const size_t parameter = builder.AddParameter(static_cast<int64_t>(random.Below(1000)), "same"),
                 input = builder.AddInput(8, "same");
    for (size_t i = 0; i < count; ++i) {
      const OpWork work{.flops = random.Uniform(0, 1e12),
                        .bytes_read = static_cast<int64_t>(random.Below(1 << 30)),
                        .bytes_written = static_cast<int64_t>(random.Below(1 << 30)),
                        .workspace_bytes = static_cast<int64_t>(random.Below(3)),
                        .steps = 1 + static_cast<int64_t>(random.Below(3)),
                        .op_class = static_cast<OpClass>(random.Below(kOpClasses)),
                        .data_type = static_cast<DataType>(random.Below(kDataTypes)),
                        .bytes_only = random.Chance(0.3),
                        .sizes = static_cast<Certainty>(random.Below(kCertainties))};
      builder.AddOp(random.Chance(0.5) ? "op" : "", random.Chance(0.5) ? "A" : "B", work);
      for (size_t k = random.Below(3); k > 0; --k) {
        tensors[i].push_back(builder.AddTensor(i, static_cast<int64_t>(random.Below(100)), "same", random.Chance(0.2)));
        const std::vector<int64_t> shape(random.Below(4), static_cast<int64_t>(random.Below(9)));
        builder.SetShape(tensors[i].back(), shape);
        if (random.Chance(0.1)) builder.MarkConstant(tensors[i].back());
      }
      if (random.Chance(0.2)) builder.MarkBackward(i);
      if (random.Chance(0.3)) builder.UseParameter(parameter, i);
      if (random.Chance(0.3)) builder.UseInput(input, i);
    }
    for (size_t from = 0; from < count; ++from) {
      for (size_t to = 0; to < count; ++to) {
        if (rank[from] >= rank[to] || !random.Chance(0.3)) continue;
        for (const size_t tensor : tensors[from]) builder.Consume(tensor, to);
      }
    }
    if (random.Chance(0.5)) builder.AddNote("a note, with \"quotes\"\n");
    ExpectRoundTrip(builder.Build());
  }
}

constexpr const char* kSmall = R"({
  "format": "berth-graph", "version": 1, "name": "small",
  "inputs": [{"name": "x", "bytes": 4}],
  "parameters": [{"name": "w", "bytes": 8}],
  "ops": [
    {"name": "a", "type": "Relu", "class": "elementwise", "data_type": "f32", "flops": 1, "bytes_read": 4, "bytes_written": 4,
     "inputs": ["x"], "outputs": [{"name": "t", "bytes": 4}]},
    {"name": "b", "type": "MatMul", "class": "matmul", "data_type": "f16", "flops": 2.5, "bytes_read": 12, "bytes_written": 4,
     "consumes": ["t"], "parameters": ["w"], "outputs": [{"name": "u", "bytes": 4, "result": true}]}
  ]
})";

TEST(GraphJson, ReadsWhatAPersonWrites) {
  const Graph graph = ReadGraphJson(kSmall, "small.json");
  EXPECT_EQ(graph.num_ops(), 2u);
  EXPECT_EQ(graph.work(OpId{1}).data_type, DataType::kF16);
  EXPECT_EQ(graph.consumers(TensorId{0}).size(), 1u);
  EXPECT_TRUE(graph.is_output(TensorId{1}));
  EXPECT_EQ(graph.total_parameter_bytes(), 8);
}

TEST(GraphJson, KeepsTheShapeOfAnInputWhoseTypeIsNotSaid) {
  std::string text = kSmall;
  const std::string_view input = "{\"name\": \"x\", \"bytes\": 4}";
  text.replace(text.find(input), input.size(), "{\"name\": \"x\", \"bytes\": 4, \"shape\": [1, 2]}");
  const Graph graph = ReadGraphJson(text, "small.json");
  EXPECT_THAT(graph.input_shape(InputId{0}), ::testing::ElementsAre(1, 2));
  const Graph again = ReadGraphJson(WriteGraphJson(graph), "again.json");
  EXPECT_THAT(again.input_shape(InputId{0}), ::testing::ElementsAre(1, 2));
  EXPECT_EQ(again.input_type(InputId{0}), "");
}

TEST(GraphJson, MistakesNameThePlace) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text = kSmall;
    text.replace(text.find(from), from.size(), to);
    try {
      ReadGraphJson(text, "bad.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(with("\"flops\": 1,", "\"flops\": -1,"), HasSubstr("bad.json: ops[0].flops"));
  EXPECT_THAT(with("\"flops\": 1,", "\"flops\": 1e999,"), HasSubstr("bad.json"));
  EXPECT_THAT(with("\"flops\": 1,", ""), AllOf(HasSubstr("ops[0].flops"), HasSubstr("missing")));
  EXPECT_THAT(with("\"flops\": 1,", "\"flops\": 1, \"flps\": 1,"), HasSubstr("ops[0].flps"));
  EXPECT_THAT(with("elementwise", "elementary"), AllOf(HasSubstr("ops[0].class"), HasSubstr("matmul")));
  EXPECT_THAT(with("\"f16\"", "16"), HasSubstr("ops[1].data_type"));
  EXPECT_THAT(with("[\"t\"]", "[\"nobody\"]"), AllOf(HasSubstr("ops[1].consumes"), HasSubstr("'nobody'")));
  EXPECT_THAT(with("[\"t\"]", "[7]"), HasSubstr("ops[1].consumes"));
  EXPECT_THAT(with("[\"t\"]", "[\"u\"]"), HasSubstr("cycle"));
  EXPECT_THAT(with("\"name\": \"u\"", "\"name\": \"t\""),
              AllOf(HasSubstr("ops[1].outputs[0].name"), HasSubstr("twice")));
  EXPECT_THAT(with("\"name\": \"b\"", "\"name\": \"a\""), HasSubstr("ops[1].name"));
  EXPECT_THAT(with("\"name\": \"b\"", "\"name\": \"\""), HasSubstr("ops[1].name"));
  EXPECT_THAT(with("\"bytes\": 8", "\"bytes\": -8"), HasSubstr("parameters[0].bytes"));
  EXPECT_THAT(with("\"bytes\": 8", "\"bytes\": 1e3"), HasSubstr("parameters[0].bytes"));
  EXPECT_THAT(with("\"version\": 1", "\"version\": 2"), HasSubstr("version"));
  EXPECT_THAT(with("berth-graph", "other"), HasSubstr("format"));
  EXPECT_THAT(with("]\n}", "]"), HasSubstr("not valid JSON"));
  EXPECT_THROW(ReadGraphJson("[]", "bad.json"), Error);
  EXPECT_THROW(ReadGraphJson(R"({"format": "berth-graph", "version": 1, "name": "none", "ops": []})", "bad.json"),
               Error);
}

}  // namespace
}  // namespace berth
