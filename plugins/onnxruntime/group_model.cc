#include "group_model.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace hone::ort {
namespace {

constexpr int64_t kIrVersion = 8;
// Smaller initializers are written into the file, where the shapes among them belong.
constexpr int64_t kMostFileBytes = 4096;

// Adds a value of the graph; without `with_shape`, what it is follows from the nodes.
void add_value(const GraphValue& value, const std::string& name, bool with_shape,
               onnx::ValueInfoProto* proto) {
  proto->set_name(name);
  auto* tensor = proto->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(value.dtype);
  if (!with_shape) return;
  auto* shape = tensor->mutable_shape();
  for (const GraphDim& dim : value.dims) {
    auto* out = shape->add_dim();
    if (dim.extent >= 0) out->set_dim_value(dim.extent);
    if (dim.extent < 0 && !dim.symbol.empty()) out->set_dim_param(dim.symbol);
  }
}

void add_attribute(const NodeAttribute& attribute, onnx::AttributeProto* proto) {
  using onnx::AttributeProto;
  proto->set_name(attribute.name);
  switch (attribute.type) {
    case OrtAttrType::kInt:
      proto->set_type(AttributeProto::INT);
      proto->set_i(attribute.ints.empty() ? 0 : attribute.ints[0]);
      break;
    case OrtAttrType::kInts:
      proto->set_type(AttributeProto::INTS);
      proto->mutable_ints()->Add(attribute.ints.begin(), attribute.ints.end());
      break;
    case OrtAttrType::kFloat:
      proto->set_type(AttributeProto::FLOAT);
      proto->set_f(attribute.floats.empty() ? 0 : attribute.floats[0]);
      break;
    case OrtAttrType::kFloats:
      proto->set_type(AttributeProto::FLOATS);
      proto->mutable_floats()->Add(attribute.floats.begin(), attribute.floats.end());
      break;
    case OrtAttrType::kString:
      proto->set_type(AttributeProto::STRING);
      proto->set_s(attribute.strings.empty() ? "" : attribute.strings[0]);
      break;
    case OrtAttrType::kStrings:
      proto->set_type(AttributeProto::STRINGS);
      for (const std::string& text : attribute.strings) proto->add_strings(text);
      break;
    default:
      proto->set_type(AttributeProto::TENSOR);
      proto->mutable_t()->set_data_type(attribute.tensor_dtype);
      for (const int64_t dim : attribute.tensor_dims) proto->mutable_t()->add_dims(dim);
      proto->mutable_t()->set_raw_data(attribute.tensor_bytes);
  }
}

Status add_node(const OrtApi& api, const GraphNode& node, const std::string& name,
                onnx::NodeProto* proto) {
  proto->set_name(name);
  proto->set_op_type(node.type);
  proto->set_domain(node.domain);
  for (const std::string& input : node.inputs) proto->add_input(input);
  for (const std::string& output : node.outputs) proto->add_output(output);
  const Result<std::vector<NodeAttribute>> attributes = read_attributes(api, node.handle);
  if (!attributes.ok())
    return error(attributes.status().code(), "node '{}' ({}): {}", name, node.type,
                 attributes.status().message());
  for (const NodeAttribute& attribute : *attributes)
    add_attribute(attribute, proto->add_attribute());
  return ok_status();
}

void add_constant(const GraphValue& value, const std::string& name, const Tensor& tensor,
                  onnx::GraphProto& graph, std::map<std::string, Tensor>& bound) {
  if (tensor.bytes() > kMostFileBytes) {
    add_value(value, name, true, graph.add_input());
    bound.emplace(name, tensor);
    return;
  }
  onnx::TensorProto* proto = graph.add_initializer();
  proto->set_name(name);
  proto->set_data_type(static_cast<int>(tensor.dtype()));
  for (const int64_t dim : tensor.shape()) proto->add_dims(dim);
  proto->set_raw_data(tensor.data(), static_cast<size_t>(tensor.bytes()));
}

}  // namespace

Result<Tensor> Weights::find(const Graph& graph, const std::string& name) {
  if (const auto found = tensors_.find(name); found != tensors_.end()) return found->second;
  const OrtValue* value = nullptr;
  HONE_ORT_RETURN_IF_ERROR(api_, api_.value_initializer(graph.values.at(name).handle, &value));
  if (value == nullptr) return invalid("the initializer '{}' has no value", name);
  HONE_ASSIGN_OR_RETURN(const TensorView view, view_tensor(api_, value));
  Tensor tensor(static_cast<DType>(view.dtype), view.dims);
  if (tensor.bytes() != static_cast<int64_t>(view.bytes))
    return invalid("the initializer '{}' has {} bytes, expected {}", name, view.bytes,
                   tensor.bytes());
  if (view.bytes > 0) std::memcpy(tensor.data(), view.data, view.bytes);
  tensors_.emplace(name, tensor);
  return tensor;
}

std::vector<std::string> node_names(const Graph& graph, const Group& group) {
  std::set<std::string> seen = {""};
  std::vector<std::string> names;
  for (const size_t i : group.nodes) {
    std::string name = graph.nodes[i].name;
    for (int count = 1; !seen.insert(name).second; ++count)
      name = fmt::format("{}_{}_{}", graph.nodes[i].type, i, count);
    names.push_back(std::move(name));
  }
  return names;
}

Result<GroupModel> make_group_model(const OrtApi& api, const Graph& graph, const Group& group,
                                    Weights& weights) {
  GroupModel made;
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  std::set<std::string> domains = {""};
  for (const size_t i : group.nodes) domains.insert(graph.nodes[i].domain);
  for (const std::string& domain : domains) {
    auto* opset = model.add_opset_import();
    const auto version = graph.opsets.find(domain);
    opset->set_domain(domain);
    opset->set_version(version != graph.opsets.end() ? version->second : 1);
  }
  onnx::GraphProto& proto = *model.mutable_graph();
  proto.set_name("part");
  for (const std::string& name : group.inputs)
    add_value(graph.values.at(name), name, true, proto.add_input());
  for (const std::string& name : group.constants) {
    HONE_ASSIGN_OR_RETURN(const Tensor tensor, weights.find(graph, name));
    add_constant(graph.values.at(name), name, tensor, proto, made.bound);
  }
  for (const std::string& name : group.outputs)
    add_value(graph.values.at(name), name, false, proto.add_output());
  const std::vector<std::string> names = node_names(graph, group);
  for (size_t n = 0; n < group.nodes.size(); ++n)
    HONE_RETURN_IF_ERROR(add_node(api, graph.nodes[group.nodes[n]], names[n], proto.add_node()));
  made.bytes = model.SerializeAsString();
  return made;
}

ModelOptions options_of_group(const Graph& graph, const Group& group, const ModelOptions& given) {
  std::set<std::string> names(group.inputs.begin(), group.inputs.end());
  for (const std::string& name : group.inputs) {
    for (const GraphDim& dim : graph.values.at(name).dims) names.insert(dim.symbol);
  }
  const auto concerns = [&](const auto& entry) { return names.contains(entry.first); };
  // An entry of an input may use symbols of its own.
  for (const auto& [name, range] : given.ranges) {
    if (!names.contains(name)) continue;
    for (const DimRange& dim : range) names.insert(dim.symbol);
  }
  ModelOptions options;
  std::copy_if(given.shapes.begin(), given.shapes.end(),
               std::inserter(options.shapes, options.shapes.end()), concerns);
  std::copy_if(given.ranges.begin(), given.ranges.end(),
               std::inserter(options.ranges, options.ranges.end()), concerns);
  return options;
}

}  // namespace hone::ort
