// Grouped convolutions with few channels in a group, as of ResNeXt and RegNet, and the channel
// shuffles of ShuffleNet.
//
// Vector lanes run along the channels of a result, which share nothing but their group's data: with
// four to a group three quarters of a vector of 16 would be idle. So such a convolution works on
// channels in another order, with the groups innermost, along which lanes are independent, as in a
// depthwise convolution. What brings channels into that order and back goes into the constant
// weights of the convolutions before and after, through the elementwise operators in between.
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "hone/graph/ops/registry.h"
#include "hone/graph/passes/affine.h"
#include "hone/graph/passes/pass.h"

namespace hone::graph {
namespace {

constexpr const char* kShuffle = "hone.ShuffleChannels";
constexpr int64_t kManyGroups = 8;  // they fill a vector, or half of one

// Where channel c of a result lies in the data, for each c.
using Channels = std::vector<int64_t>;

Channels shuffled(const RewriteSite& site, const Node& shuffle) {
  const int64_t channels = site.graph.value(shuffle.inputs[0]).shape[1];
  const int64_t rows = shuffle.attributes.integer("rows", 1), columns = channels / rows;
  Channels source;
  for (int64_t c = 0; c < channels; ++c) source.push_back(c % rows * columns + c / rows);
  return source;
}

Channels inverse(const Channels& source) {
  Channels result(source.size());
  for (size_t c = 0; c < source.size(); ++c)
    result[static_cast<size_t>(source[c])] = static_cast<int64_t>(c);
  return result;
}

// Element c along a dimension is what was element source[c].
Tensor permuted(const Tensor& tensor, size_t axis, const Channels& source) {
  const Shape& shape = tensor.shape();
  const auto at = static_cast<long>(axis);
  const int64_t outer = num_elements(Shape(shape.begin(), shape.begin() + at));
  const int64_t bytes = num_elements(Shape(shape.begin() + at + 1, shape.end())) *
                        static_cast<int64_t>(dtype_bytes(tensor.dtype()));
  Tensor result(tensor.dtype(), shape);
  const auto* from = static_cast<const std::byte*>(tensor.data());
  auto* to = static_cast<std::byte*>(result.data());
  for (int64_t i = 0; i < outer; ++i, from += shape[axis] * bytes) {
    for (const int64_t c : source) to = std::copy_n(from + c * bytes, bytes, to);
  }
  return result;
}

bool is_convolution(const RewriteSite& site, const Node& node, bool depthwise) {
  if (node.type != "Conv" || !has_weights(site, node)) return false;
  const int64_t groups = node.attributes.integer("group", 1);
  if (!depthwise) return groups == 1;
  const Shape& weight = site.graph.value(node.inputs[1]).shape;
  return groups > 1 && weight[0] == groups && weight[1] == 1;
}

// A convolution's weights and bias where its result's channels are shuffled, or its data's.
std::vector<ValueId> permuted_weights(ExpandContext& c, const Node& node, size_t axis,
                                      const Channels& source) {
  std::vector<ValueId> operands = {
      c.constant(permuted(*c.constant_of(node.inputs[1]), axis, source))};
  if (!node.has_input(2)) return operands;
  const Tensor& bias = *c.constant_of(node.inputs[2]);
  operands.push_back(axis == 0 ? c.constant(permuted(bias, 0, source)) : node.inputs[2]);
  return operands;
}

// The operand of a node that works on each channel by itself, and whose other operands are
// constants that can be shuffled as well; -1: it does not.
int per_channel_operand(const RewriteSite& site, const Node& node) {
  if (is_convolution(site, node, true)) return 0;
  if (node.op->kind != Kind::kElementwise || node.outputs.size() != 1 ||
      node.type == "BatchNormalization")
    return -1;
  const Shape& shape = site.graph.value(node.outputs[0]).shape;
  int found = -1;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Value& operand = site.graph.value(node.inputs[i]);
    if (!operand.constant) {
      if (found >= 0 || operand.shape != shape) return -1;
      found = static_cast<int>(i);
    } else if (operand.shape.size() > shape.size()) {
      return -1;
    }
  }
  return found;
}

// The same node of data whose channels are shuffled.
ValueId per_channel(ExpandContext& c, const Node& node, int operand, ValueId data,
                    const Channels& source) {
  std::vector<ValueId> operands = node.inputs;
  operands[static_cast<size_t>(operand)] = data;
  if (node.type == "Conv") {
    std::vector<ValueId> weights = permuted_weights(c, node, 0, source);
    weights.insert(weights.begin(), data);
    return c.add_like(node, weights);
  }
  const size_t rank = c.shape_of(data).size();
  for (ValueId& id : operands) {
    const Tensor* tensor = id == kNoValue ? nullptr : c.constant_of(id);
    if (tensor == nullptr || tensor->shape().size() + 1 < rank) continue;
    const size_t axis = tensor->shape().size() + 1 - rank;
    if (tensor->shape()[axis] > 1) id = c.constant(permuted(*tensor, axis, source));
  }
  return c.add_like(node, operands);
}

// From a value upwards through nodes that work channel by channel and that nobody else reads.
struct Chain {
  std::vector<const Node*> nodes;  // the last one first
  std::vector<int> operands;       // operand of each node that is followed
  const Node* top = nullptr;       // what makes the first one's operand; null: nothing does
};
Chain chain_above(const RewriteSite& site, ValueId value) {
  Chain chain;
  for (;;) {
    chain.top = site.maker(value);
    if (chain.top == nullptr || site.sole_maker(value) == nullptr) return chain;
    const int operand = per_channel_operand(site, *chain.top);
    if (operand < 0) return chain;
    chain.nodes.push_back(chain.top);
    chain.operands.push_back(operand);
    value = chain.top->inputs[static_cast<size_t>(operand)];
  }
}

ValueId rebuild(ExpandContext& c, const Chain& chain, ValueId data, const Channels& source) {
  for (size_t i = chain.nodes.size(); i-- > 0;)
    data = per_channel(c, *chain.nodes[i], chain.operands[i], data, source);
  return data;
}

// Moves operators on single channels before a shuffle, where they join the task that makes the
// data.
Result<bool> shuffle_last(const RewriteSite& site) {
  const int operand = per_channel_operand(site, site.node());
  if (operand < 0) return false;
  const Node* shuffle = site.sole_maker(site.node().inputs[static_cast<size_t>(operand)]);
  if (shuffle == nullptr || shuffle->type != kShuffle) return false;
  const Node node = site.node(), last = *shuffle;
  const Channels back = inverse(shuffled(site, last));
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    return c.add_like(last, {per_channel(c, node, operand, last.inputs[0], back)});
  }));
  return true;
}

