#include "hone/graph/import_onnx.h"

#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

#include "hone/graph/onnx_tensor.h"
#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

constexpr int kMaxProtobufDepth = 64;  // messages within messages; ONNX needs 5 without subgraphs
constexpr size_t kMaxProtobufBytes = 0x7fffffff;  // protobuf's own limit

// Tells a cut-off file from a foreign one by walking over the top-level fields.
Status check_framing(const unsigned char* data, size_t size, const std::string& file) {
  const auto varint = [&](size_t& at, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= size) return false;
      const unsigned char byte = data[at++];
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  };
  for (size_t at = 0; at < size;) {
    uint64_t tag = 0, length = 0;
    if (!varint(at, tag))
      return invalid("{}: not an ONNX file, or truncated in its last field", file);
    const uint64_t field = tag >> 3;
    if (field < 1 || field > 1000) return invalid("{}: not an ONNX file", file);
    switch (tag & 7) {
      case 0:
        if (!varint(at, length)) return invalid("{}: truncated", file);
        continue;
      case 1: length = 8; break;
      case 2:
        if (!varint(at, length)) return invalid("{}: truncated", file);
        break;
      case 5: length = 4; break;
      default: return invalid("{}: not an ONNX file", file);
    }
    if (length > size - at) {
      return invalid(
          "{}: truncated, or not an ONNX file: a field of {} bytes starts at byte {} of {}", file,
          length, at, size);
    }
    at += length;
  }
  return ok_status();
}

class Importer {
 public:
  Importer(std::string file, std::string folder, const ImportOptions& options)
      : folder_(std::move(folder)), options_(options) {
    graph_.file = std::move(file);
  }

  Result<Graph> run(onnx::ModelProto& model) {
    HONE_RETURN_IF_ERROR(check_model(model));
    onnx::GraphProto& proto = *model.mutable_graph();
    graph_.name = proto.name();
    HONE_RETURN_IF_ERROR(check_operators(proto));
    HONE_RETURN_IF_ERROR(read_initializers(proto));
    HONE_RETURN_IF_ERROR(read_inputs(proto));
    HONE_RETURN_IF_ERROR(read_nodes(proto));
    HONE_RETURN_IF_ERROR(read_outputs(proto));
    HONE_RETURN_IF_ERROR(sort_nodes(graph_));
    const std::map<ValueId, std::vector<ValueId>> sources = operands_of_values();
    if (const Status status = infer_shapes(graph_); !status.ok()) return explained(status, sources);
    remove_dead_nodes(graph_);
    HONE_RETURN_IF_ERROR(verify(graph_));
    return std::move(graph_);
  }

 private:
  [[nodiscard]] TensorSource source() const { return {graph_.file, folder_}; }

  template <typename... Args>
  [[nodiscard]] Status fail(fmt::format_string<Args...> format, Args&&... args) const {
    return invalid("{}: {}", graph_.file, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[nodiscard]] Status unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    return error(Code::kUnsupported, "{}: {}", graph_.file,
                 fmt::format(format, std::forward<Args>(args)...));
  }

  static bool default_domain(const std::string& domain) {
    return domain.empty() || domain == "ai.onnx";
  }

  Status check_model(const onnx::ModelProto& model) {
    if (model.ir_version() < 3 || !model.has_graph()) {
      return fail("not an ONNX file, or truncated: it has no {}",
                  model.has_graph() ? "IR version" : "graph");
    }
    bool found = false;
    for (const auto& entry : model.opset_import()) {
      if (!default_domain(entry.domain())) continue;
      if (entry.version() < kMinOpset || entry.version() > kMaxOpset) {
        return unsupported("opset {}, expected {} to {}", entry.version(), kMinOpset, kMaxOpset);
      }
      graph_.opset = static_cast<int>(entry.version());
      found = true;
    }
    if (!found) return fail("it declares no opset of the domain ai.onnx: truncated?");
    if (model.graph().sparse_initializer_size() > 0) return unsupported("sparse initializers");
    return ok_status();
  }

