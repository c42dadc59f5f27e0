// graph/op.h - an operator definition: what it accepts, its shape and type rule, how it is folded
// at compile time and how it computes. One file per family in graph/ops, one list in
// ops/registry.cc.
#pragma once

#include <string_view>

#include "hone/graph/graph.h"

namespace hone::graph {

inline constexpr int kMinOpset = 7;  // broadcasting as it is today
inline constexpr int kMaxOpset = 28;

enum class Kind : uint8_t {
  kContraction,  // convolution, matrix product: takes elementwise followers into its task
  kReduction,    // pooling, softmax, ...: likewise
  kElementwise,  // one value per point of the result, operands broadcast
  kView,         // the same elements in the same order under another shape or order: no task
  kOpaque,       // a task of its own
};

// A view that gives the same elements, in the same order, another shape.
[[nodiscard]] bool is_reshape(const Node& node);
// A view whose operands are parts of its result: Concat, hone.Interleave.
[[nodiscard]] bool joins_parts(const Node& node);

// In which memory order an operator wants its activations of rank 4 and gives its result.
enum class Layout : uint8_t {
  kFollow,        // that of the first operand with the shape of the result
  kChannelsLast,  // N, H, W, C
  kPlain,         // as the dimensions stand
};

// How far outside an operand an operator reads, per dimension, and which value it expects there.
struct Padding {
  Shape low, high;
  enum class Fill : uint8_t { kZero, kLowest } fill = Fill::kZero;
  [[nodiscard]] bool any() const;
};

// What a shape rule sees. `graph` may get new constants (folding), never new nodes.
class InferContext {
 public:
  InferContext(Graph& graph, const Node& node) : graph_(graph), node_(node) {}
  [[nodiscard]] int opset() const { return node_.opset != 0 ? node_.opset : graph_.opset; }
  [[nodiscard]] const std::optional<Rebatch>& rebatch() const { return graph_.rebatch; }
  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] const Attributes& attributes() const { return node_.attributes; }
  [[nodiscard]] size_t num_inputs() const { return node_.inputs.size(); }
  [[nodiscard]] size_t num_outputs() const { return node_.outputs.size(); }
  [[nodiscard]] bool has(size_t i) const { return node_.has_input(i); }
  [[nodiscard]] DType dtype(size_t i) const { return graph_.value(node_.inputs[i]).dtype; }
  [[nodiscard]] const Shape& shape(size_t i) const { return graph_.value(node_.inputs[i]).shape; }
  [[nodiscard]] int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  [[nodiscard]] const Tensor* constant(size_t i) const;  // null if it is not known
  // A constant operand; an error that names it if it is not constant.
  [[nodiscard]] Result<const Tensor*> required(size_t i, std::string_view what) const;
  // The values of a constant operand of integers; an error that names it if it is not constant.
  [[nodiscard]] Result<std::vector<int64_t>> integers(size_t i, std::string_view what) const;
  // The operand or, in old opsets, the attribute that says `what`; nullopt if neither is there.
  [[nodiscard]] Result<std::optional<std::vector<int64_t>>> integers_or_attribute(
      size_t i, const std::string& what) const;
  // A result's type and shape; extents may be 0.
  [[nodiscard]] Status set(size_t output, DType dtype, Shape shape);
  // A constant for the operator to fill, of zeros: an error if it would take too much memory.
  [[nodiscard]] Result<Tensor> new_constant(DType dtype, Shape shape);
  // A result that is known already: the sum of nothing, the mask of a Dropout.
  [[nodiscard]] Status set_constant(size_t output, Tensor tensor);
  // An error of this node, in the form "file: node 'conv1' (Conv): message".
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
  [[nodiscard]] std::string where() const;
  Graph& graph_;
  const Node& node_;
};

class EmitContext;    // graph/emit.h
class ExpandContext;  // graph/expand.h

struct Op {
  std::string_view name;
  int since = 1;  // the opsets for which this definition holds
  int until = kMaxOpset;
  int min_inputs = 1;
  int max_inputs = 1;
  int max_outputs = 1;
  Kind kind = Kind::kOpaque;
  Layout layout = Layout::kPlain;
  // The attributes it knows as "name:type ...", types i f s t is fs ss g; another one is an error.
  std::string_view attributes;
  Status (*infer)(InferContext&) = nullptr;
  // Instead of all that follows, unless it declines: the nodes that compute the results.
  Status (*expand)(ExpandContext&) = nullptr;
  // The results from constant operands, for operators on shapes and integers; called only if all
  // operands are constant, or always with `folds_shapes` (operands' data are then not to be read).
  Result<std::vector<Tensor>> (*fold)(const Graph&, const Node&) = nullptr;
  bool folds_shapes = false;
  // Adds the stages of this node to a task. Null: a view, or an operator that exists only folded.
  void (*emit)(EmitContext&) = nullptr;
  Padding (*padding)(const Graph&, const Node&) = nullptr;  // of operand 0; null: none
  // The result is never negative; `known` tells it of each value. Null: no idea.
  bool (*non_negative)(const Graph&, const Node&, const std::vector<bool>& known) = nullptr;
};

// Checks operand counts and attributes, infers types and shapes of all nodes in order, and folds
// what shape rules may need (Shape, Gather, Concat of small integers ...).
[[nodiscard]] Status infer_shapes(Graph& graph);
// The same for one node, for passes that create nodes.
[[nodiscard]] Status infer_node(Graph& graph, const Node& node);

// Whether the results of a node may be computed in advance; then they count as made.
[[nodiscard]] bool may_fold(Graph& graph, const Node& node);

// numpy's broadcasting of two shapes; nullopt if they don't fit.
[[nodiscard]] std::optional<Shape> broadcast(const Shape& a, const Shape& b);
// A dimension index in [0, rank) from one in [-rank, rank), or nullopt.
[[nodiscard]] std::optional<int64_t> normalize_axis(int64_t axis, int64_t rank);

}  // namespace hone::graph