Result<bool> shuffle_before(const RewriteSite& site) {
  if (!is_convolution(site, site.node(), false)) return false;
  const Node* shuffle = site.maker(site.node().inputs[0]);
  if (shuffle == nullptr || shuffle->type != kShuffle) return false;
  const Node node = site.node();
  const ValueId data = shuffle->inputs[0];
  const Channels back = inverse(shuffled(site, *shuffle));
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    std::vector<ValueId> operands = permuted_weights(c, node, 1, back);
    operands.insert(operands.begin(), data);
    return c.add_like(node, operands);
  }));
  return true;
}

Result<bool> shuffle_after(const RewriteSite& site) {
  if (site.node().type != kShuffle) return false;
  const Chain chain = chain_above(site, site.node().inputs[0]);
  const Channels source = shuffled(site, site.node());
  if (chain.top == nullptr) return false;
  if (chain.top->type == kShuffle) {  // there and back
    const int64_t rows = chain.top->attributes.integer("rows", 1);
    if (rows * site.node().attributes.integer("rows", 1) != std::ssize(source)) return false;
    HONE_RETURN_IF_ERROR(replace_node(
        site, [&](ExpandContext& c) { return rebuild(c, chain, chain.top->inputs[0], source); }));
    return true;
  }
  const ValueId made = chain.top->outputs[0];
  if (!is_convolution(site, *chain.top, false) || site.sole_maker(made) == nullptr) return false;
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    std::vector<ValueId> operands = permuted_weights(c, *chain.top, 0, source);
    operands.insert(operands.begin(), chain.top->inputs[0]);
    return rebuild(c, chain, c.add_like(*chain.top, operands), source);
  }));
  return true;
}

