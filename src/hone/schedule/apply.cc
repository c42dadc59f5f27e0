#include <algorithm>
#include <functional>

#include "hone/ir/scan_loop.h"
#include "hone/ir/visit.h"
#include "hone/schedule/body_steps.h"
#include "hone/schedule/im2col.h"
#include "hone/schedule/matrix_product.h"
#include "hone/schedule/online_softmax.h"
#include "hone/schedule/pipeline.h"
#include "hone/schedule/stage_rewrite.h"
#include "hone/schedule/storage_order.h"
#include "hone/schedule/strassen.h"
#include "hone/schedule/tensorize.h"
#include "hone/schedule/winograd.h"

namespace hone::schedule {
namespace {

struct Found {
  StageState* stage = nullptr;
  int stage_index = -1;
  int loop = -1;
};

Status find(State& state, const std::string& stage, Found& out) {
  out.stage_index = state.find_stage(stage);
  if (out.stage_index < 0) return invalid("no stage {}", stage);
  out.stage = &state.stages[out.stage_index];
  return ok_status();
}

Status find_loop(const std::string& loop, Found& out) {
  out.loop = out.stage->find_loop(loop);
  if (out.loop < 0) return invalid("{} has no loop {}", out.stage->name(), loop);
  return ok_status();
}

Status find(State& state, const std::string& stage, const std::string& loop, Found& out) {
  HONE_RETURN_IF_ERROR(find(state, stage, out));
  return find_loop(loop, out);
}

// Something is computed or stored inside this loop, so it must stay as it is.
bool holds_others(const State& state, int stage, int loop) {
  for (const StageState& other : state.stages) {
    for (const Place* place : {&other.compute, &other.store}) {
      if (place->kind == AttachKind::kAt && place->stage == stage && place->loop == loop)
        return true;
    }
  }
  return false;
}

Status check_free(const State& state, const Found& at) {
  const Loop& loop = at.stage->loops[at.loop];
  if (loop.annotation != Annotation::kNone) return invalid("loop {} is annotated", loop.name);
  if (holds_others(state, at.stage_index, at.loop))
    return invalid("loop {} holds other stages", loop.name);
  if (at.stage->sunk == at.loop) return invalid("loop {} is sunk", loop.name);
  return ok_status();
}

Status apply_split(const Split& step, State& state) {
  Found at;
  HONE_RETURN_IF_ERROR(find(state, step.stage, step.loop, at));
  HONE_RETURN_IF_ERROR(check_free(state, at));
  if (step.lengths.empty()) return invalid("no lengths");
  int64_t stride = 1;
  for (const int64_t length : step.lengths) {
    if (length < 1 || length > (int64_t{1} << 40) / stride)
      return invalid("length {} is out of range", length);
    stride *= length;
  }
  StageState& stage = *at.stage;
  if (stage.loops.size() + step.lengths.size() > 60)
    return invalid("{} has too many loops", step.stage);
  const int position = stage.find_leaf(at.loop);
  const auto first = static_cast<int>(stage.loops.size());
  const std::ranges::iota_view<int, int> parts(first,
                                               first + static_cast<int>(step.lengths.size()) + 1);
  const auto needed = static_cast<size_t>(first) + parts.size();
  if (stage.loops.capacity() < needed) stage.loops.reserve(2 * needed);
  for (size_t i = 0; i <= step.lengths.size(); ++i) {
    Loop part;
    part.name = step.loop + "." + std::to_string(i);
    part.reduce = stage.loops[at.loop].reduce;
    part.parent = at.loop;
    part.length = i == 0 ? 0 : step.lengths[i - 1];
    part.stride = stride;
    part.peel = i == 0 && step.tail == Tail::kPeel;
    part.test = i == 0 && step.tail == Tail::kTest;
    part.pad = step.tail == Tail::kPad || step.tail == Tail::kWhole;
    part.whole = step.tail == Tail::kWhole && i > 0;
    if (i < step.lengths.size()) stride /= step.lengths[i];
    stage.loops.push_back(std::move(part));
  }
  stage.loops[at.loop].children = parts;
  stage.loops[at.loop].pad = step.tail == Tail::kPad || step.tail == Tail::kWhole;
  const auto place = stage.order.erase(stage.order.begin() + position);
  stage.order.insert(place, parts.begin(), parts.end());
  return ok_status();
}

Status apply_fuse(const Fuse& step, State& state) {
  if (step.loops.size() < 2) return invalid("fuse needs two loops or more");
  Found at;
  HONE_RETURN_IF_ERROR(find(state, step.stage, at));
  Loop fused;
  std::vector<int>& digits = fused.digits;
  int position = -1;
  for (const std::string& name : step.loops) {
    HONE_RETURN_IF_ERROR(find_loop(name, at));
    HONE_RETURN_IF_ERROR(check_free(state, at));
    const int place = at.stage->find_leaf(at.loop);
    if (position >= 0 && place != position + static_cast<int>(digits.size())) {
      return invalid("loop {} does not follow {}", name, fused.name);
    }
    if (position < 0) position = place;
    if (!digits.empty() && at.stage->loops[at.loop].reduce != fused.reduce) {
      return invalid("{} mixes spatial and reduce loops", name);
    }
    fused.reduce = at.stage->loops[at.loop].reduce;
    fused.test |= at.stage->loops[at.loop].test;
    if (!digits.empty()) fused.name += "@";
    fused.name += name;
    digits.push_back(at.loop);
  }
  StageState& stage = *at.stage;
  const int index = static_cast<int>(stage.loops.size());
  for (const int digit : digits) stage.loops[digit].fused_into = index;
  const auto begin = stage.order.begin() + position;
  *begin = index;
  stage.order.erase(begin + 1, begin + static_cast<int>(digits.size()));
  stage.loops.push_back(std::move(fused));
  return ok_status();
}

// Returns whether a stage stores the position of what it found, the first or the last of equal
// elements. Earlier elements must then be visited earlier.
bool keeps_places(const compute::Stage& stage) {
  return stage.outputs.size() > 1 &&
         std::any_of(stage.outputs.begin(), stage.outputs.end(), [](const compute::Output& output) {
           return output.merge && !is_float(output.buffer->dtype);
         });
}

template <typename Loops>
SmallVector<int, 16> reduce_loops(const StageState& stage, const Loops& order) {
  SmallVector<int, 16> loops;
  for (const int loop : order) {
    if (stage.loops[loop].reduce) loops.push_back(loop);
  }
  return loops;
}

Status apply_reorder(const Reorder& step, State& state) {
  if (step.loops.empty()) return invalid("no loops");
  Found at;
  HONE_RETURN_IF_ERROR(find(state, step.stage, at));
  SmallVector<int, 16> places, loops;
  for (const std::string& name : step.loops) {
    HONE_RETURN_IF_ERROR(find_loop(name, at));
    if (std::count(loops.begin(), loops.end(), at.loop) > 0)
      return invalid("loop {} is named twice", name);
    loops.push_back(at.loop);
    places.push_back(at.stage->find_leaf(at.loop));
  }
  for (size_t i = 0; i < state.stages.size(); ++i) {
    if (state.stages[i].compute.kind == AttachKind::kAt &&
        state.stages[i].compute.stage == at.stage_index) {
      return invalid("{} holds the computation of {}", step.stage, state.stages[i].name());
    }
  }
  std::sort(places.begin(), places.end());
  auto order = at.stage->order;
  for (size_t i = 0; i < loops.size(); ++i) order[places[i]] = loops[i];
  if (keeps_places(at.stage->info->stage)) {
    const SmallVector<int, 16> before = reduce_loops(*at.stage, at.stage->order);
    const SmallVector<int, 16> after = reduce_loops(*at.stage, order);
    if (!std::equal(before.begin(), before.end(), after.begin()))
      return invalid("{} keeps places, so its elements are seen in order", step.stage);
  }
  at.stage->order = std::move(order);
  return ok_status();
}

// Every reader of a stage that is computed inside a loop lies in that loop.
Status check_readers(const State& state, int index) {
  const StageState& stage = state.stages[index];
  if (stage.compute.kind == AttachKind::kRoot) return ok_status();
  const StageState& at = state.stages[stage.compute.stage];
  const int depth = at.find_leaf(stage.compute.loop);
  for (const compute::Output& output : stage.info->stage.outputs) {
    for (int reader : state.readers(output.buffer)) {
      if (reader == index) continue;
      // Follow its places outwards until the consumer is met.
      int inside = static_cast<int>(1e6);
      while (reader != stage.compute.stage) {
        const Place& place = state.stages[reader].compute;
        if (place.kind == AttachKind::kRoot) {
          return invalid("{} is also read by {}, which lies outside of {}", stage.name(),
                         state.stages[reader].name(), at.name());
        }
        inside = state.stages[place.stage].find_leaf(place.loop);
        reader = place.stage;
      }
      if (inside < depth) {
        return invalid("{} is also read outside of loop {}", stage.name(),
                       at.loops[stage.compute.loop].name);
      }
    }
  }
  return ok_status();
}

Status apply_compute_at(const ComputeAt& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  Found at;
  HONE_RETURN_IF_ERROR(find(state, step.at, step.loop, at));
  StageState& stage = state.stages[index];
  if (index == at.stage_index || state.is_inside(at.stage_index, index)) {
    return invalid("{} is computed inside {}", step.at, step.stage);
  }
  if (stage.info->stage.is_extern()) return invalid("{} is an extern stage", step.stage);
  if (at.stage->info->stage.is_extern()) return invalid("{} is an extern stage", step.at);
  for (const compute::Output& output : stage.info->stage.outputs) {
    if (state.is_param(output.buffer))
      return invalid("{} writes an output of the task", step.stage);
    if (state.writers(output.buffer).size() != 1)
      return invalid("{} is one of several writers", step.stage);
  }
  const Annotation annotation = at.stage->loops[at.loop].annotation;
  if (annotation == Annotation::kVectorize) return invalid("loop {} is vectorized", step.loop);
  for (const int leaf : stage.order) {
    if (stage.loops[leaf].annotation == Annotation::kParallel)
      return invalid("{} has a parallel loop", step.stage);
  }
  stage.compute = stage.store = {AttachKind::kAt, at.stage_index, at.loop};
  if (!stage.scope_set || stage.scope == ir::Scope::kGlobal) stage.scope = ir::Scope::kThread;
  // Whoever reads a stage must run inside the loop that it is computed in: this stage's readers,
  // and this stage itself where it reads others.
  HONE_RETURN_IF_ERROR(check_readers(state, index));
  for (const compute::Access& access : stage.info->reads) {
    for (const int writer : state.writers(access.buffer))
      HONE_RETURN_IF_ERROR(check_readers(state, writer));
  }
  return ok_status();
}

Status apply_store_at(const StoreAt& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  Found at;
  HONE_RETURN_IF_ERROR(find(state, step.at, step.loop, at));
  StageState& stage = state.stages[index];
  if (stage.compute.kind != AttachKind::kAt || stage.compute.stage != at.stage_index) {
    return invalid("{} is not computed inside {}", step.stage, step.at);
  }
  if (at.stage->find_leaf(at.loop) > at.stage->find_leaf(stage.compute.loop)) {
    return invalid("loop {} lies inside of where {} is computed", step.loop, step.stage);
  }
  stage.store.loop = at.loop;
  return ok_status();
}

Status apply_sink(const Sink& step, State& state) {
  Found at;
  HONE_RETURN_IF_ERROR(find(state, step.stage, step.loop, at));
  if (!at.stage->info->stage.is_extern()) return invalid("{} has no body", step.stage);
  if (at.stage->sunk >= 0) return invalid("{} has a loop that is sunk", step.stage);
  if (at.stage->loops[at.loop].annotation == Annotation::kParallel)
    return invalid("loop {} is parallel", step.loop);
  at.stage->sunk = at.loop;
  return ok_status();
}

// A loop of the body of an extern stage; its steps are those of a scan, or it stays as it is.
Status vectorize_body(StageState& stage, const std::string& loop) {
  if (stage.body_lanes) return invalid("{} has a loop that is vectorized", stage.name());
  const ir::StmtNode* found = nullptr;
  for (const ir::Stmt& s : stage.info->stage.body) {
    ir::for_each_stmt(*s, [&](const ir::StmtNode& node) {
      if (!found && node.kind == ir::StmtKind::kFor && node.var->name == loop) found = &node;
    });
  }
  if (found == nullptr) return invalid("{} has no loop {}", stage.name(), loop);
  if (!ir::find_scan(*found)) return invalid("loop {} of {} is no scan", loop, stage.name());
  stage.body_lanes = found->var;
  return ok_status();
}

Status annotate(State& state, const std::string& stage, const std::string& loop,
                Annotation annotation) {
  const int index = state.find_stage(stage);
  if (annotation == Annotation::kVectorize && index >= 0 &&
      state.stages[index].info->stage.is_extern() && state.stages[index].find_loop(loop) < 0)
    return vectorize_body(state.stages[index], loop);
  Found at;
  HONE_RETURN_IF_ERROR(find(state, stage, loop, at));
  if (at.stage->loops[at.loop].annotation != Annotation::kNone)
    return invalid("loop {} is annotated", loop);
  if (annotation == Annotation::kVectorize && at.stage->info->stage.is_extern() &&
      at.stage->sunk < 0)
    return invalid("{} is an extern stage without a loop that is sunk", stage);
  if (annotation == Annotation::kVectorize && holds_others(state, at.stage_index, at.loop)) {
    return invalid("loop {} holds other stages", loop);
  }
  if (annotation == Annotation::kParallel) {
    if (at.stage->compute.kind != AttachKind::kRoot) return invalid("{} is not at root", stage);
    if (at.stage->order.front() != at.loop) return invalid("loop {} is not the outermost", loop);
    if (at.stage->loops[at.loop].reduce) return invalid("loop {} is a reduction", loop);
    if (at.stage->sunk == at.loop) return invalid("loop {} is sunk", loop);
  }
  at.stage->loops[at.loop].annotation = annotation;
  return ok_status();
}

// A stage of one point has no axis that a thread could be given: it gets a loop of one iteration.
void add_unit_loop(StageState& stage, const std::string& name) {
  stage.order.insert(stage.order.begin(), static_cast<int>(stage.loops.size()));
  stage.loops.emplace_back().name = name;
}

Status bind(const Bind& step, State& state) {
  const int index = state.find_stage(step.stage);
  if (index < 0) return invalid("no stage {}", step.stage);
  StageState& stage = state.stages[index];
  if (stage.info->stage.axes.empty() && stage.find_loop(step.loop) < 0)
    add_unit_loop(stage, step.loop);
  const int loop = stage.find_loop(step.loop);
  if (loop >= 0 && stage.loops[loop].reduce) return invalid("loop {} is a reduction", step.loop);
  if (loop >= 0 && stage.sunk == loop) return invalid("loop {} is sunk", step.loop);
  const auto annotation =
      static_cast<Annotation>(static_cast<int>(Annotation::kThread) + static_cast<int>(step.level));
  return annotate(state, step.stage, step.loop, annotation);
}

struct Apply {
  State& state;
  Status operator()(const Split& s) const { return apply_split(s, state); }
  Status operator()(const Fuse& s) const { return apply_fuse(s, state); }
  Status operator()(const Reorder& s) const { return apply_reorder(s, state); }
  Status operator()(const ComputeAt& s) const { return apply_compute_at(s, state); }
  Status operator()(const StoreAt& s) const { return apply_store_at(s, state); }
  Status operator()(const Fold& s) const { return apply_fold(s, state); }
  Status operator()(const Inline& s) const { return inline_stage(s, state); }
  Status operator()(const CacheRead& s) const { return cache_read(s, state); }
  Status operator()(const Im2col& s) const { return im2col(s, state); }
  Status operator()(const CacheWrite& s) const { return cache_write(s, state); }
  Status operator()(const RFactor& s) const { return rfactor(s, state); }
  Status operator()(const OnlineSoftmax& s) const { return online_softmax(s, state); }
  Status operator()(const Winograd& s) const { return apply_winograd(s, state); }
  Status operator()(const Strassen& s) const { return apply_strassen(s, state); }
  Status operator()(const Narrow& s) const { return narrow(s, state); }
  Status operator()(const Layout& s) const { return apply_layout(s, state); }
  Status operator()(const Sink& s) const { return apply_sink(s, state); }
  Status operator()(const Vectorize& s) const {
    return annotate(state, s.stage, s.loop, Annotation::kVectorize);
  }
  Status operator()(const Unroll& s) const {
    return annotate(state, s.stage, s.loop, Annotation::kUnroll);
  }
  Status operator()(const Parallel& s) const {
    return annotate(state, s.stage, s.loop, Annotation::kParallel);
  }
  Status operator()(const Bind& s) const { return bind(s, state); }
  Status operator()(const Pipeline& s) const { return pipeline(s, state); }
  Status operator()(const MatrixProduct& s) const { return matrix_product(s, state); }
  Status operator()(const Tensorize& s) const { return tensorize(s, state); }
  Status operator()(const Lift& s) const { return lift(s, state); }
  Status operator()(const SplitUpdates& s) const { return divide_updates(s, state); }
  Status operator()(const BlockBody& s) const { return share_body(s, state); }
  Status operator()(const SetScope& s) const {
    const int index = state.find_stage(s.stage);
    if (index < 0) return invalid("no stage {}", s.stage);
    StageState& stage = state.stages[index];
    if (s.scope != ir::Scope::kGlobal && stage.compute.kind == AttachKind::kRoot) {
      return invalid("{} is at root, where only global memory is shared", s.stage);
    }
    if (s.scope == ir::Scope::kGlobal && stage.compute.kind == AttachKind::kAt) {
      return invalid("{} is computed inside a tile, which has no global memory of its own",
                     s.stage);
    }
    stage.scope = s.scope;
    stage.scope_set = true;
    return ok_status();
  }
  Status operator()(const Prefetch& s) const {
    Found at;
    HONE_RETURN_IF_ERROR(find(state, s.stage, s.loop, at));
    if (s.distance < 1) return invalid("distance {} is not positive", s.distance);
    for (const compute::Access& access : at.stage->info->reads) {
      if (access.buffer->name != s.buffer) continue;
      at.stage->prefetches.push_back({access.buffer, at.loop, s.distance});
      return ok_status();
    }
    return invalid("{} does not read {}", s.stage, s.buffer);
  }
};

}  // namespace

Status apply_in_place(const Step& step, State& state) { return std::visit(Apply{state}, step); }

}  // namespace hone::schedule
