#include "hone/graph/onnx_node.h"

#include <charconv>
#include <map>

#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"
#include "hone/graph/some_names.h"

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

namespace {

constexpr std::string_view kDefaultDomain = "ai.onnx", kWithOpset = "ai.onnx@";

// The opset that set_node_opset() wrote; 0 if there is none.
int written_opset(const std::string& domain) {
  int opset = 0;
  if (!domain.starts_with(kWithOpset)) return 0;
  const char* end = domain.data() + domain.size();
  const auto [rest, failed] = std::from_chars(domain.data() + kWithOpset.size(), end, opset);
  return failed == std::errc() && rest == end && opset >= kMinOpset && opset <= kMaxOpset ? opset
                                                                                          : 0;
}

}  // namespace

bool is_default_domain(const std::string& domain) {
  return domain.empty() || domain == kDefaultDomain || written_opset(domain) != 0;
}

void set_node_opset(onnx::NodeProto& node, int opset) {
  node.set_domain(opset == 0 ? "" : fmt::format("{}{}", kWithOpset, opset));
}

NamedOperator find_operator(const onnx::NodeProto& node, int opset) {
  const std::string& type = node.op_type();
  if (!is_default_domain(node.domain())) {
    NamedOperator found = {.type = node.domain() + "." + type};
    found.op = find_op(found.type, opset);
    return found;
  }
  NamedOperator found = {.type = type, .opset = written_opset(node.domain())};
  if (type.find('.') == std::string::npos)
    found.op = find_op(type, found.opset == 0 ? opset : found.opset);
  return found;
}

namespace {

// Returns what to do about an operator that will not be supported.
std::string way_out(const std::string& type) {
  if (type == "ai.onnx.ml.ZipMap")
    return ", which makes maps: take its operand as the output, as skl2onnx does with zipmap=False";
  if (type.starts_with("com.microsoft.nchwc.") || type.starts_with("com.ms.internal.nhwc."))
    return ", in a memory order of one machine: let ONNX Runtime optimise at level extended, not all";
  if (type == "ai.onnx.ml.DictVectorizer" || type == "ai.onnx.ml.CastMap")
    return ", which reads maps: let the model begin with its result, a tensor";
  if (type == "ai.onnx.ml.CategoryMapper" || type.starts_with("String") || type == "RegexFullMatch")
    return ", which reads or makes texts: encode them before the model, as numbers";
  return "";
}

using NodesByOperator = std::map<std::string, std::vector<std::string>>;

void find_unknown(const onnx::GraphProto& graph, int opset, NodesByOperator& unknown) {
  for (const auto& node : graph.node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.type() == onnx::AttributeProto::GRAPH)
        find_unknown(attribute.g(), opset, unknown);
    }
    const NamedOperator named = find_operator(node, opset);
    if (named.op != nullptr && !named.type.starts_with("hone.")) continue;
    const std::string own = named.opset == 0 ? "" : fmt::format(" of opset {}", named.opset);
    unknown[named.type + own + way_out(named.type)].push_back(node_name(node));
  }
}

}  // namespace

Status check_operators(const onnx::GraphProto& graph, int opset, const std::string& file) {
  NodesByOperator unknown;
  find_unknown(graph, opset, unknown);
  if (unknown.empty()) return ok_status();
  std::string list;
  for (const auto& [op, nodes] : unknown) {
    list += fmt::format("{}{} ({})", list.empty() ? "" : "; ", op, some_nodes(nodes));
  }
  return error(Code::kUnsupported, "{}: {} not supported in opset {}: {}", file,
               unknown.size() == 1 ? "this operator is" : "these operators are", opset, list);
}

Status read_attributes(const onnx::NodeProto& from, const TensorSource& source, Node& node) {
  const std::string where = fmt::format("{}: node '{}' ({})", source.file, node.name, node.type);
  for (const onnx::AttributeProto& a : from.attribute()) {
    if (!a.ref_attr_name().empty())
      return invalid("{} has the attribute '{}' of a function's call, and is in no function", where,
                     a.ref_attr_name());
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
      case A::TYPE_PROTO:  // what an Optional without a value would hold
        if (node.type == "Optional") break;
        return invalid("{}: attribute '{}' is a type", where, a.name());
      case A::GRAPH: node.attributes.set(a.name(), Subgraph{}); break;  // read_subgraphs
      default:
        return error(Code::kUnsupported, "{}: attribute '{}' has type {}", where, a.name(),
                     A::AttributeType_Name(a.type()));
    }
  }
  return ok_status();
}

}  // namespace hone::graph
