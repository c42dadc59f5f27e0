#include "ort_graph.h"

#include <cstring>

namespace hone::ort {
namespace {

// Returns a list that ONNX Runtime gives by two functions: one for its length, one that fills it.
template <typename T, typename Count, typename Fill, typename Object>
Result<std::vector<T>> list_of(const OrtApi& api, const Count& count, const Fill& fill,
                               Object* object) {
  size_t size = 0;
  HONE_ORT_RETURN_IF_ERROR(api, count(object, &size));
  std::vector<T> list(size);
  if (size > 0) HONE_ORT_RETURN_IF_ERROR(api, fill(object, list.data(), size));
  return list;
}

template <typename Text, typename Object>
Result<std::string> text_of(const OrtApi& api, const Text& text, Object* object) {
  const char* found = nullptr;
  HONE_ORT_RETURN_IF_ERROR(api, text(object, &found));
  return std::string(found != nullptr ? found : "");
}

Status read_tensor_type(const OrtApi& api, const OrtTensorInfo* info, GraphValue& value) {
  value.is_tensor = true;
  HONE_ORT_RETURN_IF_ERROR(api, api.element_type(info, &value.dtype));
  size_t rank = 0;
  HONE_ORT_RETURN_IF_ERROR(api, api.rank(info, &rank));
  // Before version 24 a value of unknown rank looks like a scalar.
  value.has_shape = api.has_shape ? api.has_shape(info) : rank > 0;
  if (!value.has_shape || rank == 0) return ok_status();
  std::vector<int64_t> dims(rank);
  std::vector<const char*> symbols(rank);
  HONE_ORT_RETURN_IF_ERROR(api, api.dims(info, dims.data(), rank));
  HONE_ORT_RETURN_IF_ERROR(api, api.symbols(info, symbols.data(), rank));
  for (size_t d = 0; d < rank; ++d)
    value.dims.push_back({dims[d], symbols[d] != nullptr ? symbols[d] : ""});
  return ok_status();
}

class Reader {
 public:
  Reader(const OrtApi& api, Graph& graph) : api_(api), graph_(graph) {}

  // Returns the names of values, and notes what is known of them.
  Result<std::vector<std::string>> names_of(const std::vector<const OrtValueInfo*>& list) {
    std::vector<std::string> names;
    for (const OrtValueInfo* info : list) {
      std::string name;
      if (info != nullptr) {
        HONE_ASSIGN_OR_RETURN(name, text_of(api_, api_.value_name, info));
        if (!name.empty() && !graph_.values.contains(name)) HONE_RETURN_IF_ERROR(add(name, info));
      }
      names.push_back(std::move(name));
    }
    return names;
  }

  Result<GraphNode> node(const OrtNode* handle) {
    GraphNode node{.handle = handle};
    HONE_ASSIGN_OR_RETURN(node.name, text_of(api_, api_.node_name, handle));
    HONE_ASSIGN_OR_RETURN(node.type, text_of(api_, api_.node_type, handle));
    HONE_ASSIGN_OR_RETURN(node.domain, text_of(api_, api_.node_domain, handle));
    if (node.domain == "ai.onnx") node.domain.clear();
    HONE_ASSIGN_OR_RETURN(node.inputs, values(api_.node_num_inputs, api_.node_inputs, handle));
    HONE_ASSIGN_OR_RETURN(node.outputs, values(api_.node_num_outputs, api_.node_outputs, handle));
    HONE_ASSIGN_OR_RETURN(node.implicit,
                          values(api_.node_num_implicit_inputs, api_.node_implicit_inputs, handle));
    size_t subgraphs = 0;
    HONE_ORT_RETURN_IF_ERROR(api_, api_.node_num_subgraphs(handle, &subgraphs));
    node.has_subgraphs = subgraphs > 0;
    HONE_ASSIGN_OR_RETURN(const std::string provider, text_of(api_, api_.node_provider, handle));
    node.taken = !provider.empty();
    return node;
  }

