#include "hone/schedule/online_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "hone/base/round_up.h"
#include "hone/ir/linear.h"
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
constexpr int64_t kMostKeys = 1 << 20;  // of a tile

constexpr int64_t kVectorElements = 16;  // at most, that are copied at once

// The type of the values if it has 16 bits, in which matrix instructions take weights, too.
DType type_of_weights(const Softmax& softmax) {
  DType type = buffer_of(softmax.weights)->dtype;
  ir::visit(softmax.sums.outputs[0].value, [&](const Expr& e) {
    if (e->op == Op::kLoad && is_float(e->type) && dtype_bytes(e->type) == 2) type = e->type;
  });
  return type;
}

// Makes stages over all keys such ones over tiles of them.
class Tiling {
 public:
  Tiling(const Softmax& softmax, const OnlineSoftmax& step, int64_t keys,
         std::span<const StageOfKeys> scores)
      : softmax_(softmax),
        factor_(step.factor),
        keys_(keys),
        count_(ceil_div(keys, factor_)),
        whole_(step.tiles == KeyTiles::kWhole) {
    const auto add = [&](const Stage& stage, int key, DType dtype) {
      const ir::BufferPtr& buffer = buffer_of(stage);
      std::vector<int64_t> shape = {count_};
      shape.insert(shape.end(), buffer->shape.begin(), buffer->shape.end());
      if (key >= 0) shape[static_cast<size_t>(key) + 1] = factor_;
      tiled_.push_back({buffer, ir::make_buffer(buffer->name + ".t", dtype, shape), key});
    };
    for (const StageOfKeys& score : scores)
      add(score.stage, static_cast<int>(score.key), buffer_of(score.stage)->dtype);
    add(softmax.most, -1, buffer_of(softmax.most)->dtype);
    add(softmax.weights, static_cast<int>(softmax.key),
        whole_ ? type_of_weights(softmax) : buffer_of(softmax.weights)->dtype);
    add(softmax.total, -1, buffer_of(softmax.total)->dtype);
    add(softmax.sums, -1, buffer_of(softmax.sums)->dtype);
  }
  // Returns whether the last tile has fewer keys, and code of its own.
  [[nodiscard]] bool has_short_tile() const { return !whole_ && keys_ % factor_ != 0; }

