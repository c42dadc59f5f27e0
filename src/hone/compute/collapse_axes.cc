#include "hone/compute/collapse_axes.h"

#include <algorithm>
#include <map>
#include <set>

#include "hone/ir/linear.h"

namespace hone::compute {
namespace {

// A reduction to the place of an element and what is there, of which lanes hold a column each. Axes
// of other reductions mean more to their schedules: rows, channels.
bool finds_places(const Stage& stage) {
  return stage.reduce.size() == 1 && stage.outputs.size() == 2 && !stage.until &&
         !is_float(stage.outputs[0].buffer->dtype);
}

bool is_reduction(const Stage& stage) { return !stage.reduce.empty(); }

// Returns whether a load moves along the axes of a reduction.
bool moves_along(const ir::Expr& load, const std::vector<Axis>& reduce) {
  return std::any_of(load->args.begin(), load->args.end(), [&](const ir::Expr& index) {
    return std::any_of(reduce.begin(), reduce.end(),
                       [&](const Axis& axis) { return ir::uses(index, axis.var.get()); });
  });
}

// A reduction of one operand down its columns: the last axis is that of neighbouring elements.
bool reduces_columns(const Stage& stage) {
  if (!is_reduction(stage) || stage.axes.empty() || stage.outputs.size() != 1 || stage.until)
    return false;
  std::set<const ir::Buffer*> reduced;  // counted only
  bool columns = true;
  ir::visit(stage.outputs[0].value, [&](const ir::Expr& e) {
    if (!e->buffer || !moves_along(e, stage.reduce)) return;
    reduced.insert(e->buffer.get());
    columns = columns && e->args.back()->var == stage.axes.back().var;
  });
  return columns && reduced.size() == 1;
}

// Axes of a stage are counted from the last one, which is rank - 1, since a reduction may have
// fewer than the stages beside it. The axis that each index of a load or write is, or kOther.
constexpr int kOther = -1;
using Form = std::vector<int>;

// Finds the neighbouring axes that may be joined, and the dimensions of each buffer that then are.
class Analysis {
 public:
  explicit Analysis(const Dag& dag) {
    const auto rank = [](const Stage& stage) { return stage.axes.size(); };
    for (const Stage& stage : dag.stages) rank_ = std::max(rank_, rank(stage));
    const auto all = [&](const auto& is) {
      return std::all_of(dag.stages.begin(), dag.stages.end(), [&](const Stage& stage) {
        return !stage.is_extern() && !stage.where && (stage.reduce.empty() || is(stage));
      });
    };
    const bool even = std::all_of(dag.stages.begin(), dag.stages.end(),
                                  [&](const Stage& stage) { return rank(stage) == rank_; });
    const bool points = even && all(finds_places);
    const bool columns = !points &&
                         std::any_of(dag.stages.begin(), dag.stages.end(), is_reduction) &&
                         all(reduces_columns);
    if (rank_ < 2 || (!points && !columns)) return;
    joins_.assign(rank_, true);
    joins_[rank_ - 1] = false;  // the last axis has no neighbour behind it
    join_where_all_agree(dag);
    if (columns) keep_outer_axes();
    agree_on_buffers();
  }

  // Returns whether axis p is joined with the next one.
  [[nodiscard]] bool joins(size_t p) const { return joins_[p]; }
  // The number of a stage's first axis.
  [[nodiscard]] size_t first_axis(const Stage& stage) const { return rank_ - stage.axes.size(); }
  [[nodiscard]] bool any() const {
    return std::find(joins_.begin(), joins_.end(), true) != joins_.end();
  }
  // Returns whether dimension d of a buffer is joined with the next one.
  [[nodiscard]] bool joins(const Form& form, size_t d) const {
    return d + 1 < form.size() && form[d] != kOther && joins_[static_cast<size_t>(form[d])] &&
           form[d + 1] == form[d] + 1;
  }
  [[nodiscard]] const Form* form(const ir::Buffer* buffer) const {
    const auto found = forms_.find(buffer);
    return found == forms_.end() ? nullptr : &found->second;
  }

 private:
  void join_where_all_agree(const Dag& dag) {
    for (const Stage& stage : dag.stages) {
      if (first_axis(stage) > 0) joins_[first_axis(stage) - 1] = false;
      for (const Output& output : stage.outputs) {
        access(stage, output.buffer, output.write);
        for (const ir::Expr& expr : {output.value, output.identity, output.merge}) {
          if (expr) collect(stage, expr);
        }
      }
    }
  }

  // Axes of a reduction that are no columns mean something to its schedule.
  void keep_outer_axes() {
    size_t first = rank_ - 1;
    while (first > 0 && joins_[first - 1]) --first;
    std::fill_n(joins_.begin(), first, false);
  }

  [[nodiscard]] int axis_of(const Stage& stage, const ir::Expr& index) const {
    for (size_t p = 0; p < stage.axes.size(); ++p) {
      if (index->var == stage.axes[p].var) return static_cast<int>(first_axis(stage) + p);
    }
    return kOther;
  }

  // Axes that an expression names other than as a whole index stay as they are.
  void keep(const Stage& stage, const ir::Expr& expr) {
    ir::visit(expr, [&](const ir::Expr& e) {
      const int axis = e->var ? axis_of(stage, e) : kOther;
      if (axis != kOther) keep(static_cast<size_t>(axis));
    });
  }
  void keep(size_t axis) {
    joins_[axis] = false;
    if (axis > 0) joins_[axis - 1] = false;
  }