  template <typename Count, typename Fill, typename Object>
  Result<std::vector<std::string>> values(const Count& count, const Fill& fill, Object* object) {
    HONE_ASSIGN_OR_RETURN(const auto list, list_of<const OrtValueInfo*>(api_, count, fill, object));
    return names_of(list);
  }

 private:
  Status add(const std::string& name, const OrtValueInfo* info) {
    GraphValue value{.handle = info};
    HONE_ORT_RETURN_IF_ERROR(api_, api_.value_is_constant(info, &value.constant));
    const OrtTypeInfo* type = nullptr;
    HONE_ORT_RETURN_IF_ERROR(api_, api_.value_type(info, &type));
    OrtOnnxType kind = OrtOnnxType::kUnknown;
    if (type != nullptr) HONE_ORT_RETURN_IF_ERROR(api_, api_.onnx_type(type, &kind));
    if (kind == OrtOnnxType::kTensor) {
      const OrtTensorInfo* tensor = nullptr;
      HONE_ORT_RETURN_IF_ERROR(api_, api_.as_tensor_info(type, &tensor));
      if (tensor != nullptr) HONE_RETURN_IF_ERROR(read_tensor_type(api_, tensor, value));
    }
    graph_.values.emplace(name, std::move(value));
    return ok_status();
  }

