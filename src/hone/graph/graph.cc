#include "hone/graph/graph.h"

#include <algorithm>
#include <queue>
#include <set>

#include "hone/base/printable.h"
#include "hone/graph/op.h"

namespace hone::graph {

bool Buffer::has_border() const {
  return std::any_of(border.begin(), border.end(), [](int64_t b) { return b != 0; });
}

ValueId Graph::add_value(std::string name, DType dtype, Shape shape) {
  Value value;
  value.name = std::move(name);
  value.dtype = dtype;
  value.shape = std::move(shape);
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::add_constant(std::string name, Tensor tensor) {
  const ValueId id = add_value(std::move(name), tensor.dtype(), tensor.shape());
  value(id).constant = std::move(tensor);
  return id;
}

bool Graph::is_input(ValueId id) const {
  return std::find(inputs.begin(), inputs.end(), id) != inputs.end();
}

bool Graph::is_output(ValueId id) const {
  return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
}

Uses::Uses(const Graph& graph)
    : readers(graph.values.size()),
      producer(graph.values.size(), -1),
      output(graph.values.size(), false) {
  for (const ValueId id : graph.outputs) output[static_cast<size_t>(id)] = true;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId in : graph.nodes[i].inputs) {
      if (in != kNoValue) readers[static_cast<size_t>(in)].push_back(static_cast<int>(i));
    }
    for (const ValueId out : graph.nodes[i].outputs) {
      if (out != kNoValue) producer[static_cast<size_t>(out)] = static_cast<int>(i);
    }
  }
}

Status sort_nodes(Graph& graph) {
  const Uses uses(graph);
  const size_t count = graph.nodes.size();
  std::vector<int> waiting(count, 0);
  for (size_t i = 0; i < count; ++i) {
    for (const ValueId in : graph.nodes[i].inputs) {
      if (in != kNoValue && uses.producer[static_cast<size_t>(in)] >= 0) ++waiting[i];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) ready.push(static_cast<int>(i));
  }
  std::vector<Node> sorted;
  sorted.reserve(count);
  std::vector<bool> done(count, false);
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    done[static_cast<size_t>(next)] = true;
    for (const ValueId out : graph.nodes[static_cast<size_t>(next)].outputs) {
      if (out == kNoValue) continue;
      for (const int reader : uses.readers[static_cast<size_t>(out)]) {
        if (--waiting[static_cast<size_t>(reader)] == 0) ready.push(reader);
      }
    }
    sorted.push_back(std::move(graph.nodes[static_cast<size_t>(next)]));
  }
  if (sorted.size() != count) {
    const size_t stuck =
        static_cast<size_t>(std::find(done.begin(), done.end(), false) - done.begin());
    return invalid("{}: node '{}' ({}) depends on its own result: the graph has a cycle",
                   graph.file, graph.nodes[stuck].name, graph.nodes[stuck].type);
  }
  graph.nodes = std::move(sorted);
  return ok_status();
}

namespace {

// The nodes and values that the outputs need.
struct Needed {
  std::vector<bool> nodes, values;
};
Needed find_needed(const Graph& graph) {
  std::vector<bool> wanted(graph.values.size(), false);
  for (const ValueId id : graph.outputs) wanted[static_cast<size_t>(id)] = true;
  std::vector<bool> keep(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    keep[i] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId out) {
      return out != kNoValue && wanted[static_cast<size_t>(out)];
    });
    if (!keep[i]) continue;
    for (const ValueId in : node.inputs) {
      if (in != kNoValue) wanted[static_cast<size_t>(in)] = true;
    }
  }
  return {std::move(keep), std::move(wanted)};
}

}  // namespace

void remove_dead_nodes(Graph& graph) {
  const auto [keep, wanted] = find_needed(graph);
  size_t kept = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!keep[i]) continue;
    if (kept != i) graph.nodes[kept] = std::move(graph.nodes[i]);
    ++kept;
  }
  graph.nodes.resize(kept);
  // Free what no node reads any more: folded weights may be large.
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!wanted[i]) graph.values[i].constant.reset();
  }
}

