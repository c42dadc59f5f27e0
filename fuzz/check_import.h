// fuzz/check_import.h - what the fuzz targets of the importer ask of any bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hone::fuzz {

// Imports the bytes as a model. They have to become tasks with a memory plan, or one error that
// names the file; small models then run within the bounds of their buffers, and give for a range of
// sizes what they give when they are imported for one of these alone. Open dimensions get ranges by
// the importer's rule. Aborts where this is not so.
void check_import(const uint8_t* data, size_t size);

// How many models became tasks so far, and how many were compared at one of their sizes.
struct ImportCounts {
  uint64_t planned = 0, compared = 0;
};
[[nodiscard]] const ImportCounts& import_counts();

}  // namespace hone::fuzz
