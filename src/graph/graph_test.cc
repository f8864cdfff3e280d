#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ranges>

#include "base/error.h"
#include "base/random.h"

namespace berth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr OpWork kWork{.flops = 10, .bytes_read = 4, .bytes_written = 4};

// source -> left, right -> sink, with one weight that left and right share.
GraphBuilder Diamond(std::string prefix = "") {
  GraphBuilder builder("diamond");
  const size_t source = builder.AddOp(prefix + "source", "Conv", kWork);
  const size_t left = builder.AddOp(prefix + "left", "Relu", kWork);
  const size_t right = builder.AddOp(prefix + "right", "Relu", kWork);
  const size_t sink = builder.AddOp(prefix + "sink", "Add", kWork);
  const size_t out = builder.AddTensor(source, 100);
  builder.Consume(out, right);
  builder.Consume(out, left);
  const size_t l = builder.AddTensor(left, 10), r = builder.AddTensor(right, 20);
  builder.Consume(l, sink);
  builder.Consume(r, sink);
  builder.AddTensor(sink, 5, "result", true);
  const size_t weight = builder.AddParameter(1000, "weight");
  builder.UseParameter(weight, left);
  builder.UseParameter(weight, right);
  builder.UseInput(builder.AddInput(7, "image"), source);
  return builder;
}

TEST(Graph, KnowsItsEdgesBothWays) {
  const Graph graph = Diamond().Build();
  ASSERT_EQ(graph.num_ops(), 4u);
  EXPECT_EQ(graph.num_edges(), 4u);
  EXPECT_THAT(graph.consumers(TensorId{0}), ElementsAre(OpId{1}, OpId{2}));
  EXPECT_THAT(graph.inputs_of(OpId{3}), ElementsAre(TensorId{1}, TensorId{2}));
  EXPECT_EQ(graph.producer(TensorId{2}), OpId{2});
  EXPECT_EQ(graph.first_output(OpId{3}), 3u);
  EXPECT_EQ(graph.end_output(OpId{3}), 4u);
  EXPECT_TRUE(graph.is_output(TensorId{3}));
  EXPECT_THAT(graph.parameters_of(OpId{2}), ElementsAre(ParameterId{0}));
  EXPECT_THAT(graph.parameter_consumers(ParameterId{0}), ElementsAre(OpId{1}, OpId{2}));
  EXPECT_THAT(graph.input_consumers(InputId{0}), ElementsAre(OpId{0}));
  EXPECT_EQ(graph.op_type(OpId{1}), "Relu");
  EXPECT_EQ(graph.op_name(OpId{2}), "right");
  EXPECT_EQ(graph.tensor_name(TensorId{3}), "result");
  EXPECT_EQ(graph.total_parameter_bytes(), 1000);
  EXPECT_EQ(graph.total_flops(), 40);
}

TEST(Graph, CountsAConsumerOnceHoweverOftenItReads) {
  GraphBuilder builder("square");
  const size_t a = builder.AddOp("a", "X", kWork), b = builder.AddOp("b", "Mul", kWork);
  const size_t t = builder.AddTensor(a, 8);
  builder.Consume(t, b);
  builder.Consume(t, b);
  const Graph graph = builder.Build();
  EXPECT_EQ(graph.num_edges(), 1u);
  EXPECT_THAT(graph.inputs_of(OpId{1}), ElementsAre(TensorId{0}));
}

TEST(Graph, NumbersOpsTopologicallyAndRemembersTheFilesOrder) {
  GraphBuilder builder("backwards");
  const size_t last = builder.AddOp("last", "X", kWork), first = builder.AddOp("first", "X", kWork);
  builder.Consume(builder.AddTensor(first, 8), last);
  const Graph graph = builder.Build();
  EXPECT_EQ(graph.op_name(OpId{0}), "first");
  EXPECT_EQ(graph.op_at_file_position(0), OpId{1});
  EXPECT_EQ(graph.op_at_file_position(1), OpId{0});
}

TEST(Graph, OrdersRandomGraphsWhateverTheOrderOfTheirOps) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    std::vector<size_t> position(40);
    std::iota(position.begin(), position.end(), size_t{0});
    random.Shuffle(std::span(position));
    GraphBuilder builder("shuffled");
    for (size_t i = 0; i < position.size(); ++i) builder.AddOp("", "X", kWork);
    for (size_t v = 0; v < position.size(); ++v) {
      const size_t tensor = builder.AddTensor(position[v], 8);
      for (size_t u = v + 1; u < position.size(); ++u) {
        if (random.Chance(0.1)) builder.Consume(tensor, position[u]);
      }
    }
    const Graph graph = builder.Build();
    for (const TensorId tensor : graph.tensors()) {
      for (const OpId op : graph.consumers(tensor)) ASSERT_LT(graph.producer(tensor), op);
    }
    ASSERT_TRUE(
        std::ranges::is_sorted(graph.tensors() | std::views::transform([&](TensorId t) { return graph.producer(t); })));
  }
}

TEST(Graph, MakesNamesUnique) {
  GraphBuilder builder("names");
  builder.AddOp("a", "X", kWork);
  builder.AddOp("a", "X", kWork);
  builder.AddOp("", "Relu", kWork);
  const Graph graph = builder.Build();
  EXPECT_EQ(graph.op_name(OpId{1}), "a#2");
  EXPECT_EQ(graph.op_name(OpId{2}), "Relu_2");
}

