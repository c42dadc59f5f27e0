// space/portable_point.h - a point of a space as values with names, so that it means something in
// the space of another task: other extents, another epilogue, another device. Its text is what a
// record keeps: "direct relu:lanes=8 relu:column=7/56 relu:block=14/56" (a tile of 7 of 56 points).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/space/space.h"

namespace hone::space {

struct PortableChoice {
  std::string stage, role;  // Decision::name in its two parts
  int64_t value = 0;
  int64_t extent = 0;  // extent of the axis that the tile divides; 0: it is no tile
  bool operator==(const PortableChoice&) const = default;
};

struct PortablePoint {
  std::string algorithm;
  std::vector<PortableChoice> choices;
  bool operator==(const PortablePoint&) const = default;
};

// Returns whether a decision was added later, so that points of earlier programs do not name it.
// Such points mean its first option, which does what earlier programs did.
[[nodiscard]] bool came_later(const Decision& decision);

[[nodiscard]] PortablePoint to_portable(const Space& space, const Point& point);
[[nodiscard]] std::string to_string(const PortablePoint& point);
[[nodiscard]] Result<PortablePoint> parse_portable_point(std::string_view text);
// Returns the point that a record's text names; nullopt if the text cannot be parsed.
[[nodiscard]] std::optional<PortablePoint> known_point(std::string_view text);

// Returns the legal points of `space` that correspond to a point of another space, the closest
// first and without repetition: tiles have the same lengths, or divide their axis where they did,
// or grow with their axis. A choice is matched with a decision by stage and role, or else by role
// in the same order. A decision without a choice has the option that does what was done before it
// was added, or that of the default point. The result is empty if the algorithm does not apply.
[[nodiscard]] std::vector<Point> adapt(const PortablePoint& point, const Space& space);
// Adapts a schedule whose point may be unknown. Without the point it returns the one nearest to the
// steps, which is far slower to find.
[[nodiscard]] std::vector<Point> adapt(const std::optional<PortablePoint>& point,
                                       const schedule::Steps& steps, const Space& space);
// Returns the adapted point that makes exactly these steps; nullopt if there is none.
[[nodiscard]] std::optional<Point> exact_point(const std::optional<PortablePoint>& point,
                                               const schedule::Steps& steps, const Space& space);

}  // namespace hone::space
