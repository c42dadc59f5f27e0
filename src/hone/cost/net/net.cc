#include "hone/cost/net/net.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "hone/base/rng.h"

namespace hone::cost::net {
namespace {

constexpr std::array<std::string_view, kNumOps> kNames = {
    "input",   "parameter",  "constant",  "matmul",  "add",        "sub",
    "mul",     "div",        "relu",      "sigmoid", "tanh",       "exp",
    "softmax", "layer_norm", "transpose", "reshape", "reduce_sum", "reduce_mean",
    "concat",  "slice",      "dropout",   "greater", "clip",       "reduce_max"};

template <typename List>
auto find(List& list, std::string_view name) -> decltype(list.data()) {
  const auto place =
      std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.name == name; });
  return place == list.end() ? nullptr : &*place;
}

// Returns the name of a node where another one reads it.
std::string reference(const Net& net, int node) {
  const Node& from = net.nodes[node];
  if (from.op == Op::kInput) return net.inputs[from.source].name;
  if (from.op == Op::kParameter) return net.parameters[from.source].name;
  if (from.op == Op::kConstant) return net.constants[from.source].name;
  return fmt::format("%{}", node);
}

void fill(Parameter& parameter, uint64_t seed) {
  const Dims& dims = parameter.dims;
  parameter.values.resize(static_cast<size_t>(element_count(dims)));
  Rng rng(hash_combine(seed, hash_string(parameter.name)));
  const double scale = parameter.initial.scale;
  switch (parameter.initial.fill) {
    case Fill::kZeros:
    case Fill::kOnes:
      std::fill(parameter.values.begin(), parameter.values.end(),
                parameter.initial.fill == Fill::kOnes ? 1.0F : 0.0F);
      return;
    case Fill::kXavier: {  // weights are [from, to]
      const double fans = static_cast<double>(dims.front() + dims.back());
      const double limit = scale * std::sqrt(6 / fans);
      for (float& value : parameter.values)
        value = static_cast<float>((2 * rng.uniform() - 1) * limit);
      return;
    }
    case Fill::kNormal:
      for (float& value : parameter.values) value = static_cast<float>(scale * rng.normal());
      return;
  }
}

}  // namespace

std::string_view op_name(Op op) { return kNames[static_cast<size_t>(op)]; }

int64_t element_count(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t size : dims) count *= size < 0 ? 1 : size;
  return count;
}

int64_t Net::num_weights() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters) count += element_count(parameter.dims);
  return count;
}

const NetOutput* Net::find_output(std::string_view name) const { return find(outputs, name); }
Parameter* Net::find_parameter(std::string_view name) { return find(parameters, name); }
Constant* Net::find_constant(std::string_view name) { return find(constants, name); }

void initialise(Net& net, uint64_t seed) {
  for (Parameter& parameter : net.parameters) fill(parameter, seed);
}

std::string print(const Net& net) {
  std::string text = fmt::format("net {}\n", net.family);
  const auto dims = [](const Dims& d) { return fmt::format("[{}]", fmt::join(d, ", ")); };
  for (const NetInput& input : net.inputs)
    text += fmt::format("input {} {}\n", input.name, dims(input.dims));
  for (const Constant& constant : net.constants)
    text += fmt::format("constant {} {}\n", constant.name, dims(constant.dims));
  for (const Parameter& parameter : net.parameters)
    text += fmt::format("parameter {} {}\n", parameter.name, dims(parameter.dims));
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const Node& node = net.nodes[i];
    if (node.source >= 0) continue;
    std::vector<std::string> arguments;
    for (const int input : node.inputs) arguments.push_back(reference(net, input));
    for (const int64_t integer : node.integers) arguments.push_back(std::to_string(integer));
    for (const double number : node.numbers) arguments.push_back(fmt::format("{}", number));
    text += fmt::format("%{} = {}({}) {}\n", i, op_name(node.op), fmt::join(arguments, ", "),
                        dims(node.dims));
  }
  for (const NetOutput& output : net.outputs)
    text += fmt::format("output {} {}\n", output.name, reference(net, output.node));
  return text;
}

}  // namespace hone::cost::net
