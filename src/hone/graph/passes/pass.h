// graph/passes/pass.h - the passes over a graph, in the order in which optimize() runs them. Each
// is a free function that leaves a graph that verifies, in which a value that was there before has
// the elements that it had: what computes something else gets a new value, or takes over a later
// one. So its id says which one it is in the model as it came (hone verify).
#pragma once

#include <functional>
#include <map>

#include "hone/graph/node_names.h"

namespace hone::graph {

// Called after each pass that changed something, with its name, the graph's text and the rules that
// changed it. A pass that has no rules counts the kinds of what it does.
using OnChange =
    std::function<void(const std::string& pass, const std::string& graph, const RuleCounts& rules)>;

struct PassOptions {
  std::vector<std::string>
      skip;  // names of passes that are left out; layouts and storage always run
  std::vector<std::string> also;   // names of passes that run only where they are asked for
  std::vector<std::string> later;  // names in `skip` that are none here: of steps that come later
  OnChange on_change;
  // Called after each pass that ran, with the graph, which it may change: for tests.
  std::function<void(const std::string& pass, Graph& graph)> after_pass;
  int lanes = 8;  // 32-bit elements of a vector of the device
};

// Runs all passes: the graph can then be fused into tasks.
[[nodiscard]] Status optimize(Graph& graph, const PassOptions& options = {});
// Their names in order.
[[nodiscard]] std::vector<std::string> pass_names();
// Of those that run unless they are skipped.
[[nodiscard]] std::vector<std::string> optional_pass_names();

// Computes what depends on constants only.
[[nodiscard]] Status fold_constants(Graph& graph);
// Removes what changes nothing: Identity, Dropout, views to the same shape, casts to the same type.
[[nodiscard]] Status remove_identities(Graph& graph);
// Nodes that compute the same, and constants with the same bytes, become one.
[[nodiscard]] Status eliminate_common_subexpressions(Graph& graph);
// LayerNormalization, RMSNormalization, Softmax, Gelu, Swish, HardSwish, Mish and Softplus take the
// place of the simpler operators by which models write them.
[[nodiscard]] Status recognize_patterns(Graph& graph);
// Elementwise operators behind interleaved values (phases of a ConvTranspose) move before them.
[[nodiscard]] Status interleave_last(Graph& graph);
// BatchNormalization goes into the weights before it, or becomes a Mul and an Add.
[[nodiscard]] Status fold_batch_norm(Graph& graph);
// Scales and shifts per channel before and after a convolution or matrix product go into its
// weights.
[[nodiscard]] Status fold_scales(Graph& graph);
// Products of one value by several constant weights become one product, of which the results are
// parts that lie where they were made. Runs only where it is asked for: it rarely pays.
[[nodiscard]] Status merge_parallel_products(Graph& graph);
// Chains of transposes, reshapes, slices and casts become one or none; neutral constants go;
// constants that meet are computed; transposes go where they meet or a product takes them, reshapes
// behind elementwise operators.
[[nodiscard]] Status simplify_algebra(Graph& graph);
// softmax(Q K scale + mask) V becomes one operator, and so one task.
[[nodiscard]] Status fuse_attention(Graph& graph);
// A Pad with zeros becomes padding of the convolution or average pooling after it.
[[nodiscard]] Status merge_pads(Graph& graph);
// Flatten + Gemm after a value of rank 4 becomes a convolution with a kernel as large as the value,
// so that N, H, W, C never needs reordering there.
[[nodiscard]] Status flatten_to_conv(Graph& graph);
// Grouped convolutions whose groups have so few channels that they fill half a vector at most work
// with the groups innermost; what shuffles channels goes into the weights before and after.
[[nodiscard]] Status groups_inner(Graph& graph, int lanes);
// Chooses the memory order of every value and inserts copies where an operator needs another.
[[nodiscard]] Status assign_layouts(Graph& graph);
// Assigns each value a place in a buffer, with the border its readers want; concatenations are
// written in place where they can.
[[nodiscard]] Status assign_storage(Graph& graph);

// Sets Value::order by the operators' layout rules, without changing the graph.
void choose_orders(Graph& graph);
// True if a value of this shape lies the same in both orders: dimensions of extent 1 don't count.
[[nodiscard]] bool same_order(const Shape& shape, const std::vector<int>& a,
                              const std::vector<int>& b);
[[nodiscard]] bool is_plain(const Value& value);
// Whether a product reads the rows of operand k again and again, vector lanes along its columns.
[[nodiscard]] bool is_right_operand(const Node& node, size_t k);

// Copies that a pass puts before nodes. They take their places all at once, so that the indices of
// nodes hold until then, and any number of copies takes one walk over the graph.
class CopyInserter {
 public:
  explicit CopyInserter(Graph& graph);
  // A hone.Copy of `from` before node `before` (graph.nodes.size(): the end), behind the copies
  // that stand there already; returns the new value.
  ValueId add(ValueId from, size_t before, const std::string& suffix);
  void insert();

 private:
  Graph& graph_;
  NodeNames names_;
  std::map<size_t, std::vector<Node>> copies_;  // by the index of the node behind them
};

}  // namespace hone::graph
