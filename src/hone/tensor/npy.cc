#include "hone/tensor/npy.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>

#include "hone/base/file.h"
#include "hone/tensor/small_types.h"
#include "hone/tensor/zip.h"

namespace hone {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxRank = 64;                     // NumPy's own limit
constexpr int64_t kMaxElements = int64_t{1} << 48;  // keeps all products within 64 bits

// NumPy's names of the element types, less the byte order.
struct Descr {
  DType dtype;
  std::string_view name;
};
constexpr Descr kDescrs[] = {
    {DType::kF32, "f4"},  {DType::kF64, "f8"}, {DType::kF16, "f2"}, {DType::kBF16, "V2"},
    {DType::kBool, "b1"}, {DType::kU8, "u1"},  {DType::kI8, "i1"},  {DType::kU16, "u2"},
    {DType::kI16, "i2"},  {DType::kU32, "u4"}, {DType::kI32, "i4"}, {DType::kU64, "u8"},
    {DType::kI64, "i8"},
};

// Small types are the void of one byte that ml_dtypes makes of them. (It calls f8e5m2 "f1", which
// NumPy does not read back.)
constexpr std::string_view kSmallDescr = "<V1";

std::string descr_of(DType dtype) {
  if (is_small(dtype)) return std::string(kSmallDescr);
  for (const Descr& descr : kDescrs) {
    if (descr.dtype == dtype)
      return fmt::format("{}{}", dtype_bytes(dtype) == 1 ? '|' : '<', descr.name);
  }
  HONE_ASSERT(false, "every element type has a NumPy name");
}

// A void of one byte may be any small type: it is read as u8, for as_type().
Result<DType> dtype_of(std::string_view descr) {
  if (descr == kSmallDescr || descr == "|V1") return DType::kU8;
  if (descr == "<f1" || descr == "|f1") return kF8E5M2;
  for (const Descr& known : kDescrs) {
    if (descr.size() != 3 || descr.substr(1) != known.name) continue;
    const bool order_matters = dtype_bytes(known.dtype) > 1 && known.dtype != DType::kBF16;
    if (descr[0] == '>') return error(Code::kUnsupported, "found big-endian elements '{}'", descr);
    if (descr[0] == '<' || (descr[0] == '|' && !order_matters)) return known.dtype;
  }
  return error(Code::kUnsupported,
               "found elements of type '{}', expected plain numbers such as '<f4'", descr);
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }: each key once, in any order.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : rest_(text) {}

  std::optional<Header> read() {
    Header header;
    std::set<std::string> keys;
    if (!take("{")) return std::nullopt;
    while (!take("}")) {
      const std::optional<std::string> key = string();
      if (!key || !take(":") || !keys.insert(*key).second || !value(*key, header))
        return std::nullopt;
      if (!take(",") && peek() != '}') return std::nullopt;
    }
    if (keys.size() != 3 || peek() != '\0') return std::nullopt;
    return header;
  }

 private:
  bool value(const std::string& key, Header& header) {
    if (key == "descr") {
      const std::optional<std::string> text = string();
      if (text) header.descr = *text;
      return text.has_value();
    }
    if (key == "fortran_order") {
      header.fortran_order = take("True");
      return header.fortran_order || take("False");
    }
    return key == "shape" && tuple(header.shape);
  }

  bool tuple(Shape& shape) {
    if (!take("(")) return false;
    while (!take(")")) {
      const std::optional<int64_t> length = number();
      if (!length || shape.size() == kMaxRank) return false;
      shape.push_back(*length);
      if (!take(",") && (peek() != ')' || shape.size() < 2)) return false;
    }
    return true;
  }

