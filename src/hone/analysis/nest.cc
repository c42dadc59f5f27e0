#include "hone/analysis/nest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hone::analysis {

using ir::Expr;
using ir::Op;
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
  std::vector<int64_t> reaches((loops.size() + 1) * dims);
  for (size_t d = 0; d < dims; ++d) {
    int64_t reach = 1 + spread[d];
    reaches[loops.size() * dims + d] = std::min(reach, shape[d]);
    for (size_t i = loops.size(); i-- > 0;) {
      reach += std::abs(move[d][i]) * (loops[i].extent - 1);
      reaches[i * dims + d] = std::min(reach, shape[d]);
    }
  }
  reaches_ = std::move(reaches);
}

double NestAccess::footprint(const std::vector<NestLoop>& loops, size_t first) const {
  double product = 1;
  for (size_t d = 0; d < move.size(); ++d) product *= static_cast<double>(reach(loops, first, d));
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
  return std::any_of(move.begin(), move.end(),
                     [&](const std::vector<int64_t>& row) { return row[loop] != 0; });
}

int64_t NestAccess::stride(size_t loop) const {
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

void count(const Expr& e, OpCounts& ops) {
  if (e->op == Op::kLoad) return;  // index arithmetic is the code generator's business
  if (e->args.empty()) return;
  // The load widens what it loads: who counts loads sees their width.
  if (e->op == Op::kCast && is_float(e->type) && e->args[0]->op == Op::kLoad) return;
  if (e->op == Op::kSelect) {
    ops.select += 1;
    count(e->args[1], ops);
    count(e->args[2], ops);
    return;
  }
  if (!is_float(e->type)) {
    ops.integer += 1;
  } else if (e->op == Op::kAdd || e->op == Op::kSub) {
    const bool fused = e->args[0]->op == Op::kMul || e->args[1]->op == Op::kMul;
    (fused ? ops.fma : ops.add) += 1;
    if (fused) ops.mul -= 1;
  } else if (e->op == Op::kMul) {
    ops.mul += 1;
  } else if (e->op == Op::kDiv) {
    ops.div += 1;
  } else if (e->op == Op::kMin || e->op == Op::kMax || e->op == Op::kNeg || e->op == Op::kAbs) {
    ops.compare += 1;
  } else {
    ops.math += 1;
  }
  for (const Expr& arg : e->args) count(arg, ops);
}

class NestBuilder {
 public:
  NestBuilder(const State& state, const Bounds& bounds) : state_(state), bounds_(bounds) {}

  Nest build(int s) {
    Nest nest;
    nest.stage = nest.root = s;
    while (state_.stages[nest.root].compute.kind == AttachKind::kAt)
      nest.root = state_.stages[nest.root].compute.stage;
    for (const auto& [stage, loop] : schedule::enclosing_loops(state_, state_.stages[s].compute)) {
      add_loop(nest, stage, loop);
    }
    nest.outer = nest.loops.size();
    for (const int leaf : state_.stages[s].order) add_loop(nest, s, leaf);
    const schedule::StageInfo& info = *state_.stages[s].info;
    add_reads(nest, s, info.reads);
    nest.accesses.push_back(
        make_access(nest, s, info.stage.outputs[0].buffer, info.writes[0], true));
    nest.accesses.back().spread.resize(nest.accesses.back().move.size(), 0);
    for (NestAccess& access : nest.accesses) access.remember_reaches(nest.loops);
    nest.ops = count_ops(info.stage);
    nest.tests = tested_loops(nest, s);
    nest.useful = useful_share(s);
    return nest;
  }

 private:
  void add_loop(Nest& nest, int s, int leaf) const {
    const schedule::Loop& loop = state_.stages[s].loops[leaf];
    const auto add = [&](int index) {
      nest.loops.push_back(
          {s, index, bounds_.stages[s].loop_extent[index], loop.annotation, loop.reduce});
    };
    if (loop.digits.empty()) return add(leaf);
    for (const int digit : loop.digits) add(digit);
  }

  static bool same_coefficients(const compute::Access& a, const compute::Access& b) {
    return a.buffer == b.buffer &&
           std::equal(a.index.begin(), a.index.end(), b.index.begin(), b.index.end(),
                      [](const auto& x, const auto& y) { return x.coef == y.coef; });
  }

  // One access per group of reads that differ in constants only. Known matrices become immediate
  // operands.
  void add_reads(Nest& nest, int s, const std::vector<compute::Access>& reads) const {
    std::vector<bool> taken(reads.size(), false);
    for (size_t i = 0; i < reads.size(); ++i) {
      if (taken[i] || !reads[i].buffer->values.empty()) continue;
      NestAccess access = make_access(nest, s, reads[i].buffer, reads[i].index, false);
      const size_t dims = reads[i].index.size();
      access.spread.resize(access.move.size(), 0);
      const bool mergeable = access.move.size() == dims && !has_layout(reads[i].buffer);
      std::vector<int64_t> low(dims), high(dims);
      for (size_t d = 0; d < dims; ++d) low[d] = high[d] = reads[i].index[d].constant;
      for (size_t j = i + 1; mergeable && j < reads.size(); ++j) {
        if (taken[j] || !same_coefficients(reads[i], reads[j])) continue;
        taken[j] = true;
        access.reads += 1;
        for (size_t d = 0; d < dims; ++d) {
          low[d] = std::min(low[d], reads[j].index[d].constant);
          high[d] = std::max(high[d], reads[j].index[d].constant);
          access.spread[d] = high[d] - low[d];
        }
      }
      nest.accesses.push_back(std::move(access));
    }
  }
  [[nodiscard]] bool has_layout(const ir::BufferPtr& buffer) const {
    return std::any_of(state_.stages.begin(), state_.stages.end(), [&](const auto& stage) {
      return stage.buffer() == buffer && !stage.layout.empty();
    });
  }

  // Calls visit(loop, coefficient) for the terms of a linear form over the nest's loops.
  template <typename Visit>
  static void visit_terms(const Nest& nest, const schedule::Linear& linear, const Visit& visit) {
    for (const schedule::Term& term : linear) {
      for (size_t i = 0; i < nest.loops.size(); ++i) {
        if (nest.loops[i].stage == term.stage && nest.loops[i].loop == term.loop)
          visit(i, term.coef);
      }
    }
  }
  // Adds coef * (a linear form over loops) to a row over the nest's loops.
  static void add_terms(const Nest& nest, const schedule::Linear& linear, int64_t coef,
                        std::vector<int64_t>& row) {
    visit_terms(nest, linear, [&](size_t i, int64_t own) { row[i] += coef * own; });
  }

  NestAccess make_access(const Nest& nest, int s, const ir::BufferPtr& buffer,
                         const std::vector<compute::AffineRow>& rows, bool write) const {
    NestAccess access;
    access.buffer = buffer.get();
    access.write = write;
    access.element_bytes = static_cast<int>(dtype_bytes(buffer->dtype));
    const std::vector<schedule::AxisBounds>& axes = bounds_.stages[s].axes;
    std::vector<std::vector<int64_t>> logical(rows.size(),
                                              std::vector<int64_t>(nest.loops.size(), 0));
    for (size_t d = 0; d < rows.size(); ++d) {
      for (size_t a = 0; a < rows[d].coef.size(); ++a) {
        if (rows[d].coef[a] == 0) continue;
        add_terms(nest, axes[a].min, rows[d].coef[a], logical[d]);
        add_terms(nest, axes[a].own, rows[d].coef[a], logical[d]);
      }
    }
    int writer = -1;
    for (size_t w = 0; w < state_.stages.size(); ++w) {
      if (state_.stages[w].buffer() == buffer) writer = static_cast<int>(w);
    }
    const ir::Param* param = state_.find_param(buffer);
    if (param || writer < 0) {
      access.constant = param && param->role == ir::Role::kConstant;
      access.shape = buffer->shape;
      access.move = std::move(logical);
      return access;
    }
    const schedule::StageState& owner = state_.stages[writer];
    const bool root = owner.compute.kind == AttachKind::kRoot;
    access.constant = owner.info->constant && root;
    access.scope = root ? ir::Scope::kGlobal : owner.scope;
    if (!root) drop_outer(nest, writer, logical);
    access.shape = schedule::storage_shape(owner, bounds_.stages[writer]);
    if (owner.layout.empty()) {
      access.move = std::move(logical);
      return access;
    }
    for (const schedule::LayoutDim& digit : owner.layout) {
      std::vector<int64_t>& row = access.move.emplace_back(nest.loops.size(), 0);
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

  [[nodiscard]] std::vector<bool> tested_loops(const Nest& nest, int s) const {
    std::vector<bool> tested(nest.loops.size(), false);
    if (nest.ops.select == 0) return tested;
    const schedule::StageInfo& info = *state_.stages[s].info;
    const auto add = [&](const schedule::Linear& linear) {
      visit_terms(nest, linear, [&](size_t i, int64_t) { tested[i] = true; });
    };
    const auto note = [&](const Expr& condition) {
      ir::visit(condition, [&](const Expr& e) {
        for (size_t a = 0; e->op == Op::kVar && a < info.axes.size(); ++a) {
          if (info.axes[a].var != e->var) continue;
          add(bounds_.stages[s].axes[a].min);
          add(bounds_.stages[s].axes[a].own);
        }
      });
    };
    for (const compute::Output& output : info.stage.outputs) {
      if (!output.value) continue;
      ir::visit(output.value, [&](const Expr& e) {
        if (e->op == Op::kSelect) note(e->args[0]);
      });
    }
    return tested;
  }

  // Storage inside a tile does not move with the loops around it.
  void drop_outer(const Nest& nest, int writer, std::vector<std::vector<int64_t>>& rows) const {
    const auto around = schedule::enclosing_loops(state_, state_.stages[writer].store);
    for (size_t i = 0; i < nest.loops.size(); ++i) {
      const bool outside = std::any_of(around.begin(), around.end(), [&](const auto& loop) {
        if (loop.first != nest.loops[i].stage) return false;
        const std::vector<int>& digits = state_.stages[loop.first].loops[loop.second].digits;
        return loop.second == nest.loops[i].loop ||
               std::count(digits.begin(), digits.end(), nest.loops[i].loop) > 0;
      });
      if (!outside) continue;
      for (std::vector<int64_t>& row : rows) row[i] = 0;
    }
  }

  // Peeled tails run only what is there; masked and padded ones run whole tiles.
  double useful_share(int s) const {
    double share = 1;
    for (int at = s;;) {
      const schedule::StageState& stage = state_.stages[at];
      // What is computed inside of a sum's loops is not computed less often for their tails.
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
      if (stage.compute.kind == AttachKind::kRoot) return share;
      at = stage.compute.stage;
    }
  }

  const State& state_;
  const Bounds& bounds_;
};

}  // namespace

OpCounts count_ops(const compute::Stage& stage) {
  OpCounts ops;
  for (const compute::Output& output : stage.outputs) {
    if (output.value) count(output.value, ops);
  }
  return ops;
}

std::vector<Nest> build_nests(const State& state, const Bounds& bounds) {
  NestBuilder builder(state, bounds);
  std::vector<Nest> nests;
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

}  // namespace hone::analysis
