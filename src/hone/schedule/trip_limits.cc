#include "hone/schedule/trip_limits.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "hone/compute/affine.h"
#include "hone/ir/linear.h"
#include "hone/schedule/visible_loops.h"

namespace hone::schedule {
namespace {

// A vectorized loop is cut at multiples of one of these: whole vectors, and few enough loops'
// limits to test.
constexpr int64_t kVectorChunks[] = {64, 32, 16};

// Points at `limit` and beyond are not needed, from the next multiple of `step` on.
struct Limit {
  Linear at;
  int64_t step = 1;
};

class TripLimits {
 public:
  TripLimits(const State& state, Bounds& bounds)
      : state_(state), bounds_(bounds), visible_(state, bounds) {}

  void infer(int s) {
    const StageState& stage = state_.stages[s];
    const StageInfo& info = *stage.info;
    if (info.stage.is_extern()) return;
    for (int a = 0; a < info.num_spatial(); ++a) {
      if (const auto loop = limited_loop(s, a)) add(s, a, *loop, needed(s, a));
    }
    if (!info.stage.until) return;
    const int reduce = info.num_spatial();
    const auto [until, unit] = until_of(info.stage);
    if (const auto loop = limited_loop(s, reduce))
      add(s, reduce, *loop, own_limit(s, until, stage.find_leaf(loop->first)), unit);
  }

 private:
  // The outermost loop of an axis and how many points one of its iterations takes.
  [[nodiscard]] std::optional<std::pair<int, int64_t>> limited_loop(int s, int a) const {
    const StageState& stage = state_.stages[s];
    const StageBounds& bounds = bounds_.stages[s];
    const AxisBounds& axis = bounds.axes[a];
    const int64_t whole = stage.info->axes[a].extent;
    const bool is_whole = axis.extent == whole && axis.min.terms.empty() && axis.min.constant == 0;
    if (!is_whole || axis.pad || stage.fold_dim >= 0 || !bounds.overlapping.empty()) return {};
    const auto parts = stage.loops[a].children;
    const int loop = parts.empty() ? a : parts[0];
    if (stage.find_leaf(loop) < 0) return {};
    if (stage.loops[loop].annotation == Annotation::kNone)
      return std::pair{loop, parts.empty() ? 1 : stage.loops[loop].stride};
    if (stage.loops[loop].annotation != Annotation::kVectorize || uses_registers(s)) return {};
    for (const int64_t chunk : kVectorChunks) {
      if (parts.empty() && whole % chunk == 0) return std::pair{loop, chunk};
    }
    return {};
  }

  // Registers have no addresses: a loop over them has an extent that the compiler knows.
  [[nodiscard]] bool uses_registers(int s) const {
    const StageInfo& info = *state_.stages[s].info;
    if (state_.stages[s].scope == ir::Scope::kRegister) return true;
    return std::any_of(info.reads.begin(), info.reads.end(), [&](const compute::Access& read) {
      const StageList writers = state_.writers(read.buffer);
      return std::any_of(writers.begin(), writers.end(), [&](int writer) {
        return state_.stages[writer].scope == ir::Scope::kRegister;
      });
    });
  }

  // Returns where a reduction's terms end, and how many of those points one point of its axis
  // stands for. Terms in whole tiles end at (points + unit - 1) / unit (online_softmax.h).
  static std::pair<ir::Expr, int64_t> until_of(const compute::Stage& stage) {
    const ir::Expr& until = stage.until;
    if (until->op != ir::Op::kFloorDiv) return {until, 1};
    const int64_t unit = until->args[1]->int_value;
    return {until->args[0] - (unit - 1), unit};
  }

  // Returns the limit that holds for all points that a stage computes inside that loop.
  [[nodiscard]] std::optional<Limit> own_limit(int s, const ir::Expr& until, int position) const {
    if (ir::has_load(until)) return size_limit(until);
    const StageInfo& info = *state_.stages[s].info;
    const StageBounds& bounds = bounds_.stages[s];
    std::vector<ir::VarPtr> vars;
    for (const compute::Axis& axis : info.stage.axes) vars.push_back(axis.var);
    const auto row = compute::affine_row(until, vars);
    Limit limit;
    limit.at.constant = row->constant;
    for (size_t a = 0; a < row->coef.size(); ++a) {
      if (row->coef[a] == 0) continue;
      if (!limit.at.add(bounds.axes[a].min, row->coef[a])) return {};
      const bool fits = add_open(bounds.axes[a].own, row->coef[a], limit.at, [&](const Term& term) {
        return bounds.loops[term.loop].last_leaf < position;
      });
      if (!fits) return {};
    }
    return limit;
  }

  // Returns the limit of a reduction whose terms end where a size of the run does.
  static std::optional<Limit> size_limit(const ir::Expr& until) {
    const ir::Linear form = ir::linearize(until);
    const auto& [load, unit] = form.terms[0];
    const int64_t index = load->args[0]->int_value;
    Limit limit;
    limit.at.constant = form.constant;
    if (index > INT16_MAX || !limit.at.add(kSizeTerm, static_cast<int>(index), unit)) return {};
    return limit;
  }