  std::optional<int64_t> number() {
    (void)peek();
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (problem != std::errc() || value < 0) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  std::optional<std::string> string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  char peek() {  // the next character that is no blank, or 0 at the end
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
    return rest_.empty() ? '\0' : rest_[0];
  }

  bool take(std::string_view token) {
    (void)peek();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::string_view rest_;
};

// The header's text and the data behind it.
std::optional<std::pair<std::string_view, std::string_view>> split_file(std::string_view bytes) {
  const size_t start = kMagic.size() + 2;
  if (bytes.size() < start + 2) return std::nullopt;
  const auto major = static_cast<uint8_t>(bytes[kMagic.size()]);
  const size_t width = major == 1 ? 2 : 4;  // bytes of the length: 2 in version 1, 4 in 2 and 3
  if (major < 1 || major > 3 || bytes.size() < start + width) return std::nullopt;
  size_t length = 0;
  for (size_t i = 0; i < width; ++i)
    length |= static_cast<size_t>(static_cast<uint8_t>(bytes[start + i])) << (8 * i);
  if (bytes.size() - start - width < length) return std::nullopt;
  return std::pair(bytes.substr(start + width, length), bytes.substr(start + width + length));
}

// Counted without overflow; none if there are too many.
std::optional<int64_t> count_elements(const Shape& shape) {
  int64_t count = 1;
  int64_t without_zeros = 1;
  for (const int64_t length : shape) {
    if (length > kMaxElements / without_zeros) return std::nullopt;
    if (length > 0) without_zeros *= length;
    count *= length;
  }
  return count;
}

// Copies column-major data to row-major order.
void copy_transposed(const char* from, Tensor& to) {
  const Shape& shape = to.shape();
  const auto size = static_cast<size_t>(dtype_bytes(to.dtype()));
  const size_t rank = shape.size();
  std::vector<int64_t> stride(rank, 1);  // strides of the source, in elements
  for (size_t d = 1; d < rank; ++d) stride[d] = stride[d - 1] * shape[d - 1];
  std::vector<int64_t> index(rank, 0);
  auto* out = static_cast<char*>(to.data());
  int64_t source = 0;
  for (int64_t i = 0; i < to.size(); ++i) {
    std::memcpy(out + static_cast<size_t>(i) * size, from + static_cast<size_t>(source) * size,
                size);
    for (size_t d = rank; d-- > 0;) {
      source += stride[d];
      if (++index[d] < shape[d]) break;
      source -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

std::string describe(DType dtype, const Shape& shape) {
  std::vector<std::string> extents;
  for (const int64_t extent : shape)
    extents.push_back(extent < 0 ? "any" : fmt::format("{}", extent));
  return fmt::format("{} [{}]", dtype_name(dtype), fmt::join(extents, ", "));
}

Status in_file(const std::string& path, const Status& status) {
  return {status.code(), fmt::format("'{}': {}", path, status.message())};
}

}  // namespace

Result<Tensor> find_array(std::span<const NamedTensor> arrays, std::string_view name, DType dtype,
                          const Shape& shape) {
  const auto found = std::find_if(arrays.begin(), arrays.end(),
                                  [&](const NamedTensor& array) { return array.name == name; });
  if (found == arrays.end())
    return invalid("there is no array '{}', expected {}", name, describe(dtype, shape));
  const Tensor& tensor = found->tensor;
  const bool fits = std::equal(
      shape.begin(), shape.end(), tensor.shape().begin(), tensor.shape().end(),
      [](int64_t expected, int64_t extent) { return expected < 0 || expected == extent; });
  if (tensor.dtype() != dtype || !fits) {
    return invalid("array '{}': found {}, expected {}", name,
                   describe(tensor.dtype(), tensor.shape()), describe(dtype, shape));
  }
  return tensor;
}

Result<Tensor> parse_npy(std::string_view bytes) {
  if (!bytes.starts_with(kMagic))
    return invalid("not a .npy file: it does not start with the NumPy signature");
  const auto parts = split_file(bytes);
  if (!parts) return invalid("the .npy header is cut off or of an unknown version");
  const std::optional<Header> header = HeaderReader(parts->first).read();
  if (!header) return invalid("the .npy header is not understood");
  HONE_ASSIGN_OR_RETURN(const DType dtype, dtype_of(header->descr));
  const std::optional<int64_t> count = count_elements(header->shape);
  if (!count) return invalid("shape {} has too many elements", to_string(header->shape));
  const auto expected = static_cast<size_t>(*count * dtype_bytes(dtype));
  const std::string_view data = parts->second;
  if (data.size() != expected) {
    return invalid("found {} bytes of data, expected {} for {} {}", data.size(), expected,
                   dtype_name(dtype), to_string(header->shape));
  }
  Tensor tensor(dtype, header->shape);
  if (header->fortran_order) {
    copy_transposed(data.data(), tensor);
  } else if (expected > 0) {
    std::memcpy(tensor.data(), data.data(), expected);
  }
  return tensor;
}

std::string format_npy(const Tensor& tensor) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   descr_of(tensor.dtype()), fmt::join(tensor.shape(), ", "),
                                   tensor.shape().size() == 1 ? "," : "");
  // Blanks and a newline, so that the data is aligned to 64 bytes.
  const size_t prefix = kMagic.size() + 4;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes +=
      {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  bytes += header;
  const size_t data = bytes.size();
  bytes.append(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  // Only an integer's own bits, as ml_dtypes writes them.
  if (const int bits = small_integer_bits(tensor.dtype()); bits > 0) {
    for (size_t i = data; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>(bytes[i] & ((1 << bits) - 1));
  }
  return bytes;
}

Result<std::vector<NamedTensor>> parse_npz(std::string_view bytes) {
  constexpr std::string_view kSuffix = ".npy";
  HONE_ASSIGN_OR_RETURN(auto entries, parse_zip(bytes));
  std::vector<NamedTensor> tensors;
  std::set<std::string> names;
  for (const ZipEntry& entry : entries) {
    if (!entry.name.ends_with(kSuffix))
      return invalid("entry '{}' is not a .npy array", entry.name);
    std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    if (!names.insert(name).second) return invalid("array '{}' is there twice", name);
    Result<Tensor> tensor = parse_npy(entry.contents);
    if (!tensor.ok())
      return Status(tensor.status().code(),
                    fmt::format("array '{}': {}", name, tensor.status().message()));
    tensors.push_back({std::move(name), std::move(tensor).value()});
  }
  return tensors;
}

Result<std::string> format_npz(std::span<const NamedTensor> tensors, bool compress) {
  std::vector<ZipEntry> entries;
  std::set<std::string> names;
  for (const NamedTensor& named : tensors) {
    if (!names.insert(named.name).second) return invalid("array '{}' is given twice", named.name);
    entries.push_back({named.name + ".npy", format_npy(named.tensor)});
  }
  return format_zip(entries, compress);
}

Result<Tensor> read_npy(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, read_file(path));
  Result<Tensor> tensor = parse_npy(bytes);
  if (!tensor.ok()) return in_file(path, tensor.status());
  return tensor;
}

Status write_npy(const std::string& path, const Tensor& tensor) {
  return write_file_atomic(path, format_npy(tensor));
}

Result<std::vector<NamedTensor>> read_npz(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string bytes, read_file(path));
  Result<std::vector<NamedTensor>> tensors = parse_npz(bytes);
  if (!tensors.ok()) return in_file(path, tensors.status());
  return tensors;
}

Status write_npz(const std::string& path, std::span<const NamedTensor> tensors, bool compress) {
  Result<std::string> bytes = format_npz(tensors, compress);
  if (!bytes.ok()) return in_file(path, bytes.status());
  return write_file_atomic(path, *bytes);
}

}  // namespace hone
