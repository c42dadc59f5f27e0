#include "hone/graph/onnx_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <onnx/onnx_pb.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "hone/base/allocation.h"
#include "hone/base/file.h"
#include "hone/base/memory_bound.h"
#include "hone/graph/onnx_tensor.h"

namespace hone::graph {
namespace {

constexpr int kMaxProtobufDepth = 64;  // messages within messages; ONNX needs 5 without subgraphs
constexpr size_t kMaxProtobufBytes = 0x7fffffff;  // protobuf's own limit

Status check_size(size_t size, const std::string& file) {
  if (size <= kMaxProtobufBytes) return ok_status();
  return error(Code::kUnsupported, "{}: {} bytes; above 2 GB the weights must be external data",
               file, size);
}

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

}  // namespace

Status parse_onnx(const void* data, size_t size, const std::string& file, onnx::ModelProto& model) {
  if (size == 0) return invalid("{}: not an ONNX file: it is empty", file);
  const std::string_view start(static_cast<const char*>(data), std::min<size_t>(size, 4));
  if (start ==
      "\x7f"
      "ELF")
    return invalid(
        "{}: not an ONNX file but a library or a program, expected the model that it was compiled "
        "from",
        file);
  HONE_RETURN_IF_ERROR(check_size(size, file));
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

Status parse_onnx_file(const std::string& path, onnx::ModelProto& model) {
  const File file(path);
  const Result<int64_t> size = file.size();
  if (!size.ok()) return error(size.status().code(), "{}: {}", path, size.status().message());
  if (*size == 0) return invalid("{}: not an ONNX file: it is empty", path);
  const auto bytes = static_cast<size_t>(*size);
  HONE_RETURN_IF_ERROR(check_size(bytes, path));
  HONE_RETURN_IF_ERROR(check_input_bytes(path, *size));
  const AllocatesFor purpose(path);
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return error(Code::kIo, "{}: {}", path, errno_text(errno));
  Status status = parse_onnx(data, bytes, path, model);
  munmap(data, bytes);  // before the weights are copied: never three times in memory
  return status;
}

}  // namespace hone::graph