  void access(const Stage& stage, const ir::BufferPtr& buffer,
              const std::vector<ir::Expr>& indices) {
    Form form;
    for (const ir::Expr& index : indices) {
      form.push_back(axis_of(stage, index));
      if (form.back() == kOther) keep(stage, index);
    }
    const size_t first = first_axis(stage);
    for (size_t p = first; p + 1 < rank_; ++p) {
      const auto here = std::find(form.begin(), form.end(), static_cast<int>(p));
      const auto next = std::find(form.begin(), form.end(), static_cast<int>(p + 1));
      if (here == form.end() && next == form.end()) continue;
      const bool adjacent = here != form.end() && next != form.end() && next == here + 1 &&
                            std::count(form.begin(), form.end(), *here) == 1 &&
                            std::count(form.begin(), form.end(), *next) == 1 &&
                            buffer->shape[static_cast<size_t>(next - form.begin())] ==
                                stage.axes[p + 1 - first].extent;
      if (!adjacent) joins_[p] = false;
    }
    const auto [known, fresh] = forms_.try_emplace(buffer.get(), form);
    if (!fresh) others_.push_back({buffer.get(), form});
  }

  void collect(const Stage& stage, const ir::Expr& expr) {
    if (expr->buffer) {
      access(stage, expr->buffer, expr->args);
      return;
    }
    if (expr->var) keep(stage, expr);
    for (const ir::Expr& arg : expr->args) collect(stage, arg);
  }

  // All accesses of a buffer must join the same dimensions of it.
  void agree_on_buffers() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [buffer, form] : others_) {
        const Form& first = forms_.at(buffer);
        for (size_t d = 0; d < form.size(); ++d) {
          if (joins(form, d) == joins(first, d)) continue;
          joins_[static_cast<size_t>(joins(form, d) ? form[d] : first[d])] = false;
          changed = true;
        }
      }
    }
  }

  size_t rank_ = 0;
  std::vector<bool> joins_;
  std::map<const ir::Buffer*, Form> forms_;  // looked up only; of the first access
  std::vector<std::pair<const ir::Buffer*, Form>> others_;
};

class Collapser {
 public:
  Collapser(const Dag& dag, const Analysis& analysis) : dag_(dag), analysis_(analysis) {}

  Dag run() {
    Dag result;
    for (const ir::Param& param : dag_.params)
      result.params.push_back({collapsed(param.buffer), param.role});
    for (const Stage& stage : dag_.stages) result.stages.push_back(collapsed(stage));
    return result;
  }

 private:
  ir::BufferPtr collapsed(const ir::BufferPtr& buffer) {
    const Form* form = analysis_.form(buffer.get());
    if (form == nullptr) return buffer;
    const auto [place, fresh] = buffers_.try_emplace(buffer.get(), buffer);
    if (!fresh) return place->second;
    ir::Buffer copy = *buffer;
    copy.shape.clear();
    int64_t extent = 1;
    for (size_t d = 0; d < form->size(); ++d) {
      extent *= buffer->shape[d];
      if (analysis_.joins(*form, d)) continue;
      copy.shape.push_back(extent);
      extent = 1;
    }
    if (copy.shape.size() != buffer->shape.size())
      place->second = std::make_shared<const ir::Buffer>(std::move(copy));
    return place->second;
  }

  // `at`: by old axis, the new one's variable.
  std::vector<ir::Expr> collapsed(const ir::BufferPtr& buffer, const std::vector<ir::Expr>& indices,
                                  const std::map<const ir::Var*, ir::VarPtr>& at) {
    const Form& form = *analysis_.form(buffer.get());
    std::vector<ir::Expr> result;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (analysis_.joins(form, d)) continue;
      const auto axis = at.find(indices[d]->var.get());
      result.push_back(axis == at.end() ? indices[d] : ir::variable(axis->second));
    }
    return result;
  }

  Stage collapsed(const Stage& stage) {
    Stage result = stage;
    result.axes.clear();
    std::map<const ir::Var*, ir::VarPtr> at;  // looked up only
    const size_t first = analysis_.first_axis(stage);
    for (size_t p = 0; p < stage.axes.size();) {
      size_t end = p;
      std::string name = stage.axes[p].var->name;
      int64_t extent = stage.axes[p].extent;
      for (; analysis_.joins(first + end); ++end) {
        name += "_" + stage.axes[end + 1].var->name;
        extent *= stage.axes[end + 1].extent;
      }
      result.axes.push_back(end == p ? stage.axes[p] : make_axis(name, extent));
      for (; p <= end; ++p) at[stage.axes[p].var.get()] = result.axes.back().var;
    }
    const auto load = [&](const ir::Expr& e) -> ir::Expr {
      if (!e->buffer) return nullptr;
      return ir::load(collapsed(e->buffer), collapsed(e->buffer, e->args, at));
    };
    for (Output& output : result.outputs) {
      output.write = collapsed(output.buffer, output.write, at);
      output.buffer = collapsed(output.buffer);
      for (ir::Expr* expr : {&output.value, &output.identity, &output.merge}) {
        if (*expr) *expr = ir::rewrite(*expr, load);
      }
      if (output.other) output.other = collapsed(output.other);
    }
    return result;
  }

  const Dag& dag_;
  const Analysis& analysis_;
  std::map<const ir::Buffer*, ir::BufferPtr> buffers_;  // looked up only
};

}  // namespace

Dag collapse_axes(const Dag& dag) {
  const Analysis analysis(dag);
  return analysis.any() ? Collapser(dag, analysis).run() : dag;
}

}  // namespace hone::compute
