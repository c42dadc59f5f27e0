#include "hone/graph/onnx_node.h"

#include <map>

#include "hone/graph/ops/registry.h"

namespace hone::graph {

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

std::string node_name(const onnx::NodeProto& node) {
  if (!node.name().empty()) return printable(node.name());
  for (const std::string& output : node.output()) {
    if (!output.empty()) return printable(output);
  }
  return printable(node.op_type());
}

bool is_default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

namespace {

using NodesByOperator = std::map<std::string, std::vector<std::string>>;

void find_unknown(const onnx::GraphProto& graph, int opset, NodesByOperator& unknown) {
  for (const auto& node : graph.node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.type() == onnx::AttributeProto::GRAPH)
        find_unknown(attribute.g(), opset, unknown);
    }
    const bool known = is_default_domain(node.domain()) && !node.op_type().starts_with("hone.") &&
                       find_op(node.op_type(), opset) != nullptr;
    if (known) continue;
    const std::string domain = is_default_domain(node.domain()) ? "" : node.domain() + ".";
    unknown[domain + node.op_type()].push_back(fmt::format("'{}'", node_name(node)));
  }
}

}  // namespace

Status check_operators(const onnx::GraphProto& graph, int opset, const std::string& file) {
  NodesByOperator unknown;
  find_unknown(graph, opset, unknown);
  if (unknown.empty()) return ok_status();
  std::string list;
  for (const auto& [op, nodes] : unknown) {
    list += fmt::format("{}{} ({} {})", list.empty() ? "" : "; ", op,
                        nodes.size() == 1 ? "node" : "nodes", fmt::join(nodes, ", "));
  }
  return error(Code::kUnsupported, "{}: {} not supported in opset {}: {}", file,
               unknown.size() == 1 ? "this operator is" : "these operators are", opset, list);
}

Status read_attributes(const onnx::NodeProto& from, const TensorSource& source, Node& node) {
  const std::string where = fmt::format("{}: node '{}' ({})", source.file, node.name, node.type);
  for (const onnx::AttributeProto& a : from.attribute()) {
    if (!a.ref_attr_name().empty())
      return error(Code::kUnsupported, "{} is part of a function", where);
    if (node.attributes.has(a.name()))
      return invalid("{} has the attribute '{}' twice", where, a.name());
    using A = onnx::AttributeProto;
    switch (a.type()) {
      case A::INT: node.attributes.set(a.name(), static_cast<int64_t>(a.i())); break;
      case A::FLOAT: node.attributes.set(a.name(), a.f()); break;
      case A::STRING: node.attributes.set(a.name(), a.s()); break;
      case A::INTS:
        node.attributes.set(a.name(), std::vector<int64_t>(a.ints().begin(), a.ints().end()));
        break;
      case A::FLOATS:
        node.attributes.set(a.name(), std::vector<float>(a.floats().begin(), a.floats().end()));
        break;
      case A::STRINGS:
        node.attributes.set(a.name(),
                            std::vector<std::string>(a.strings().begin(), a.strings().end()));
        break;
      case A::TENSOR: {
        HONE_ASSIGN_OR_RETURN(Tensor tensor,
                              read_tensor(a.t(), "node '" + node.name + "', attribute", source));
        node.attributes.set(a.name(), std::move(tensor));
        break;
      }
      case A::GRAPH: node.attributes.set(a.name(), Subgraph{}); break;  // read_subgraphs
      default:
        return error(Code::kUnsupported, "{}: attribute '{}' has type {}", where, a.name(),
                     static_cast<int>(a.type()));
    }
  }
  return ok_status();
}

}  // namespace hone::graph