  // One error for all unknown operators, before any work is done.
  Status check_operators(const onnx::GraphProto& proto) const {
    std::map<std::string, std::vector<std::string>> unknown;
    for (const auto& node : proto.node()) {
      const bool known = default_domain(node.domain()) && !node.op_type().starts_with("hone.") &&
                         find_op(node.op_type(), graph_.opset) != nullptr;
      if (known) continue;
      const std::string domain = default_domain(node.domain()) ? "" : node.domain() + ".";
      unknown[domain + node.op_type()].push_back(fmt::format("'{}'", node_name(node)));
    }
    if (unknown.empty()) return ok_status();
    std::string list;
    for (const auto& [op, nodes] : unknown) {
      list += fmt::format("{}{} ({} {})", list.empty() ? "" : "; ", op,
                          nodes.size() == 1 ? "node" : "nodes", fmt::join(nodes, ", "));
    }
    return unsupported("{} not supported in opset {}: {}",
                       unknown.size() == 1 ? "this operator is" : "these operators are",
                       graph_.opset, list);
  }

  static std::string node_name(const onnx::NodeProto& node) {
    if (!node.name().empty()) return node.name();
    for (const std::string& output : node.output()) {
      if (!output.empty()) return output;
    }
    return node.op_type();
  }

  Status define(const std::string& name, ValueId id, const char* what) {
    if (name.empty()) return fail("{} without a name", what);
    if (!ids_.emplace(name, id).second)
      return fail("{} '{}': another value has this name", what, name);
    return ok_status();
  }

  Status read_initializers(onnx::GraphProto& proto) {
    for (onnx::TensorProto& tensor : *proto.mutable_initializer()) {
      HONE_ASSIGN_OR_RETURN(Tensor data, read_tensor(tensor, "initializer", source()));
      HONE_RETURN_IF_ERROR(define(
          tensor.name(), graph_.add_constant(tensor.name(), std::move(data)), "initializer"));
      // Free the copy at once: the weights may be most of the memory.
      delete tensor.release_raw_data();
      tensor.clear_float_data();
    }
    return ok_status();
  }

  Status read_inputs(const onnx::GraphProto& proto) {
    std::set<std::string> open_names;
    std::set<std::string> unused_binds;
    for (const auto& [name, shape] : options_.shapes) open_names.insert(name);
    for (const auto& [name, value] : options_.bind) unused_binds.insert(name);
    for (const auto& input : proto.input()) {
      const auto it = ids_.find(input.name());
      // Before IR version 4 every initializer is declared as an input too.
      if (it != ids_.end() && graph_.value(it->second).constant) continue;
      open_names.erase(input.name());
      if (!input.has_type() || !input.type().has_tensor_type()) {
        return unsupported("input '{}' is no tensor", input.name());
      }
      const auto& type = input.type().tensor_type();
      const auto dtype = dtype_from_onnx(type.elem_type());
      if (!dtype)
        return unsupported("input '{}' has element type {}", input.name(), type.elem_type());
      HONE_ASSIGN_OR_RETURN(const Tensor* const bound, bound_input(input.name(), *dtype));
      if (bound != nullptr) {
        unused_binds.erase(input.name());
        HONE_RETURN_IF_ERROR(
            define(input.name(), graph_.add_constant(input.name(), *bound), "input"));
        continue;
      }
      HONE_ASSIGN_OR_RETURN(Shape shape, input_shape(input.name(), type));
      const ValueId id = graph_.add_value(input.name(), *dtype, std::move(shape));
      HONE_RETURN_IF_ERROR(define(input.name(), id, "input"));
      Value& value = graph_.value(id);
      if (num_elements(value.shape) == 0) value.constant = Tensor(*dtype, value.shape);
      graph_.inputs.push_back(id);
    }
    if (!open_names.empty()) {
      return fail("a shape is given for '{}', which is no input", *open_names.begin());
    }
    if (!unused_binds.empty())
      return fail("a value is bound to '{}', which is no input", *unused_binds.begin());
    return ok_status();
  }

  // For each result the operands of its node: the nodes themselves change while shapes are
  // inferred.
  std::map<ValueId, std::vector<ValueId>> operands_of_values() const {
    std::map<ValueId, std::vector<ValueId>> sources;
    for (const Node& node : graph_.nodes) {
      for (const ValueId out : node.outputs) sources[out] = node.inputs;
    }
    return sources;
  }

