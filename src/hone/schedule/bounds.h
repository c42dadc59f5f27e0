// schedule/bounds.h - what every loop of a State runs over: integer arithmetic on the stages'
// affine maps, from the outputs back to the inputs. Features and lowering both use this, so what a
// cost model sees is what runs, but for products with zeros around an input (Param::zeros), which
// some loops leave out and features count.
#pragma once

#include "hone/base/small_vector.h"
#include "hone/schedule/state.h"

namespace hone::schedule {

// A loop's variable or, for a loop fused into another, the digit that it is there.
struct Term {
  int16_t stage;
  int16_t loop;
  int64_t coef;
};

// constant + sum of terms.
struct Linear {
  static constexpr size_t kMaxTerms = 24;
  int64_t constant = 0;
  SmallVector<Term, 6> terms;
  [[nodiscard]] bool add(int stage, int loop, int64_t coef);  // false: no room
  [[nodiscard]] bool add(const Linear& other, int64_t scale);
  [[nodiscard]] bool same_terms(const Linear& other) const;
  [[nodiscard]] const Term* begin() const { return terms.begin(); }
  [[nodiscard]] const Term* end() const { return terms.end(); }
};

struct AxisBounds {
  Linear min;                 // in terms of loops around the stage
  int64_t extent = 0;         // points needed per run of the stage
  int64_t reach = 0;          // points that its loops run through, tests apart; >= extent
  Linear own;                 // the stage's own loops; the axis' value is min + own
  bool pad = false;           // runs through `reach` without tests
  bool guard_low = false;     // value may be below 0
  bool guard_high = false;    // value may be beyond the axis
  bool guard_region = false;  // value - min may be beyond extent
  bool clipped = false;       // tests keep it within `extent` points
  [[nodiscard]] int64_t computed() const { return clipped ? extent : reach; }
};

struct LoopBounds {
  int64_t extent = 1;
  int64_t digit_stride = 1;  // fused into another: its weight there
  int last_leaf = -1;        // innermost position in `order` that its value depends on
};

// What is stored along a dimension of a buffer.
struct StoredDim {
  Linear min;
  int64_t extent;  // elements, before layout; folded: the factor
};

// Points of an axis that nobody needs, so that the axis' outermost loop ends early: those at
// `limit` and beyond, from the next multiple of `step` on (schedule/ends.h).
struct AxisEnd {
  int axis;
  int loop;       // the outermost loop of the axis: serial, or vectorized
  int64_t chunk;  // points of the limit per iteration; a vectorized loop's are ended by so many
  Linear limit;   // over loops outside of that one
  int64_t step;   // a multiple of chunk
  int64_t unit;   // points of the limit that a point of the axis stands for: the keys of a tile
};

struct StageBounds {
  std::vector<AxisBounds> axes;   // spatial then reduce
  std::vector<LoopBounds> loops;  // of the StageState
  std::vector<int> overlapping;   // parts of a split that were split unevenly again: their loops
                                  // would run into the next part and need a test
  // Of each output, per dimension of its buffer; the same for all stages that write it.
  std::vector<std::vector<StoredDim>> storage;
  std::vector<AxisEnd> ends;  // of the axes that end early
  bool slides = false;        // folded: computes only what the previous iteration did not
  int slide_axis = -1;
  int64_t slide_stride = 0;  // how far the region moves per iteration
};

struct Bounds {
  std::vector<StageBounds> stages;
};

// Illegal schedules that steps alone cannot see end here, with a reason.
[[nodiscard]] Result<Bounds> infer_bounds(const State& state);

// The range of a linear form over all iterations of its loops.
[[nodiscard]] std::pair<int64_t, int64_t> range(const Linear& linear, const Bounds& bounds);
// Physical shape of a stage's buffer (output 0) after layout.
[[nodiscard]] std::vector<int64_t> storage_shape(const StageState& stage, const StageBounds& bounds,
                                                 int output = 0);
// Elements readable along a dimension, counting what the layout's blocks round up.
[[nodiscard]] int64_t padded_extent(const StageState& stage, const StageBounds& bounds, int dim);

// The loops around a stage, outermost first: (stage, loop) pairs.
[[nodiscard]] std::vector<std::pair<int, int>> enclosing_loops(const State& state,
                                                               const Place& place);

}  // namespace hone::schedule
