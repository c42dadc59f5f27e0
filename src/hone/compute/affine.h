// compute/affine.h - affine maps from a stage's axes to integers, and the reads of a stage as
// matrices. Footprints, strides and bounds are computed from these, never from expressions.
#pragma once

#include <optional>
#include <span>

#include "hone/compute/dag.h"

namespace hone::compute {

// The form constant + sum of coef[i] * axis[i], over a stage's axes followed by its reduce axes.
struct AffineRow {
  int64_t constant = 0;
  std::vector<int64_t> coef;
  bool operator==(const AffineRow&) const = default;
};

// Returns the affine form of an index expression over `vars`, or nothing if it is not affine in
// them.
[[nodiscard]] std::optional<AffineRow> affine_row(const ir::Expr& index,
                                                  std::span<const ir::VarPtr> vars);

// The condition row >= 0.
struct Guard {
  AffineRow row;
};

// One load of a stage's values. Reads of the stage's own old values are left out.
struct Access {
  ir::BufferPtr buffer;
  std::vector<AffineRow> index;  // one row per dimension of the buffer
  // Under a select; where that does not choose the load, indices may leave the buffer.
  bool guarded = false;
  // False if an index has quotients or remainders, as digits of a number do. Such a row says how
  // the index moves with small values of the axes, where a quotient stays 0.
  bool exact = true;
};

// Returns whether the element that is read depends on an axis (a position in stage_axes).
[[nodiscard]] bool moves(const Access& read, int axis);

// Both functions return the axes followed by the reduce axes.
[[nodiscard]] std::vector<ir::VarPtr> stage_vars(const Stage& stage);
[[nodiscard]] std::vector<Axis> stage_axes(const Stage& stage);
// Returns the reads of all outputs' values without duplicates. The Dag must be verified.
[[nodiscard]] std::vector<Access> reads(const Stage& stage);
// Returns the write map of an output, one row per dimension of its buffer.
[[nodiscard]] std::vector<AffineRow> write_rows(const Stage& stage, const Output& output);
// Returns a condition as a conjunction of affine guards, or nothing if it is not one.
[[nodiscard]] std::optional<std::vector<Guard>> affine_guards(const ir::Expr& condition,
                                                              std::span<const ir::VarPtr> vars);

}  // namespace hone::compute
