// graph/op.h - an operator definition: what it accepts, its rule for shapes and types, how it is
// folded at compile time and how it computes. There is one file per family in graph/ops, and one
// list in ops/registry.cc.
#pragma once

#include <string_view>

#include "hone/graph/graph.h"

namespace hone::graph {

inline constexpr int kMinOpset = 7;  // older opsets have another broadcasting
inline constexpr int kMaxOpset = 28;

enum class Kind : uint8_t {
  kContraction,  // convolution, matrix product: its task includes elementwise followers
  kReduction,    // pooling, softmax, ...: its task includes elementwise followers
  kElementwise,  // one value per point of the result, operands broadcast
  kView,         // the same elements in the same order under another shape or order; it is no task
  kOpaque,       // a task by itself
};

// Returns whether the node is a view that gives the same elements, in the same order, another
// shape.
[[nodiscard]] bool is_reshape(const Node& node);
// Returns whether the node is a view whose operands are parts of its result: Concat,
// hone.Interleave.
[[nodiscard]] bool joins_parts(const Node& node);

// The memory order in which an operator reads its activations of rank 4 and writes its result.
enum class Layout : uint8_t {
  kFollow,        // order of the first operand that has the shape of the result
  kChannelsLast,  // N, H, W, C
  kPlain,         // the order of the dimensions
};

// The distance outside an operand to which an operator reads, per dimension, and the value that it
// expects there.
struct Padding {
  Shape low, high;
  enum class Fill : uint8_t { kZero, kLowest } fill = Fill::kZero;
  [[nodiscard]] bool any() const;
};

// The view of a node for a shape rule. `graph` may get new constants (folding), but never new
// nodes.
class InferContext {
 public:
  InferContext(Graph& graph, const Node& node) : graph_(graph), node_(node) {}
  [[nodiscard]] int opset() const { return node_.opset != 0 ? node_.opset : graph_.opset; }
  [[nodiscard]] const std::optional<Rebatch>& rebatch() const { return graph_.rebatch; }
  // Returns whether the graph follows sizes (follow_sizes.h), so that Hone has added the node.
  [[nodiscard]] bool follows_sizes() const { return graph_.varying.any(); }
  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] const Attributes& attributes() const { return node_.attributes; }
  [[nodiscard]] size_t num_inputs() const { return node_.inputs.size(); }
  [[nodiscard]] size_t num_outputs() const { return node_.outputs.size(); }
  [[nodiscard]] bool has(size_t i) const { return node_.has_input(i); }
  [[nodiscard]] DType dtype(size_t i) const { return graph_.value(node_.inputs[i]).dtype; }
  [[nodiscard]] const Shape& shape(size_t i) const { return graph_.value(node_.inputs[i]).shape; }
  [[nodiscard]] int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  [[nodiscard]] const Tensor* constant(size_t i) const;  // null if it is not known
  // Returns a constant operand; the error names it if it is not constant.
  [[nodiscard]] Result<const Tensor*> required(size_t i, std::string_view what) const;
  // Returns the values of a constant operand of integers; the error names it if it is not constant.
  [[nodiscard]] Result<std::vector<int64_t>> integers(size_t i, std::string_view what) const;
  // Returns the values of the operand or, in old opsets, of the attribute `what`; nullopt if
  // neither is there.
  [[nodiscard]] Result<std::optional<std::vector<int64_t>>> integers_or_attribute(
      size_t i, const std::string& what) const;
  // Sets a result's type and shape; extents may be 0.
  [[nodiscard]] Status set(size_t output, DType dtype, Shape shape);
  // Returns a constant of zeros for the operator to fill. It is an error if it would take too much
  // memory.
  [[nodiscard]] Result<Tensor> new_constant(DType dtype, Shape shape);
  // Returns one for numbers that are computed one by one, each of which takes as long as so many
  // uniform random ones. It is an error, too, if all of a model's would take too long.
  [[nodiscard]] Result<Tensor> new_numbers(DType dtype, Shape shape, int64_t uniforms);
  // Sets a result that is known already: the sum of nothing, the mask of a Dropout.
  [[nodiscard]] Status set_constant(size_t output, Tensor tensor);
  // Returns an error of this node: "file: node 'conv1' (Conv): message".
  template <typename... Args>
  [[nodiscard]] Status fail(fmt::format_string<Args...> format, Args&&... args) const {
    return {Code::kInvalid, where() + fmt::format(format, std::forward<Args>(args)...)};
  }
  template <typename... Args>
  [[nodiscard]] Status unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    return {Code::kUnsupported, where() + fmt::format(format, std::forward<Args>(args)...)};
  }

 protected:
  [[nodiscard]] Graph& graph() const { return graph_; }

 private:
  // Returns an error unless a constant may take so many bytes.
  [[nodiscard]] Status check_constant(DType dtype, const Shape& shape) const;
  [[nodiscard]] std::string where() const;
  Graph& graph_;
  const Node& node_;
};

