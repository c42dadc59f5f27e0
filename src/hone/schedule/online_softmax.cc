#include "hone/schedule/online_softmax.h"

#include <algorithm>
#include <limits>

#include "hone/base/round_up.h"
#include "hone/schedule/softmax_pattern.h"
#include "hone/schedule/stage_rewrite.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using compute::Output;
using compute::Stage;
using ir::Expr;
using ir::Op;

constexpr std::string_view kTile = "t";

// Makes stages over all keys such ones over tiles of them.
class Tiling {
 public:
  Tiling(const Softmax& softmax, int64_t factor, int64_t keys)
      : softmax_(softmax), factor_(factor), keys_(keys), count_(ceil_div(keys, factor)) {
    for (const Stage* stage : {&softmax.most, &softmax.weights, &softmax.total, &softmax.sums}) {
      const ir::BufferPtr& buffer = buffer_of(*stage);
      std::vector<int64_t> shape = {count_};
      shape.insert(shape.end(), buffer->shape.begin(), buffer->shape.end());
      if (stage == &softmax.weights) shape[softmax.key + 1] = factor;
      tiled_.emplace_back(buffer, ir::make_buffer(buffer->name + ".t", buffer->dtype, shape));
    }
  }
  // Returns whether the last tile has fewer keys.
  [[nodiscard]] bool has_short_tile() const { return keys_ % factor_ != 0; }
  [[nodiscard]] ir::BufferPtr tiled(const ir::BufferPtr& buffer) const {
    for (const auto& [from, to] : tiled_) {
      if (from == buffer) return to;
    }
    return nullptr;
  }

  // `keys`: the stage's axis over keys.
  [[nodiscard]] Stage stage(const Stage& whole, const Axis& keys) const {
    const Axis tile = compute::make_axis(std::string(kTile), count_);
    const Axis inner = compute::make_axis(keys.var->name, factor_);
    const Expr key = ir::variable(tile.var) * factor_ + ir::variable(inner.var);
    const ir::VarMap map = {{keys.var, key}};
    const auto place = [&](const ir::BufferPtr& buffer, const std::vector<Expr>& at) {
      std::vector<Expr> result = {ir::variable(tile.var)};
      for (size_t d = 0; d < at.size(); ++d) {
        const bool is_key = buffer == buffer_of(softmax_.weights) && d == softmax_.key;
        result.push_back(is_key ? ir::variable(inner.var) : at[d]);
      }
      return result;
    };
    Stage made = whole;
    made.until = nullptr;  // what ends is the loop over tiles
    if (has_short_tile()) made.where = ir::less(key, ir::constant(keys_));
    made.axes.clear();
    made.axes.push_back(tile);
    for (const Axis& axis : whole.axes) made.axes.push_back(axis.var == keys.var ? inner : axis);
    if (!whole.reduce.empty()) made.reduce = {inner};
    const Output& output = whole.outputs[0];
    const Expr value = ir::rewrite(output.value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad) return nullptr;
      const ir::BufferPtr to = tiled(e->buffer);
      if (!to) return nullptr;
      const Expr kept = ir::load(to, place(e->buffer, e->args));
      const bool is_most = e->buffer == buffer_of(softmax_.most) && e->buffer != output.buffer;
      return is_most ? ir::max(kept, least(e->type)) : kept;
    });
    made.outputs[0] = {tiled(output.buffer),
                       place(output.buffer, output.write),
                       ir::substitute(value, map),
                       output.identity,
                       nullptr,
                       nullptr};
    if (!output.merge) return made;
    // Reductions of a tile can be divided as those of all keys.
    const ir::BufferPtr other = ir::make_buffer(output.other->name + ".t", output.other->dtype,
                                                tiled(output.buffer)->shape);
    made.outputs[0].other = other;
    made.outputs[0].merge = ir::rewrite(output.merge, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad) return nullptr;
      return ir::load(e->buffer == output.other ? other : tiled(e->buffer),
                      place(output.buffer, e->args));
    });
    return made;
  }

  // Returns the stage that joins the tiles.
  [[nodiscard]] Stage joined() const {
    Stage made;
    made.name = softmax_.sums.name, made.op = softmax_.sums.op;
    for (const Axis& axis : softmax_.sums.axes)
      made.axes.push_back(compute::make_axis(axis.var->name, axis.extent));
    const Axis tile = compute::make_axis(std::string(kTile), count_);
    made.reduce = {tile};
    const auto to_own = [&](const Stage& stage) {
      ir::VarMap map;
      for (const Axis& axis : stage.axes) {
        for (const Axis& own : made.axes) {
          if (own.var->name == axis.var->name) map.push_back({axis.var, ir::variable(own.var)});
        }
      }
      return map;
    };
    // Where a stage writes, in terms of the new axes.
    const auto at = [&](const Stage& stage) {
      const ir::VarMap map = to_own(stage);
      std::vector<Expr> write;
      for (const Expr& index : stage.outputs[0].write) write.push_back(ir::substitute(index, map));
      return write;
    };
    if (softmax_.sums.until) {
      const Expr keys = ir::substitute(softmax_.sums.until, to_own(softmax_.sums));
      made.until = ir::floordiv(keys + (factor_ - 1), factor_);
    }
    const auto of_tile = [&](const Stage& stage) {
      std::vector<Expr> index = at(stage);
      index.insert(index.begin(), ir::variable(tile.var));
      return ir::load(tiled(buffer_of(stage)), index);
    };
    const ir::BufferPtr& most = buffer_of(softmax_.most);
    const ir::BufferPtr run = ir::make_buffer(most->name + ".run", most->dtype, most->shape);
    const std::vector<Expr> row = at(softmax_.most);
    const Expr top = ir::max(of_tile(softmax_.most), least(most->dtype));
    const Expr before = ir::load(run, row), now = ir::max(before, top);
    made.outputs.push_back({run, row, now, least(most->dtype), nullptr, nullptr});
    for (const Stage* stage : {&softmax_.total, &softmax_.sums}) {
      const Output& output = stage->outputs[0];
      const std::vector<Expr> write = at(*stage);
      made.outputs.push_back({output.buffer, write,
                              ir::load(output.buffer, write) * weight(before, now) +
                                  of_tile(*stage) * weight(top, now),
                              output.identity, nullptr, nullptr});
    }
    return made;
  }

 private:
  [[nodiscard]] static Expr least(DType dtype) {
    return ir::constant_float(dtype == DType::kF64 ? std::numeric_limits<double>::lowest()
                                                   : std::numeric_limits<float>::lowest(),
                              dtype);
  }
  // Returns the weight of a score relative to the largest one.
  [[nodiscard]] Expr weight(const Expr& score, const Expr& largest) const {
    return ir::rewrite(softmax_.weights.outputs[0].value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad) return nullptr;
      return e->buffer == softmax_.scores ? score : largest;
    });
  }

  const Softmax& softmax_;
  int64_t factor_, keys_, count_;
  std::vector<std::pair<ir::BufferPtr, ir::BufferPtr>> tiled_;
};

}  // namespace

