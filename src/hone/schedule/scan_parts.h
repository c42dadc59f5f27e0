// schedule/scan_parts.h - divides a scan into parts of its row, so that threads share a row:
//
//   s = 0  for n { s = s + x[n]  y[n] = s }
//   -->  parts but the last:  t = 0  for n of the part { t = t + x[n] }  rf[part] = t
//        parts:               s = 0  for p before the part { s = s + rf[p] }
//                             for n of the part { s = s + x[n]  y[n] = s }
#pragma once

#include <optional>

#include "hone/compute/dag.h"
#include "hone/schedule/step.h"

namespace hone::schedule {

// A body that is a scan: alloc sum { first  loop { ... update ... } }.
struct ScanBody {
  ir::BufferPtr sum;
  ir::Stmt first, loop, update;
};
// Returns the scan over the loop of that name that a body is, if it is one.
[[nodiscard]] std::optional<ScanBody> match_scan(const compute::Stage& stage,
                                                 std::string_view name);
// Returns the sum of no steps.
[[nodiscard]] ir::Expr identity_of(const ScanBody& scan);

// Returns the two stages for a stage whose body is a scan (ir/scan_loop.h) over the loop
// `step.axis`, in parts of `step.factor` elements. It is an error if the body is no scan or if one
// part would hold all elements. The number of the part becomes the last axis of both stages.
[[nodiscard]] Result<std::vector<compute::Stage>> scan_in_parts(const compute::Stage& stage,
                                                                const RFactor& step,
                                                                std::string part_name);

}  // namespace hone::schedule
