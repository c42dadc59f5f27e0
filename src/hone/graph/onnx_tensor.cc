#include "hone/graph/onnx_tensor.h"

#include <fcntl.h>
#include <onnx/onnx_pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hone/base/allocation.h"
#include "hone/base/file.h"
#include "hone/base/memory_bound.h"
#include "hone/tensor/small_types.h"

namespace hone::graph {

File::File(const std::string& path, bool follow_link)
    : fd(open(path.c_str(),
              O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (follow_link ? 0 : O_NOFOLLOW))) {}
File::~File() {
  if (fd >= 0) close(fd);
}
Result<int64_t> File::size() const {
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) return error(Code::kNotFound, "{}", errno_text(errno));
  if (S_ISDIR(info.st_mode)) return invalid("it is a directory, expected a file");
  if (!S_ISREG(info.st_mode)) return invalid("not a regular file");
  return static_cast<int64_t>(info.st_size);
}

namespace {

namespace fs = std::filesystem;

// The file of external data, in the model's folder: a model that somebody else wrote must not read
// other files of this machine.
Result<std::string> external_path(const onnx::TensorProto& from, const std::string& location,
                                  const TensorSource& source) {
  const auto refuse = [&](std::string_view found) {
    return invalid("{}: initializer '{}': external data at '{}'{}", source.file, from.name(),
                   location, found);
  };
  const fs::path named = fs::path(location).lexically_normal();
  if (location.empty() || location.find('\0') != std::string::npos || named.is_absolute() ||
      *named.begin() == ".." || named == ".")
    return refuse(", expected a path inside the model's folder");
  const fs::path folder = source.folder.empty() ? "." : source.folder;
  if (source.linked_data) return (folder / named).string();
  std::error_code ignored;
  const fs::path root = fs::weakly_canonical(folder, ignored);
  const fs::path path = fs::weakly_canonical(root / named, ignored);
  const auto [end, rest] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (end == root.end() && rest != path.end()) return path.string();
  return refuse(fmt::format(
      " is a link to {}, outside of the model's folder; if you trust it, allow linked data "
      "(ModelOptions::linked_data, --allow-linked-data)",
      path.string()));
}

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())};
}

Result<Tensor> read_external(const onnx::TensorProto& from, DType dtype, const Shape& shape,
                             int64_t need, const TensorSource& source) {
  std::string location;
  int64_t offset = 0, length = need;
  for (const auto& entry : from.external_data()) {
    const std::string& text = entry.value();
    if (entry.key() == "location") location = text;
    if (entry.key() != "offset" && entry.key() != "length") continue;
    int64_t& number = entry.key() == "offset" ? offset : length;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size() || number < 0) {
      return invalid("{}: initializer '{}': external data with {} '{}'", source.file, from.name(),
                     entry.key(), text);
    }
  }
  if (length != need) {
    return invalid("{}: initializer '{}' of shape {} has {} bytes of external data, expected {}",
                   source.file, from.name(), to_string(shape), length, need);
  }
  HONE_ASSIGN_OR_RETURN(const std::string path, external_path(from, location, source));
  const File file(path, source.linked_data);
  const Result<int64_t> size = file.size();
  if (!size.ok()) {
    return error(Code::kNotFound, "{}: initializer '{}': cannot read external data {}: {}",
                 source.file, from.name(), path, size.status().message());
  }
  if (offset > *size || need > *size - offset) {
    return invalid(
        "{}: initializer '{}': external data {} has {} bytes, expected {} at offset {}: truncated?",
        source.file, from.name(), path, *size, need, offset);
  }
  const int64_t before = source.read == nullptr ? 0 : source.read->bytes;
  if (need > most_input_bytes() - before) {
    return invalid(
        "{}: initializer '{}' of shape {} has {} bytes of external data beside {} of others, "
        "expected at most {} in all, as {}",
        source.file, from.name(), to_string(shape), need, before, most_input_bytes(),
        input_bound_text());
  }
  if (source.read != nullptr) {
    source.read->files.insert(path);
    source.read->bytes += need;
  }
  const bool shared = elements_per_byte(dtype) > 1;
  Tensor tensor = shared ? Tensor(DType::kU8, {need}) : Tensor(dtype, shape);
  for (int64_t done = 0; done < need;) {
    const ssize_t got = pread(file.fd, static_cast<char*>(tensor.data()) + done,
                              static_cast<size_t>(need - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return error(Code::kIo, "{}: reading {}: {}", source.file, path, errno_text(errno));
    }
    done += got;
  }
  return shared ? unpacked(dtype, shape, bytes_of(tensor)) : tensor;
}

Result<Tensor> read_anew(const onnx::TensorProto& from, const std::string& what,
                         const TensorSource& source) {
  const auto dtype = dtype_from_onnx(from.data_type());
  if (!dtype)
    return error(Code::kUnsupported, "{}: {} '{}' has element type {}", source.file, what,
                 from.name(), onnx_type_text(from.data_type()));
  Shape shape(from.dims().begin(), from.dims().end());
  if (!is_valid(shape))
    return invalid("{}: {} '{}' has the shape {}", source.file, what, from.name(),
                   to_string(shape));
  const int per_byte = elements_per_byte(*dtype);
  const int64_t need = (num_elements(shape) * dtype_bytes(*dtype) + per_byte - 1) / per_byte;
  const AllocatesFor purpose(fmt::format("{} '{}'", what, from.name()));
  const auto wrong_size = [&](int64_t found, const char* unit, int64_t expected) {
    return invalid("{}: {} '{}' of shape {} has {} {}, expected {}", source.file, what, from.name(),
                   to_string(shape), found, unit, expected);
  };
  if (from.data_location() == onnx::TensorProto::EXTERNAL)
    return read_external(from, *dtype, shape, need, source);
  if (from.has_raw_data()) {
    const auto size = static_cast<int64_t>(from.raw_data().size());
    if (size != need) return wrong_size(size, "bytes", need);
    if (per_byte > 1) return unpacked(*dtype, shape, from.raw_data());
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
  if (is_small(*dtype)) {  // each entry has one byte
    if (from.int32_data_size() != need) return wrong_size(from.int32_data_size(), "bytes", need);
    std::string bytes;
    for (const int32_t byte : from.int32_data()) bytes += static_cast<char>(byte);
    return unpacked(*dtype, shape, bytes);
  }
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
  return invalid("{}: {} '{}' has an unknown type", source.file, what, from.name());
}

}  // namespace

Result<Tensor> read_tensor(const onnx::TensorProto& from, const std::string& what,
                           const TensorSource& source) {
  if (source.read == nullptr) return read_anew(from, what, source);
  std::map<const onnx::TensorProto*, Tensor>& known = source.read->tensors;
  if (const auto at = known.find(&from); at != known.end()) return at->second;
  HONE_ASSIGN_OR_RETURN(Tensor tensor, read_anew(from, what, source));
  return known.emplace(&from, std::move(tensor)).first->second;
}

Result<NamedTensor> read_tensor_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return error(Code::kNotFound, "{}: {}", path, errno_text(errno));
  std::stringstream bytes;
  bytes << file.rdbuf();
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes.str())) return invalid("{}: not an ONNX tensor", path);
  HONE_ASSIGN_OR_RETURN(Tensor tensor, read_tensor(proto, "tensor", {path, ""}));
  return NamedTensor{proto.name(), std::move(tensor)};
}

}  // namespace hone::graph
