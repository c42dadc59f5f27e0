// base/shape_texts.h - parses what users write for the shapes of a model's inputs: extents that are
// numbers, ranges or symbols.
#pragma once

#include <string>
#include <vector>

#include "hone/base/status.h"
#include "hone/options.h"

namespace hone {

// Reads texts such as "x=1..8x3x224x224", "ids=batchxseq", "ids=batch,max_seq", "seq=1..512" into
// ModelOptions::shapes, if all extents are numbers, and ModelOptions::ranges. An error begins with
// the name of the option.
[[nodiscard]] Status parse_shape_ranges(const std::vector<std::string>& texts,
                                        ModelOptions& options,
                                        const std::string& option = "--shape");

}  // namespace hone