  // `keys`: the stage's axis over keys.
  [[nodiscard]] Stage stage(const Stage& whole, const Axis& keys) const {
    const Axis tile = compute::make_axis(std::string(kTile), count_);
    const Axis inner = compute::make_axis(keys.var->name, factor_);
    const Expr key = ir::variable(tile.var) * factor_ + ir::variable(inner.var);
    const ir::VarMap map = {{keys.var, key}};
    Stage made = whole;
    made.until = nullptr;  // what ends is the loop over tiles
    if (has_short_tile()) made.where = ir::less(key, ir::constant(keys_));
    made.axes.clear();
    made.axes.push_back(tile);
    for (const Axis& axis : whole.axes) made.axes.push_back(axis.var == keys.var ? inner : axis);
    if (!whole.reduce.empty() && whole.reduce[0].var == keys.var) made.reduce = {inner};
    const Output& output = whole.outputs[0];
    const Tiled& to = *tiled(output.buffer);
    Expr value = ir::rewrite(output.value, [&](const Expr& e) {
      return e->op == Op::kLoad ? load_of_tile(e, output.buffer, keys, tile, inner) : nullptr;
    });
    if (output.buffer == softmax_.scores && may_be_beyond())
      value = ir::select(exists(keys), value, ir::constant_float(-HUGE_VAL, value->type));
    if (value->type != to.to->dtype) value = ir::cast(to.to->dtype, value);
    made.outputs[0] = {to.to,
                       place(to, output.write, tile, inner),
                       ir::substitute(value, map),
                       output.identity,
                       nullptr,
                       nullptr};
    if (!output.merge) return made;
    // Reductions of a tile can be divided as those of all keys.
    const ir::BufferPtr other =
        ir::make_buffer(output.other->name + ".t", output.other->dtype, to.to->shape);
    made.outputs[0].other = other;
    made.outputs[0].merge = ir::rewrite(output.merge, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad) return nullptr;
      return ir::load(e->buffer == output.other ? other : tiled(e->buffer)->to,
                      place(to, e->args, tile, inner));
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
      return ir::load(tiled(buffer_of(stage))->to, index);
    };
    const auto other_of = [](const ir::BufferPtr& buffer) {
      return ir::make_buffer(buffer->name + ".other", buffer->dtype, buffer->shape);
    };
    const ir::BufferPtr& most = buffer_of(softmax_.most);
    const ir::BufferPtr run = ir::make_buffer(most->name + ".run", most->dtype, most->shape);
    const ir::BufferPtr run_of_other = other_of(run);
    const std::vector<Expr> row = at(softmax_.most);
    const Expr top = ir::max(of_tile(softmax_.most), least(most->dtype));
    const Expr before = ir::load(run, row), of_other = ir::load(run_of_other, row);
    const Expr now = ir::max(before, top), of_both = ir::max(before, of_other);
    std::vector<Output> outputs = {{run, row, now, least(most->dtype), of_both, run_of_other}};
    for (const Stage* stage : {&softmax_.total, &softmax_.sums}) {
      const Output& output = stage->outputs[0];
      const std::vector<Expr> write = at(*stage);
      const ir::BufferPtr other = other_of(output.buffer);
      const Expr sum = ir::load(output.buffer, write);
      outputs.push_back(
          {output.buffer, write, sum * weight(before, now) + of_tile(*stage) * weight(top, now),
           output.identity,
           sum * weight(before, of_both) + ir::load(other, write) * weight(of_other, of_both),
           other});
    }
    // What is read is stored last, so that lanes of a warp need no temporaries.
    if (whole_) std::reverse(outputs.begin(), outputs.end());
    made.outputs.assign(outputs.begin(), outputs.end());
    return made;
  }

 private:
  // A buffer over all keys, and one over tiles of them.
  struct Tiled {
    ir::BufferPtr from, to;
    int key;  // the dimension of keys; -1: it has none
  };
  [[nodiscard]] const Tiled* tiled(const ir::BufferPtr& buffer) const {
    const auto found = std::find_if(tiled_.begin(), tiled_.end(),
                                    [&](const Tiled& t) { return t.from == buffer; });
    return found == tiled_.end() ? nullptr : &*found;
  }
  [[nodiscard]] static std::vector<Expr> place(const Tiled& buffer, const std::vector<Expr>& at,
                                               const Axis& tile, const Axis& inner) {
    std::vector<Expr> result = {ir::variable(tile.var)};
    for (size_t d = 0; d < at.size(); ++d)
      result.push_back(static_cast<int>(d) == buffer.key ? ir::variable(inner.var) : at[d]);
    return result;
  }

  // Whole tiles have keys beyond the last one: their scores are minus infinity, and zeros stand for
  // what they would read.
  [[nodiscard]] bool may_be_beyond() const { return whole_ && keys_ % factor_ != 0; }
  // One test holds for all elements of a vector.
  [[nodiscard]] Expr exists(const Axis& keys) const {
    const int64_t together = std::gcd(std::gcd(keys_, factor_), kVectorElements);
    const Expr key = ir::variable(keys.var);
    return ir::less(together == 1 ? key : ir::floordiv(key, together),
                    ir::constant(keys_ / together));
  }
  // What a stage that stores `own` loads, in terms of a tile; null if that is what it loaded.
  [[nodiscard]] Expr load_of_tile(const Expr& e, const ir::BufferPtr& own, const Axis& keys,
                                  const Axis& tile, const Axis& inner) const {
    const Tiled* to = tiled(e->buffer);
    if (to == nullptr) {
      const bool tests = may_be_beyond() && own != softmax_.scores && ir::uses(e, keys.var.get());
      return tests ? ir::select(exists(keys), e, zero(e->type)) : nullptr;
    }
    Expr kept = ir::load(to->to, place(*to, e->args, tile, inner));
    if (kept->type != e->type) kept = ir::cast(e->type, kept);
    const bool is_most = e->buffer == buffer_of(softmax_.most) && e->buffer != own;
    return is_most ? ir::max(kept, least(e->type)) : kept;
  }

  [[nodiscard]] static Expr zero(DType dtype) {
    return is_float(dtype) ? ir::constant_float(0, dtype) : ir::constant_int(0, dtype);
  }
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
  bool whole_;
  std::vector<Tiled> tiled_;
};

}  // namespace

Status online_softmax(const OnlineSoftmax& step, State& state) {
  HONE_ASSIGN_OR_RETURN(const Softmax softmax, find_softmax(state, step.stage));
  const int64_t keys = softmax.sums.reduce[0].extent;
  const bool are_whole = step.tiles == KeyTiles::kWhole;
  if (step.factor < 1 || (!are_whole && step.factor > keys) || step.factor > kMostKeys)
    return invalid("tiles of {} of {} keys", step.factor, keys);
  std::vector<StageOfKeys> scores;
  if (are_whole) {
    scores = stages_of_scores(state, softmax);
    if (scores.empty()) return invalid("the scores of {} are not its own", step.stage);
  }
  const auto has_tile = [](const Stage& stage) {
    return std::any_of(stage.axes.begin(), stage.axes.end(),
                       [](const Axis& axis) { return axis.var->name == kTile; });
  };
  std::vector<const Stage*> all = {&softmax.most, &softmax.weights, &softmax.total, &softmax.sums};
  for (const StageOfKeys& score : scores) all.push_back(&score.stage);
  for (const Stage* stage : all) {
    if (has_tile(*stage)) return invalid("{} has an axis {} already", stage->name, kTile);
  }
  const Tiling tiling(softmax, step, keys, scores);
  const auto replace = [&](const Stage& old, std::vector<Stage> stages) {
    replace_stage(state, state.find_stage(old.name), std::move(stages));
  };
  for (const StageOfKeys& score : scores)
    replace(score.stage, {tiling.stage(score.stage, score.axis)});
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