Status online_softmax(const OnlineSoftmax& step, State& state) {
  HONE_ASSIGN_OR_RETURN(const Softmax softmax, find_softmax(state, step.stage));
  const int64_t keys = softmax.sums.reduce[0].extent;
  if (step.factor < 1 || step.factor > keys)
    return invalid("tiles of {} of {} keys", step.factor, keys);
  for (const Stage* stage : {&softmax.most, &softmax.weights, &softmax.total, &softmax.sums}) {
    for (const Axis& axis : stage->axes) {
      if (axis.var->name == kTile) return invalid("{} has an axis {} already", stage->name, kTile);
    }
  }
  const Tiling tiling(softmax, step.factor, keys);
  const auto replace = [&](const Stage& old, std::vector<Stage> stages) {
    replace_stage(state, state.find_stage(old.name), std::move(stages));
  };
  replace(softmax.most, {tiling.stage(softmax.most, softmax.most.reduce[0])});
  replace(softmax.weights, {tiling.stage(softmax.weights, key_axis(softmax))});
  replace(softmax.total, {tiling.stage(softmax.total, softmax.total.reduce[0])});
  Stage part = tiling.stage(softmax.sums, softmax.sums.reduce[0]);
  part.name = unique_name(state, softmax.sums.name + ".part");
  part.op.clear();
  replace(softmax.sums, {std::move(part), tiling.joined()});
  // Whole tiles run without tests of the last one.
  StageState& joined = state.stages[static_cast<size_t>(state.find_stage(softmax.sums.name))];
  joined.loops[static_cast<size_t>(joined.find_loop(kTile))].peel = tiling.has_short_tile();
  return ok_status();
}

}  // namespace hone::schedule
