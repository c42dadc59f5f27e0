// graph/ops/common_shape.h - values of which data decide the shapes and that are put side by side:
// a run in which these differ ends with an error that names two of them.
#pragma once

#include <optional>

#include "hone/graph/extents.h"

namespace hone::graph {

// The shapes of values of one rank.
struct Shapes {
  std::vector<ValueId> values;
  // By value, a bool that says whether a run has it; missing if all runs do. A run that lacks one
  // lacks those behind it, too.
  std::vector<ValueId> is_there;
  std::optional<size_t> axis;  // the dimension in which they may differ
};

// This is common to them.
struct CommonShape {
  Shape most;                     // the largest extents
  std::vector<ExtentPart> parts;  // those of the first value that a run has, numbers where known
  std::vector<bool> differs;      // by dimension: a run may have different extents
  [[nodiscard]] bool is_checked() const;
};

// Returns what is common to shapes; an error with this text if all runs have different ones.
[[nodiscard]] Result<CommonShape> common_shape(ExpandContext& c, const Shapes& shapes,
                                               const std::string& text);

// Vectors of extents, which are to be equal in some dimensions.
struct ExtentsCheck {
  std::vector<ValueId> extents;
  std::vector<ValueId> is_there;  // Shapes::is_there
  std::vector<bool> dims;         // which are compared
  std::string text;               // the error says it
};
// Returns copies of `values`, in front of them one of the first extents. A run in which extents
// differ ends with the text and two of them.
[[nodiscard]] Result<std::vector<ValueId>> check_extents(ExpandContext& c,
                                                         const ExtentsCheck& check,
                                                         const std::vector<ValueId>& values);

// Returns a value without extents in the largest shape that is common to it and others, except
// along `axis`.
[[nodiscard]] ValueId in_common_shape(ExpandContext& c, ValueId x, const CommonShape& common,
                                      std::optional<size_t> axis);

}  // namespace hone::graph
