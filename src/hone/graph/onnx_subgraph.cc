#include "hone/graph/onnx_subgraph.h"

#include <algorithm>

namespace hone::graph {
namespace {

class BodyReader {
 public:
  // `capture` gives the operand of the holding node that stands for an outer value.
  using Capture = std::function<std::optional<size_t>(const std::string& name)>;
  BodyReader(const TensorSource& source, int opset, std::string where, Capture capture)
      : source_(source), opset_(opset), where_(std::move(where)), capture_(std::move(capture)) {}

  Result<Subgraph> run(const onnx::GraphProto& proto) {
    body_.name = proto.name();
    for (const onnx::TensorProto& tensor : proto.initializer()) {
      HONE_ASSIGN_OR_RETURN(Tensor data, read_tensor(tensor, "initializer", source_));
      HONE_ASSIGN_OR_RETURN(const int local, define(tensor.name()));
      body_.constants.emplace_back(local, std::move(data));
    }
    for (const onnx::ValueInfoProto& input : proto.input()) {
      if (locals_.contains(input.name())) continue;  // an initializer declared as input, too
      HONE_ASSIGN_OR_RETURN(const int local, define(input.name()));
      body_.inputs.push_back(local);
    }
    for (const onnx::NodeProto& node : proto.node()) HONE_RETURN_IF_ERROR(read_node(node));
    for (const onnx::ValueInfoProto& output : proto.output()) {
      const auto local = find(output.name());
      if (!local) return fail("the output '{}' is computed by no node", output.name());
      body_.outputs.push_back(*local);
      if (output.type().tensor_type().has_shape())
        body_.declared[*local] = declared_shape(output.type().tensor_type().shape());
    }
    return Subgraph{std::make_shared<const SubgraphBody>(std::move(body_))};
  }

 private:
  template <typename... Args>
  [[nodiscard]] Status fail(fmt::format_string<Args...> format, Args&&... args) const {
    return invalid("{}{}", where_, fmt::format(format, std::forward<Args>(args)...));
  }

  static Shape declared_shape(const onnx::TensorShapeProto& proto) {
    Shape shape;
    for (const auto& dim : proto.dim())
      shape.push_back(dim.has_dim_value() ? dim.dim_value() : int64_t{-1});
    return shape;
  }

  Result<int> define(const std::string& name) {
    if (name.empty()) return fail("a value without a name");
    const int local = static_cast<int>(body_.names.size());
    if (!locals_.emplace(name, local).second) return fail("two values are named '{}'", name);
    body_.names.push_back(name);
    return local;
  }

  // A value of the body, or one of the graph around it, which becomes an operand of the holder.
  std::optional<int> find(const std::string& name) {
    if (const auto it = locals_.find(name); it != locals_.end()) return it->second;
    const std::optional<size_t> operand = capture_(name);
    if (!operand) return std::nullopt;
    const int local = static_cast<int>(body_.names.size());
    locals_.emplace(name, local);
    body_.names.push_back(name);
    body_.captures.emplace_back(local, *operand);
    return local;
  }

  Status read_node(const onnx::NodeProto& from) {
    Node node;
    const NamedOperator named = find_operator(from, opset_);
    node.type = named.type;
    node.op = named.op;
    node.opset = named.opset;
    node.name = node_name(from);
    HONE_RETURN_IF_ERROR(read_attributes(from, source_, node));
    for (const std::string& input : from.input()) {
      node.inputs.push_back(kNoValue);
      if (input.empty()) continue;
      const auto local = find(input);
      if (!local)
        return fail("node '{}' ({}) reads '{}', which nothing defines before it", node.name,
                    node.type, input);
      node.inputs.back() = *local;
    }
    while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    const OuterValue around = [this](const std::string& name) -> std::optional<ValueId> {
      return find(name);
    };
    HONE_RETURN_IF_ERROR(read_subgraphs(from, source_, opset_, around, node));
    for (const std::string& output : from.output()) {
      node.outputs.push_back(kNoValue);
      if (output.empty()) continue;
      HONE_ASSIGN_OR_RETURN(node.outputs.back(), define(output));
    }
    while (!node.outputs.empty() && node.outputs.back() == kNoValue) node.outputs.pop_back();
    if (node.outputs.empty()) return fail("node '{}' ({}) has no result", node.name, node.type);
    body_.nodes.push_back(std::move(node));
    return ok_status();
  }

  const TensorSource& source_;
  int opset_;
  std::string where_;
  Capture capture_;
  SubgraphBody body_;
  std::map<std::string, int> locals_;
};

}  // namespace

Status read_subgraphs(const onnx::NodeProto& from, const TensorSource& source, int opset,
                      const OuterValue& outer, Node& node) {
  // Values that bodies read come after the node's own operands, of which a Loop has at least the
  // number of iterations and the condition, given or not.
  const bool is_loop = from.op_type() == "Loop";
  if (is_loop && node.inputs.size() < 2) node.inputs.resize(2, kNoValue);
  std::map<std::string, size_t> captured;
  const auto capture = [&](const std::string& name) -> std::optional<size_t> {
    if (const auto it = captured.find(name); it != captured.end()) return it->second;
    const std::optional<ValueId> value = outer(name);
    if (!value) return std::nullopt;
    node.inputs.push_back(*value);
    return captured.emplace(name, node.inputs.size() - 1).first->second;
  };
  for (const onnx::AttributeProto& attribute : from.attribute()) {
    if (attribute.type() != onnx::AttributeProto::GRAPH) continue;
    const std::string where = fmt::format("{}: node '{}' ({}), {}: ", source.file, node.name,
                                          node.type, attribute.name());
    HONE_ASSIGN_OR_RETURN(Subgraph body,
                          BodyReader(source, opset, where, capture).run(attribute.g()));
    node.attributes.set(attribute.name(), std::move(body));
  }
  return ok_status();
}

}  // namespace hone::graph
