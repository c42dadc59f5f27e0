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
  int64_t extent = 0;  // points that the tile divides; 0: it is no tile
  bool operator==(const PortableChoice&) const = default;
};

struct PortablePoint {
  std::string algorithm;
  std::vector<PortableChoice> choices;
  bool operator==(const PortablePoint&) const = default;
};

// Whether points of earlier programs do not speak of a decision, as their spaces did not have it.
// It then means the first option, which does what was done.
[[nodiscard]] bool came_later(const Decision& decision);

[[nodiscard]] PortablePoint to_portable(const Space& space, const Point& point);
[[nodiscard]] std::string to_string(const PortablePoint& point);
[[nodiscard]] Result<PortablePoint> parse_portable_point(std::string_view text);
// What a record's text says; nothing if it has none that can be read.
[[nodiscard]] std::optional<PortablePoint> known_point(std::string_view text);

// The legal points of `space` that correspond to a point of another one, the closest first, without
// repetition: tiles as long as they were; tiles that divide their axis where they did; tiles that
// grow with their axis. A choice finds its counterpart by stage and role, else by role in the same
// order; what has none stays as it was before there was a choice, or at the rule of thumb. Empty if
// the algorithm does not apply.
[[nodiscard]] std::vector<Point> adapt(const PortablePoint& point, const Space& space);
// The same for a schedule whose point may be unknown: then the one nearest to its steps, which is
// far slower to find.
[[nodiscard]] std::vector<Point> adapt(const std::optional<PortablePoint>& point,
                                       const schedule::Steps& steps, const Space& space);
// Of those the one that makes exactly these steps.
[[nodiscard]] std::optional<Point> exact_point(const std::optional<PortablePoint>& point,
                                               const schedule::Steps& steps, const Space& space);

}  // namespace hone::space
