// graph/passes/pass.h - the passes over a graph, in the order in which optimize() runs them. Each
// is a free function that leaves a valid graph in which a value that existed before has the same
// elements: a node that computes something else gets a new value, or takes over a later one. So the
// id of a value identifies it in the model as it was imported (hone verify).
#pragma once

#include <functional>
#include <map>

#include "hone/graph/node_names.h"

namespace hone::graph {

// Called after each pass that changed something, with its name, the graph's text and the rules that
// changed it. A pass without rules counts the kinds of its changes.
using OnChange =
    std::function<void(const std::string& pass, const std::string& graph, const RuleCounts& rules)>;

struct PassOptions {
  std::vector<std::string>
      skip;  // names of passes that are left out; layouts and storage always run
  std::vector<std::string> also;   // names of passes that run only on request
  std::vector<std::string> later;  // names in `skip` that belong to later steps, not to passes
  OnChange on_change;
  // Called after each pass that ran, with the graph, which it may change, for tests.
  std::function<void(const std::string& pass, Graph& graph)> after_pass;
  int lanes = 8;  // 32-bit elements of a vector of the device
  // As on GPUs, pooling takes values, and attention keys, in the order that they have, and rows go
  // through trees alone; else, as vectors run along them, pooling takes channels last, and keys lie
  // side by side.
  bool any_order = false;
  // Values of half types are computed and kept in float32 (widen_halves); not on GPUs, which have
  // instructions for half types.
  bool widens_halves = true;
};

// The half type in which a model has its weights, and float32 if it has none. widen_halves finds it
// for narrow_weights.
struct HalfWeights {
  DType dtype = DType::kF32;
  bool all = false;  // no large weights are of another float type
};
// Smaller weights stay in a core's own cache, where half their bytes gain nothing.
inline constexpr int64_t kLeastNarrowBytes = 32 << 10;

// Runs all passes, after which the graph can be fused into tasks.
[[nodiscard]] Status optimize(Graph& graph, const PassOptions& options = {});
// Returns the names of all passes in order.
[[nodiscard]] std::vector<std::string> pass_names();
// Returns the names of passes that run unless they are skipped.
[[nodiscard]] std::vector<std::string> optional_pass_names();

// Computes everything that depends on constants only.
[[nodiscard]] Status fold_constants(Graph& graph);
// Removes nodes without effect: Identity, Dropout, views to the same shape, casts to the same type.
[[nodiscard]] Status remove_identities(Graph& graph);
// Makes float32 of values of half types, but of inputs, results and what only moves between them.
[[nodiscard]] Status widen_halves(Graph& graph, const PassOptions& options, HalfWeights& weights);
// Gives large weights of products their half type back, those that passes changed only if the model
// has no others, which rounds them once; and integers the type of 8 or 16 bits that holds them.
[[nodiscard]] Status narrow_weights(Graph& graph, const PassOptions& options, HalfWeights& weights);
// Computes products (MatMul) of 32-bit integers by constant weights of 8 or 16 bits in float32
// where that is exact in every type to which --accuracy fast may round: no weight and no datum
// exceeds 2^8 in magnitude, and the magnitudes of all terms of a sum add up to 2^24 at most.
[[nodiscard]] Status exact_products(Graph& graph);
// Merges nodes that compute the same, and constants with the same bytes.
[[nodiscard]] Status eliminate_common_subexpressions(Graph& graph);
// Replaces the simpler operators by which models express LayerNormalization, RMSNormalization,
// Softmax, Gelu, Swish, HardSwish, Mish and Softplus by these.
[[nodiscard]] Status recognize_patterns(Graph& graph);
// Moves elementwise operators behind interleaved values (phases of a ConvTranspose) before them.
[[nodiscard]] Status interleave_last(Graph& graph);
// Folds BatchNormalization into the weights before it, or replaces it by a Mul and an Add.
[[nodiscard]] Status fold_batch_norm(Graph& graph);
// Folds scales and shifts per channel before and after a convolution or matrix product into its
// weights.
[[nodiscard]] Status fold_scales(Graph& graph);
// Merges products of one value by several constant weights into one product, of whose result theirs
// are parts without a copy. It runs only on request, as it rarely pays.
[[nodiscard]] Status merge_parallel_products(Graph& graph);
// Merges chains of transposes, reshapes, slices and casts, removes neutral constants, computes
// constants that meet, and moves transposes to where they meet or a product absorbs them, and
// reshapes behind elementwise operators.
[[nodiscard]] Status simplify_algebra(Graph& graph);
// Replaces softmax(Q K scale + mask) V by one operator, and so one task.
[[nodiscard]] Status fuse_attention(Graph& graph);
// Merges a Pad with zeros into the padding of the convolution or average pooling after it.
[[nodiscard]] Status merge_pads(Graph& graph);
// Replaces Flatten + Gemm after a value of rank 4 by a convolution with a kernel as large as the
// value, so that N, H, W, C never needs reordering there.
[[nodiscard]] Status flatten_to_conv(Graph& graph);
// Makes grouped convolutions whose groups have so few channels that they fill at most half a vector
// work with the groups innermost. Operators that shuffle channels are folded into the weights
// before and after.
[[nodiscard]] Status groups_inner(Graph& graph, const PassOptions& options);
// Gives each row of data that goes through trees a point of its own on devices that run thousands
// of threads; elsewhere several rows share the nodes that a cache holds.
[[nodiscard]] Status spread_trees(Graph& graph, const PassOptions& options);
// Keeps the sums of products and convolutions as they are written (Node::plain_sums) whose rows are
// divided by their own length, x / max(|x|, 1e-12): Winograd's and Strassen's sums give a row of
// zeros, as padding has, errors relative to other rows, which would become a row of length 1.
[[nodiscard]] Status keep_small_rows(Graph& graph);
// Chooses the memory order of every value and inserts copies where an operator needs another.
[[nodiscard]] Status assign_layouts(Graph& graph, const PassOptions& options);
// Assigns each value a place in a buffer, with the border that its readers want. Concatenations are
// written in place where possible.
[[nodiscard]] Status assign_storage(Graph& graph);

// Sets Value::order by the operators' layout rules, without changing the graph.
void choose_orders(Graph& graph, bool any_order = false);
// Returns whether a value of this shape is stored equally in both orders; dimensions of extent 1
// don't matter.
[[nodiscard]] bool same_order(const Shape& shape, const std::vector<int>& a,
                              const std::vector<int>& b);
[[nodiscard]] bool is_plain(const Value& value);
// Returns whether a product reads the rows of operand k repeatedly, with vector lanes along its
// columns.
[[nodiscard]] bool is_right_operand(const Node& node, size_t k);

// Collects copies that a pass inserts before nodes. All are inserted at once, so that the indices
// of nodes are valid until then, and any number of copies takes one pass over the graph.
class CopyInserter {
 public:
  explicit CopyInserter(Graph& graph);
  // Adds a hone.Copy of `from` before node `before` (graph.nodes.size() is the end), after the
  // copies that are there already. Returns the new value.
  ValueId add(ValueId from, size_t before, const std::string& suffix);
  void insert();

 private:
  Graph& graph_;
  NodeNames names_;
  std::map<size_t, std::vector<Node>> copies_;  // by the index of the node that follows them
};

}  // namespace hone::graph
