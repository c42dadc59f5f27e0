#include "hone/analysis/nest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/round_up.h"
#include "hone/ir/linear.h"
#include "hone/schedule/visible_loops.h"
#include "hone/tensor/half_tensor.h"

namespace hone::analysis {

using schedule::AttachKind;
using schedule::Bounds;
using schedule::State;

// Extent of the box along dimension d while loops first.. run.
int64_t NestAccess::reach(const std::vector<NestLoop>& loops, size_t first, size_t d) const {
  if (!reaches_.empty()) return reaches_[first * move.size() + d];
  int64_t reach = 1 + spread[d];
  for (size_t i = first; i < loops.size(); ++i)
    reach += std::abs(move[d][i]) * (loops[i].extent - 1);
  return std::min(reach, shape[d]);
}

void NestAccess::remember_reaches(const std::vector<NestLoop>& loops) {
  const size_t dims = move.size();
  std::vector<int64_t> reaches((loops.size() + 1) * (dims + 1));
  for (size_t d = 0; d < dims; ++d) {
    int64_t reach = 1 + spread[d];
    reaches[loops.size() * dims + d] = std::min(reach, shape[d]);
    for (size_t i = loops.size(); i-- > 0;) {
      reach += std::abs(move[d][i]) * (loops[i].extent - 1);
      reaches[i * dims + d] = std::min(reach, shape[d]);
    }
  }
  for (size_t i = 0; i < loops.size(); ++i) reaches[(loops.size() + 1) * dims + i] = stride(i);
  reaches_ = std::move(reaches);
}

double NestAccess::footprint(const std::vector<NestLoop>& loops, size_t first) const {
  double product = 1;
  for (size_t d = 0; d < move.size(); ++d) product *= static_cast<double>(reach(loops, first, d));
  return product;
}

double NestAccess::footprint_without(const std::vector<NestLoop>& loops, size_t first,
                                     size_t still) const {
  double product = 1;
  for (size_t d = 0; d < move.size(); ++d) {
    int64_t reach = 1 + spread[d];
    for (size_t i = first; i < loops.size(); ++i)
      reach += i == still ? 0 : std::abs(move[d][i]) * (loops[i].extent - 1);
    product *= static_cast<double>(std::min(reach, shape[d]));
  }
  return product;
}

double NestAccess::transfer_bytes(const std::vector<NestLoop>& loops, size_t first,
                                  int line_bytes) const {
  // Contiguous runs: inner dimensions that are covered whole join the next one.
  double run = element_bytes, rows = 1;
  bool joined = true;
  for (size_t d = move.size(); d-- > 0;) {
    const int64_t extent = reach(loops, first, d);
    (joined ? run : rows) *= static_cast<double>(extent);
    joined = joined && extent == shape[d];
  }
  // Short runs defeat the hardware's prefetchers: a single line costs about 1.6 of a streamed one.
  const double line = line_bytes;
  const double lines = std::ceil(run / line);
  return rows * lines * line * (1 + 0.6 / lines);
}

double NestAccess::occupied_bytes(const std::vector<NestLoop>& loops, size_t first, int line_bytes,
                                  int64_t sets) const {
  const int64_t period = sets * line_bytes;
  int64_t stride = element_bytes, run = element_bytes, used = 1;
  double lines = 1;
  bool joined = true;
  for (size_t d = move.size(); d-- > 0;) {
    const int64_t extent = reach(loops, first, d);
    if (joined) {
      run *= extent;
      const int64_t run_lines = (run + line_bytes - 1) / line_bytes;
      used = std::min(sets, run_lines);
      lines = static_cast<double>(run_lines);
    } else {
      used = std::min(sets, used * std::min(extent, period / std::gcd(period, stride)));
      lines *= static_cast<double>(extent);
    }
    joined = joined && extent == shape[d];
    stride *= shape[d];
  }
  return lines * line_bytes * static_cast<double>(sets) / static_cast<double>(used);
}

bool NestAccess::moves_with(size_t loop) const {
  for (size_t d = 0; d < move.size(); ++d) {
    if (move[d][loop] != 0) return true;
  }
  return false;
}

int64_t NestAccess::stride(size_t loop) const {
  if (!reaches_.empty()) return reaches_[(move.loops() + 1) * move.size() + loop];
  int64_t total = 0, weight = 1;
  for (size_t d = move.size(); d-- > 0;) {
    total += move[d][loop] * weight;
    weight *= shape[d];
  }
  return total;
}

double Nest::iterations(size_t first) const {
  double product = 1;
  for (size_t i = first; i < loops.size(); ++i) product *= static_cast<double>(loops[i].extent);
  return product;
}

double Nest::operations() const {
  return iterations() * useful *
         (ops.fma + ops.add + std::max(0.0, ops.mul) + ops.div + ops.compare + ops.select +
          ops.math);
}

namespace {

class NestBuilder {
 public:
  NestBuilder(const State& state, const Bounds& bounds)
      : state_(state), bounds_(bounds), visible_(state, bounds) {
    size_t loops = 0;
    for (const schedule::StageState& stage : state.stages) {
      first_loop_.push_back(loops);
      loops += stage.loops.size();
    }
    places_.assign(loops, -1);
  }

