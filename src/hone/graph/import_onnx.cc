// The only file that sees the ONNX protobuf headers.
#include "hone/graph/import_onnx.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

#include "hone/graph/op.h"
#include "hone/graph/ops/registry.h"

namespace hone::graph {
namespace {

constexpr int kMaxProtobufDepth = 64;  // messages within messages; ONNX needs 5 without subgraphs
constexpr size_t kMaxProtobufBytes = 0x7fffffff;  // protobuf's own limit

struct File {
  explicit File(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (fd >= 0) close(fd);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] Result<int64_t> size() const {
    struct stat info {};
    if (fd < 0 || fstat(fd, &info) != 0) return error(Code::kNotFound, "{}", std::strerror(errno));
    if (!S_ISREG(info.st_mode)) return invalid("not a regular file");
    return static_cast<int64_t>(info.st_size);
  }
  int fd;
};

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
    HONE_RETURN_IF_ERROR(infer_shapes(graph_));
    remove_dead_nodes(graph_);
    HONE_RETURN_IF_ERROR(verify(graph_));
    return std::move(graph_);
  }

 private:
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
      HONE_ASSIGN_OR_RETURN(Tensor data, read_tensor(tensor, "initializer"));
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
    for (const auto& [name, shape] : options_.shapes) open_names.insert(name);
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
      HONE_ASSIGN_OR_RETURN(Shape shape, input_shape(input.name(), type));
      const ValueId id = graph_.add_value(input.name(), *dtype, std::move(shape));
      HONE_RETURN_IF_ERROR(define(input.name(), id, "input"));
      graph_.inputs.push_back(id);
    }
    if (!open_names.empty()) {
      return fail("a shape is given for '{}', which is no input", *open_names.begin());
    }
    return ok_status();
  }

  Result<Shape> input_shape(const std::string& name, const onnx::TypeProto_Tensor& type) const {
    Shape declared;
    std::vector<std::string> text;
    bool open = !type.has_shape();
    for (const auto& dim : type.shape().dim()) {
      declared.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
      if (dim.has_dim_value() && dim.dim_value() < 1)
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
      fits = fits && given->second[i] > 0;
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
          HONE_ASSIGN_OR_RETURN(Tensor tensor,
                                read_tensor(*a.mutable_t(), "node '" + node.name + "', attribute"));
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

  Result<Tensor> read_tensor(const onnx::TensorProto& from, const std::string& what) const {
    const auto dtype = dtype_from_onnx(from.data_type());
    if (!dtype)
      return unsupported("{} '{}' has element type {}", what, from.name(), from.data_type());
    Shape shape(from.dims().begin(), from.dims().end());
    unsigned __int128 bytes = static_cast<unsigned __int128>(dtype_bytes(*dtype));
    for (const int64_t extent : shape) {
      if (extent < 0) return fail("{} '{}' has the shape {}", what, from.name(), to_string(shape));
      bytes *= static_cast<uint64_t>(extent);
      if (bytes > (static_cast<unsigned __int128>(1) << 48))
        bytes = static_cast<unsigned __int128>(1) << 48;
    }
    const auto need = static_cast<int64_t>(bytes);
    const auto wrong_size = [&](int64_t found, const char* unit, int64_t expected) {
      return fail("{} '{}' of shape {} has {} {}, expected {}", what, from.name(), to_string(shape),
                  found, unit, expected);
    };
    if (from.data_location() == onnx::TensorProto::EXTERNAL)
      return read_external(from, *dtype, shape, need);
    if (from.has_raw_data()) {
      const auto size = static_cast<int64_t>(from.raw_data().size());
      if (size != need) return wrong_size(size, "bytes", need);
      Tensor tensor(*dtype, std::move(shape));
      if (size > 0) std::memcpy(tensor.data(), from.raw_data().data(), from.raw_data().size());
      return tensor;
    }
    const int64_t count = need / dtype_bytes(*dtype);
    const auto copy = [&](const auto& field, auto element) -> Result<Tensor> {
      using T = decltype(element);
      if (field.size() != count) return wrong_size(field.size(), "elements", count);
      Tensor tensor(*dtype, shape);
      for (int64_t i = 0; i < count; ++i) {
        tensor.as<T>()[static_cast<size_t>(i)] = static_cast<T>(field[static_cast<int>(i)]);
      }
      return tensor;
    };
    switch (*dtype) {
      case DType::kF32: return copy(from.float_data(), float{});
      case DType::kF64: return copy(from.double_data(), double{});
      case DType::kI64: return copy(from.int64_data(), int64_t{});
      case DType::kU64: return copy(from.uint64_data(), uint64_t{});
      case DType::kU32: return copy(from.uint64_data(), uint32_t{});
      case DType::kI32: return copy(from.int32_data(), int32_t{});
      case DType::kI16: return copy(from.int32_data(), int16_t{});
      case DType::kI8: return copy(from.int32_data(), int8_t{});
      case DType::kU8:
      case DType::kBool: return copy(from.int32_data(), uint8_t{});
      case DType::kU16:
      case DType::kF16:
      case DType::kBF16: return copy(from.int32_data(), uint16_t{});
    }
    return fail("{} '{}' has an unknown type", what, from.name());
  }

  Result<Tensor> read_external(const onnx::TensorProto& from, DType dtype, const Shape& shape,
                               int64_t need) const {
    std::string location;
    int64_t offset = 0, length = need;
    for (const auto& entry : from.external_data()) {
      const std::string& text = entry.value();
      if (entry.key() == "location") location = text;
      if (entry.key() != "offset" && entry.key() != "length") continue;
      int64_t& number = entry.key() == "offset" ? offset : length;
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (code != std::errc() || end != text.data() + text.size() || number < 0) {
        return fail("initializer '{}': external data with {} '{}'", from.name(), entry.key(), text);
      }
    }
    if (length != need) {
      return fail("initializer '{}' of shape {} has {} bytes of external data, expected {}",
                  from.name(), to_string(shape), length, need);
    }
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path root = fs::weakly_canonical(folder_.empty() ? "." : folder_, ignored);
    const fs::path path = fs::weakly_canonical(root / location, ignored);
    const auto [mismatch_root, mismatch_path] =
        std::mismatch(root.begin(), root.end(), path.begin(), path.end());
    const bool inside = mismatch_root == root.end() && mismatch_path != path.end();
    if (location.empty() || location.find('\0') != std::string::npos ||
        fs::path(location).is_absolute() || !inside) {
      return fail(
          "initializer '{}': external data at '{}', expected a path inside the model's folder",
          from.name(), location);
    }
    const File file(path.string());
    const Result<int64_t> size = file.size();
    if (!size.ok()) {
      return error(Code::kNotFound, "{}: initializer '{}': cannot read external data {}: {}",
                   graph_.file, from.name(), path.string(), size.status().message());
    }
    if (offset > *size || need > *size - offset) {
      return fail(
          "initializer '{}': external data {} has {} bytes, expected {} at offset {}: truncated?",
          from.name(), path.string(), *size, need, offset);
    }
    Tensor tensor(dtype, shape);
    for (int64_t done = 0; done < need;) {
      const ssize_t got = pread(file.fd, static_cast<char*>(tensor.data()) + done,
                                static_cast<size_t>(need - done), offset + done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        return error(Code::kIo, "{}: reading {}: {}", graph_.file, path.string(),
                     std::strerror(errno));
      }
      done += got;
    }
    return tensor;
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

Result<Graph> import_onnx(const std::string& path, const ImportOptions& options) {
  onnx::ModelProto model;
  {
    const File file(path);
    const Result<int64_t> size = file.size();
    if (!size.ok()) return error(size.status().code(), "{}: {}", path, size.status().message());
    if (*size == 0) return invalid("{}: not an ONNX file: it is empty", path);
    const auto bytes = static_cast<size_t>(*size);
    void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (data == MAP_FAILED) return error(Code::kIo, "{}: {}", path, std::strerror(errno));
    const Status status = parse(data, bytes, path, model);
    munmap(data, bytes);  // before the weights are copied: never three times in memory
    HONE_RETURN_IF_ERROR(status);
  }
  return Importer(path, std::filesystem::path(path).parent_path().string(), options).run(model);
}

}  // namespace hone::graph
