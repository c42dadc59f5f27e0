// graph/graph.h - a neural network as typed nodes and values.
//
// Nodes are in topological order. Every value has one producer, or is an input or a constant.
// Shapes are ONNX's (logical: N, C, H, W), static, and known for every value once infer_shapes()
// has run. The place of a value in memory is its Storage, which only the layout passes set.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/graph/attributes.h"
#include "hone/graph/size_form.h"
#include "hone/tensor/tensor.h"

namespace hone::graph {

using ValueId = int;
inline constexpr ValueId kNoValue = -1;  // an optional operand that is missing

// A piece of memory: a whole model input or output, a constant, or a part of the arena.
struct Buffer {
  enum class Kind : uint8_t { kInput, kOutput, kConstant, kArena };
  Kind kind = Kind::kArena;
  int index = 0;  // number of the model input or output
  DType dtype = DType::kF32;
  Shape shape;   // in memory order, including the border
  Shape border;  // zeros before and after each dimension: low 0, low 1, ..., high 0, high 1, ...
  [[nodiscard]] int64_t bytes() const { return num_elements(shape) * dtype_bytes(dtype); }
  [[nodiscard]] bool has_border() const;
};

// The place of a value: dimension order[j] of the value is dimension j of a dense array of `extent`
// elements at the start of `buffer`. The value consists of every step-th element from `offset` on.
struct Storage {
  int buffer = -1;
  std::vector<int> order;
  Shape extent;
  Shape offset, step;
  Shape border_low, border_high;  // zeros around the window, per dimension of the value
};

// A Slice along an axis that begins where a run says: every step-th element of `from` from `begin`
// (i64 [1], inside) on.
struct RunSlice {
  ValueId from = kNoValue, begin = kNoValue;
  int64_t axis = 0, step = 1;
};

struct Value {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::optional<Tensor> constant;
  ValueId extents = kNoValue;   // value with the actual shape, if that depends on data (extents.h)
  std::optional<Tensor> upper;  // upper bound of a small integer that depends on data
  std::vector<bool> is_upper;   // per element of `upper`, if some always have that value
  // While nodes are added: an operator that is made of others made a constant of its largest shape,
  // or computed this from one, maybe among other operands. So its extents stand for those that data
  // decide.
  bool is_of_largest = false;
  // The Slice that made this value, while nodes are added; set_extents() forgets it.
  std::optional<RunSlice> slice;
  ShapeParts forms;        // what varies of the shape with the sizes of a run (size_form.h)
  std::vector<int> order;  // memory order of the dimensions; empty until layouts are assigned
  Storage storage;         // buffer < 0 until storage is assigned
};

struct Graph;
struct Op;        // defined in graph/op.h
struct LoopBody;  // defined in graph/loop_body.h

struct Node {
  std::string name;  // unique; derived from the output's name if the model gives none
  std::string type;  // such as "Conv"
  const Op* op = nullptr;
  int opset = 0;  // opset of the operator's definition; 0: the graph's
  // The name and type of the node of the model that this one was made for, for messages; null for
  // nodes of the model.
  std::shared_ptr<const std::string> made_for;
  Attributes attributes;
  std::vector<ValueId> inputs;           // kNoValue for an optional one that is missing
  std::vector<ValueId> outputs;          // kNoValue for results that are not wanted
  std::shared_ptr<const LoopBody> loop;  // what a hone.Loop repeats; null for other nodes
  std::optional<RunPlaces> run_places;   // what is known of the indices of a Gather
  // The parts of operand 0 that a run has, where the node needs nothing beyond them although the
  // operand does not vary.
  ShapeParts run_parts;
  bool plain_sums = false;  // as in compute::Stage
  // In a graph of the file: a run uses the results only if these values (bool) are so.
  std::vector<std::pair<ValueId, bool>> used_if;
  [[nodiscard]] bool has_input(size_t i) const {
    return i < inputs.size() && inputs[i] != kNoValue;
  }
};

// Limit of the memory of constants that are computed while a model is compiled. What would exceed
// it stays in the model or is an error. Views and rearrangements of the model's weights do not
// count.
inline constexpr int64_t kMaxMadeBytes = int64_t{1} << 30;

// Limit of the numbers that operators compute one by one while a model is imported, counted as
// uniform random ones, which take 10 to 25 ns each. Numbers that need a logarithm or a cosine count
// as kUniformsOfFunction such ones.
inline constexpr int64_t kMaxMadeNumbers = 1 << 27;
inline constexpr int64_t kUniformsOfFunction = 4;

// Limit of the bytes that computing constants reads or writes in all, whichever is more. Beyond
// kMaxFoldedBytes, and beyond kFoldsOfWeights times the model's weights, nodes stay in the model
// although their operands are constants, so a model with any number of such nodes is imported in
// seconds.
inline constexpr int64_t kMaxFoldedBytes = int64_t{1} << 30;
inline constexpr int64_t kFoldsOfWeights = 4;
// Limit of the interpreter's operations for constants in all, which take ten seconds.
inline constexpr int64_t kMaxFoldedOperations = 500'000'000;

// A model that was written for one batch size and is imported for another (--shape): constant
// shapes that begin with the former are read with the latter if the first extent of the data is the
// latter.
struct Rebatch {
  int64_t from = 1, to = 1;
};

// The most turns of a loop whose number is known at run time only, unless --max-turns gives another
// one.
inline constexpr int64_t kMaxTurns = 10'000;

// The number of times that each rule of a pass changed the graph, by the rule's name.
using RuleCounts = std::map<std::string, int>;

// While the nodes of a loop's body are added: the graph around it with its nodes so far, and its
// values by those that the body has for them.
struct Surroundings {
  const Graph* graph = nullptr;
  const std::vector<Node>* nodes = nullptr;
  std::map<ValueId, ValueId> captured;
};

struct Graph {
  std::string name;
  std::string file;  // for messages
  int opset = 0;
  std::optional<Rebatch> rebatch;
  int64_t max_turns = kMaxTurns;  // the most of a loop whose number only the run knows
  // Loops are not unrolled, nor both branches of an If computed, where that is not the only way: at
  // other sizes they would be other operators.
  bool keeps_loops = false;
  // A run can repeat steps and leave some out. Where it cannot, as on GPUs, both branches of an If
  // are computed wherever they can be.
  bool repeats_steps = true;
  bool is_body = false;  // it is the body of a hone.Loop
  // While nodes are added of which a run may not use the results: these conditions (bool) have to
  // be so for that. A run that fails by a node checks them first.
  std::vector<std::pair<ValueId, bool>> used_if;
  // While nodes are added: lists of those from before (NodesBefore), and what is around a body.
  std::vector<const std::vector<Node>*> before;
  std::optional<Surroundings> around;
  std::deque<Value> values;  // references stay valid when one is added
  std::vector<Node> nodes;
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> output_names;  // names in the model; passes may replace the values
  std::vector<Buffer> buffers;
  Varying varying;  // what the shapes of the inputs decide at run time
  // The warnings that the user has to see; the importer logs them.
  std::vector<std::string> warnings;
  // Values that a shape rule needed at compile time and that are not known then.
  std::vector<ValueId> unknown_operands;
  int64_t made_bytes = 0;                 // bytes of constants made so far, see kMaxMadeBytes
  int64_t made_numbers = 0;               // see kMaxMadeNumbers
  int64_t weight_bytes = 0;               // bytes of the model's own weights
  int64_t folded_bytes = 0;               // see kMaxFoldedBytes
  mutable int64_t folded_operations = 0;  // see kMaxFoldedOperations
  RuleCounts rules;  // counts of the pass that is running; 0 for a rule that found nothing

  [[nodiscard]] const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  [[nodiscard]] Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  [[nodiscard]] bool may_make(int64_t bytes) const { return bytes <= kMaxMadeBytes - made_bytes; }
  ValueId add_value(std::string name, DType dtype, Shape shape);
  ValueId add_constant(std::string name, Tensor tensor);
  [[nodiscard]] bool is_input(ValueId id) const;
  [[nodiscard]] bool is_output(ValueId id) const;
};

// For each value: the indices of the nodes that read it (once per operand) and of its producer, and
// whether it is a result of the graph.
struct Uses {
  explicit Uses(const Graph& graph);
  std::vector<std::vector<int>> readers;
  std::vector<int> producer;  // -1 if there is none
  std::vector<bool> output;
};

// Sorts the nodes topologically and keeps the given order where possible. The error names a node on
// a cycle.
[[nodiscard]] Status sort_nodes(Graph& graph);
// Removes nodes whose results nobody reads.
void remove_dead_nodes(Graph& graph);
// Checks everything that this header promises.
[[nodiscard]] Status verify(const Graph& graph);
// Prints one line per node, with shapes and, once assigned, memory orders and borders.
[[nodiscard]] std::string describe(const Graph& graph);

}  // namespace hone::graph
