// graph/graph.h - a neural network as typed nodes and values.
//
// Nodes stand in topological order; every value has one producer, or is an input or a constant.
// Shapes are ONNX's (logical: N, C, H, W), static, and known for every value once infer_shapes()
// has run. How a value lies in memory is its Storage, which only the layout passes set.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/graph/attributes.h"
#include "hone/tensor/tensor.h"

namespace hone::graph {

using ValueId = int;
inline constexpr ValueId kNoValue = -1;  // an optional operand that is not given

// A piece of memory: a whole model input or output, a constant, or a part of the arena.
struct Buffer {
  enum class Kind : uint8_t { kInput, kOutput, kConstant, kArena };
  Kind kind = Kind::kArena;
  int index = 0;  // of the model input or output
  DType dtype = DType::kF32;
  Shape shape;   // in memory order, border included
  Shape border;  // zeros before and after each dimension: low 0, low 1, ..., high 0, high 1, ...
  [[nodiscard]] int64_t bytes() const { return num_elements(shape) * dtype_bytes(dtype); }
  [[nodiscard]] bool has_border() const;
};

// Where a value lies: dimension order[j] of the value is dimension j of a dense array of `extent`
// elements at the start of `buffer`, of which the value is every step-th from `offset` on.
struct Storage {
  int buffer = -1;
  std::vector<int> order;
  Shape extent;
  Shape offset, step;
  Shape border_low, border_high;  // zeros around the window, per dimension of the value
};

struct Value {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::optional<Tensor> constant;
  ValueId extents = kNoValue;  // of the value with the actual shape, if data decides it (extents.h)
  std::optional<Tensor> upper;  // of a small integer that data decides: what it is at most
  std::vector<int> order;       // memory order of the dimensions, empty until layouts are assigned
  Storage storage;              // buffer < 0 until storage is assigned
};

struct Op;  // graph/op.h

struct Node {
  std::string name;  // unique; made from the output's name where the model gives none
  std::string type;  // "Conv"
  const Op* op = nullptr;
  int opset = 0;  // whose meaning the operator has; 0: the graph's
  Attributes attributes;
  std::vector<ValueId> inputs;   // kNoValue where an optional one is missing
  std::vector<ValueId> outputs;  // kNoValue where not wanted
  [[nodiscard]] bool has_input(size_t i) const {
    return i < inputs.size() && inputs[i] != kNoValue;
  }
};

// The memory of constants that are computed while a model is compiled: what would take more stays
// in the model, or is an error. (Views and rearrangements of the model's weights do not count.)
inline constexpr int64_t kMaxMadeBytes = int64_t{1} << 30;

// What computing constants reads or writes in all, whichever is more: beyond kMaxFoldedBytes, and
// kFoldsOfWeights times the model's weights, nodes stay in the model although their operands are
// constants. So a model of any number of such nodes is imported in seconds.
inline constexpr int64_t kMaxFoldedBytes = int64_t{1} << 30;
inline constexpr int64_t kFoldsOfWeights = 4;
// The same for what the interpreter computes of them: operations in all, ten seconds of it.
inline constexpr int64_t kMaxFoldedOperations = 500'000'000;

// The model was written for one batch and is imported for another (--shape): constant shapes that
// begin with the one are read as the other where the data's first extent is that.
struct Rebatch {
  int64_t from = 1, to = 1;
};

// How often each rule of a pass changed the graph, by the rule's name.
using RuleCounts = std::map<std::string, int>;

struct Graph {
  std::string name;
  std::string file;  // for messages
  int opset = 0;
  std::optional<Rebatch> rebatch;
  std::deque<Value> values;  // references stay valid when one is added
  std::vector<Node> nodes;
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> output_names;  // the model's names: passes may replace the values
  std::vector<Buffer> buffers;
  // Values that a shape rule needed at compile time and that are not known then.
  std::vector<ValueId> unknown_operands;
  int64_t made_bytes = 0;                 // of constants made so far, see kMaxMadeBytes
  int64_t weight_bytes = 0;               // that the model came with
  int64_t folded_bytes = 0;               // see kMaxFoldedBytes
  mutable int64_t folded_operations = 0;  // see kMaxFoldedOperations
  RuleCounts rules;                       // of the pass that runs; 0: a rule that found nothing

  [[nodiscard]] const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  [[nodiscard]] Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  [[nodiscard]] bool may_make(int64_t bytes) const { return bytes <= kMaxMadeBytes - made_bytes; }
  ValueId add_value(std::string name, DType dtype, Shape shape);
  ValueId add_constant(std::string name, Tensor tensor);
  [[nodiscard]] bool is_input(ValueId id) const;
  [[nodiscard]] bool is_output(ValueId id) const;
};

// For each value the indices of the nodes that read it (once per operand) and of its producer, and
// whether it is a result of the graph.
struct Uses {
  explicit Uses(const Graph& graph);
  std::vector<std::vector<int>> readers;
  std::vector<int> producer;  // -1: none
  std::vector<bool> output;
};

// Sorts the nodes topologically, keeping the given order where it can; names a node on a cycle.
[[nodiscard]] Status sort_nodes(Graph& graph);
// Drops nodes whose results nobody reads.
void remove_dead_nodes(Graph& graph);
// Everything that this header promises.
[[nodiscard]] Status verify(const Graph& graph);
// One line per node, with shapes and, once assigned, memory orders and borders.
[[nodiscard]] std::string describe(const Graph& graph);

}  // namespace hone::graph
