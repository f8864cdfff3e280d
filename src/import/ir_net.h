// A network in the terms of OpenVINO's intermediate representation (IR): layers with ports, and edges between ports.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "import/op_table.h"

namespace berth {

// What becomes an op. Either way weights are parameters of the ops that use them, and layers that only make weights (a
// constant, its decompression) take no time and their edges move nothing: a runtime does that once, when it compiles.
enum class IrView : uint8_t {
  kRaw,  // every layer: constants, converts, inputs and results too, as HSDAG counts them (Duan et al. 2024, section 2)
  kFolded,  // what a runtime executes: layers that depend on an input, without the inputs and results themselves
};

struct IrPort {
  Dims dims{};  // a dynamic dimension is 1
  // Where another axis than the first is dynamic, one is a guess; the first is a batch of one.
  Certainty certainty = Certainty::kKnown;
  std::string type = "f32";  // of an element, lower case, as in the <data> of a constant: "f16", "i64", "boolean"
};

struct IrNet;

struct IrLayer {
  // The output of another layer.
  struct Source {
    size_t layer;
    size_t output;
  };
  std::string name{};
  std::string type{};
  std::map<std::string, std::string, std::less<>> attributes{};  // of <data>
  std::vector<Source> inputs{};                                  // by port, in the order of the ports
  std::vector<IrPort> outputs{};
  // Of a loop one; of an If two branches, of which a run takes one.
  std::vector<std::shared_ptr<const IrNet>> bodies{};
  // Of a loop, how often a run goes through its body. Estimated where a run may end it earlier; unknown, and 1, where
  // the file does not tell.
  int64_t rounds = 1;
  Certainty rounds_certainty = Certainty::kKnown;
};

struct IrNet {
  std::string name{};
  std::vector<IrLayer> layers{};
  std::vector<std::string> notes{};
};

// Throws Error naming `path` for a cycle, or a tensor that is too large to be one.
Graph BuildIrGraph(const IrNet& net, IrView view, const std::string& path);

}  // namespace berth
