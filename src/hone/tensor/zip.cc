#include "hone/tensor/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "hone/base/memory_bound.h"

namespace hone {
namespace {

// Layouts: PKWARE APPNOTE 6.3, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.16
// (its end).
constexpr uint32_t kLocalMagic = 0x04034b50;
constexpr uint32_t kCentralMagic = 0x02014b50;
constexpr uint32_t kEndMagic = 0x06054b50;
constexpr size_t kLocalBytes = 30;
constexpr size_t kCentralBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kMaxComment = 0xffff;
constexpr uint32_t kMax32 = 0xffffffff;  // stands for "see the ZIP64 record"
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kEncrypted = 1;  // bit of the flags
constexpr uint64_t kMaxInflation =
    1032;  // no deflate stream expands further (zlib, "Technical Details")
// Copies of what was unpacked: the entries, and what is made of them.
constexpr int64_t kCopies = 2;
constexpr uint16_t kVersion = 20;   // 2.0: deflate
constexpr uint16_t kNoDate = 0x21;  // 1980-01-01, the first that can be said

uint16_t get16(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) | static_cast<uint8_t>(bytes[at + 1])
                                                                     << 8);
}
uint32_t get32(std::string_view bytes, size_t at) {
  return get16(bytes, at) | static_cast<uint32_t>(get16(bytes, at + 2)) << 16;
}
void put16(std::string& bytes, uint16_t value) {
  bytes += static_cast<char>(value & 0xff);
  bytes += static_cast<char>(value >> 8);
}
void put32(std::string& bytes, uint32_t value) {
  put16(bytes, static_cast<uint16_t>(value & 0xffff));
  put16(bytes, static_cast<uint16_t>(value >> 16));
}

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// The bytes of a raw deflate stream; none unless it is whole and gives exactly `size` bytes.
std::optional<std::string> inflate_raw(std::string_view packed, uint32_t size) {
  if (size > (packed.size() + 1) * kMaxInflation) return std::nullopt;
  std::string contents(size, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(contents.data());
  stream.avail_out = size;
  const int end = inflate(&stream, Z_FINISH);
  const bool whole = end == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole) return std::nullopt;
  return contents;
}

