#include "import/op_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace berth {
namespace {

double Flops(std::string_view type, const std::vector<Dims>& inputs, const std::vector<Dims>& outputs,
             const Attributes& attributes = {}) {
  const OpRule* rule = FindOpRule("", type);
  EXPECT_NE(rule, nullptr) << type;
  OpShapes shapes{.attributes = attributes};
  for (const Dims& dims : inputs) shapes.inputs.push_back(dims.empty() ? nullptr : &dims);
  for (const Dims& dims : outputs) shapes.outputs.push_back(&dims);
  return rule->flops(shapes);
}

TEST(OpTable, EveryTypeIsThereOnceWithItsFormulaAndSource) {
  std::set<std::string_view> types;
  for (const OpRule& rule : OpRules()) {
    EXPECT_TRUE(types.insert(rule.type).second) << rule.type;
    EXPECT_NE(rule.formula.find("spec"), std::string_view::npos) << rule.type;
    EXPECT_NE(rule.flops, nullptr);
  }
}

TEST(OpTable, AConvolutionCountsItsFilterPerOutput) {
  // The first layer of ResNet-50: 118 million multiply-adds.
  EXPECT_EQ(Flops("Conv", {{1, 3, 224, 224}, {64, 3, 7, 7}}, {{1, 64, 112, 112}}), 2 * 118013952.0);
  EXPECT_EQ(Flops("Conv", {{1, 3, 224, 224}, {64, 3, 7, 7}, {64}}, {{1, 64, 112, 112}}),
            2 * 118013952.0 + 64 * 112 * 112);
  // Depthwise: the filter has one channel.
  EXPECT_EQ(Flops("Conv", {{1, 32, 8, 8}, {32, 1, 3, 3}}, {{1, 32, 8, 8}}), 2.0 * 32 * 64 * 9);
  EXPECT_EQ(Flops("ConvTranspose", {{1, 16, 8, 8}, {16, 4, 2, 2}}, {{1, 4, 16, 16}}), 2.0 * 16 * 64 * 4 * 4);
}

TEST(OpTable, ProductsCountTheInnerDimension) {
  EXPECT_EQ(Flops("MatMul", {{5, 2, 3}, {5, 3, 7}}, {{5, 2, 7}}), 2.0 * 5 * 2 * 3 * 7);
  EXPECT_EQ(Flops("MatMul", {{3}, {3}}, {{}}), 6);
  EXPECT_EQ(Flops("Gemm", {{2, 3}, {3, 7}, {7}}, {{2, 7}}), 2.0 * 2 * 3 * 7 + 14);
  Attributes turned;
  turned.Set("transA", std::vector<int64_t>{1});
  EXPECT_EQ(Flops("Gemm", {{3, 2}, {3, 7}}, {{2, 7}}, turned), 2.0 * 2 * 3 * 7);
}

TEST(OpTable, EinsumCountsEveryCombinationOfItsLabels) {
  const auto einsum = [](const char* equation, const std::vector<Dims>& inputs, const Dims& output) {
    Attributes attributes;
    attributes.Set("equation", std::string(equation));
    return Flops("Einsum", inputs, {output}, attributes);
  };
  EXPECT_EQ(einsum("bij,bjk->bik", {{5, 2, 3}, {5, 3, 7}}, {5, 2, 7}), 2.0 * 5 * 2 * 3 * 7);
  EXPECT_EQ(einsum("...ij,...jk->...ik", {{4, 5, 2, 3}, {4, 5, 3, 7}}, {4, 5, 2, 7}), 2.0 * 20 * 2 * 3 * 7);
  EXPECT_EQ(einsum("ij->j", {{6, 8}}, {8}), 48);
  EXPECT_EQ(einsum("i,j->ij", {{6}, {8}}, {6, 8}), 48);
}

TEST(OpTable, RecurrentLayersCountEveryStep) {
  const Dims x = {35, 64, 128}, w = {1, 4 * 256, 128}, r = {1, 4 * 256, 256};
  EXPECT_EQ(Flops("LSTM", {x, w, r}, {{35, 1, 64, 256}}), 35.0 * 64 * 256 * (8 * (128 + 256) + 30));
}

TEST(OpTable, StepsOfARecurrentLayerAreThoseOfAllItsDirections) {
  const Dims x = {35, 64, 128}, w = {2, 4 * 256, 128}, r = {2, 4 * 256, 256};
  Attributes attributes;
  const Dims y = {35, 2, 64, 256};
  const auto steps = [&attributes, &y](std::string_view type, std::vector<const Dims*> inputs) {
    OpWork work;
    CountWork(*FindOpRule("", type), {.attributes = attributes, .inputs = std::move(inputs), .outputs = {&y}}, work);
    return work.steps;
  };
  EXPECT_EQ(steps("LSTM", {&x, &w, &r}), 70);
  EXPECT_EQ(steps("MatMul", {&x, &w, &r}), 1);
  attributes.Set("layout", std::vector<int64_t>{1});
  EXPECT_EQ(steps("LSTM", {&x, &w, &r}), 128);
  EXPECT_EQ(steps("LSTM", {}), 1) << "of unknown shapes";
}

TEST(OpTable, AFourierTransformCountsTheAxisThatItNames) {
  const auto transform = [](int64_t axis) {
    Attributes attributes;
    attributes.Set("axis", std::vector<int64_t>{axis});
    return Flops("DFT", {{8, 16, 32, 1}}, {{8, 16, 32, 2}}, attributes);
  };
  constexpr double kNumbers = 8 * 16 * 32;
  EXPECT_EQ(transform(0), 5 * kNumbers * 3);
  EXPECT_EQ(transform(1), 5 * kNumbers * 4);
  EXPECT_EQ(transform(2), 5 * kNumbers * 5);
  EXPECT_EQ(transform(-3), 5 * kNumbers * 4);
  EXPECT_EQ(Flops("DFT", {{8, 16, 32, 1}}, {{8, 16, 32, 2}}), 5 * kNumbers * 5) << "the last but one";
}

TEST(OpTable, WhateverAFileSaysOfSizesAndCountsTheWorkIsANumberOfAtLeastZero) {
  for (const int64_t extent : {0, 1, 3, 1 << 30}) {
    for (const size_t rank : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{4}, size_t{5}}) {
      const Dims dims(rank, extent);
      for (const int64_t number : {std::numeric_limits<int64_t>::min(), int64_t{-5}, int64_t{0}, int64_t{7},
                                   int64_t{1} << 40, std::numeric_limits<int64_t>::max()}) {
        Attributes attributes;
        for (const char* name : {"q_num_heads", "kv_num_heads", "num_heads", "N", "K", "size", "sampling_ratio", "axis",
                                 "onesided", "transA", "block_size", "group", "hidden_size"}) {
          attributes.Set(name, std::vector<int64_t>{number});
        }
        attributes.Set("kernel_shape", std::vector<int64_t>{number, number, number});
        for (const OpRule& rule : OpRules()) {
          OpShapes shapes{.attributes = attributes};
          shapes.inputs.assign(6, &dims);
          shapes.outputs.assign(3, &dims);
          const double flops = rule.flops(shapes);
          EXPECT_FALSE(std::isnan(flops)) << rule.type;
          EXPECT_GE(flops, 0) << rule.type << " of rank " << rank << ", extent " << extent << ", number " << number;
        }
      }
    }
  }
}

TEST(OpTable, OtherDomainsAreNotMistakenForOnnx) {
  EXPECT_NE(FindOpRule("ai.onnx", "Add"), nullptr);
  EXPECT_EQ(FindOpRule("some.where", "Add"), nullptr);
  EXPECT_NE(FindOpRule("com.microsoft", "Gelu"), nullptr);
  EXPECT_NE(FindOpRule("com.microsoft", "Attention"), FindOpRule("", "Attention"));
  EXPECT_EQ(FindOpRule("", "Mystery"), nullptr);
}

}  // namespace
}  // namespace berth
