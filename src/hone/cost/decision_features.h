// cost/decision_features.h - numbers that schedules for CPUs (schedule_features.h) and for GPUs
// (gpu_features.h) have in common: the roles of loops, which mean the same in every task, and
// the numbers that tails and steps give.
#pragma once

#include <array>
#include <string_view>

#include "hone/analysis/nest.h"
#include "hone/cost/cost_model.h"
#include "hone/cost/inputs/row_writer.h"

namespace hone::cost {

// By what moves with a loop. In a product of matrices: the sum, rows of the left, columns of the
// right; in a convolution the sum over channels, that over the window, points of the image, and
// channels of the result.
enum Role : uint8_t { kSum, kWindow, kBoth, kColumn, kRow, kSecond, kNeither };
inline constexpr std::array<std::string_view, 7> kRoles = {"sum", "window", "both",   "column",
                                                           "row", "second", "neither"};
// Returns the role of each loop.
[[nodiscard]] std::vector<Role> find_roles(const analysis::Nest& nest);
// Returns a read of the nest, or null if it has not so many.
[[nodiscard]] const analysis::NestAccess* read_of(const analysis::Nest* nest, size_t i);

// Writes the tails of a statement and of the one in which it is computed: along the last axis,
// whose neighbours are adjacent in memory, and along the others. The statement may be null.
void write_tails(const analysis::Nest* nest, const Query& query, RowWriter& out);
// Writes how often some steps occur. If the query has no candidate, only names are written.
void write_steps(const Query& query, RowWriter& out);

}  // namespace hone::cost
