// own/point_conversion.h - points of a space as the rows of the public interface, and back.
#pragma once

#include <span>
#include <vector>

#include "hone/model_task.h"
#include "hone/space/space.h"

namespace hone {

[[nodiscard]] std::vector<SketchInfo> sketches_of(const space::Space& space);
// Returns the width of the rows of a space.
[[nodiscard]] size_t row_width(const space::Space& space);

[[nodiscard]] PointRows to_rows(const space::Space& space, std::span<const space::Point> points);
// Returns the points, which may be illegal; an error names the row and the decision that is wrong.
[[nodiscard]] Result<std::vector<space::Point>> from_rows(const space::Space& space,
                                                          const PointRows& rows);
[[nodiscard]] Result<space::Point> from_row(const space::Space& space,
                                            std::span<const int32_t> row);

}  // namespace hone