  Nest build(int s) {
    Nest nest = begin(s);
    const schedule::StageInfo& info = *state_.stages[s].info;
    nest.accesses.reserve(info.reads.size() + 1);
    add_reads(nest, s, info.reads);
    nest.accesses.push_back(
        make_access(nest, s, info.stage.outputs[0].buffer, info.writes[0], true));
    nest.accesses.back().spread.resize(nest.accesses.back().move.size());
    for (NestAccess& access : nest.accesses) access.remember_reaches(nest.loops);
    nest.ops = info.ops;
    nest.tests = tested_loops(nest, s);
    nest.useful = useful_share(s);
    end(nest);
    return nest;
  }

  StageLoops build_loops(int s) {
    Nest nest = begin(s);
    const std::vector<schedule::AxisBounds>& axes = bounds_.stages[s].axes;
    Moves moves(axes.size(), nest.loops.size());
    for (size_t a = 0; a < axes.size(); ++a) {
      add_terms(axes[a].min, 1, moves[a]);
      add_terms(axes[a].own, 1, moves[a]);
    }
    move_parts(nest, moves);
    end(nest);
    return {nest.root, nest.outer, std::move(nest.loops), std::move(moves)};
  }

 private:
  // Returns a nest with its loops, whose places are known until end().
  Nest begin(int s) {
    Nest nest;
    nest.stage = nest.root = s;
    leaves_.clear();
    steps_.clear();
    parts_ = false;
    while (state_.stages[nest.root].compute.kind == AttachKind::kAt)
      nest.root = state_.stages[nest.root].compute.stage;
    for (const auto& [stage, loop] : schedule::enclosing_loops(state_, state_.stages[s].compute)) {
      add_loop(nest, stage, loop);
    }
    nest.outer = nest.loops.size();
    for (const int leaf : state_.stages[s].order) add_loop(nest, s, leaf);
    for (size_t i = 0; i < nest.loops.size(); ++i)
      place(nest.loops[i].stage, nest.loops[i].loop) = static_cast<int>(i);
    return nest;
  }
  void end(const Nest& nest) {
    for (const NestLoop& loop : nest.loops) place(loop.stage, loop.loop) = -1;
  }

