// cost/schedule_features.h - the decisions of a schedule as numbers that have the same meaning for
// every task: the tile sizes of the main statement by what moves with a loop and by where the loop
// is, what limits its innermost body, how it uses the caches, tails, copies and the other
// statements. "combined" reads them in addition to the parts of the measure.
#pragma once

#include <span>

#include "hone/analysis/cpu_measure.h"
#include "hone/cost/cost_model.h"
#include "hone/cost/inputs/row_writer.h"

namespace hone::cost {

// The heaviest statement and its measure; both are null if there is none.
struct MainStatement {
  const analysis::Nest* nest = nullptr;
  const analysis::StageMeasure* stage = nullptr;
  const analysis::RootMeasure* root = nullptr;
};

// Writes the numbers. If the query has no candidate, only names are written.
void write_schedule_features(const MainStatement& main, std::span<const analysis::Nest> nests,
                             const analysis::CpuMeasure& measure, const Query& query,
                             RowWriter& out);

}  // namespace hone::cost
