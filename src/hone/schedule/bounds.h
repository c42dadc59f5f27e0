// schedule/bounds.h - infers the ranges of all loops of a State by integer arithmetic on the
// stages' affine maps, from the outputs back to the inputs. Features and lowering both use them, so
// a cost model sees what runs. What some loops leave out and
// features count are products with zeros around an input (Param::zeros) and points that no reader
// needs (schedule/reader_limit.h).
#pragma once

#include "hone/base/small_vector.h"
#include "hone/schedule/state.h"

namespace hone::schedule {

// A loop's variable with a coefficient. A loop that is fused into another stands for its digit of
// the fused variable.
struct Term {
  int16_t stage;
  int16_t loop;
  int64_t coef;
};

// The form constant + sum of terms.
struct Linear {
  static constexpr size_t kMaxTerms = 24;
  int64_t constant = 0;
  SmallVector<Term, 6> terms;
  // False if there is no room for another term.
  [[nodiscard]] bool add(int stage, int loop, int64_t coef);
  [[nodiscard]] bool add(const Linear& other, int64_t scale);
  [[nodiscard]] bool same_terms(const Linear& other) const;
  [[nodiscard]] const Term* begin() const { return terms.begin(); }
  [[nodiscard]] const Term* end() const { return terms.end(); }
};

struct AxisBounds {
  Linear min;                 // lower end, in terms of loops around the stage
  int64_t extent = 0;         // points needed per run of the stage
  int64_t reach = 0;          // points that its loops iterate over, not counting tests; >= extent
  Linear own;                 // in terms of the stage's own loops; the axis' value is min + own
  bool pad = false;           // computes all points of `reach` without tests
  bool guard_low = false;     // the value may be below 0
  bool guard_high = false;    // the value may be beyond the axis
  bool guard_region = false;  // value - min may be beyond extent
  bool clipped = false;       // tests restrict it to `extent` points
  [[nodiscard]] int64_t computed() const { return clipped ? extent : reach; }
};

struct LoopBounds {
  int64_t extent = 1;
  int64_t digit_stride = 1;  // for a loop that is fused into another: the weight of its digit
  int last_leaf = -1;        // innermost position in `order` that its value depends on
};

// The part of a buffer's dimension that is stored.
struct StoredDim {
  Linear min;
  int64_t extent;  // in elements, before layout; the factor if the dimension is folded
};

// A limit of the trip count of an axis' outermost loop: the points of the axis at `limit` and
// beyond are not needed, from the next multiple of `step` on (schedule/trip_limits.h).
struct TripLimit {
  int axis;
  int loop;       // outermost loop of the axis, serial or vectorized
  int64_t chunk;  // points of the limit per iteration; a vectorized loop is cut at multiples of it
  Linear limit;   // in terms of the loops outside that one
  int64_t step;   // multiple of chunk
  int64_t unit;   // points of the limit per point of the axis: the keys of a tile
};

struct StageBounds {
  std::vector<AxisBounds> axes;   // spatial, then reduce axes
  std::vector<LoopBounds> loops;  // one per loop of the StageState
  // Parts of a split whose length was again split unevenly; their loops would run into the next
  // part, so they need a test.
  std::vector<int> overlapping;
  // Per output and dimension of its buffer. All stages that write the buffer have the same.
  std::vector<std::vector<StoredDim>> storage;
  std::vector<TripLimit> trip_limits;  // axes whose loops end early
  // The buffer is folded, so only points are computed that the previous iteration did not compute.
  bool slides = false;
  int slide_axis = -1;
  int64_t slide_stride = 0;  // points by which the region moves per iteration
};

struct Bounds {
  std::vector<StageBounds> stages;
};

// Infers the bounds. Schedules that are illegal for reasons that the steps themselves do not show
// are refused here.
[[nodiscard]] Result<Bounds> infer_bounds(const State& state);

// Returns whether a stage tests its points where its readers are padded: a tile in shared memory
// has room for the padding, but only points that exist are computed. What its readers make of the
// rest is not stored.
[[nodiscard]] bool ends_padding(const StageState& stage);
// Returns the range of a linear form over all iterations of its loops.
[[nodiscard]] std::pair<int64_t, int64_t> range(const Linear& linear, const Bounds& bounds);
// Returns the shape of what is stored of a buffer with a layout, which is row-major if it is empty.
[[nodiscard]] std::vector<int64_t> laid_out_shape(const std::vector<LayoutDim>& layout,
                                                  const std::vector<StoredDim>& stored);
// Returns the physical shape of the buffer of an output, after layout.
[[nodiscard]] std::vector<int64_t> storage_shape(const StageState& stage, const StageBounds& bounds,
                                                 int output = 0);
// Returns how many elements along a dimension may be read, including those that the layout's blocks
// are rounded up to.
[[nodiscard]] int64_t padded_extent(const StageState& stage, const StageBounds& bounds, int dim);

// Returns the loops around a place as (stage, loop) pairs, outermost first.
[[nodiscard]] std::vector<std::pair<int, int>> enclosing_loops(const State& state,
                                                               const Place& place);

}  // namespace hone::schedule
