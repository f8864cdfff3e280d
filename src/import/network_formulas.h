// Networks by formula that more than one family of models is made of.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace berth {

enum class CellOp {
  kIdentity,
  kSeparable3,
  kSeparable5,
  kSeparable7,
  kAverage3,
  kMax3,
  kMax2,
  kPointwise,
  kConv3,
  kSevenBySeven
};

struct CellInput {
  int state;  // 0 and 1: the two that enter; 2 and on: what the pairs of this cell made
  CellOp op;
  bool operator==(const CellInput&) const = default;
};

// Pairs (first, second) whose results are added, and the states that are concatenated.
struct Cell {
  std::vector<std::array<CellInput, 2>> pairs{};
  std::vector<int> joined{};
};

// A stem, then three runs of normal cells with reductions between them, twice the channels after each.
struct CellNetwork {
  Cell normal{}, reduction{};
  bool newest_is_zero = true;  // state 0 of a cell is the last one's result, and 1 the one before; else the reverse
  bool small_images = false;   // the stem is one convolution; else one of stride 2 and two reductions
  int64_t cells = 1;           // normal cells in each run
  int64_t channels = 1;        // of the first run
  int64_t batch = 1, size = 32, classes = 10;
};
Graph MakeCellNetwork(std::string name, const CellNetwork& network);

// Sutskever et al. 2014 with the global attention of Luong et al. 2015, section 3.1 (dot score): the plain
// sequence-to-sequence model, unrolled over words.
struct Translator {
  int64_t layers = 1, hidden = 1, source_words = 1, target_words = 1, batch = 1, vocabulary = 1;
};
Graph MakeTranslator(std::string name, const Translator& size);

}  // namespace berth