  // Names the inputs that a value known at compile time would have to come from.
  Status explained(const Status& status,
                   const std::map<ValueId, std::vector<ValueId>>& sources) const {
    std::vector<ValueId> open = graph_.unknown_operands;
    std::set<ValueId> seen;
    std::vector<std::string> names;
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      if (id == kNoValue || graph_.value(id).constant || !seen.insert(id).second) continue;
      if (graph_.is_input(id)) names.push_back(graph_.value(id).name);
      const auto it = sources.find(id);
      if (it != sources.end()) open.insert(open.end(), it->second.begin(), it->second.end());
    }
    if (names.empty()) return status;
    if (options_.unbound != nullptr) *options_.unbound = names;
    return {status.code(),
            fmt::format("{}; it comes from the input '{}': bind it with --bind {}=FILE.npy",
                        status.message(), fmt::join(names, "', '"), names[0])};
  }

  // Bound inputs are constants; null if it is not bound.
  Result<const Tensor*> bound_input(const std::string& name, DType dtype) const {
    const auto it = options_.bind.find(name);
    if (it == options_.bind.end()) return static_cast<const Tensor*>(nullptr);
    if (it->second.dtype() != dtype) {
      return fail("input '{}' is bound to a value of type {}, expected {}", name,
                  dtype_name(it->second.dtype()), dtype_name(dtype));
    }
    return &it->second;
  }

  Result<Shape> input_shape(const std::string& name, const onnx::TypeProto_Tensor& type) const {
    Shape declared;
    std::vector<std::string> text;
    bool open = !type.has_shape();
    for (const auto& dim : type.shape().dim()) {
      declared.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
      if (dim.has_dim_value() && dim.dim_value() < 0)
        return fail("input '{}' has an extent of {}", name, dim.dim_value());
      open |= !dim.has_dim_value();
      text.push_back(dim.has_dim_value() ? std::to_string(dim.dim_value())
                                         : (dim.dim_param().empty() ? "?" : dim.dim_param()));
    }
    const auto given = options_.shapes.find(name);
    if (given == options_.shapes.end()) {
      if (open) {
        return fail("input '{}' has the open shape [{}]: give it with --shape {}=dims", name,
                    fmt::join(text, ", "), name);
      }
      double elements = 1;
      for (const int64_t extent : declared) elements *= static_cast<double>(extent);
      if (elements > 1e11)
        return fail("input '{}' has the shape {}, which is too large", name, to_string(declared));
      return declared;
    }
    bool fits = !type.has_shape() || given->second.size() == declared.size();
    double elements = 1;
    for (size_t i = 0; i < given->second.size(); ++i) {
      fits = fits && given->second[i] >= 0;
      if (fits && type.has_shape()) fits = declared[i] < 0 || declared[i] == given->second[i];
      elements *= static_cast<double>(given->second[i]);
    }
    if (!fits || elements > 1e11) {
      return fail("the shape {} is given for input '{}', which is declared as [{}]",
                  to_string(given->second), name, fmt::join(text, ", "));
    }
    return given->second;
  }

  Status read_nodes(onnx::GraphProto& proto) {
    std::set<std::string> names;
    for (onnx::NodeProto& from : *proto.mutable_node()) {
      Node node;
      node.type = from.op_type();
      node.op = find_op(node.type, graph_.opset);
      node.name = node_name(from);
      for (int i = 1; !names.insert(node.name).second; ++i)
        node.name = fmt::format("{}.{}", node_name(from), i);
      for (const std::string& output : from.output()) {
        node.outputs.push_back(kNoValue);
        if (output.empty()) continue;
        node.outputs.back() = graph_.add_value(output, DType::kF32, {});
        HONE_RETURN_IF_ERROR(define(output, node.outputs.back(), "result"));
      }
      while (!node.outputs.empty() && node.outputs.back() == kNoValue) node.outputs.pop_back();
      if (node.outputs.empty()) return fail("node '{}' ({}) has no result", node.name, node.type);
      HONE_RETURN_IF_ERROR(read_attributes(from, node));
      graph_.nodes.push_back(std::move(node));
    }
    for (int i = 0; i < proto.node_size(); ++i) {
      Node& node = graph_.nodes[static_cast<size_t>(i)];
      for (const std::string& input : proto.node(i).input()) {
        const auto it = ids_.find(input);
        if (!input.empty() && it == ids_.end()) {
          return fail("node '{}' ({}) reads '{}', which nothing defines", node.name, node.type,
                      input);
        }
        node.inputs.push_back(input.empty() ? kNoValue : it->second);
      }
      while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    }
    return ok_status();
  }

  Status read_attributes(onnx::NodeProto& from, Node& node) {
    for (onnx::AttributeProto& a : *from.mutable_attribute()) {
      if (!a.ref_attr_name().empty())
        return unsupported("node '{}' ({}) is part of a function", node.name, node.type);
      if (node.attributes.has(a.name())) {
        return fail("node '{}' ({}) has the attribute '{}' twice", node.name, node.type, a.name());
      }
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
          HONE_ASSIGN_OR_RETURN(
              Tensor tensor, read_tensor(a.t(), "node '" + node.name + "', attribute", source()));
          node.attributes.set(a.name(), std::move(tensor));
          break;
        }
        case A::GRAPH: node.attributes.set(a.name(), Subgraph{}); break;
        default:
          return unsupported("node '{}' ({}): attribute '{}' has type {}", node.name, node.type,
                             a.name(), static_cast<int>(a.type()));
      }
    }
    return ok_status();
  }

  Status read_outputs(const onnx::GraphProto& proto) {
    for (const auto& output : proto.output()) {
      const auto it = ids_.find(output.name());
      if (it == ids_.end()) return fail("the output '{}' is computed by no node", output.name());
      if (std::count(graph_.output_names.begin(), graph_.output_names.end(), output.name()) > 0) {
        return fail("the output '{}' is declared twice", output.name());
      }
      graph_.outputs.push_back(it->second);
      graph_.output_names.push_back(output.name());
    }
    if (graph_.outputs.empty()) return fail("the graph has no outputs");
    return ok_status();
  }

  std::string folder_;
  const ImportOptions& options_;
  Graph graph_;
  std::map<std::string, ValueId> ids_;
};