// Reshape to groups of channels, their transpose, and Reshape back.
Result<bool> find_shuffle(const RewriteSite& site) {
  const Node& node = site.node();
  if (!is_reshape(node) || site.result().extents != kNoValue) return false;
  const Node* transpose = site.sole_maker(node.inputs[0]);
  if (transpose == nullptr || transpose->type != "Transpose") return false;
  const Node* first = site.sole_maker(transpose->inputs[0]);
  if (first == nullptr || !is_reshape(*first)) return false;
  const Value& x = site.graph.value(first->inputs[0]);
  const Shape& parts = site.graph.value(first->outputs[0]).shape;
  const Shape& shape = site.result().shape;
  if (x.extents != kNoValue || x.shape != shape || shape.size() < 3 ||
      parts.size() != shape.size() + 1 || parts[0] != shape[0] || parts[1] * parts[2] != shape[1])
    return false;
  Shape wanted(parts.size());
  std::iota(wanted.begin(), wanted.end(), 0);
  std::swap(wanted[1], wanted[2]);
  if (permutation_of(site.graph, *transpose) != wanted) return false;
  const ValueId data = first->inputs[0];
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    return c.add(kShuffle, {data}, {{"rows", Attribute(parts[1])}});
  }));
  return true;
}

// Returns whether a shuffle of the node's data would be folded into the weights before it.
bool has_convolution_before(const RewriteSite& site) {
  const Chain above = chain_above(site, site.node().inputs[0]);
  return above.top != nullptr && is_convolution(site, *above.top, false) &&
         site.sole_maker(above.top->outputs[0]) != nullptr;
}

// Returns whether a shuffle of its result would be folded into the weights after it.
bool has_convolution_behind(const RewriteSite& site) {
  for (ValueId value = site.node().outputs[0];;) {
    const int reader = site.sole_reader(value);
    if (reader < 0) return false;
    const Node& node = site.graph.nodes[static_cast<size_t>(reader)];
    if (is_convolution(site, node, false)) return node.inputs[0] == value;
    if (per_channel_operand(site, node) < 0) return false;
    value = node.outputs[0];
  }
}

// `most`: channels of a group, half a vector: what so many gain, two shuffles would cost.
template <int64_t most>
Result<bool> few_channels(const RewriteSite& site) {
  if (site.node().type != "Conv" || !has_weights(site, site.node())) return false;
  const int64_t groups = site.node().attributes.integer("group", 1);
  const Tensor& weight = *site.operand(1).constant;
  const int64_t outputs = weight.shape()[0] / groups, inputs = weight.shape()[1];
  const bool depthwise = outputs == 1 && inputs == 1;
  if (groups < kManyGroups || outputs > most || depthwise) return false;
  const bool one_copy = (inputs > 1 && !has_convolution_before(site)) ||
                        (outputs > 1 && !has_convolution_behind(site));
  if (2 * outputs > most && one_copy) return false;
  const Node node = site.node();
  Channels source;  // from group by group to the groups innermost
  for (int64_t c = 0; c < outputs * groups; ++c)
    source.push_back(c % groups * outputs + c / groups);
  Node inner = node;
  inner.type = "hone.ConvGroupsInner";
  inner.op = find_op(inner.type, kMaxOpset);
  inner.attributes.set("kernel_shape", Shape(weight.shape().begin() + 2, weight.shape().end()));
  Shape shape = weight.shape();
  shape[0] = groups;
  shape.insert(shape.begin(), outputs);
  HONE_RETURN_IF_ERROR(replace_node(site, [&](ExpandContext& c) {
    const auto shuffle = [&](ValueId x, int64_t rows, int64_t columns) {
      return columns == 1 ? x : c.add(kShuffle, {x}, {{"rows", Attribute(rows)}});
    };
    std::vector<ValueId> operands = permuted_weights(c, node, 0, source);
    operands[0] = c.constant(c.constant_of(operands[0])->reshaped(shape));
    operands.insert(operands.begin(), shuffle(node.inputs[0], groups, inputs));
    const ValueId y = c.add_like(inner, operands);
    return outputs == 1 ? y : shuffle(y, outputs, groups);
  }));
  return true;
}

}  // namespace

Status groups_inner(Graph& graph, const PassOptions& options) {
  const int lanes = options.lanes;
  const auto few = lanes >= 16 ? few_channels<8> : lanes >= 8 ? few_channels<4> : few_channels<2>;
  const Rule rules[] = {{"find_shuffle", find_shuffle},
                        {"few_channels", few},
                        {"shuffle_after", shuffle_after},
                        {"shuffle_last", shuffle_last},
                        {"shuffle_before", shuffle_before}};
  return rewrite(graph, rules);
}

}  // namespace hone::graph