  const OrtApi& api_;
  Graph& graph_;
};

Status read_opsets(const OrtApi& api, const OrtGraph* handle, Graph& graph) {
  size_t count = 0;
  HONE_ORT_RETURN_IF_ERROR(api, api.graph_num_opsets(handle, &count));
  std::vector<const char*> domains(count);
  std::vector<int64_t> versions(count);
  if (count > 0)
    HONE_ORT_RETURN_IF_ERROR(api, api.graph_opsets(handle, domains.data(), versions.data(), count));
  for (size_t i = 0; i < count; ++i) {
    const std::string domain = domains[i];
    graph.opsets[domain == "ai.onnx" ? "" : domain] = versions[i];
  }
  return ok_status();
}

// Reads the bytes of an attribute's value.
Result<std::string> attribute_bytes(const OrtApi& api, const OrtOpAttr* attribute,
                                    OrtAttrType type) {
  size_t needed = 0;
  // Without memory it fails, and says how many bytes it needs.
  (void)status_of(api, api.read_attribute(attribute, type, nullptr, 0, &needed));
  std::string bytes(needed, '\0');
  if (needed > 0) {
    HONE_ORT_RETURN_IF_ERROR(
        api, api.read_attribute(attribute, type, bytes.data(), bytes.size(), &needed));
    bytes.resize(needed);
  }
  return bytes;
}

template <typename T>
std::vector<T> numbers_in(const std::string& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

// Splits texts that end in zeros each.
std::vector<std::string> texts_in(const std::string& bytes) {
  std::vector<std::string> texts;
  for (size_t begin = 0; begin < bytes.size(); begin += texts.back().size() + 1)
    texts.emplace_back(bytes.substr(begin, bytes.find('\0', begin) - begin));
  return texts;
}

Status read_tensor_attribute(const OrtApi& api, const OrtOpAttr* attribute, NodeAttribute& out) {
  OrtValue* value = nullptr;
  HONE_ORT_RETURN_IF_ERROR(api, api.attribute_tensor(attribute, &value));
  const Result<TensorView> view = view_tensor(api, value);
  if (view.ok()) {
    out.tensor_dtype = view->dtype;
    out.tensor_dims = view->dims;
    out.tensor_bytes.assign(static_cast<const char*>(view->data), view->bytes);
  }
  api.release_value(value);
  return view.status();
}

Result<NodeAttribute> read_attribute(const OrtApi& api, const OrtOpAttr* handle) {
  NodeAttribute attribute;
  HONE_ASSIGN_OR_RETURN(attribute.name, text_of(api, api.attribute_name, handle));
  HONE_ORT_RETURN_IF_ERROR(api, api.attribute_type(handle, &attribute.type));
  if (attribute.type == OrtAttrType::kTensor) {
    HONE_RETURN_IF_ERROR(read_tensor_attribute(api, handle, attribute));
    return attribute;
  }
  if (attribute.type == OrtAttrType::kUndefined || attribute.type == OrtAttrType::kGraph)
    return error(Code::kUnsupported, "the attribute '{}' is no number, text or tensor",
                 attribute.name);
  HONE_ASSIGN_OR_RETURN(const std::string bytes, attribute_bytes(api, handle, attribute.type));
  switch (attribute.type) {
    case OrtAttrType::kInt:
    case OrtAttrType::kInts: attribute.ints = numbers_in<int64_t>(bytes); break;
    case OrtAttrType::kFloat:
    case OrtAttrType::kFloats: attribute.floats = numbers_in<float>(bytes); break;
    case OrtAttrType::kString: attribute.strings = {bytes}; break;
    default: attribute.strings = texts_in(bytes);
  }
  return attribute;
}

}  // namespace

Result<Graph> read_graph(const OrtApi& api, const OrtGraph* handle) {
  Graph graph;
  Reader reader(api, graph);
  HONE_ASSIGN_OR_RETURN(graph.model_path, text_of(api, api.graph_model_path, handle));
  HONE_RETURN_IF_ERROR(read_opsets(api, handle, graph));
  const OrtNode* parent = nullptr;
  HONE_ORT_RETURN_IF_ERROR(api, api.graph_parent(handle, &parent));
  graph.nested = parent != nullptr;
  HONE_ASSIGN_OR_RETURN(graph.inputs,
                        reader.values(api.graph_num_inputs, api.graph_inputs, handle));
  HONE_ASSIGN_OR_RETURN(graph.outputs,
                        reader.values(api.graph_num_outputs, api.graph_outputs, handle));
  HONE_ASSIGN_OR_RETURN(const auto nodes,
                        list_of<const OrtNode*>(api, api.graph_num_nodes, api.graph_nodes, handle));
  for (const OrtNode* node : nodes) {
    HONE_ASSIGN_OR_RETURN(GraphNode read, reader.node(node));
    graph.nodes.push_back(std::move(read));
  }
  return graph;
}

Result<GraphNode> read_node(const OrtApi& api, const OrtNode* node) {
  Graph graph;
  return Reader(api, graph).node(node);
}

Result<std::vector<NodeAttribute>> read_attributes(const OrtApi& api, const OrtNode* node) {
  HONE_ASSIGN_OR_RETURN(const auto handles, list_of<const OrtOpAttr*>(api, api.node_num_attributes,
                                                                      api.node_attributes, node));
  std::vector<NodeAttribute> attributes;
  for (const OrtOpAttr* handle : handles) {
    HONE_ASSIGN_OR_RETURN(NodeAttribute attribute, read_attribute(api, handle));
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

Result<int> read_shape(const OrtApi& api, const OrtValue* value, std::vector<int64_t>& dims) {
  OrtTensorInfo* info = nullptr;
  HONE_ORT_RETURN_IF_ERROR(api, api.tensor_info(value, &info));
  int dtype = 0;
  size_t rank = 0;
  Status status = status_of(api, api.element_type(info, &dtype));
  if (status.ok()) status = status_of(api, api.rank(info, &rank));
  dims.resize(rank);
  if (status.ok() && rank > 0) status = status_of(api, api.dims(info, dims.data(), rank));
  api.release_tensor_info(info);
  HONE_RETURN_IF_ERROR(status);
  return dtype;
}

Result<TensorView> view_tensor(const OrtApi& api, const OrtValue* value) {
  TensorView view;
  HONE_ASSIGN_OR_RETURN(view.dtype, read_shape(api, value, view.dims));
  HONE_ORT_RETURN_IF_ERROR(api, api.tensor_bytes(value, &view.bytes));
  HONE_ORT_RETURN_IF_ERROR(api, api.tensor_data(value, &view.data));
  return view;
}

}  // namespace hone::ort