Status parse(const void* data, size_t size, const std::string& file, onnx::ModelProto& model) {
  if (size > kMaxProtobufBytes) {
    return error(Code::kUnsupported, "{}: {} bytes; above 2 GB the weights must be external data",
                 file, size);
  }
  HONE_RETURN_IF_ERROR(check_framing(static_cast<const unsigned char*>(data), size, file));
  google::protobuf::io::CodedInputStream stream(static_cast<const uint8_t*>(data),
                                                static_cast<int>(size));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  stream.SetRecursionLimit(kMaxProtobufDepth);
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return invalid("{}: not an ONNX file: a malformed message, or one nested deeper than {}", file,
                   kMaxProtobufDepth);
  }
  return ok_status();
}

}  // namespace

Result<Graph> import_onnx_bytes(const void* data, size_t size, const std::string& file,
                                const std::string& folder, const ImportOptions& options) {
  if (size == 0) return invalid("{}: not an ONNX file: it is empty", file);
  onnx::ModelProto model;
  HONE_RETURN_IF_ERROR(parse(data, size, file, model));
  return Importer(file, folder, options).run(model);
}

namespace {

Status parse_file(const std::string& path, onnx::ModelProto& model) {
  const File file(path);
  const Result<int64_t> size = file.size();
  if (!size.ok()) return error(size.status().code(), "{}: {}", path, size.status().message());
  if (*size == 0) return invalid("{}: not an ONNX file: it is empty", path);
  const auto bytes = static_cast<size_t>(*size);
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return error(Code::kIo, "{}: {}", path, std::strerror(errno));
  Status status = parse(data, bytes, path, model);
  munmap(data, bytes);  // before the weights are copied: never three times in memory
  return status;
}

}  // namespace

Result<std::vector<std::string>> input_names(const std::string& path) {
  onnx::ModelProto model;
  HONE_RETURN_IF_ERROR(parse_file(path, model));
  std::set<std::string> initializers;
  for (const auto& tensor : model.graph().initializer()) initializers.insert(tensor.name());
  std::vector<std::string> names;
  for (const auto& input : model.graph().input()) {
    if (initializers.count(input.name()) == 0) names.push_back(input.name());
  }
  return names;
}

Result<Graph> import_onnx(const std::string& path, const ImportOptions& options) {
  onnx::ModelProto model;
  HONE_RETURN_IF_ERROR(parse_file(path, model));
  return Importer(path, std::filesystem::path(path).parent_path().string(), options).run(model);
}

}  // namespace hone::graph