  void add_loop(Nest& nest, int s, int leaf) {
    const schedule::Loop& loop = state_.stages[s].loops[leaf];
    const auto add = [&](int index) {
      nest.loops.push_back(
          {s, index, bounds_.stages[s].loops[index].extent, loop.annotation, loop.reduce});
    };
    const auto add_whole = [&](int index) {
      add(index);
      leaves_.push_back(leaf);
      steps_.push_back(1);
    };
    for (const int digit : loop.digits) add_whole(digit);
    if (!loop.digits.empty()) return;
    if (loop.parent < 0 || state_.stages[s].loops[loop.parent].digits.empty())
      return add_whole(leaf);
    // A part of a fused loop that was split: it counts through some of the digits, or through a
    // part of each. Where the lengths do not divide each other, the part is rounded up.
    parts_ = true;
    const int64_t low = loop.stride, high = low * bounds_.stages[s].loops[leaf].extent;
    for (const int digit : state_.stages[s].loops[loop.parent].digits) {
      const schedule::LoopBounds& of = bounds_.stages[s].loops[digit];
      const int64_t from = std::max(low, of.digit_stride);
      const int64_t to = std::min(high, of.digit_stride * of.extent);
      if (to <= from) continue;
      add(digit);
      nest.loops.back().extent = (to + from - 1) / from;
      leaves_.push_back(leaf);
      steps_.push_back(from / of.digit_stride);
    }
  }
  // Several parts of one digit move by its coefficient, each in steps of its own.
  void move_parts(const Nest& nest, Moves& moves) {
    if (!parts_) return;
    for (size_t d = 0; d < moves.size(); ++d) {
      const std::span<int64_t> row = moves[d];
      const std::vector<int64_t> whole(row.begin(), row.end());
      for (size_t i = 0; i < row.size(); ++i)
        row[i] =
            steps_[i] * whole[static_cast<size_t>(place(nest.loops[i].stage, nest.loops[i].loop))];
    }
  }
  // Returns the position of a loop in the nest that is being built; -1 if it is not in it.
  [[nodiscard]] int& place(int stage, int loop) {
    return places_[first_loop_[static_cast<size_t>(stage)] + static_cast<size_t>(loop)];
  }

  static bool same_coefficients(const compute::Access& a, const compute::Access& b) {
    return a.buffer == b.buffer &&
           std::equal(a.index.begin(), a.index.end(), b.index.begin(), b.index.end(),
                      [](const auto& x, const auto& y) { return x.coef == y.coef; });
  }

  // One access per group of reads that differ in constants only. Known matrices become immediate
  // operands.
  void add_reads(Nest& nest, int s, const std::vector<compute::Access>& reads) {
    taken_.assign(reads.size(), false);
    for (size_t i = 0; i < reads.size(); ++i) {
      if (taken_[i] || !reads[i].buffer->values.empty()) continue;
      NestAccess& access =
          nest.accesses.emplace_back(make_access(nest, s, reads[i].buffer, reads[i].index, false));
      const size_t dims = reads[i].index.size();
      access.spread.resize(access.move.size());
      const bool mergeable = access.move.size() == dims && !has_layout(reads[i].buffer);
      Sizes low, high;
      for (size_t d = 0; d < dims; ++d) low.push_back(reads[i].index[d].constant);
      high = low;
      for (size_t j = i + 1; mergeable && j < reads.size(); ++j) {
        if (taken_[j] || !same_coefficients(reads[i], reads[j])) continue;
        taken_[j] = true;
        access.reads += 1;
        for (size_t d = 0; d < dims; ++d) {
          low[d] = std::min(low[d], reads[j].index[d].constant);
          high[d] = std::max(high[d], reads[j].index[d].constant);
          access.spread[d] = high[d] - low[d];
        }
      }
    }
  }
  [[nodiscard]] bool has_layout(const ir::BufferPtr& buffer) const {
    return std::any_of(state_.stages.begin(), state_.stages.end(), [&](const auto& stage) {
      return stage.buffer() == buffer && !stage.layout.empty();
    });
  }

  // Calls visit(loop, coefficient) for the terms of a linear form over the nest's loops.
  template <typename Visit>
  void visit_terms(const schedule::Linear& linear, const Visit& visit) {
    for (const schedule::Term& term : linear) {
      if (const int i = place(term.stage, term.loop); i >= 0)
        visit(static_cast<size_t>(i), term.coef);
    }
  }
  // Adds coef * (a linear form over loops) to a row over the nest's loops.
  void add_terms(const schedule::Linear& linear, int64_t coef, std::span<int64_t> row) {
    visit_terms(linear, [&](size_t i, int64_t own) { row[i] += coef * own; });
  }

