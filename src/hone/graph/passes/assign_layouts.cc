#include <algorithm>
#include <map>
#include <numeric>

#include "hone/graph/emit.h"
#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/pass.h"
#include "hone/graph/passes/rewrite.h"

namespace hone::graph {
namespace {

std::vector<int> plain_order(size_t rank) {
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<int> channels_last(size_t rank) {
  std::vector<int> order = {0};
  for (size_t d = 2; d < rank; ++d) order.push_back(static_cast<int>(d));
  order.push_back(1);
  return order;
}

// A Transpose moves nothing: dimension i of its result is dimension perm[i] of its operand.
std::vector<int> transposed(const Graph& graph, const Node& node) {
  const std::vector<int> from = order_of(graph.value(node.inputs[0]));
  const Shape perm = permutation_of(graph, node);
  std::vector<int> order;
  for (const int dim : from) {
    order.push_back(static_cast<int>(std::find(perm.begin(), perm.end(), dim) - perm.begin()));
  }
  return order;
}

std::vector<int> followed(const Graph& graph, const Node& node, const Shape& shape) {
  const Value* similar = nullptr;
  for (const ValueId in : node.inputs) {
    if (in == kNoValue || graph.value(in).constant) continue;
    const Value& value = graph.value(in);
    if (value.shape == shape) return order_of(value);
    if (value.shape.size() == shape.size() && similar == nullptr) similar = &value;
  }
  return similar ? order_of(*similar) : plain_order(shape.size());
}

// The order in which an operator reads and writes.
Layout layout_of(const Node& node, bool any_order) {
  const bool pools = node.op->layout == Layout::kChannelsLast && node.op->kind == Kind::kReduction;
  return pools && any_order ? Layout::kFollow : node.op->layout;
}

// The order in which a node wants operand k; empty if it takes any.
std::vector<int> wanted_order(const Graph& graph, const Node& node, size_t k,
                              const PassOptions& options) {
  const ValueId id = node.inputs[k];
  if (id == kNoValue || graph.value(id).constant || node.outputs.empty() ||
      node.outputs[0] == kNoValue)
    return {};
  const Value& value = graph.value(id);
  const Value& result = graph.value(node.outputs[0]);
  if (is_reshape(node) && k == 0) return plain_order(value.shape.size());
  const Layout layout = layout_of(node, options.any_order);
  if (layout == Layout::kChannelsLast && k == 0 && value.shape.size() >= 3) {
    return channels_last(value.shape.size());
  }
  // Vector lanes run along the columns of a product: they must lie side by side.
  const bool is_key = node.type == "hone.Attention" && k == 1;
  if (is_right_operand(node, k) && !(is_key && options.any_order) && value.shape.size() >= 2 &&
      order_of(value).back() != static_cast<int>(value.shape.size()) - 1)
    return plain_order(value.shape.size());
  if (node.op->kind == Kind::kElementwise && value.shape == result.shape) return result.order;
  return {};
}

// Attention whose result only a Transpose and then a Reshape read (heads become one value again)
// writes it in the order in which the Reshape wants it, if rows stay rows. (A lone product keeps
// its order: its register tile would run along the heads, which share nothing.)
std::vector<int> order_of_reader(const Graph& graph, const Uses& uses, const Node& node) {
  if (node.type != "hone.Attention") return {};
  const auto& readers = uses.readers[static_cast<size_t>(node.outputs[0])];
  if (readers.size() != 1 || uses.output[static_cast<size_t>(node.outputs[0])]) return {};
  const Node& transpose = graph.nodes[static_cast<size_t>(readers[0])];
  if (transpose.type != "Transpose") return {};
  const auto& next = uses.readers[static_cast<size_t>(transpose.outputs[0])];
  const bool reshaped = std::any_of(next.begin(), next.end(), [&](int reader) {
    return is_reshape(graph.nodes[static_cast<size_t>(reader)]);
  });
  const Shape perm = permutation_of(graph, transpose);
  if (!reshaped || perm.back() + 1 != static_cast<int64_t>(perm.size())) return {};
  return {perm.begin(), perm.end()};
}

}  // namespace

bool same_order(const Shape& shape, const std::vector<int>& a, const std::vector<int>& b) {
  const auto strip = [&](const std::vector<int>& order) {
    std::vector<int> kept;
    for (const int dim : order) {
      if (shape[static_cast<size_t>(dim)] > 1) kept.push_back(dim);
    }
    return kept;
  };
  return strip(a) == strip(b);
}

bool is_right_operand(const Node& node, size_t k) {
  if (node.type == "hone.Attention") return k == 1 || k == 2;
  return node.type == "MatMul" && k == 1;
}

bool is_plain(const Value& value) {
  return same_order(value.shape, order_of(value), plain_order(value.shape.size()));
}

void choose_orders(Graph& graph, bool any_order) {
  for (Value& value : graph.values) value.order = plain_order(value.shape.size());
  const Uses uses(graph);
  for (const Node& node : graph.nodes) {
    for (const ValueId out : node.outputs) {
      if (out == kNoValue) continue;
      Value& value = graph.value(out);
      const Layout layout = layout_of(node, any_order);
      if (node.type == "Transpose") {
        value.order = transposed(graph, node);
      } else if (layout == Layout::kChannelsLast && value.shape.size() >= 3) {
        value.order = channels_last(value.shape.size());
      } else if (layout == Layout::kFollow) {
        value.order = followed(graph, node, value.shape);
      } else if (auto order = order_of_reader(graph, uses, node); !order.empty()) {
        value.order = std::move(order);
      }
    }
  }
}

CopyInserter::CopyInserter(Graph& graph) : graph_(graph), names_(graph) {}

ValueId CopyInserter::add(ValueId from, size_t before, const std::string& suffix) {
  const Value& source = graph_.value(from);
  std::string name = source.name + suffix;
  const ValueId to = graph_.add_value(name, source.dtype, source.shape);
  graph_.value(to).order = order_of(source);
  Node copy{.name = names_.take(name), .type = "hone.Copy", .op = copy_op()};
  copy.inputs = {from};
  copy.outputs = {to};
  copies_[before].push_back(std::move(copy));
  return to;
}

void CopyInserter::insert() {
  if (copies_.empty()) return;
  std::vector<Node> nodes;
  for (size_t i = 0; i <= graph_.nodes.size(); ++i) {
    if (const auto copies = copies_.find(i); copies != copies_.end())
      std::move(copies->second.begin(), copies->second.end(), std::back_inserter(nodes));
    if (i < graph_.nodes.size()) nodes.push_back(std::move(graph_.nodes[i]));
  }
  graph_.nodes = std::move(nodes);
  copies_.clear();
}

Status assign_layouts(Graph& graph, const PassOptions& options) {
  choose_orders(graph, options.any_order);
  CopyInserter inserter(graph);
  // One copy per value and order serves all readers.
  std::map<std::pair<ValueId, std::vector<int>>, ValueId> copies;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::string suffix = is_reshape(graph.nodes[i]) ? ".plain" : ".reordered";
    for (size_t k = 0; k < graph.nodes[i].inputs.size(); ++k) {
      const ValueId from = graph.nodes[i].inputs[k];
      const std::vector<int> wanted = wanted_order(graph, graph.nodes[i], k, options);
      if (wanted.empty() || same_order(graph.value(from).shape, graph.value(from).order, wanted))
        continue;
      const auto known = copies.find({from, wanted});
      if (known != copies.end()) {
        graph.nodes[i].inputs[k] = known->second;
        continue;
      }
      const ValueId copy = inserter.add(from, i, suffix);
      ++graph.rules[suffix.substr(1)];
      graph.value(copy).order = wanted;
      graph.nodes[i].inputs[k] = copies[{from, wanted}] = copy;
    }
  }
  for (ValueId& out : graph.outputs) {
    if (is_plain(graph.value(out))) continue;
    const ValueId copy = inserter.add(out, graph.nodes.size(), ".output");
    ++graph.rules["output"];
    graph.value(copy).order = plain_order(graph.value(out).shape.size());
    out = copy;
  }
  inserter.insert();
  return ok_status();
}

}  // namespace hone::graph