TEST(Graph, NamesTheOpsOfACycle) {
  GraphBuilder builder("cycle");
  const size_t a = builder.AddOp("a", "X", kWork), b = builder.AddOp("b", "X", kWork),
               c = builder.AddOp("c", "X", kWork);
  builder.Consume(builder.AddTensor(a, 1), b);
  builder.Consume(builder.AddTensor(b, 1), c);
  builder.Consume(builder.AddTensor(c, 1), b);
  try {
    builder.Build("model.onnx");
    FAIL() << "a cycle was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.onnx: the graph has a cycle of 2 ops"));
    EXPECT_THAT(error.what(), HasSubstr("b -> c -> b"));
  }
}

TEST(Graph, HasAFingerprintOfItsStructureOnly) {
  const uint64_t fingerprint = Diamond().Build().structural_fingerprint();
  EXPECT_EQ(Diamond("renamed/").Build().structural_fingerprint(), fingerprint);
  GraphBuilder wider = Diamond();
  wider.work(0).flops = 11;
  EXPECT_NE(wider.Build().structural_fingerprint(), fingerprint);
  GraphBuilder joined = Diamond();
  joined.Consume(0, 3);
  EXPECT_NE(joined.Build().structural_fingerprint(), fingerprint);
  GraphBuilder stepped = Diamond();
  stepped.work(0).steps = 2;
  EXPECT_NE(stepped.Build().structural_fingerprint(), fingerprint);
}

TEST(Graph, MayBeEmpty) {
  const Graph graph = GraphBuilder("nothing").Build();
  EXPECT_EQ(graph.num_ops(), 0u);
  EXPECT_EQ(graph.num_edges(), 0u);
}

TEST(GraphBuilder, RefusesSizesThatNoFileMayHave) {
  const auto message = [](auto&& enlarge) -> std::string {
    GraphBuilder builder = Diamond();
    enlarge(builder);
    try {
      builder.Build("model.onnx");
    } catch (const Error& error) {
      return error.what();
    }
    return "built";
  };
  const int64_t most = kMostTensorBytes;
  EXPECT_EQ(message([&](GraphBuilder& b) { b.AddTensor(0, most, "big"); }), "built");
  EXPECT_EQ(message([&](GraphBuilder& b) { b.AddTensor(0, most + 1, "big"); }),
            "model.onnx: its tensor 'big' has 70368744177665 bytes, more than 64 TiB; correct its size");
  EXPECT_EQ(message([&](GraphBuilder& b) { b.AddTensor(0, most + 1); }),
            "model.onnx: its tensor 'source' has 70368744177665 bytes, more than 64 TiB; correct its size");
  EXPECT_THAT(message([&](GraphBuilder& b) { b.AddParameter(most + 1, "w"); }), HasSubstr("its parameter 'w' has"));
  EXPECT_THAT(message([&](GraphBuilder& b) { b.AddInput(most + 1, "x"); }), HasSubstr("its input 'x' has"));
  EXPECT_THAT(message([&](GraphBuilder& b) { b.work(0).bytes_written = -1; }), HasSubstr("add up to more than"));
  EXPECT_EQ(message([&](GraphBuilder& b) { b.work(0).bytes_read = kMostGraphBytes; }),
            "model.onnx: its sizes and the bytes that its ops move add up to more than 4 PiB; correct the largest");
  EXPECT_EQ(message([&](GraphBuilder& b) {
              for (int i = 0; i < (1 << 6); ++i) b.AddParameter(most);
            }),
            "model.onnx: its sizes and the bytes that its ops move add up to more than 4 PiB; correct the largest");
}

TEST(GraphBuilder, MakesEveryTextUtf8AndKeepsNamesApart) {
  GraphBuilder builder("\xff");
  for (const char* name : {"a\xe4", "a\xf6", "\xed\xa0\x80", "\xc3\xa4"}) {
    const size_t op = builder.AddOp(name, "Mo\xe4", kWork);
    builder.AddTensor(op, 1, name);
    builder.AddParameter(1, name);
    builder.SetInputShape(builder.AddInput(1, name), std::vector<int64_t>{1}, "f\x80");
  }
  builder.AddNote("\xc3");
  const Graph graph = builder.Build();
  const std::string broken = "\xEF\xBF\xBD";
  const std::vector<std::string> names = {"a" + broken, "a" + broken + "#2", broken + broken + broken, "\xc3\xa4"};
  EXPECT_EQ(graph.name(), broken);
  EXPECT_THAT(graph.op_types(), ElementsAre("Mo" + broken));
  EXPECT_THAT(graph.notes(), ElementsAre(broken));
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(graph.op_name(MakeId<OpId>(i)), names[i]);
    EXPECT_EQ(graph.tensor_name(MakeId<TensorId>(i)), names[i]);
    EXPECT_EQ(graph.parameter_name(MakeId<ParameterId>(i)), names[i]);
    EXPECT_EQ(graph.input_name(MakeId<InputId>(i)), names[i]);
    EXPECT_EQ(graph.input_type(MakeId<InputId>(i)), "f" + broken);
  }
}

}  // namespace
}  // namespace berth