  // Adds the terms of open loops and the most that the others come to.
  template <typename IsOpen>
  bool add_open(const Linear& from, int64_t scale, Linear& to, const IsOpen& is_open) const {
    to.constant += scale * from.constant;
    for (const Term& term : from) {
      if (term.stage == kSizeTerm || is_open(term)) {
        if (!to.add(term.stage, term.loop, scale * term.coef)) return false;
      } else {
        const int64_t last = bounds_.stages[term.stage].loops[term.loop].extent - 1;
        to.constant += std::max<int64_t>(0, scale * term.coef * last);
      }
    }
    return true;
  }

  // Returns what all readers of a stage need of one of its axes, in terms of the loops around the
  // place where it is computed.
  [[nodiscard]] std::optional<Limit> needed(int s, int a) {
    const StageState& stage = state_.stages[s];
    const StageInfo& info = *stage.info;
    const ir::BufferPtr& buffer = stage.buffer();
    if (stage.compute.kind != AttachKind::kAt || info.stage.outputs.size() != 1 ||
        state_.is_param(buffer) || state_.writers(buffer).size() != 1)
      return {};
    const int d = dimension_of(info.writes[0], a);
    if (d < 0) return {};
    visible_.look_from(stage.compute);
    std::optional<Limit> all;
    for (const int r : state_.readers(buffer)) {
      if (state_.stages[r].info->stage.is_extern()) return {};
      for (const compute::Access& read : state_.stages[r].info->reads) {
        if (read.buffer != buffer) continue;
        const auto one = read_limit(r, read.index[d]);
        if (!one || (all && !all->at.same_terms(one->at))) return {};
        if (all) {
          all->at.constant = std::max(all->at.constant, one->at.constant);
          all->step = std::lcm(all->step, one->step);
        } else {
          all = one;
        }
      }
    }
    return all;
  }

  // The dimension of a buffer that is one axis of its writer and nothing else; -1 if none is.
  static int dimension_of(const std::vector<compute::AffineRow>& writes, int a) {
    int found = -1;
    for (size_t d = 0; d < writes.size(); ++d) {
      if (writes[d].coef[a] == 0) continue;
      if (found >= 0 || !is_axis(writes[d], a)) return -1;
      found = static_cast<int>(d);
    }
    return found;
  }
  static bool is_axis(const compute::AffineRow& row, int a) {
    const auto others = std::count(row.coef.begin(), row.coef.end(), 0);
    return row.constant == 0 && row.coef[a] == 1 &&
           others + 1 == static_cast<std::ptrdiff_t>(row.coef.size());
  }

  // Returns the limit of a reader along a dimension that is one of its axes.
  [[nodiscard]] std::optional<Limit> read_limit(int reader, const compute::AffineRow& row) const {
    for (const TripLimit& known : bounds_.stages[reader].trip_limits) {
      if (known.unit > 1 || !is_axis(row, known.axis)) continue;
      Limit limit;
      limit.step = known.step;
      const bool fits =
          add_open(known.limit, 1, limit.at, [&](const Term& term) { return visible_.sees(term); });
      if (fits) return limit;
    }
    return {};
  }

  void add(int s, int a, std::pair<int, int64_t> loop, std::optional<Limit> limit,
           int64_t unit = 1) {
    if (!limit) return;
    const auto [leaf, points] = loop;
    const int64_t chunk = points * unit;
    if (limit->step % chunk != 0) {
      if (chunk % limit->step != 0) limit->at.constant += limit->step - 1;
      limit->step = chunk;
    }
    const bool is_size = std::any_of(limit->at.begin(), limit->at.end(),
                                     [](const Term& term) { return term.stage == kSizeTerm; });
    const int64_t least = is_size ? 0 : range(limit->at, bounds_).first;
    if (least >= state_.stages[s].info->axes[a].extent * unit) return;
    bounds_.stages[s].trip_limits.push_back({a, leaf, chunk, limit->at, limit->step, unit});
  }

  const State& state_;
  Bounds& bounds_;
  VisibleLoops visible_;
};

}  // namespace

ir::Expr size_of_run(const State& state, const Term& term) {
  ir::Expr found;
  for (const StageState& stage : state.stages) {
    if (!stage.info->stage.until) continue;
    ir::visit(stage.info->stage.until, [&](const ir::Expr& e) {
      if (e->op == ir::Op::kLoad) found = ir::load(e->buffer, {ir::constant(term.loop)});
    });
  }
  HONE_ASSERT(found, "a size of the run without the sizes");
  return found;
}

void infer_trip_limits(const State& state, Bounds& bounds) {
  const bool any = std::any_of(state.stages.begin(), state.stages.end(), [](const auto& stage) {
    return stage.info->stage.until != nullptr;
  });
  if (!any) return;
  TripLimits limits(state, bounds);
  for (int s = static_cast<int>(state.stages.size()) - 1; s >= 0; --s) limits.infer(s);
}

}  // namespace hone::schedule
