#include "hone/commands/own/point_conversion.h"

#include <algorithm>

namespace hone {
namespace {

constexpr int32_t kNone = -1;  // behind a sketch's decisions

std::string_view kind_name(space::DecisionKind kind) {
  switch (kind) {
    case space::DecisionKind::kTile: return "tile";
    case space::DecisionKind::kOrder: return "order";
    case space::DecisionKind::kUnroll: return "unroll";
    case space::DecisionKind::kVector: return "vector";
    case space::DecisionKind::kParallel: return "parallel";
    case space::DecisionKind::kTail: return "tail";
    case space::DecisionKind::kPacking: return "packing";
  }
  return "";
}

Result<space::Point> checked_row(const space::Space& space, std::span<const int32_t> row,
                                 size_t number) {
  if (row[0] < 0 || row[0] >= space.num_sketches())
    return invalid("point {}: the sketch is {}, expected 0 to {}", number, row[0],
                   space.num_sketches() - 1);
  space::Point point{.sketch = row[0], .choices = {}};
  const std::vector<space::Decision>& decisions = space.decisions(point.sketch);
  for (size_t d = 0; d < decisions.size(); ++d) {
    const int32_t choice = row[d + 1];
    if (choice < 0 || choice >= std::ssize(decisions[d].options))
      return invalid("point {}: the option of {} is {}, expected 0 to {}", number,
                     decisions[d].name, choice, std::ssize(decisions[d].options) - 1);
    point.choices.push_back(choice);
  }
  for (size_t i = decisions.size() + 1; i < row.size(); ++i) {
    if (row[i] != kNone)
      return invalid("point {}: found {} behind the {} decisions of sketch {}, expected {}", number,
                     row[i], decisions.size(), row[0], kNone);
  }
  return point;
}

Status check_width(const space::Space& space, size_t width) {
  const size_t expected = row_width(space);
  if (width == expected) return ok_status();
  return invalid("points have {} numbers each, expected {}", width, expected);
}

}  // namespace

std::vector<SketchInfo> sketches_of(const space::Space& space) {
  std::vector<SketchInfo> sketches;
  for (int s = 0; s < space.num_sketches(); ++s) {
    SketchInfo& sketch = sketches.emplace_back();
    sketch.algorithm = space.algorithm(s);
    sketch.for_threads = space.is_for_threads(s);
    for (const space::Decision& decision : space.decisions(s))
      sketch.decisions.push_back(
          {decision.name, std::string(kind_name(decision.kind)), decision.options});
  }
  return sketches;
}

size_t row_width(const space::Space& space) {
  size_t most = 0;
  for (int s = 0; s < space.num_sketches(); ++s) most = std::max(most, space.decisions(s).size());
  return most + 1;
}

PointRows to_rows(const space::Space& space, std::span<const space::Point> points) {
  PointRows rows{.width = row_width(space), .values = {}};
  rows.values.assign(points.size() * rows.width, kNone);
  for (size_t i = 0; i < points.size(); ++i) {
    int32_t* const row = &rows.values[i * rows.width];
    row[0] = points[i].sketch;
    std::ranges::copy(points[i].choices, row + 1);
  }
  return rows;
}

Result<std::vector<space::Point>> from_rows(const space::Space& space, const PointRows& rows) {
  if (rows.values.empty()) return std::vector<space::Point>();
  HONE_RETURN_IF_ERROR(check_width(space, rows.width));
  std::vector<space::Point> points;
  points.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(space::Point point, checked_row(space, rows.row(i), i));
    points.push_back(std::move(point));
  }
  return points;
}

Result<space::Point> from_row(const space::Space& space, std::span<const int32_t> row) {
  HONE_RETURN_IF_ERROR(check_width(space, row.size()));
  return checked_row(space, row, 0);
}

}  // namespace hone
