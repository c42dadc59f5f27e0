// Reductions along rows, and what is computed with them (softmax, normalisation, a mean over the
// last axis): one task, one pass over memory. A row stays in the cache while all stages run over
// it; rows run in parallel.
//
//   parallel rows (or blocks of neighbouring columns):
//     each reduction over the row, vectorized
//     the result of the row, vectorized
#include <algorithm>

#include "hone/space/rows.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using schedule::State;
using schedule::Steps;

constexpr int64_t kShortRow = 16;

bool has_axis(const StageInfo& info, const std::string& name) {
  return std::any_of(info.stage.axes.begin(), info.stage.axes.end(),
                     [&](const compute::Axis& axis) { return axis.var->name == name; });
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Rows : public Group {
 public:
  struct Inner {
    std::string stage;
    std::vector<std::string> loops;  // in order, the vectorized one last; empty: a scalar
    bool keeps_one = false;          // element for each column
  };
  std::string root;
  std::vector<std::string> outer, row;  // the root's axes; `column` is in neither
  std::string column;              // the axis that lanes run along if it is no row's; "" otherwise
  std::vector<Inner> inner;        // topological order
  int64_t lanes = 8, columns = 1;  // columns: points of that axis
  int d_vectors = -1;
  std::vector<Decision> own_decisions;

  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  void set_default(std::vector<int>& choices) const override {
    if (d_vectors >= 0) choices[d_vectors] = nearest_option(own_decisions[d_vectors], 2);
  }
  void canonicalise(std::vector<int>& choices) const override {
    shorten_tile(own_decisions, d_vectors, (columns + lanes - 1) / lanes, choices);
  }

  void append_steps(const Choice& choice, Steps& steps) const override {
    std::vector<std::string> parallel = outer, order = outer;
    if (!column.empty()) {
      steps.push_back(
          schedule::Split{root, column, {choice[d_vectors] * lanes}, schedule::Tail::kMask});
      parallel.push_back(column + ".0");
      order.push_back(column + ".0");
    }
    order.insert(order.end(), row.begin(), row.end());
    if (!column.empty()) order.push_back(column + ".1");
    if (order.size() > 1) steps.push_back(schedule::Reorder{root, order});
    const std::string fused = fuse_loops(root, parallel, steps);
    steps.push_back(schedule::Parallel{root, fused});
    if (order.size() > parallel.size()) steps.push_back(schedule::Vectorize{root, order.back()});
    for (size_t i = inner.size(); i-- > 0;) {
      steps.push_back(schedule::ComputeAt{inner[i].stage, root, fused});
      // A vector or a few, which stay in registers.
      if (inner[i].keeps_one)
        steps.push_back(schedule::SetScope{inner[i].stage, ir::Scope::kStack});
      if (inner[i].loops.empty()) continue;
      if (inner[i].loops.size() > 1)
        steps.push_back(schedule::Reorder{inner[i].stage, inner[i].loops});
      steps.push_back(schedule::Vectorize{inner[i].stage, inner[i].loops.back()});
    }
  }
};

// Inlines pointwise stages that are cheap or have one reader only.
Status inline_cheap(SketchBuilder& builder) {
  return inline_stages(builder, [&](const compute::Stage& stage) {
    return !is_expensive(stage) || builder.state.readers(stage.outputs[0].buffer).size() <= 1;
  });
}

// Whether the stages are such a task at all.
bool applies(const State& state) {
  int reductions = 0;
  bool long_row = false;
  for (const schedule::StageState& stage : state.stages) {
    const StageInfo& info = *stage.info;
    if (info.stage.is_extern() || info.stage.where || info.constant ||
        info.stage.outputs.size() != 1)
      return false;
    const bool last = &stage == &state.stages.back();
    if (state.is_param(info.stage.outputs[0].buffer) != last) return false;
    if (!is_reduction(info)) continue;
    ++reductions;
    if (moving_operands(info) != 1) return false;
    const int axis = contiguous_reduce_axis(info);
    long_row |= axis >= 0 && info.axes[static_cast<size_t>(axis)].extent >= kShortRow;
  }
  const StageInfo& root = *state.stages.back().info;
  if (is_reduction(root) || root.stage.axes.empty()) return false;
  return reductions > 1 || (reductions == 1 && long_row);
}

}  // namespace

int contiguous_reduce_axis(const StageInfo& info) {
  for (const compute::Access& read : info.reads) {
    if (read.index.empty()) continue;
    const compute::AffineRow& last = read.index.back();
    for (size_t a = static_cast<size_t>(info.num_spatial()); a < info.axes.size(); ++a) {
      int terms = 0;
      for (const int64_t coef : last.coef) terms += static_cast<int>(coef != 0);
      if (last.coef[a] == 1 && terms == 1) return static_cast<int>(a);
    }
  }
  return -1;
}