std::string deflate_raw(std::string_view contents) {
  z_stream stream = {};
  const int started =
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  HONE_ASSERT(started == Z_OK, "zlib takes its own defaults");
  std::string packed(deflateBound(&stream, contents.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int end = deflate(&stream, Z_FINISH);
  HONE_ASSERT(end == Z_STREAM_END, "deflateBound is a bound");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// The fields that the local header and the central directory have in common, from the version
// needed on.
struct Fields {
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint32_t packed = 0;
  uint32_t size = 0;
  uint16_t name = 0;   // length
  uint16_t extra = 0;  // length

  static Fields read(std::string_view bytes, size_t at) {
    return {get16(bytes, at + 2),  get16(bytes, at + 4),  get32(bytes, at + 10),
            get32(bytes, at + 14), get32(bytes, at + 18), get16(bytes, at + 22),
            get16(bytes, at + 24)};
  }
  void write(std::string& bytes) const {
    put16(bytes, kVersion), put16(bytes, flags), put16(bytes, method), put16(bytes, 0),
        put16(bytes, kNoDate);
    put32(bytes, crc), put32(bytes, packed), put32(bytes, size), put16(bytes, name),
        put16(bytes, extra);
  }
};

// Returns where the end record starts.
std::optional<size_t> find_end(std::string_view bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  const size_t last = bytes.size() - kEndBytes;
  for (size_t back = 0; back <= std::min(last, kMaxComment); ++back) {
    const size_t at = last - back;
    if (get32(bytes, at) == kEndMagic && get16(bytes, at + 20) == back) return at;
  }
  return std::nullopt;
}

Result<std::string> unpack(std::string_view bytes, const std::string& name, const Fields& fields,
                           uint32_t offset) {
  if ((fields.flags & kEncrypted) != 0)
    return error(Code::kUnsupported, "entry '{}' is encrypted", name);
  if (fields.packed == kMax32 || fields.size == kMax32 || offset == kMax32) {
    return error(Code::kUnsupported, "entry '{}' is in ZIP64 format, expected less than 4 GiB",
                 name);
  }
  if (offset > bytes.size() || bytes.size() - offset < kLocalBytes ||
      get32(bytes, offset) != kLocalMagic) {
    return invalid("entry '{}' has no local header", name);
  }
  const Fields local = Fields::read(bytes, offset + 4);
  const size_t start = offset + kLocalBytes + local.name + local.extra;
  if (start > bytes.size() || bytes.size() - start < fields.packed)
    return invalid("entry '{}' is cut off", name);
  const std::string_view packed = bytes.substr(start, fields.packed);
  std::optional<std::string> contents;
  if (fields.method == kStored && fields.packed == fields.size) contents = std::string(packed);
  if (fields.method == kDeflated) contents = inflate_raw(packed, fields.size);
  if (fields.method != kStored && fields.method != kDeflated) {
    return error(Code::kUnsupported,
                 "entry '{}' has compression method {}, expected stored or deflate", name,
                 fields.method);
  }
  if (!contents || crc_of(*contents) != fields.crc) return invalid("entry '{}' is corrupt", name);
  return std::move(*contents);
}

}  // namespace

Result<std::vector<ZipEntry>> parse_zip(std::string_view bytes) {
  const std::optional<size_t> end = find_end(bytes);
  if (!end) return invalid("not a whole ZIP archive: no end record");
  const uint16_t count = get16(bytes, *end + 10);
  const uint32_t directory = get32(bytes, *end + 16);
  if (count == 0xffff || directory == kMax32)
    return error(Code::kUnsupported, "the archive is in ZIP64 format");
  std::vector<ZipEntry> entries;
  uint64_t packed_total = 0;  // overlapping entries could otherwise multiply what is unpacked
  int64_t unpacked_total = 0;
  size_t at = directory;
  for (uint16_t i = 0; i < count; ++i) {
    if (at > *end || *end - at < kCentralBytes || get32(bytes, at) != kCentralMagic) {
      return invalid("entry {} of {} is not in the archive's directory", i + 1, count);
    }
    const Fields fields = Fields::read(bytes, at + 6);
    const size_t after = at + kCentralBytes + fields.name + fields.extra + get16(bytes, at + 32);
    packed_total += fields.packed;
    if (after > *end || packed_total > bytes.size())
      return invalid("entry {} of {} is too long", i + 1, count);
    std::string name(bytes.substr(at + kCentralBytes, fields.name));
    unpacked_total += fields.size;
    if (unpacked_total > most_input_bytes() / kCopies) {
      return invalid(
          "entry '{}': unpacked, the archive has {} bytes up to here, expected at most {}, "
          "half of {}",
          name, unpacked_total, most_input_bytes() / kCopies, input_bound_text());
    }
    HONE_ASSIGN_OR_RETURN(std::string contents, unpack(bytes, name, fields, get32(bytes, at + 42)));
    entries.push_back({std::move(name), std::move(contents)});
    at = after;
  }
  return entries;
}

Result<std::string> format_zip(std::span<const ZipEntry> entries, bool deflate) {
  std::string bytes;
  std::string directory;
  if (entries.size() >= 0xffff)
    return error(Code::kUnsupported, "found {} entries, at most 65534 fit", entries.size());
  for (const ZipEntry& entry : entries) {
    if (entry.name.size() > 0xffff)
      return invalid("an entry's name has {} bytes, at most 65535 fit", entry.name.size());
    if (entry.contents.size() >= kMax32 - kMaxComment ||
        bytes.size() + entry.contents.size() >= kMax32 - kMaxComment) {
      return error(Code::kUnsupported, "entry '{}' does not fit: an archive holds less than 4 GiB",
                   entry.name);
    }
    std::string packed = deflate ? deflate_raw(entry.contents) : std::string();
    const bool smaller = deflate && packed.size() < entry.contents.size();
    const std::string_view data =
        smaller ? std::string_view(packed) : std::string_view(entry.contents);
    Fields fields;
    fields.method = smaller ? kDeflated : kStored;
    fields.crc = crc_of(entry.contents);
    fields.packed = static_cast<uint32_t>(data.size());
    fields.size = static_cast<uint32_t>(entry.contents.size());
    fields.name = static_cast<uint16_t>(entry.name.size());

    put32(directory, kCentralMagic);
    put16(directory, kVersion);
    fields.write(directory);
    put16(directory, 0), put16(directory, 0), put16(directory, 0),
        put32(directory, 0);  // comment, disk, attributes
    put32(directory, static_cast<uint32_t>(bytes.size()));
    directory += entry.name;

    put32(bytes, kLocalMagic);
    fields.write(bytes);
    bytes += entry.name;
    bytes += data;
  }
  const auto start = static_cast<uint32_t>(bytes.size());
  const auto count = static_cast<uint16_t>(entries.size());
  bytes += directory;
  put32(bytes, kEndMagic);
  put16(bytes, 0), put16(bytes, 0), put16(bytes, count), put16(bytes, count);
  put32(bytes, static_cast<uint32_t>(directory.size()));
  put32(bytes, start);
  put16(bytes, 0);
  return bytes;
}

}  // namespace hone
