#include "hone/schedule/bounds.h"

#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/ir/scalar.h"
#include "hone/schedule/fused_rows.h"
#include "hone/schedule/legality.h"
#include "hone/schedule/trip_limits.h"
#include "hone/schedule/visible_loops.h"

namespace hone::schedule {

bool Linear::add(int stage, int loop, int64_t coef) {
  if (coef == 0) return true;
  for (Term& term : terms) {
    if (term.stage != stage || term.loop != loop) continue;
    term.coef += coef;
    if (term.coef != 0) return true;
    term = terms.back();
    terms.pop_back();
    return true;
  }
  if (terms.size() == kMaxTerms) return false;
  terms.push_back({static_cast<int16_t>(stage), static_cast<int16_t>(loop), coef});
  return true;
}

bool Linear::add(const Linear& other, int64_t scale) {
  constant += scale * other.constant;
  for (const Term& term : other) {
    if (!add(term.stage, term.loop, scale * term.coef)) return false;
  }
  return true;
}

bool Linear::same_terms(const Linear& other) const {
  if (terms.size() != other.terms.size()) return false;
  for (const Term& a : *this) {
    const bool found = std::any_of(other.begin(), other.end(), [&](const Term& b) {
      return a.stage == b.stage && a.loop == b.loop && a.coef == b.coef;
    });
    if (!found) return false;
  }
  return true;
}

std::pair<int64_t, int64_t> range(const Linear& linear, const Bounds& bounds) {
  int64_t low = linear.constant, high = linear.constant;
  for (const Term& term : linear) {
    const int64_t reach = term.coef * (bounds.stages[term.stage].loops[term.loop].extent - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

namespace {

// A box along one dimension: from `min`, `width` elements.
struct Interval {
  Linear min;
  int64_t width = 1;
  bool ok = true;  // false: too many terms
  bool pad = false;
};

class Inference {
 public:
  explicit Inference(const State& state) : state_(state), visible_(state, bounds_) {
    bounds_.stages.resize(state.stages.size());
  }

  Result<Bounds> run() {
    for (int s = static_cast<int>(state_.stages.size()) - 1; s >= 0; --s) {
      HONE_RETURN_IF_ERROR(infer_stage(s));
    }
    infer_trip_limits(state_, bounds_);
    return std::move(bounds_);
  }

 private:
  void widen(Interval& interval, int64_t reach) const {
    if (reach < 0) interval.min.constant += reach;
    interval.width += std::abs(reach);
  }
  void add_terms(Interval& interval, const Linear& linear, int64_t scale) const {
    interval.min.constant += scale * linear.constant;
    for (const Term& term : linear) {
      if (visible_.sees(term)) {
        interval.ok = interval.ok && interval.min.add(term.stage, term.loop, scale * term.coef);
      } else {
        widen(interval,
              scale * term.coef * (bounds_.stages[term.stage].loops[term.loop].extent - 1));
      }
    }
  }
  // Returns the interval that a row over the axes of stage `s` covers, in terms of the visible
  // loops.
  Interval cover(int s, const compute::AffineRow& row) const {
    Interval interval;
    interval.min.constant = row.constant;
    const StageBounds& stage = bounds_.stages[s];
    SmallVector<bool, 16> taken;
    for (const FusedTerm& term : fused_terms(state_.stages[s], stage, row, taken))
      cover_fused(s, term, interval);
    for (size_t a = 0; a < row.coef.size(); ++a) {
      const int64_t coef = row.coef[a];
      if (coef == 0 || taken[a]) continue;
      const AxisBounds& axis = stage.axes[a];
      add_terms(interval, axis.min, coef);
      const bool all_inside = std::none_of(axis.own.begin(), axis.own.end(),
                                           [&](const Term& term) { return visible_.sees(term); });
      if (all_inside) {
        widen(interval, coef * (axis.computed() - 1));
      } else {
        add_terms(interval, axis.own, coef);
      }
      interval.pad = interval.pad || axis.pad || padded_split(s, static_cast<int>(a));
    }
    return interval;
  }
  void cover_fused(int s, const FusedTerm& term, Interval& interval) const {
    Linear own;
    interval.ok = interval.ok && add_leaves(state_, bounds_, s, term.loop, 1, own);
    const bool all_inside =
        std::none_of(own.begin(), own.end(), [&](const Term& leaf) { return visible_.sees(leaf); });
    if (all_inside)
      widen(interval, term.coef * (bounds_.stages[s].loops[term.loop].extent - 1));
    else
      add_terms(interval, own, term.coef);
    interval.pad = interval.pad || padded_split(s, term.loop);
  }
  bool padded_split(int s, int loop) const {
    const StageState& stage = state_.stages[s];
    if (stage.loops[loop].pad && !stage.loops[loop].children.empty()) return true;
    return std::any_of(stage.loops[loop].children.begin(), stage.loops[loop].children.end(),
                       [&](int child) { return padded_split(s, child); });
  }

  Status infer_stage(int s) {
    const StageState& stage = state_.stages[s];
    const StageInfo& info = *stage.info;
    StageBounds& out = bounds_.stages[s];
    out.axes.resize(info.axes.size());
    for (size_t a = 0; a < info.axes.size(); ++a) out.axes[a].extent = info.axes[a].extent;
    if (stage.compute.kind == AttachKind::kAt) HONE_RETURN_IF_ERROR(required_region(s));
    infer_loops(s);
    for (size_t a = 0; a < info.axes.size(); ++a) {
      if (!add_leaves(state_, bounds_, s, static_cast<int>(a), 1, out.axes[a].own))
        return too_many(s);
      infer_guards(s, static_cast<int>(a));
    }
    return infer_storage(s);
  }

  Status too_many(int s) const {
    return invalid("{} has too many loops around it", state_.stages[s].name());
  }

  // The union of what the readers of an attached stage need in one iteration of its loop.
  Status required_region(int s) {
    const StageState& stage = state_.stages[s];
    const StageInfo& info = *stage.info;
    StageBounds& out = bounds_.stages[s];
    visible_.look_from(stage.compute);
    seen_.assign(info.axes.size(), false);
    bool read = false;
    for (size_t o = 0; o < info.stage.outputs.size(); ++o) {
      const ir::BufferPtr& buffer = info.stage.outputs[o].buffer;
      std::vector<Interval>& box = box_;
      box.assign(buffer->shape.size(), {});
      bool any = false;
      for (size_t r = s + 1; r < state_.stages.size(); ++r) {
        for (const compute::Access& access : state_.stages[r].info->reads) {
          if (access.buffer != buffer) continue;
          for (size_t d = 0; d < box.size(); ++d) {
            Interval interval = access.exact ? cover(static_cast<int>(r), access.index[d])
                                             : Interval{{}, buffer->shape[d]};
            if (ends_padding(state_.stages[r])) interval.pad = false;
            if (!interval.ok) return too_many(s);
            unite(box[d], std::move(interval), any, buffer->shape[d]);
          }
          any = true;
        }
      }
      if (!any) continue;  // a part of the state that only this stage itself reads
      read = true;
      for (size_t d = 0; d < box.size(); ++d)
        region_to_axes(info.writes[o][d], box[d], info, out, seen_);
    }
    if (!read) return invalid("nothing reads {}", stage.name());
    for (int a = 0; a < info.num_spatial(); ++a) {
      AxisBounds& axis = out.axes[a];
      if (axis.extent < info.axes[a].extent || axis.pad) continue;
      axis.extent = info.axes[a].extent;
      axis.min = Linear();
    }
    return ok_status();
  }

  static void unite(Interval& box, Interval next, bool any, int64_t whole) {
    if (!any) {
      box = std::move(next);
      return;
    }
    box.pad = box.pad || next.pad;
    if (!box.min.same_terms(next.min)) {
      box.min = Linear();
      box.width = whole;
      return;
    }
    const int64_t low = std::min(box.min.constant, next.min.constant);
    const int64_t high = std::max(box.min.constant + box.width, next.min.constant + next.width);
    box.min.constant = low;
    box.width = high - low;
  }

  // Inverts one row of the write map: one axis plus a constant exactly, the leading axis of a tiled
  // map (4*th + i) by division; anything else keeps its whole axes.
  static void region_to_axes(const compute::AffineRow& row, const Interval& box,
                             const StageInfo& info, StageBounds& out, std::vector<bool>& seen) {
    int leading = -1;
    for (int a = 0; a < info.num_spatial(); ++a) {
      if (row.coef[a] > 0 && (leading < 0 || row.coef[a] > row.coef[leading])) leading = a;
      if (row.coef[a] < 0) return;
    }
    if (leading < 0) return;
    const int64_t step = row.coef[leading];
    int64_t reach = 0;  // reach of the axes inside a step
    for (int a = 0; a < info.num_spatial(); ++a) {
      if (a != leading && row.coef[a] > 0) reach += row.coef[a] * (info.axes[a].extent - 1);
    }
    if (reach >= step) return;
    Linear min;
    for (const Term& term : box.min) {
      if (term.coef % step != 0) return;
      HONE_ASSERT(min.add(term.stage, term.loop, term.coef / step), "no more terms than before");
    }
    const int64_t start = box.min.constant - row.constant;
    min.constant = ir::floor_div(start, step);
    const int64_t extent = ir::floor_div(start + box.width - 1, step) - min.constant + 1;
    AxisBounds& axis = out.axes[leading];
    axis.pad = axis.pad || (box.pad && step == 1);
    if (seen[leading]) {
      Interval merged{axis.min, axis.extent};
      unite(merged, {std::move(min), extent}, true, info.axes[leading].extent);
      axis.min = std::move(merged.min);
      axis.extent = merged.width;
      return;
    }
    seen[leading] = true;
    axis.min = std::move(min);
    axis.extent = extent;
  }

  void infer_loops(int s) {
    const StageState& stage = state_.stages[s];
    StageBounds& out = bounds_.stages[s];
    const size_t n = stage.loops.size();
    std::vector<LoopBounds>& loops = out.loops;
    loops.assign(n, {});
    for (size_t i = 0; i < out.axes.size(); ++i) loops[i].extent = out.axes[i].extent;
    for (size_t i = 0; i < n; ++i) {
      const Loop& loop = stage.loops[i];
      if (!loop.digits.empty()) {
        int64_t product = 1;
        for (size_t k = loop.digits.size(); k-- > 0;) {
          LoopBounds& digit = loops[loop.digits[k]];
          digit.digit_stride = product;
          product *= digit.extent;
        }
        loops[i].extent = product;
      }
      int64_t reach = 0;
      for (const int child : loop.children) {
        const Loop& part = stage.loops[child];
        const int64_t rest = ceil_div(loops[i].extent, part.stride);
        loops[child].extent = part.length == 0 ? rest
                              : part.whole     ? part.length
                                               : std::min(part.length, rest);
        reach += (loops[child].extent - 1) * part.stride;
      }
      const bool is_axis = i < out.axes.size();
      if (!is_axis && reach >= loops[i].extent) out.overlapping.push_back(static_cast<int>(i));
    }
    for (size_t p = 0; p < stage.order.size(); ++p)
      loops[stage.order[p]].last_leaf = static_cast<int>(p);
    for (size_t i = n; i-- > 0;) {
      const Loop& loop = stage.loops[i];
      int& last = loops[i].last_leaf;
      if (loop.fused_into >= 0) last = loops[loop.fused_into].last_leaf;
      for (const int child : loop.children) last = std::max(last, loops[child].last_leaf);
    }
  }

  void infer_guards(int s, int a) {
    const StageState& stage = state_.stages[s];
    AxisBounds& axis = bounds_.stages[s].axes[a];
    const int64_t whole = stage.info->axes[a].extent;
    const bool attached = stage.compute.kind == AttachKind::kAt;
    const bool reduce = a >= stage.info->num_spatial();
    axis.reach = range(axis.own, bounds_).second + 1;
    axis.pad = attached && !reduce && (axis.pad || padded_split(s, a));
    const auto [low, high] = range(axis.min, bounds_);
    axis.guard_low = low < 0;
    axis.guard_high = high + axis.reach > whole && (!axis.pad || ends_padding(stage));
    axis.guard_region =
        axis.reach > axis.extent && !axis.pad && attached && !reduce && axis.extent < whole;
    axis.clipped = axis.guard_region || (axis.guard_high && axis.min.terms.empty() && !axis.pad);
  }

  Status infer_storage(int s) {
    const StageState& stage = state_.stages[s];
    const StageInfo& info = *stage.info;
    StageBounds& out = bounds_.stages[s];
    visible_.look_from(stage.store);
    for (size_t o = 0; o < info.stage.outputs.size(); ++o) {
      const ir::BufferPtr& buffer = info.stage.outputs[o].buffer;
      std::vector<StoredDim>& dims = out.storage.emplace_back(buffer->shape.size());
      for (size_t d = 0; d < dims.size(); ++d) dims[d].extent = buffer->shape[d];
      if (stage.compute.kind == AttachKind::kRoot) continue;
      for (size_t d = 0; d < buffer->shape.size(); ++d) {
        Interval interval = cover(s, info.writes[o][d]);
        if (!interval.ok) return too_many(s);
        if (interval.width >= buffer->shape[d] && !interval.pad) continue;
        dims[d] = {std::move(interval.min), interval.width};
      }
    }
    if (stage.fold_dim >= 0) return infer_fold(s);
    return ok_status();
  }

  Status infer_fold(int s) {
    const StageState& stage = state_.stages[s];
    StageBounds& out = bounds_.stages[s];
    const compute::AffineRow& row = stage.info->writes[0][stage.fold_dim];
    for (int a = 0; a < stage.info->num_spatial(); ++a) {
      if (row.coef[a] != 0) out.slide_axis = a;
    }
    for (size_t a = 0; a < out.axes.size(); ++a) {
      for (const Term& term : out.axes[a].min) {
        if (term.stage != stage.compute.stage || term.loop != stage.compute.loop) continue;
        if (static_cast<int>(a) != out.slide_axis) {
          return invalid("{} moves along {} as well: it cannot be folded", stage.name(),
                         stage.info->axes[a].var->name);
        }
        out.slide_stride = term.coef;
      }
    }
    const AxisBounds& axis = out.axes[out.slide_axis];
    if (out.slide_stride <= 0)
      return invalid("{} does not move forward with the loop it is computed in", stage.name());
    if (axis.computed() > stage.fold_factor) {
      return invalid("{} needs {} rows at a time, the fold keeps {}", stage.name(), axis.computed(),
                     stage.fold_factor);
    }
    out.slides = out.slide_stride < axis.extent;
    out.storage[0][stage.fold_dim] = {Linear(), stage.fold_factor};
    return ok_status();
  }

  const State& state_;
  Bounds bounds_;
  VisibleLoops visible_;
  // The intervals of the stage that is being inferred.
  std::vector<Interval> box_;
  std::vector<bool> seen_;
};

}  // namespace

Result<Bounds> infer_bounds(const State& state) {
  HONE_ASSIGN_OR_RETURN(Bounds bounds, Inference(state).run());
  HONE_RETURN_IF_ERROR(check_legality(state, bounds));
  return bounds;
}

bool ends_padding(const StageState& stage) {
  return stage.scope == ir::Scope::kShared && stage.compute.kind == AttachKind::kAt;
}

std::vector<int64_t> laid_out_shape(const std::vector<LayoutDim>& layout,
                                    const std::vector<StoredDim>& stored) {
  std::vector<int64_t> shape;
  shape.reserve(std::max(layout.size(), stored.size()));
  for (const LayoutDim& dim : layout) {
    const int64_t digits =
        dim.modulo > 0 ? dim.modulo : ceil_div(stored[dim.axis].extent, dim.divide);
    shape.push_back(digits + dim.pad);
  }
  if (layout.empty()) {
    for (const StoredDim& dim : stored) shape.push_back(dim.extent);
  }
  return shape;
}

std::vector<int64_t> storage_shape(const StageState& stage, const StageBounds& bounds, int output) {
  static const std::vector<LayoutDim> kRowMajor;
  return laid_out_shape(output == 0 ? stage.layout : kRowMajor, bounds.storage[output]);
}

int64_t padded_extent(const StageState& stage, const StageBounds& bounds, int dim) {
  int64_t extent = bounds.storage[0][dim].extent;
  for (const LayoutDim& digit : stage.layout) {
    if (digit.axis == dim && digit.modulo == 0) extent = round_up(extent, digit.divide);
  }
  return extent;
}

std::vector<std::pair<int, int>> enclosing_loops(const State& state, const Place& from) {
  std::vector<std::pair<int, int>> loops;
  for (const Place* place = &from; place->kind == AttachKind::kAt;
       place = &state.stages[place->stage].compute) {
    const StageState& stage = state.stages[place->stage];
    for (int i = stage.find_leaf(place->loop); i >= 0; --i)
      loops.push_back({place->stage, stage.order[i]});
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

}  // namespace hone::schedule
