// What an op of each type costs. The table speaks ONNX's op types, but knows nothing of protobuf: every importer that
// can name an op in ONNX's terms asks here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace berth {

using Dims = std::vector<int64_t>;

// The attributes of one op. An op has few: every look-up is linear.
class Attributes {
 public:
  void Set(std::string_view name, std::vector<int64_t> ints) {
    items_.push_back({std::string(name), std::move(ints), {}, {}});
  }
  void Set(std::string_view name, std::vector<double> reals) {
    items_.push_back({std::string(name), {}, std::move(reals), {}});
  }
  void Set(std::string_view name, std::string text) { items_.push_back({std::string(name), {}, {}, std::move(text)}); }

  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  int64_t Int(std::string_view name, int64_t otherwise) const;
  std::span<const int64_t> Ints(std::string_view name) const;  // empty where there is none
  std::span<const double> Reals(std::string_view name) const;  // empty where there is none
  std::string_view Text(std::string_view name, std::string_view otherwise) const;

 private:
  struct Item {
    std::string name;
    std::vector<int64_t> ints;
    std::vector<double> reals;
    std::string text;
  };
  const Item* Find(std::string_view name) const;

  std::vector<Item> items_;
};

// One op as the formulas see it.
struct OpShapes {
  const Attributes& attributes;
  std::vector<const Dims*> inputs{};  // null: an optional input that is not given
  std::vector<const Dims*> outputs{};
};

// What of its operands an op moves through memory.
enum class Traffic : uint8_t {
  kAll,       // reads every input once and writes every output once
  kSelected,  // reads of its first input only as much as it writes (Gather from a table, Slice)
  kNone,      // a view: its output is its input under another shape, and a runtime moves nothing
};

struct OpRule {
  std::string_view type;  // "Conv"; "com.microsoft.Attention" where another domain means something else by the name
  OpClass op_class;
  double (*flops)(const OpShapes&);
  std::string_view formula;  // for people: what `flops` counts, with its source
  Traffic traffic = Traffic::kAll;
  // Bit i: input i says how (a shape, axes, starts), it is not data. A constant there is part of the op, and no
  // Parameter.
  uint32_t describing_inputs = 0;
};

// Sets all that a rule says of an op: its class, FLOPs and steps (those of a recurrent layer that follow one another,
// in all its directions; of any other op one). The bytes are the importer's, who knows what is shared and what is
// constant.
void CountWork(const OpRule& rule, const OpShapes& op, OpWork& work);

// Null for a type that is not in the table.
const OpRule* FindOpRule(std::string_view domain, std::string_view type);
std::span<const OpRule> OpRules();

// The number of elements in double precision: formulas may overflow nothing.
double Elements(const Dims& dims);

}  // namespace berth
