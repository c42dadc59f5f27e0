// artifact/file_at.h - reads and writes bytes at a place of a file, for the headers and tables of
// ELF. All return false if not all of the bytes were read or written.
#pragma once

#include <cstdint>
#include <cstdio>

namespace hone::artifact {

[[nodiscard]] inline bool seek_to(std::FILE* file, uint64_t offset) {
  return offset <= INT64_MAX && std::fseek(file, static_cast<int64_t>(offset), SEEK_SET) == 0;
}
[[nodiscard]] inline bool read_at(std::FILE* file, uint64_t offset, void* data, size_t size) {
  return seek_to(file, offset) && std::fread(data, 1, size, file) == size;
}
[[nodiscard]] inline bool write_at(std::FILE* file, uint64_t offset, const void* data,
                                   size_t size) {
  return seek_to(file, offset) && std::fwrite(data, 1, size, file) == size;
}

}  // namespace hone::artifact