  NestAccess make_access(const Nest& nest, int s, const ir::BufferPtr& buffer,
                         const std::vector<compute::AffineRow>& rows, bool write) {
    NestAccess access;
    access.buffer = buffer.get();
    access.write = write;
    access.element_bytes = static_cast<int>(dtype_bytes(buffer->dtype));
    access.narrowed =
        is_half(buffer->dtype) &&
        std::none_of(state_.params->begin(), state_.params->end(),
                     [&](const ir::Param& param) { return param.buffer->dtype == buffer->dtype; });
    const std::vector<schedule::AxisBounds>& axes = bounds_.stages[s].axes;
    Moves logical(rows.size(), nest.loops.size());
    for (size_t d = 0; d < rows.size(); ++d) {
      for (size_t a = 0; a < rows[d].coef.size(); ++a) {
        if (rows[d].coef[a] == 0) continue;
        add_terms(axes[a].min, rows[d].coef[a], logical[d]);
        add_terms(axes[a].own, rows[d].coef[a], logical[d]);
      }
    }
    move_parts(nest, logical);
    int writer = -1;
    for (size_t w = 0; w < state_.stages.size(); ++w) {
      if (state_.stages[w].buffer() == buffer) writer = static_cast<int>(w);
    }
    const ir::Param* param = state_.find_param(buffer);
    if (param || writer < 0) {
      access.constant = param && param->role == ir::Role::kConstant;
      access.shape.assign(buffer->shape.begin(), buffer->shape.end());
      access.move = std::move(logical);
      return access;
    }
    const schedule::StageState& owner = state_.stages[writer];
    const bool root = owner.compute.kind == AttachKind::kRoot;
    access.constant = owner.info->constant && root;
    access.scope = root ? ir::Scope::kGlobal : owner.scope;
    if (!root) drop_outer(nest, owner, logical);
    const auto stored = schedule::storage_shape(owner, bounds_.stages[writer]);
    access.shape.assign(stored.begin(), stored.end());
    if (owner.layout.empty()) {
      access.move = std::move(logical);
      return access;
    }
    access.move = Moves(owner.layout.size(), nest.loops.size());
    for (size_t d = 0; d < owner.layout.size(); ++d) {
      const schedule::LayoutDim& digit = owner.layout[d];
      const std::span<int64_t> row = access.move[d];
      for (size_t i = 0; i < nest.loops.size(); ++i) {
        const int64_t step = logical[digit.axis][i];
        // A step belongs to the largest digit that it fills.
        const bool here = step != 0 && std::abs(step) >= digit.divide &&
                          (digit.modulo == 0 || std::abs(step) < digit.divide * digit.modulo);
        if (here) row[i] = step / digit.divide;
      }
    }
    return access;
  }

  [[nodiscard]] std::vector<bool> tested_loops(const Nest& nest, int s) {
    std::vector<bool> tested(nest.loops.size(), false);
    if (nest.ops.select == 0) return tested;
    const auto add = [&](const schedule::Linear& linear) {
      visit_terms(linear, [&](size_t i, int64_t) { tested[i] = true; });
    };
    const schedule::StageInfo& info = *state_.stages[s].info;
    for (size_t a = 0; a < info.axes.size(); ++a) {
      if (!info.tested[a]) continue;
      add(bounds_.stages[s].axes[a].min);
      add(bounds_.stages[s].axes[a].own);
    }
    for (size_t i = 0; parts_ && i < tested.size(); ++i)
      tested[i] = tested[static_cast<size_t>(place(nest.loops[i].stage, nest.loops[i].loop))];
    return tested;
  }

  // Storage inside a tile does not move with the loops around it.
  void drop_outer(const Nest& nest, const schedule::StageState& writer, Moves& rows) {
    visible_.look_from(writer.store);
    for (size_t i = 0; i < nest.loops.size(); ++i) {
      if (!visible_.sees(nest.loops[i].stage, leaves_[i])) continue;
      for (size_t d = 0; d < rows.size(); ++d) rows[d][i] = 0;
    }
  }

  // Returns the share of an axis that is computed, in the mean over the loops that its limit
  // depends on.
  double share_before(const schedule::TripLimit& end, int64_t whole) const {
    const auto [least, most] = schedule::range(end.limit, bounds_);
    const auto rounded = [&](int64_t limit) {
      const int64_t points = round_up(limit, end.step);
      return static_cast<double>(std::clamp<int64_t>(points, 0, whole));
    };
    return (rounded(least) + rounded(most)) / 2 / static_cast<double>(whole);
  }

