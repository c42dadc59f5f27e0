// shape_texts.h - what users write behind --shape for jobs that read a model: extents that are
// numbers, ranges or symbols.
#pragma once

#include "hone/options.h"

namespace hone::tool {

// Reads texts such as "x=1..8x3x224x224", "ids=batchxseq", "ids=batch,max_seq", "seq=1..512" into
// ModelOptions::shapes, if all extents are numbers, and ModelOptions::ranges.
[[nodiscard]] Status parse_shape_ranges(const std::vector<std::string>& texts,
                                        ModelOptions& options);

}  // namespace hone::tool
