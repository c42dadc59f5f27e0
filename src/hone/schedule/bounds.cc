#include "hone/schedule/bounds.h"

#include <algorithm>

namespace hone::schedule {

bool Linear::add(int stage, int loop, int64_t coef) {
  if (coef == 0) return true;
  for (int i = 0; i < size; ++i) {
    Term& term = terms[i];
    if (term.stage != stage || term.loop != loop) continue;
    term.coef += coef;
    if (term.coef == 0) terms[i] = terms[--size];
    return true;
  }
  if (size == kMaxTerms) return false;
  terms[size++] = {static_cast<int16_t>(stage), static_cast<int16_t>(loop), coef};
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
  if (size != other.size) return false;
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
    const int64_t reach = term.coef * (bounds.stages[term.stage].loop_extent[term.loop] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

// A box along one dimension: from `min`, `width` elements.
struct Interval {
  Linear min;
  int64_t width = 1;
  bool ok = true;  // false: too many terms
  bool pad = false;
};

class Inference {
 public:
  explicit Inference(const State& state) : state_(state), visible_(state.stages.size(), 0) {
    bounds_.stages.resize(state.stages.size());
  }

  Result<Bounds> run() {
    for (int s = static_cast<int>(state_.stages.size()) - 1; s >= 0; --s) {
      HONE_RETURN_IF_ERROR(infer_stage(s));
    }
    for (size_t s = 0; s < state_.stages.size(); ++s)
      HONE_RETURN_IF_ERROR(check_stage(static_cast<int>(s)));
    return std::move(bounds_);
  }

 private:
  // Marks how many leaves of each stage lie around a place.
  void set_visible(const Place& from) {
    std::fill(visible_.begin(), visible_.end(), 0);
    for (const Place* place = &from; place->kind == AttachKind::kAt;
         place = &state_.stages[place->stage].compute) {
      visible_[place->stage] = state_.stages[place->stage].find_leaf(place->loop) + 1;
    }
  }
  bool is_visible(const Term& term) const {
    return bounds_.stages[term.stage].last_leaf[term.loop] < visible_[term.stage];
  }
  void widen(Interval& interval, int64_t reach) const {
    if (reach < 0) interval.min.constant += reach;
    interval.width += std::abs(reach);
  }
  void add_terms(Interval& interval, const Linear& linear, int64_t scale) const {
    interval.min.constant += scale * linear.constant;
    for (const Term& term : linear) {
      if (is_visible(term)) {
        interval.ok = interval.ok && interval.min.add(term.stage, term.loop, scale * term.coef);
      } else {
        widen(interval,
              scale * term.coef * (bounds_.stages[term.stage].loop_extent[term.loop] - 1));
      }
    }
  }
  // What a row over the axes of stage `s` covers, seen from the visible loops.
  Interval cover(int s, const compute::AffineRow& row) const {
    Interval interval;
    interval.min.constant = row.constant;
    const StageBounds& stage = bounds_.stages[s];
    for (size_t a = 0; a < row.coef.size(); ++a) {
      const int64_t coef = row.coef[a];
      if (coef == 0) continue;
      const AxisBounds& axis = stage.axes[a];
      add_terms(interval, axis.min, coef);
      const bool all_inside = std::none_of(axis.own.begin(), axis.own.end(),
                                           [&](const Term& term) { return is_visible(term); });
      if (all_inside) {
        widen(interval, coef * (axis.computed() - 1));
      } else {
        add_terms(interval, axis.own, coef);
      }
      interval.pad = interval.pad || axis.pad || padded_split(s, static_cast<int>(a));
    }
    return interval;
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
      if (!collect_own(s, static_cast<int>(a), 1, out.axes[a].own)) return too_many(s);
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
    set_visible(stage.compute);
    std::vector<bool> seen(info.axes.size(), false);
    bool read = false;
    for (size_t o = 0; o < info.stage.outputs.size(); ++o) {
      const ir::BufferPtr& buffer = info.stage.outputs[o].buffer;
      std::vector<Interval> box(buffer->shape.size());
      bool any = false;
      for (size_t r = s + 1; r < state_.stages.size(); ++r) {
        for (const compute::Access& access : state_.stages[r].info->reads) {
          if (access.buffer != buffer) continue;
          for (size_t d = 0; d < box.size(); ++d) {
            const Interval interval = cover(static_cast<int>(r), access.index[d]);
            if (!interval.ok) return too_many(s);
            unite(box[d], interval, any, buffer->shape[d]);
          }
          any = true;
        }
      }
      if (!any) continue;  // a part of the state that only this stage itself reads
      read = true;
      for (size_t d = 0; d < box.size(); ++d)
        region_to_axes(info.writes[o][d], box[d], info, out, seen);
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

  static void unite(Interval& box, const Interval& next, bool any, int64_t whole) {
    if (!any) {
      box = next;
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
    int64_t reach = 0;  // of the axes inside a step
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
    min.constant = floor_div(start, step);
    const int64_t extent = floor_div(start + box.width - 1, step) - min.constant + 1;
    AxisBounds& axis = out.axes[leading];
    axis.pad = axis.pad || (box.pad && step == 1);
    if (seen[leading]) {
      Interval merged{axis.min, axis.extent};
      unite(merged, {min, extent}, true, info.axes[leading].extent);
      axis.min = merged.min;
      axis.extent = merged.width;
      return;
    }
    seen[leading] = true;
    axis.min = min;
    axis.extent = extent;
  }

  void infer_loops(int s) {
    const StageState& stage = state_.stages[s];
    StageBounds& out = bounds_.stages[s];
    const size_t n = stage.loops.size();
    out.loop_extent.assign(n, 1);
    out.digit_stride.assign(n, 1);
    out.last_leaf.assign(n, -1);
    for (size_t i = 0; i < out.axes.size(); ++i) out.loop_extent[i] = out.axes[i].extent;
    for (size_t i = 0; i < n; ++i) {
      const Loop& loop = stage.loops[i];
      if (!loop.digits.empty()) {
        int64_t product = 1;
        for (size_t k = loop.digits.size(); k-- > 0;) {
          out.digit_stride[loop.digits[k]] = product;
          product *= out.loop_extent[loop.digits[k]];
        }
        out.loop_extent[i] = product;
      }
      int64_t reach = 0;
      for (const int child : loop.children) {
        const Loop& part = stage.loops[child];
        const int64_t rest = ceil_div(out.loop_extent[i], part.stride);
        out.loop_extent[child] = part.length == 0 ? rest : std::min(part.length, rest);
        reach += (out.loop_extent[child] - 1) * part.stride;
      }
      const bool is_axis = i < out.axes.size();
      if (!is_axis && reach >= out.loop_extent[i]) out.overlapping.push_back(static_cast<int>(i));
    }
    for (size_t i = n; i-- > 0;) {
      const Loop& loop = stage.loops[i];
      out.last_leaf[i] = stage.find_leaf(static_cast<int>(i));
      if (loop.fused_into >= 0) out.last_leaf[i] = out.last_leaf[loop.fused_into];
      for (const int child : loop.children)
        out.last_leaf[i] = std::max(out.last_leaf[i], out.last_leaf[child]);
    }
  }

  // Adds the leaves and digits below a loop, weighted.
  bool collect_own(int s, int loop_index, int64_t stride, Linear& own) const {
    const Loop& loop = state_.stages[s].loops[loop_index];
    if (loop.fused_into < 0 && !loop.children.empty()) {
      for (const int child : loop.children) {
        if (!collect_own(s, child, stride * state_.stages[s].loops[child].stride, own))
          return false;
      }
      return true;
    }
    if (bounds_.stages[s].loop_extent[loop_index] == 1) return true;
    return own.add(s, loop_index, stride);
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
    axis.guard_high = high + axis.reach > whole && !axis.pad;
    axis.guard_region =
        axis.reach > axis.extent && !axis.pad && attached && !reduce && axis.extent < whole;
    axis.clipped = axis.guard_region || (axis.guard_high && axis.min.size == 0);
  }

  Status infer_storage(int s) {
    const StageState& stage = state_.stages[s];
    const StageInfo& info = *stage.info;
    StageBounds& out = bounds_.stages[s];
    set_visible(stage.store);
    for (size_t o = 0; o < info.stage.outputs.size(); ++o) {
      const ir::BufferPtr& buffer = info.stage.outputs[o].buffer;
      std::vector<Linear>& min = out.store_min.emplace_back(buffer->shape.size());
      std::vector<int64_t>& extent = out.store_extent.emplace_back(buffer->shape);
      if (stage.compute.kind == AttachKind::kRoot) continue;
      for (size_t d = 0; d < buffer->shape.size(); ++d) {
        const Interval interval = cover(s, info.writes[o][d]);
        if (!interval.ok) return too_many(s);
        if (interval.width >= buffer->shape[d] && !interval.pad) continue;
        min[d] = interval.min;
        extent[d] = interval.width;
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
    out.store_extent[0][stage.fold_dim] = stage.fold_factor;
    out.store_min[0][stage.fold_dim] = Linear();
    return ok_status();
  }

  Status check_stage(int s) {
    const StageState& stage = state_.stages[s];
    for (size_t i = 0; i + 1 < stage.order.size(); ++i) {
      if (stage.loops[stage.order[i]].annotation == Annotation::kVectorize) {
        return invalid("{}: vectorized loop {} is not the innermost", stage.name(),
                       stage.loops[stage.order[i]].name);
      }
    }
    for (size_t i = 1; i < stage.order.size(); ++i) {
      const Loop& loop = stage.loops[stage.order[i]];
      if (loop.annotation != Annotation::kParallel) continue;
      return invalid("{}: parallel loop {} is not the outermost", stage.name(), loop.name);
    }
    if (stage.scope == ir::Scope::kRegister) HONE_RETURN_IF_ERROR(check_registers(s));
    const StageBounds& bounds = bounds_.stages[s];
    const bool padded = std::any_of(bounds.axes.begin(), bounds.axes.end(),
                                    [](const AxisBounds& axis) { return axis.pad; });
    return padded ? check_padded_reads(s) : ok_status();
  }

  // What an axis runs through over all iterations; tests hold it within the axis.
  std::pair<int64_t, int64_t> axis_range(int s, size_t a) const {
    const AxisBounds& axis = bounds_.stages[s].axes[a];
    auto [low, high] = range(axis.min, bounds_);
    high += axis.computed() - 1;
    if (axis.guard_low) low = std::max<int64_t>(low, 0);
    if (axis.guard_high) high = std::min(high, state_.stages[s].info->axes[a].extent - 1);
    return {low, high};
  }

  Status check_padded_reads(int s) {
    for (const compute::Access& access : state_.stages[s].info->reads) {
      int writer = -1;
      for (int w = 0; w < s; ++w) {
        if (state_.stages[w].buffer() == access.buffer) writer = w;
      }
      if (writer >= 0 && state_.stages[writer].compute.kind == AttachKind::kAt) continue;
      for (size_t d = 0; d < access.index.size(); ++d) {
        int64_t low = access.index[d].constant, high = low;
        bool padded = false;
        for (size_t a = 0; a < access.index[d].coef.size(); ++a) {
          const int64_t coef = access.index[d].coef[a];
          padded = padded || (coef != 0 && bounds_.stages[s].axes[a].pad);
          const auto [first, last] = axis_range(s, a);
          low += coef * (coef < 0 ? last : first);
          high += coef * (coef < 0 ? first : last);
        }
        const int64_t available =
            writer >= 0
                ? padded_extent(state_.stages[writer], bounds_.stages[writer], static_cast<int>(d))
                : access.buffer->shape[d];
        // A guard knows nothing of padding, but keeps the dimensions that it tests.
        if (access.guarded && !padded) continue;
        if (low < 0 || high >= available) {
          return invalid("{}: a padded tail would read {}..{} of {} elements of {}",
                         state_.stages[s].name(), low, high, available, access.buffer->name);
        }
      }
    }
    return ok_status();
  }

  // Registers have no addresses: every loop that indexes them must be unrolled or vectorized.
  Status check_registers(int s) {
    const StageState& stage = state_.stages[s];
    const auto fixed = [&](int owner, const Term& term) {
      const Loop& loop = state_.stages[owner].loops[term.loop];
      return loop.annotation == Annotation::kUnroll || loop.annotation == Annotation::kVectorize;
    };
    set_visible(stage.store);
    int64_t elements = 1;
    for (const int64_t extent : bounds_.stages[s].store_extent[0]) elements *= extent;
    if (elements > 8192)
      return invalid("{} keeps {} elements in registers", stage.name(), elements);
    for (int a = 0; a < stage.info->num_spatial(); ++a) {
      for (const Term& term : bounds_.stages[s].axes[a].own) {
        if (!fixed(s, term)) {
          return invalid("{} is in registers, but its loop {} is not unrolled", stage.name(),
                         stage.loops[term.loop].name);
        }
      }
    }
    for (size_t r = s + 1; r < state_.stages.size(); ++r) {
      for (const compute::Access& access : state_.stages[r].info->reads) {
        if (access.buffer != stage.buffer()) continue;
        for (const compute::AffineRow& row : access.index) {
          for (size_t a = 0; a < row.coef.size(); ++a) {
            if (row.coef[a] == 0) continue;
            for (const Term& term : bounds_.stages[r].axes[a].own) {
              if (is_visible(term) || fixed(static_cast<int>(r), term)) continue;
              return invalid(
                  "{} is in registers, but {} reads it in loop {}, which is not unrolled",
                  stage.name(), state_.stages[r].name(), state_.stages[r].loops[term.loop].name);
            }
          }
        }
      }
    }
    return ok_status();
  }

  const State& state_;
  std::vector<int> visible_;  // per stage: its outermost leaves that are fixed
  Bounds bounds_;
};

}  // namespace

Result<Bounds> infer_bounds(const State& state) { return Inference(state).run(); }

std::vector<int64_t> storage_shape(const StageState& stage, const StageBounds& bounds, int output) {
  const std::vector<int64_t>& extent = bounds.store_extent[output];
  if (stage.layout.empty() || output > 0) return extent;
  std::vector<int64_t> shape;
  for (const LayoutDim& dim : stage.layout) {
    shape.push_back(dim.modulo > 0 ? dim.modulo : ceil_div(extent[dim.axis], dim.divide));
  }
  return shape;
}

int64_t padded_extent(const StageState& stage, const StageBounds& bounds, int dim) {
  int64_t extent = bounds.store_extent[0][dim];
  for (const LayoutDim& digit : stage.layout) {
    if (digit.axis == dim && digit.modulo == 0)
      extent = ceil_div(extent, digit.divide) * digit.divide;
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