  // Returns the share of whole tiles of keys that is computed inside a stage's loop over them if
  // the last one is shorter (schedule/online_softmax.h), which is the only loop over a whole axis
  // that is peeled.
  double share_of_keys(int at, int inside) const {
    const schedule::StageState& stage = state_.stages[at];
    const auto axes = static_cast<int>(stage.info->axes.size());
    int tiles = 0;
    while (tiles < axes && !(stage.loops[tiles].peel && stage.loops[tiles].children.empty()))
      ++tiles;
    if (tiles == axes || stage.find_leaf(tiles) > stage.find_leaf(inside)) return 1;
    for (const schedule::StageState& part : state_.stages) {
      const ir::Expr& where = part.info->stage.where;
      if (!where || where->op != ir::Op::kLt || !ir::is_const_int(where->args[1]) ||
          part.compute.kind != AttachKind::kAt || part.compute.stage != at)
        continue;
      double keys = 1;
      for (const compute::Axis& axis : part.info->axes) {
        if (ir::uses(where, axis.var.get())) keys *= static_cast<double>(axis.extent);
      }
      return static_cast<double>(where->args[1]->int_value) / keys;
    }
    return 1;
  }

  // Peeled tails run only what is there; masked and padded ones run whole tiles.
  double useful_share(int s) const {
    double share = 1;
    int inside = -1;  // the loop of stage `at` that everything before is in
    for (int at = s;;) {
      const schedule::StageState& stage = state_.stages[at];
      // Stages that are computed inside a sum's loops run as often in the tails of these.
      const size_t axes =
          at == s ? stage.info->axes.size() : static_cast<size_t>(stage.info->num_spatial());
      for (size_t a = 0; a < axes; ++a) {
        const bool peels = std::any_of(
            stage.loops[a].children.begin(), stage.loops[a].children.end(), [&](int child) {
              return stage.loops[child].peel && stage.loops[child].fused_into < 0;
            });
        const schedule::AxisBounds& axis = bounds_.stages[at].axes[a];
        if (peels && axis.reach > axis.extent)
          share *= static_cast<double>(axis.extent) / static_cast<double>(axis.reach);
      }
      if (at != s) share *= share_of_keys(at, inside);
      for (const schedule::TripLimit& end : bounds_.stages[at].trip_limits) {
        if (at == s || stage.find_leaf(end.loop) <= stage.find_leaf(inside))
          share *=
              share_before(end, stage.info->axes[static_cast<size_t>(end.axis)].extent * end.unit);
      }
      if (stage.compute.kind == AttachKind::kRoot) return share;
      inside = stage.compute.loop;
      at = stage.compute.stage;
    }
  }

  const State& state_;
  const Bounds& bounds_;
  schedule::VisibleLoops visible_;
  std::vector<size_t> first_loop_;  // per stage, in places_
  std::vector<int> places_;
  std::vector<bool> taken_;
  // The nest that is being built has these per loop: the leaf that it belongs to, and how far one
  // iteration moves the digit that it is a part of. `parts_` says whether some loop is only a part
  // of its digit.
  std::vector<int> leaves_;
  std::vector<int64_t> steps_;
  bool parts_ = false;
};

}  // namespace

std::vector<Nest> build_nests(const State& state, const Bounds& bounds) {
  NestBuilder builder(state, bounds);
  std::vector<Nest> nests;
  nests.reserve(state.stages.size());
  for (size_t s = 0; s < state.stages.size(); ++s) {
    int root = static_cast<int>(s);
    while (state.stages[root].compute.kind == AttachKind::kAt)
      root = state.stages[root].compute.stage;
    const schedule::StageState& outermost = state.stages[root];
    const bool prepared = outermost.info->constant && !state.is_param(outermost.buffer());
    if (prepared || state.stages[s].info->stage.is_extern()) continue;
    nests.push_back(builder.build(static_cast<int>(s)));
  }
  return nests;
}

StageLoops stage_loops(const State& state, const Bounds& bounds, int stage) {
  return NestBuilder(state, bounds).build_loops(stage);
}

}  // namespace hone::analysis