int moving_operands(const StageInfo& info) {
  std::vector<const ir::Buffer*> seen;
  for (const compute::Access& read : info.reads) {
    bool along_row = false;
    for (int a = info.num_spatial(); a < static_cast<int>(info.axes.size()); ++a)
      along_row |= moves(read, a);
    if (along_row && std::count(seen.begin(), seen.end(), read.buffer.get()) == 0)
      seen.push_back(read.buffer.get());
  }
  return static_cast<int>(seen.size());
}

bool is_expensive(const compute::Stage& stage) {
  bool found = false;
  for (const compute::Output& output : stage.outputs) {
    ir::visit(output.value, [&](const ir::Expr& e) {
      found |= (e->op >= ir::Op::kSqrt) || e->op == ir::Op::kPow ||
               (e->op == ir::Op::kDiv && is_float(e->type));
    });
  }
  return found;
}

Status copy_out(SketchBuilder& builder) {
  const schedule::StageState& last = builder.state.stages.back();
  return is_reduction(*last.info) ? builder.add_step(schedule::CacheWrite{last.name()})
                                  : ok_status();
}

bool add_rows(SketchBuilder& builder) {
  SketchBuilder trial = builder;
  if (!copy_out(trial).ok() || !inline_cheap(trial).ok() || !applies(trial.state)) return false;

  const StageInfo& root = *trial.state.stages.back().info;
  auto group = std::make_shared<Rows>();
  group->root = root.stage.name;
  group->lanes = lanes_of(trial.target, root);
  const int unit = unit_stride_axis(root);
  for (int a = 0; a < root.num_spatial(); ++a) {
    const std::string& name = root.axes[static_cast<size_t>(a)].var->name;
    const bool shared =
        std::all_of(trial.state.stages.begin(), trial.state.stages.end(), [&](const auto& stage) {
          return !is_reduction(*stage.info) || has_axis(*stage.info, name);
        });
    bool contiguous = false;  // some reduction runs along contiguous elements itself
    for (const auto& stage : trial.state.stages)
      contiguous |= is_reduction(*stage.info) && contiguous_reduce_axis(*stage.info) >= 0;
    if (shared && a == unit && !contiguous) {
      group->column = name;
      group->columns = root.axes[static_cast<size_t>(a)].extent;
    } else {
      (shared ? group->outer : group->row).push_back(name);
    }
  }
  if (unit >= 0) {  // lanes along contiguous elements of the result
    const std::string& name = root.axes[static_cast<size_t>(unit)].var->name;
    const auto at = std::find(group->row.begin(), group->row.end(), name);
    if (at != group->row.end()) std::rotate(at, at + 1, group->row.end());
  }
  if (group->outer.empty() && group->column.empty()) return false;

  for (const schedule::StageState& stage : trial.state.stages) {
    if (stage.name() == group->root) continue;
    const StageInfo& info = *stage.info;
    Rows::Inner inner{stage.name(), {}};
    inner.keeps_one =
        !group->column.empty() && is_reduction(info) &&
        std::all_of(info.stage.axes.begin(), info.stage.axes.end(), [&](const compute::Axis& axis) {
          return !contains(group->row, axis.var->name);
        });
    const int contiguous = contiguous_reduce_axis(info);
    std::string lanes = group->column;
    if (lanes.empty() && contiguous >= 0)
      lanes = info.axes[static_cast<size_t>(contiguous)].var->name;
    if (lanes.empty() && !info.axes.empty()) {
      // Without a contiguous axis the last one that is no row number.
      for (const compute::Axis& axis : info.axes) {
        if (std::count(group->outer.begin(), group->outer.end(), axis.var->name) == 0)
          lanes = axis.var->name;
      }
    }
    if (!lanes.empty()) {
      for (const compute::Axis& axis : info.axes) {
        if (axis.var->name != lanes) inner.loops.push_back(axis.var->name);
      }
      inner.loops.push_back(lanes);
    }
    group->inner.push_back(std::move(inner));
  }
  if (!group->column.empty()) {
    group->d_vectors = trial.add_decision(group->root, "vectors", DecisionKind::kVector, {1, 2, 4});
  }
  group->own_decisions = trial.decisions;
  trial.groups.push_back(std::move(group));
  builder.take(std::move(trial));
  return true;
}

}  // namespace hone::space
