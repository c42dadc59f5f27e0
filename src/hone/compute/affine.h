// compute/affine.h - affine maps from a stage's axes to integers, and the reads of a stage as
// matrices. Footprints, strides and bounds are arithmetic on these, never on expressions.
#pragma once

#include <optional>
#include <span>

#include "hone/compute/dag.h"

namespace hone::compute {

// constant + sum coef[i] * axis[i], over a stage's axes followed by its reduce axes.
struct AffineRow {
  int64_t constant = 0;
  std::vector<int64_t> coef;
  bool operator==(const AffineRow&) const = default;
};

// The affine form of an index expression over `vars`; nothing if it is not affine in them.
[[nodiscard]] std::optional<AffineRow> affine_row(const ir::Expr& index,
                                                  std::span<const ir::VarPtr> vars);

// An affine condition row >= 0.
struct Guard {
  AffineRow row;
};

// One load of a stage's values (reads of the stage's own old values are left out).
struct Access {
  ir::BufferPtr buffer;
  std::vector<AffineRow> index;  // one row per dimension of the buffer
  bool guarded = false;  // under a select: indices may leave the buffer where it is not taken
};

// Whether the element that is read depends on an axis (a position in stage_axes).
[[nodiscard]] bool moves(const Access& read, int axis);

// Axes then reduce axes.
[[nodiscard]] std::vector<ir::VarPtr> stage_vars(const Stage& stage);
[[nodiscard]] std::vector<Axis> stage_axes(const Stage& stage);
// The reads of all outputs' values, equal ones once. Needs a verified Dag.
[[nodiscard]] std::vector<Access> reads(const Stage& stage);
// The write map of an output, one row per dimension of its buffer.
[[nodiscard]] std::vector<AffineRow> write_rows(const Stage& stage, const Output& output);
// A condition as a conjunction of affine guards; nothing if it is not one.
[[nodiscard]] std::optional<std::vector<Guard>> affine_guards(const ir::Expr& condition,
                                                              std::span<const ir::VarPtr> vars);

}  // namespace hone::compute
