#include "hone/schedule/softmax_pattern.h"

#include <algorithm>

#include "hone/ir/linear.h"
#include "hone/ir/loads.h"
#include "hone/schedule/stage_rewrite.h"

namespace hone::schedule {
namespace {

using compute::Axis;
using compute::Stage;
using ir::Expr;
using ir::Op;

bool is_var(const Expr& e, const ir::VarPtr& var) { return e->op == Op::kVar && e->var == var; }
bool is_load(const Expr& e, const ir::BufferPtr& buffer) {
  return e->op == Op::kLoad && e->buffer == buffer;
}
// The term that a stage sums up, or has the largest of, along one axis; null if it does not.
Expr term_of(const Stage& stage, Op op) {
  if (stage.is_extern() || stage.where || stage.outputs.size() != 1 || stage.reduce.size() != 1)
    return nullptr;
  const Expr& value = stage.outputs[0].value;
  if (value->op != op) return nullptr;
  for (const size_t own : {0U, 1U}) {
    const Expr& term = value->args[1 - own];
    if (is_load(value->args[own], buffer_of(stage)) &&
        !ir::loads_from(term, buffer_of(stage).get()))
      return term;
  }
  return nullptr;
}

// A power of a constant, or of e, whose exponent is a multiple of the first buffer less the second.
bool is_power_of_difference(const Expr& value, const ir::BufferPtr& score,
                            const ir::BufferPtr& most) {
  const bool is_pow = value->op == Op::kPow && value->args[0]->op == Op::kFloat;
  if (!is_pow && value->op != Op::kExp) return false;
  Expr exponent = value->args.back();
  if (exponent->op == Op::kMul && exponent->args[1]->op == Op::kFloat) exponent = exponent->args[0];
  return exponent->op == Op::kSub && is_load(exponent->args[0], score) &&
         is_load(exponent->args[1], most);
}

// Returns whether the index of a load in that dimension is the axis `key`, on which no other index
// depends.
bool is_along(const Expr& load, size_t dimension, const Axis& key) {
  for (size_t d = 0; d < load->args.size(); ++d) {
    const bool moves = ir::uses(load->args[d], key.var.get());
    if (d == dimension ? !is_var(load->args[d], key.var) : moves) return false;
  }
  return dimension < load->args.size();
}

// The one stage that writes a buffer which is no result, if nothing was done to it yet; null else.
const Stage* writer(const State& state, const ir::BufferPtr& buffer) {
  const StageList writers = state.writers(buffer);
  if (writers.size() != 1 || !untouched(state, writers[0]) || state.is_param(buffer))
    return nullptr;
  return &state.stages[static_cast<size_t>(writers[0])].info->stage;
}

// The dimension of the weights that is their one axis which sums have not.
bool find_key(Softmax& found) {
  const std::vector<Expr>& write = found.weights.outputs[0].write;
  int axes = 0;
  for (const Axis& axis : found.weights.axes) {
    const bool kept =
        std::any_of(found.sums.axes.begin(), found.sums.axes.end(),
                    [&](const Axis& other) { return other.var->name == axis.var->name; });
    if (kept) continue;
    const auto at = std::find_if(write.begin(), write.end(),
                                 [&](const Expr& e) { return is_var(e, axis.var); });
    if (at == write.end() || axis.extent != found.sums.reduce[0].extent) return false;
    found.key = static_cast<size_t>(at - write.begin());
    ++axes;
  }
  return axes == 1;
}

// Weights of a key that are such a power of its score and the row's maximum alone.
bool find_weights(const State& state, const ir::BufferPtr& buffer, Softmax& found) {
  const Stage* weights = writer(state, buffer);
  if (!weights || weights->is_extern() || weights->where || !weights->reduce.empty() ||
      weights->outputs.size() != 1)
    return false;
  std::vector<ir::BufferPtr> reads;
  ir::visit(weights->outputs[0].value, [&](const Expr& e) {
    if (e->op == Op::kLoad) reads.push_back(e->buffer);
  });
  if (reads.size() != 2 || !is_power_of_difference(weights->outputs[0].value, reads[0], reads[1]))
    return false;
  const Stage* most = writer(state, reads[1]);
  const Expr term = most ? term_of(*most, Op::kMax) : nullptr;
  if (!term || !is_load(term, reads[0]) || state.readers(reads[1]).size() != 1) return false;
  found.most = *most, found.weights = *weights, found.scores = reads[0];
  return true;
}

// The sum of the weights alone, which nobody needs before their sums.
bool find_total(const State& state, int sums, Softmax& found) {
  const StageList readers = state.readers(buffer_of(found.weights));
  if (readers.size() != 2) return false;
  const Stage& total = state.stages[readers[readers[0] == sums ? 1 : 0]].info->stage;
  const Expr term = term_of(total, Op::kAdd);
  if (!term || !is_load(term, buffer_of(found.weights)) ||
      writer(state, buffer_of(total)) != &total)
    return false;
  for (const int reader : state.readers(buffer_of(total))) {
    if (reader < sums) return false;
  }
  found.total = total;
  return true;
}

// Returns whether each stage moves along keys where the weights do.
bool reads_along_keys(const Softmax& found, const Expr& weight) {
  const Axis& key = key_axis(found);
  const Expr most = term_of(found.most, Op::kMax), total = term_of(found.total, Op::kAdd);
  bool same = is_along(weight, found.key, found.sums.reduce[0]) &&
              is_along(total, found.key, found.total.reduce[0]) &&
              found.total.reduce[0].extent == key.extent &&
              found.most.reduce[0].extent == key.extent;
  ir::visit(found.weights.outputs[0].value, [&](const Expr& e) {
    if (e->op != Op::kLoad) return;
    const auto at = std::find_if(e->args.begin(), e->args.end(),
                                 [&](const Expr& index) { return is_var(index, key.var); });
    const auto dimension = static_cast<size_t>(at - e->args.begin());
    if (e->buffer == found.scores) {
      same &= is_along(e, dimension, key) && is_along(most, dimension, found.most.reduce[0]);
    } else {
      for (const Expr& index : e->args) same &= !ir::uses(index, key.var.get());
    }
  });
  return same;
}

}  // namespace

const Axis& key_axis(const Softmax& softmax) {
  const Expr& key = softmax.weights.outputs[0].write[softmax.key];
  return *std::find_if(softmax.weights.axes.begin(), softmax.weights.axes.end(),
                       [&](const Axis& axis) { return is_var(key, axis.var); });
}

std::vector<StageOfKeys> stages_of_scores(const State& state, const Softmax& softmax) {
  std::vector<StageOfKeys> found;
  std::vector<const Stage*> readers = {&softmax.most, &softmax.weights};
  // Adds the stage that writes a buffer, of which dimension `key` runs over keys.
  const auto add = [&](const ir::BufferPtr& buffer, size_t key) {
    bool is_along_keys = true;
    for (const StageOfKeys& reader : found) {
      if (buffer_of(reader.stage) == buffer) return;  // it is read several times
      ir::visit(reader.stage.outputs[0].value, [&](const Expr& e) {
        if (is_load(e, buffer)) is_along_keys &= is_along(e, key, reader.axis);
      });
    }
    const Stage* stage = is_along_keys ? writer(state, buffer) : nullptr;
    if (!stage || stage->is_extern() || stage->where || stage->until || stage->outputs.size() != 1)
      return;
    for (const int reader : state.readers(buffer)) {
      const std::string& name = state.stages[static_cast<size_t>(reader)].name();
      if (std::none_of(readers.begin(), readers.end(),
                       [&](const Stage* known) { return known->name == name; }))
        return;
    }
    for (const Axis& axis : stage->axes) {
      if (!is_var(stage->outputs[0].write[key], axis.var) ||
          axis.extent != key_axis(softmax).extent)
        continue;
      found.push_back({*stage, key, axis});
      readers.push_back(stage);
    }
  };
  ir::visit(softmax.weights.outputs[0].value, [&](const Expr& e) {
    if (!is_load(e, softmax.scores) || !found.empty()) return;
    for (size_t d = 0; d < e->args.size(); ++d) {
      if (is_along(e, d, key_axis(softmax))) add(e->buffer, d);
    }
  });
  for (size_t i = 0; i < found.size(); ++i) {
    const Stage stage = found[i].stage;
    const Axis axis = found[i].axis;
    ir::visit(stage.outputs[0].value, [&](const Expr& e) {
      if (e->op != Op::kLoad || e->buffer == buffer_of(stage)) return;
      for (size_t d = 0; d < e->args.size(); ++d) {
        if (is_along(e, d, axis)) add(e->buffer, d);
      }
    });
  }
  return found;
}

Result<Softmax> find_softmax(const State& state, const std::string& name) {
  const int index = state.find_stage(name);
  if (index < 0) return invalid("no stage {}", name);
  if (!untouched(state, index)) return invalid("{} is scheduled already", name);
  Softmax found;
  found.sums = state.stages[static_cast<size_t>(index)].info->stage;
  const Status other = invalid("{} is no sum weighted by a softmax over all keys", name);
  const Expr term = term_of(found.sums, Op::kAdd);
  if (!term || term->op != Op::kMul) return other;
  for (const size_t w : {0U, 1U}) {
    const Expr &weight = term->args[w], &value = term->args[1 - w];
    if (weight->op != Op::kLoad || !find_weights(state, weight->buffer, found)) continue;
    const auto reads = [&](const Stage& stage) {
      return ir::loads_from(value, buffer_of(stage).get());
    };
    if (reads(found.most) || reads(found.weights) || !find_total(state, index, found) ||
        reads(found.total) || !find_key(found) || !reads_along_keys(found, weight))
      continue;
    return found;
  }
  return other;
}

}  // namespace hone::schedule