Status verify(const Graph& graph) {
  const auto count = static_cast<ValueId>(graph.values.size());
  std::vector<int> defined(graph.values.size(), 0);
  for (const ValueId id : graph.inputs) {
    if (id < 0 || id >= count) return error(Code::kInternal, "a graph input is no value");
    ++defined[static_cast<size_t>(id)];
  }
  for (ValueId id = 0; id < count; ++id) {
    const Value& v = graph.value(id);
    if (!v.constant) continue;
    ++defined[static_cast<size_t>(id)];
    if (v.constant->shape() != v.shape || v.constant->dtype() != v.dtype) {
      return error(Code::kInternal, "the constant '{}' is {} {}, its value {} {}", v.name,
                   dtype_name(v.constant->dtype()), to_string(v.constant->shape()),
                   dtype_name(v.dtype), to_string(v.shape));
    }
  }
  std::set<std::string> names;
  for (const Node& node : graph.nodes) {
    if (!names.insert(node.name).second)
      return error(Code::kInternal, "two nodes are named '{}'", node.name);
    if (node.op == nullptr) return error(Code::kInternal, "node '{}' has no operator", node.name);
    for (const ValueId in : node.inputs) {
      if (in == kNoValue) continue;
      if (in < 0 || in >= count || defined[static_cast<size_t>(in)] == 0) {
        return error(Code::kInternal, "node '{}' ({}) reads a value that is not defined before it",
                     node.name, node.type);
      }
    }
    for (const ValueId out : node.outputs) {
      if (out == kNoValue) continue;
      if (out < 0 || out >= count || defined[static_cast<size_t>(out)]++ != 0) {
        return error(Code::kInternal, "node '{}' ({}) defines a value a second time", node.name,
                     node.type);
      }
    }
  }
  for (const ValueId id : graph.outputs) {
    if (id < 0 || id >= count || defined[static_cast<size_t>(id)] == 0) {
      return error(Code::kInternal, "a graph output is not defined");
    }
  }
  if (graph.outputs.size() != graph.output_names.size()) {
    return error(Code::kInternal, "{} outputs have {} names", graph.outputs.size(),
                 graph.output_names.size());
  }
  return ok_status();
}

namespace {

std::string describe_value(const Graph& graph, ValueId id) {
  if (id == kNoValue) return "-";
  const Value& v = graph.value(id);
  std::string text =
      fmt::format("{}{}{}", v.constant ? "const " : "", printable(v.name), to_string(v.shape));
  if (v.dtype != DType::kF32) text += fmt::format(":{}", dtype_name(v.dtype));
  bool plain = true;
  for (size_t i = 0; i < v.order.size(); ++i) plain &= v.order[i] == static_cast<int>(i);
  if (!plain) text += fmt::format("@{}", fmt::join(v.order, ""));
  if (v.storage.buffer >= 0) {
    text += fmt::format("#{}", v.storage.buffer);
    if (graph.buffers[static_cast<size_t>(v.storage.buffer)].has_border()) {
      text +=
          fmt::format("+{}-{}", to_string(v.storage.border_low), to_string(v.storage.border_high));
    }
  }
  return text;
}

}  // namespace

std::string describe(const Graph& graph) {
  std::string text = fmt::format("graph {} (opset {}), {} nodes\n", printable(graph.name),
                                 graph.opset, graph.nodes.size());
  for (const ValueId id : graph.inputs)
    text += fmt::format("input  {}\n", describe_value(graph, id));
  for (const Node& node : graph.nodes) {
    text += fmt::format("  {} = {}(",
                        describe_value(graph, node.outputs.empty() ? kNoValue : node.outputs[0]),
                        node.type);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      text += fmt::format("{}{}", i ? ", " : "", describe_value(graph, node.inputs[i]));
    }
    text += ")\n";
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    text += fmt::format("output {} = {}\n", printable(graph.output_names[i]),
                        describe_value(graph, graph.outputs[i]));
  }
  return text;
}

}  // namespace hone::graph
