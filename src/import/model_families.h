// The model families that placement papers measure, made by formula at any size. Where an export ships with Berth as
// well, a test holds the two against each other.
#pragma once

#include "import/import.h"

namespace berth {

void RegisterRecurrentModels(ModelCatalog& catalog);       // rnnlm, gnmt, nmt
void RegisterTransformerModels(ModelCatalog& catalog);     // bert, transformer_xl, mixture
void RegisterConvolutionModels(ModelCatalog& catalog);     // inception_v3, wavenet, nasnet, amoebanet
void RegisterRecommendationModels(ModelCatalog& catalog);  // dlrm
void RegisterTaskGraphs(ModelCatalog& catalog);            // cholesky, fft: no neural networks
void RegisterIrModels(ModelCatalog& catalog);              // ir_resnet50, ir_inception_v3, ir_bert_base
void RegisterFamilyModels(ModelCatalog& catalog);          // enas_conv, enas_rnn, nmt_like: drawn by a seed

// A whole number of at least 1, as most parameters of models are.
inline Parameter Count(std::string name, int64_t default_value, std::string sentence) {
  return {.name = std::move(name),
          .type = ParameterType::kInt,
          .default_value = std::to_string(default_value),
          .sentence = std::move(sentence),
          .least = 1,
          .most = 1e6};
}

}  // namespace berth
