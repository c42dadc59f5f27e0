#include "hone/cost/net/builder.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hone/base/assert.h"

namespace hone::cost::net {
namespace {

constexpr int64_t kBatch = -1;

std::string text(const Dims& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

#define HONE_ASSERT_FITS(condition, ...) HONE_ASSERT(condition, fmt::format(__VA_ARGS__).c_str())

bool has_batch(const Dims& dims) { return !dims.empty() && dims.front() == kBatch; }

// Broadcasts as numpy does, except that a batch is never broadcast.
Dims broadcast(std::string_view what, const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    HONE_ASSERT_FITS(x == y || x == 1 || y == 1, "{}: {} does not fit {}", what, text(a), text(b));
    dims[i] = x == 1 ? y : x;
    HONE_ASSERT_FITS(dims[i] != kBatch || i == 0, "{}: the batch of {} meets another axis of {}",
                     what, text(a), text(b));
  }
  return dims;
}

}  // namespace

NetBuilder::NetBuilder(std::string family, NetInputs inputs) : available_(std::move(inputs)) {
  net_.family = std::move(family);
}

NetBuilder::NetBuilder(Net net)
    : available_(net.inputs),
      net_(std::move(net)),
      scalars_(static_cast<int>(net_.constants.size())) {}

const Dims& NetBuilder::dims(Value value) const {
  HONE_ASSERT(value.node >= 0 && value.node < std::ssize(net_.nodes), "not a value of this net");
  return net_.nodes[static_cast<size_t>(value.node)].dims;
}

Value NetBuilder::append(Node node) {
  for (const int input : node.inputs)
    HONE_ASSERT(input >= 0 && input < std::ssize(net_.nodes), "not a value of this net");
  net_.nodes.push_back(std::move(node));
  return {static_cast<int>(net_.nodes.size()) - 1};
}

Value NetBuilder::input(std::string_view name) {
  for (size_t i = 0; i < net_.nodes.size(); ++i) {
    const Node& node = net_.nodes[i];
    if (node.op == Op::kInput && net_.inputs[static_cast<size_t>(node.source)].name == name)
      return {static_cast<int>(i)};
  }
  for (const NetInput& input : available_) {
    if (input.name != name) continue;
    net_.inputs.push_back(input);
    Dims dims = {kBatch};
    dims.insert(dims.end(), input.dims.begin(), input.dims.end());
    return append({.op = Op::kInput,
                   .dims = std::move(dims),
                   .source = static_cast<int>(net_.inputs.size()) - 1});
  }
  HONE_ASSERT_FITS(false, "there is no input '{}'", name);
  return {};
}

Value NetBuilder::parameter(std::string name, Dims dims, Initial initial) {
  HONE_ASSERT_FITS(net_.find_parameter(name) == nullptr, "two parameters '{}'", name);
  HONE_ASSERT_FITS(std::all_of(dims.begin(), dims.end(), [](int64_t size) { return size > 0; }),
                   "parameter '{}': {}, expected sizes above 0", name, text(dims));
  net_.parameters.push_back({std::move(name), dims, initial, {}});
  return append({.op = Op::kParameter,
                 .dims = std::move(dims),
                 .source = static_cast<int>(net_.parameters.size()) - 1});
}

Value NetBuilder::constant(std::string name, Dims dims, std::vector<float> values) {
  HONE_ASSERT_FITS(net_.find_constant(name) == nullptr, "two constants '{}'", name);
  HONE_ASSERT_FITS(element_count(dims) == std::ssize(values), "constant '{}': {} values for {}",
                   name, values.size(), text(dims));
  net_.constants.push_back({std::move(name), dims, std::move(values)});
  return append({.op = Op::kConstant,
                 .dims = std::move(dims),
                 .source = static_cast<int>(net_.constants.size()) - 1});
}

Value NetBuilder::scalar(double value) {
  return constant(fmt::format("scalar{}", scalars_++), {1}, {static_cast<float>(value)});
}

Value NetBuilder::matmul(Value a, Value b) {
  const Dims &x = dims(a), &y = dims(b);
  HONE_ASSERT_FITS(x.size() >= 2 && y.size() >= 2, "matmul: {} by {}, expected matrices", text(x),
                   text(y));
  HONE_ASSERT_FITS(x.back() == y[y.size() - 2] && x.back() > 0, "matmul: {} does not fit {}",
                   text(x), text(y));
  HONE_ASSERT_FITS(y.size() == 2 || has_batch(x) == has_batch(y),
                   "matmul: {} by {}, expected a batch on both sides", text(x), text(y));
  HONE_ASSERT_FITS(!(y.size() == 2 && has_batch(y)), "matmul: {} has a batch for rows", text(y));
  Dims result = broadcast("matmul", Dims(x.begin(), x.end() - 2), Dims(y.begin(), y.end() - 2));
  result.push_back(x[x.size() - 2]);
  result.push_back(y.back());
  return append({.op = Op::kMatmul, .inputs = {a.node, b.node}, .dims = std::move(result)});
}

Value NetBuilder::elementwise(Op op, Value a, Value b) {
  return append(
      {.op = op, .inputs = {a.node, b.node}, .dims = broadcast(op_name(op), dims(a), dims(b))});
}

Value NetBuilder::same(Op op, Value a) {
  HONE_ASSERT_FITS(op != Op::kSoftmax || dims(a).back() > 0, "softmax over the batch of {}",
                   text(dims(a)));
  return append({.op = op, .inputs = {a.node}, .dims = dims(a)});
}

Value NetBuilder::clip(Value a, double lowest, double highest) {
  HONE_ASSERT(lowest <= highest, "clip to nothing");
  return append(
      {.op = Op::kClip, .inputs = {a.node}, .dims = dims(a), .numbers = {lowest, highest}});
}

Value NetBuilder::dropout(Value a, double p) {
  HONE_ASSERT_FITS(p >= 0 && p < 1, "dropout of {}, expected 0 to 1", p);
  if (p == 0) return a;
  return append({.op = Op::kDropout, .inputs = {a.node}, .dims = dims(a), .numbers = {p}});
}

Value NetBuilder::layer_norm(Value a, Value gamma, Value beta, double epsilon) {
  const Dims expected = {dims(a).back()};
  HONE_ASSERT_FITS(dims(gamma) == expected && dims(beta) == expected && expected[0] > 0,
                   "layer_norm: {} with {} and {}", text(dims(a)), text(dims(gamma)),
                   text(dims(beta)));
  return append({.op = Op::kLayerNorm,
                 .inputs = {a.node, gamma.node, beta.node},
                 .dims = dims(a),
                 .numbers = {epsilon}});
}

Value NetBuilder::transpose(Value a, std::vector<int64_t> permutation) {
  const Dims& from = dims(a);
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool valid = permutation.size() == from.size();
  for (size_t i = 0; i < sorted.size(); ++i) valid = valid && sorted[i] == static_cast<int64_t>(i);
  HONE_ASSERT_FITS(valid, "transpose: {} by {}", text(from), text(permutation));
  HONE_ASSERT_FITS(!has_batch(from) || permutation[0] == 0, "transpose: the batch of {} moves",
                   text(from));
  Dims result;
  for (const int64_t axis : permutation) result.push_back(from[static_cast<size_t>(axis)]);
  return append({.op = Op::kTranspose,
                 .inputs = {a.node},
                 .dims = std::move(result),
                 .integers = std::move(permutation)});
}

Value NetBuilder::reshape(Value a, Dims to) {
  const Dims& from = dims(a);
  HONE_ASSERT_FITS(has_batch(from) && has_batch(to) && element_count(from) == element_count(to) &&
                       std::count(to.begin(), to.end(), kBatch) == 1,
                   "reshape: {} to {}", text(from), text(to));
  return append({.op = Op::kReshape, .inputs = {a.node}, .dims = to, .integers = to});
}

Value NetBuilder::reduce(Op op, Value a, int axis, bool keep) {
  Dims result = dims(a);
  HONE_ASSERT_FITS(axis >= 1 && axis < std::ssize(result), "{} of {} over axis {}", op_name(op),
                   text(result), axis);
  if (keep)
    result[static_cast<size_t>(axis)] = 1;
  else
    result.erase(result.begin() + axis);
  return append(
      {.op = op, .inputs = {a.node}, .dims = std::move(result), .integers = {axis, keep ? 1 : 0}});
}

Value NetBuilder::reduce_sum(Value a, int axis, bool keep) {
  return reduce(Op::kReduceSum, a, axis, keep);
}
Value NetBuilder::reduce_mean(Value a, int axis, bool keep) {
  return reduce(Op::kReduceMean, a, axis, keep);
}
Value NetBuilder::reduce_max(Value a, int axis, bool keep) {
  return reduce(Op::kReduceMax, a, axis, keep);
}

Value NetBuilder::concat(const std::vector<Value>& parts, int axis) {
  HONE_ASSERT(!parts.empty(), "concat of nothing");
  if (parts.size() == 1) return parts[0];
  Node node{.op = Op::kConcat, .dims = dims(parts[0]), .integers = {axis}};
  HONE_ASSERT_FITS(axis >= 1 && axis < std::ssize(node.dims), "concat of {} along axis {}",
                   text(node.dims), axis);
  const auto place = static_cast<size_t>(axis);
  node.dims[place] = 0;
  for (const Value part : parts) {
    Dims one = dims(part);
    HONE_ASSERT_FITS(one.size() == node.dims.size(), "concat: {} beside {}", text(one),
                     text(dims(parts[0])));
    node.dims[place] += one[place];
    one[place] = node.dims[place];
    HONE_ASSERT_FITS(one == node.dims, "concat: {} beside {}", text(dims(part)),
                     text(dims(parts[0])));
    node.inputs.push_back(part.node);
  }
  return append(std::move(node));
}

Value NetBuilder::slice(Value a, int axis, int64_t begin, int64_t end) {
  Dims result = dims(a);
  HONE_ASSERT_FITS(axis >= 1 && axis < std::ssize(result) && begin >= 0 && begin < end &&
                       end <= result[static_cast<size_t>(axis)],
                   "slice: {} to {} along axis {} of {}", begin, end, axis, text(result));
  result[static_cast<size_t>(axis)] = end - begin;
  return append({.op = Op::kSlice,
                 .inputs = {a.node},
                 .dims = std::move(result),
                 .integers = {axis, begin, end}});
}

void NetBuilder::output(std::string name, Value value) {
  HONE_ASSERT_FITS(net_.find_output(name) == nullptr, "two outputs '{}'", name);
  HONE_ASSERT_FITS(has_batch(dims(value)), "output '{}' of {} has no batch", name,
                   text(dims(value)));
  net_.outputs.push_back({std::move(name), value.node});
}

Net NetBuilder::finish() {
  const NetOutput* score = net_.find_output("score");
  HONE_ASSERT(score != nullptr, "a net without a score");
  HONE_ASSERT_FITS((dims({score->node}) == Dims{kBatch, 1}), "the score is {}, expected [-1, 1]",
                   text(dims({score->node})));
  return std::move(net_);
}

}  // namespace hone::cost::net
