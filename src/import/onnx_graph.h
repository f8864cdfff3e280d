// Walks an ONNX graph, and the bodies of its control flow, in topological order: every tensor gets a shape, what is
// constant is folded, and what remains is costed.
#pragma once

#include <onnx/onnx_pb.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/onnx_node.h"
#include "import/onnx_shapes.h"
#include "import/other_reader.h"

namespace berth {

// All shapes at the file's own sizes, by tensor name; and the tensors whose shape is not known for certain.
struct ShapeRecord {
  std::map<std::string, Dims, std::less<>> dims{};
  std::set<std::string, std::less<>> uncertain{};
  SizeChanges changes{};
};

// What all scopes of one walk share.
struct OnnxWalk {
  std::string path;
  std::map<std::string, int64_t, std::less<>> opsets;  // by domain, "" for ai.onnx
  const ShapeRecord* file_shapes = nullptr;            // set when the sizes are not the file's own
  const OtherReader::Sizes* other = nullptr;           // another program's reading, once it was asked
  std::deque<OnnxValue> pool{};                        // every value of every scope; references stay
  NoteList notes{};
  size_t scopes = 0;
  bool guessed = false;  // whether a shape was that does not follow from a size that the file leaves open
};

// A node that is not folded away: work for a device.
struct OnnxOp {
  const onnx::NodeProto* proto = nullptr;
  std::vector<size_t> uses{};     // positions in the pool: roots of constants, results, inputs; each once
  std::vector<size_t> outputs{};  // those with a name
  OpWork work{};
  size_t position = 0;  // of its node in the graph of the scope; where a body was inlined, that of the node that had it
};

class OnnxScope {
 public:
  OnnxScope(OnnxWalk& walk, const onnx::GraphProto& graph, const OnnxScope* outer)
      : walk_(walk), graph_(graph), outer_(outer), id_(walk.scopes++) {}

  // Each name once; throws Error at a second declaration.
  size_t Declare(OnnxValue value);
  void DeclareInitializers();
  // Computes everything. Inputs must have been declared.
  void Run();

  // The position in the pool of a name of this or an outer scope; throws Error where nothing makes it.
  size_t Find(std::string_view name) const;
  bool IsDeclared(std::string_view name) const { return values_.contains(name); }
  const std::vector<OnnxOp>& ops() const { return ops_; }
  size_t id() const { return id_; }

  // The sum over all ops, as one op with the class and type of the op that computes most.
  OpWork TotalWork() const;
  // What the ops use of outer scopes, and constants of this or outer ones.
  std::set<size_t> Captured() const;

 private:
  std::vector<size_t> Order() const;
  [[noreturn]] void ThrowCycle(const std::vector<std::vector<size_t>>& next, const std::vector<size_t>& missing) const;
  void RunNode(const onnx::NodeProto& proto);
  OnnxNode View(const onnx::NodeProto& proto) const;
  std::string Where(const onnx::NodeProto& proto) const;

  void DeclareConstant(const OnnxNode& node);
  void DeclareOutputs(const OnnxNode& node, std::vector<OnnxValue> outputs, bool constant);
  InferredShapes Infer(const OnnxNode& node);
  void SettleShapes(const OnnxNode& node, InferredShapes& shapes);
  void SettleShape(const OnnxNode& node, const std::string& name, OnnxValue& output, const InferredShapes& shapes);
  void MakeConstants(const OnnxNode& node, InferredShapes& shapes);
  void AddOp(const OnnxNode& node, const std::vector<OnnxValue>& outputs);

  // onnx_control.cc
  void RunControlFlow(const OnnxNode& node);
  void RunIf(const OnnxNode& node);
  void Inline(const OnnxNode& node, const onnx::GraphProto& graph);
  void RunLoop(const OnnxNode& node);
  void RunScan(const OnnxNode& node);
  void RunSequenceMap(const OnnxNode& node);
  void AddControlOp(const OnnxNode& node, std::vector<OnnxValue> outputs, const OpWork& work, std::set<size_t> uses);

  OnnxWalk& walk_;
  const onnx::GraphProto& graph_;
  const OnnxScope* outer_;
  size_t id_;
  std::unordered_map<std::string_view, size_t> values_;
  std::unordered_map<std::string_view, const onnx::ValueInfoProto*> infos_;
  std::vector<OnnxOp> ops_;
  size_t at_ = 0;  // the node that is being read
};

bool IsControlFlow(const onnx::NodeProto& node);
// Empty for ONNX's own ops, by whichever of its two names.
std::string_view DomainOf(const onnx::NodeProto& node);

// The type and, where every dimension has a number, the shape that the file declares; known_dims says whether it does.
OnnxValue ReadDeclared(const onnx::ValueInfoProto& info);

}  // namespace berth