class EmitContext;    // defined in graph/emit.h
class ExpandContext;  // defined in graph/expand.h

struct Op {
  std::string_view name;
  int since = 1;  // first opset for which this definition is valid
  int until = kMaxOpset;
  int min_inputs = 1;
  int max_inputs = 1;
  int max_outputs = 1;
  Kind kind = Kind::kOpaque;
  Layout layout = Layout::kPlain;
  // The attributes as "name:type ...", with types i f s t is fs ss g; any other attribute is an
  // error.
  std::string_view attributes;
  Status (*infer)(InferContext&) = nullptr;
  // Builds the nodes that compute the results, and replaces all functions below unless it declines.
  Status (*expand)(ExpandContext&) = nullptr;
  // Computes the results from constant operands, for operators on shapes and integers. It is called
  // only if all operands are constant, or always with `folds_shapes`; it must then not read the
  // operands' data.
  Result<std::vector<Tensor>> (*fold)(const Graph&, const Node&) = nullptr;
  bool folds_shapes = false;
  // Adds the stages of this node to a task. It is null for a view, or for an operator that must be
  // folded.
  void (*emit)(EmitContext&) = nullptr;
  // Padding of operand 0; null if there is none.
  Padding (*padding)(const Graph&, const Node&) = nullptr;
  // Returns whether the result is never negative; `known` tells this of each value. If it is null,
  // nothing is known.
  bool (*non_negative)(const Graph&, const Node&, const std::vector<bool>& known) = nullptr;
};

struct Arity {
  int min_inputs = 1, max_inputs = 1, max_outputs = 1;
};
// Returns the definition of an operator that is a function of others.
[[nodiscard]] inline Op expanded_op(std::string_view name, int since, const Arity& arity,
                                    std::string_view attributes, Status (*expand)(ExpandContext&)) {
  return {.name = name,
          .since = since,
          .min_inputs = arity.min_inputs,
          .max_inputs = arity.max_inputs,
          .max_outputs = arity.max_outputs,
          .attributes = attributes,
          .expand = expand};
}

// Checks operand counts and attributes, infers types and shapes of all nodes in order, and folds
// what shape rules may need (Shape, Gather, Concat of small integers, ...).
[[nodiscard]] Status infer_shapes(Graph& graph);
// Does this for one node, for passes that create nodes.
[[nodiscard]] Status infer_node(Graph& graph, const Node& node);

// Returns whether the results of a node may be computed in advance. If so, their size counts as
// made.
[[nodiscard]] bool may_fold(Graph& graph, const Node& node);

// Returns numpy's broadcast of two shapes; nullopt if they don't fit.
[[nodiscard]] std::optional<Shape> broadcast(const Shape& a, const Shape& b);
// Returns the dimension index in [0, rank) for one in [-rank, rank), or nullopt.
[[nodiscard]] std::optional<int64_t> normalize_axis(int64_t axis, int64_t rank);

}  // namespace hone::graph
