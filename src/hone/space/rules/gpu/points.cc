// Points that threads compute alone: the rule for whatever has no better one, and the right one for
// pointwise stages, copies and small reductions.
#include <algorithm>
#include <bit>

#include "hone/compute/stage_body.h"
#include "hone/ir/visit.h"
#include "hone/schedule/lift_loops.h"
#include "hone/space/rules/gpu/copies.h"
#include "hone/space/rules/gpu/rules.h"
#include "hone/space/rules/roots.h"

namespace hone::space {
namespace {

using schedule::Steps;

constexpr int64_t kUsualThreads = 256, kLeastThreads = 32, kMostThreads = 1024;
// Arrays that a block's threads have for themselves, as in sorting, are no larger together.
constexpr int64_t kMostScratch = 1 << 20;

// for blocks of points, in parallel:  for threads:  for points far apart:  for a vector of points
//   R, in registers of the thread
// The points are those of all axes, fused in the order in which the results lie in memory, so that
// neighbouring threads store neighbouring elements.
class Points : public Group {
 public:
  std::string stage;
  std::vector<std::string> axes;    // in the order of the results, the innermost last
  std::string reduction;            // R, or "" if there is none
  std::vector<std::string> sums;    // R's reduce axes
  std::string lane;                 // R's name of the innermost axis
  std::vector<std::string> lifted;  // loops of the stage's body that become axes
  int64_t points = 1, innermost = 1;
  // Neighbouring results read neighbouring elements, and no others, of all that moves with them.
  bool reads_rows = true;
  int64_t sms = 1;
  DecisionId d_threads, d_vector, d_points;

  [[nodiscard]] bool legal(const Choice& choice) const override {
    return innermost % choice[d_vector] == 0;
  }

  // The longest vector and the largest blocks that leave every SM some threads. Where windows
  // overlap, neighbouring threads read what a vector's lanes would read apart.
  void set_default(MutableChoice& choice) const override {
    if (reads_rows) choice.set_last(d_vector);
    while (choice.index(d_vector) > 0 &&
           (!legal(choice) || points / choice[d_vector] < sms * kUsualThreads))
      choice.set_index(d_vector, choice.index(d_vector) - 1);
    const int64_t share = std::max<int64_t>(1, points / choice[d_vector] / sms);
    choice.set(d_threads,
               std::min<int64_t>(kUsualThreads, std::bit_floor(static_cast<uint64_t>(share))));
  }

  void canonicalise(MutableChoice& choice) const override {
    choice.shorten(d_threads, points / choice[d_vector]);
    if (choice[d_threads] >= points / choice[d_vector]) choice.set_index(d_points, 0);
  }

  void append_steps(const Choice& choice, Steps& steps) const override {
    if (!lifted.empty()) steps.emplace_back(schedule::Lift{stage, lifted, choice[d_vector]});
    if (axes.empty()) {
      steps.emplace_back(schedule::Bind{stage, "one"});
      return append_sum("one", 1, steps);
    }
    const int64_t apart = choice[d_points];
    // Vectors are split from an axis, or stay in the body.
    const int64_t vector = lifted.empty() ? choice[d_vector] : 1;
    std::vector<std::string> outer = axes;
    if (vector > 1) {
      steps.emplace_back(schedule::Split{stage, axes.back(), {vector}});
      outer.back() += ".0";
    }
    if (outer.size() > 1) {
      std::vector<std::string> order = outer;
      if (vector > 1) order.push_back(axes.back() + ".1");
      steps.emplace_back(schedule::Reorder{stage, std::move(order)});
    }
    const std::string fused = fuse_loops(stage, outer, steps);
    std::vector<int64_t> lengths = {choice[d_threads]};
    if (apart > 1) lengths.insert(lengths.begin(), apart);
    steps.emplace_back(schedule::Split{stage, fused, std::move(lengths)});
    const std::string thread = fused + (apart > 1 ? ".2" : ".1");
    if (apart > 1) {
      steps.emplace_back(schedule::Reorder{stage, {thread, fused + ".1"}});
      steps.emplace_back(schedule::Unroll{stage, fused + ".1"});
    }
    steps.emplace_back(schedule::Parallel{stage, fused + ".0"});
    steps.emplace_back(schedule::Bind{stage, thread});
    if (vector > 1) steps.emplace_back(schedule::Vectorize{stage, axes.back() + ".1"});
    append_sum(thread, vector, steps);
  }

 private:
  void append_sum(const std::string& thread, int64_t vector, Steps& steps) const {
    if (reduction.empty()) return;
    steps.emplace_back(schedule::ComputeAt{reduction, stage, thread});
    steps.emplace_back(schedule::SetScope{reduction, ir::Scope::kRegister});
    if (vector == 1) return;
    std::vector<std::string> order = sums;
    order.push_back(lane);
    steps.emplace_back(schedule::Reorder{reduction, std::move(order)});
    steps.emplace_back(schedule::Vectorize{reduction, lane});
  }
};

// The distance in memory between the results of neighbouring points of an axis; 0 if the results
// do not move with it.
int64_t stride_of(const schedule::StageInfo& info, size_t axis) {
  if (info.stage.is_extern()) return schedule::body_stride(info.stage, info.axes[axis].var);
  if (info.writes.empty()) return 0;
  int64_t stride = 0, elements = 1;
  const std::vector<int64_t>& shape = info.stage.outputs[0].buffer->shape;
  for (size_t d = shape.size(); d-- > 0;) {
    stride += info.writes[0][d].coef[axis] * elements;
    elements *= shape[d];
  }
  return stride;
}

// Returns the axes that a stage's threads share, the innermost of the results last. Axes that only
// some results have stay inside of what a thread does.
std::vector<size_t> shared_axes(const schedule::StageInfo& info) {
  const std::vector<compute::Axis> extra = compute::split_axes(info.stage).extra;
  std::vector<size_t> found;
  for (size_t a = 0; a < info.stage.axes.size(); ++a) {
    const bool is_extra = std::any_of(extra.begin(), extra.end(), [&](const compute::Axis& axis) {
      return axis.var == info.stage.axes[a].var;
    });
    if (!is_extra) found.push_back(a);
  }
  std::stable_sort(found.begin(), found.end(),
                   [&](size_t a, size_t b) { return stride_of(info, a) > stride_of(info, b); });
  return found;
}

// Numbers of threads of a block: such that what a body allocates for each of them fits.
std::vector<int64_t> thread_options(const schedule::StageInfo& info, const target::Gpu& gpu) {
  int64_t scratch = 1;
  for (const ir::Stmt& stmt : info.stage.body) {
    ir::for_each_stmt(*stmt, [&](const ir::StmtNode& s) {
      scratch += s.kind == ir::StmtKind::kAlloc ? s.buffer->bytes() : 0;
    });
  }
  const int64_t most = std::clamp<int64_t>(kMostScratch / scratch, 1,
                                           std::min<int64_t>(kMostThreads, gpu.threads_per_block));
  return powers_of_2(most < kLeastThreads ? 1 : kLeastThreads, most);
}

// The lengths of vectors of points that a thread can store at once.
std::vector<int64_t> vector_options(const schedule::StageInfo& info, size_t innermost) {
  const int64_t most = kVectorBytes / dtype_bytes(info.stage.outputs[0].buffer->dtype);
  std::vector<int64_t> options = {1};
  for (int64_t v = 2; v <= most && info.axes[innermost].extent % v == 0; v *= 2)
    options.push_back(v);
  return options;
}

// Returns R's name of E's axis; "" if R has no single axis for it.
std::string name_in(const schedule::StageInfo& e, const schedule::StageInfo& r, size_t axis) {
  for (const compute::Access& read : e.reads) {
    if (read.buffer != r.stage.outputs[0].buffer) continue;
    for (size_t d = 0; d < read.index.size(); ++d) {
      if (read.index[d].coef[axis] == 0) continue;
      const auto& write = r.writes[0][d].coef;
      const auto moved = std::find_if(write.begin(), write.end(), [](int64_t c) { return c != 0; });
      if (moved != write.end()) return r.axes[static_cast<size_t>(moved - write.begin())].var->name;
    }
  }
  return "";
}

// Returns whether what moves along an axis does so in steps of one element, and with no other axis
// along its dimension.
bool reads_rows_along(const schedule::StageInfo& info, int axis) {
  return axis < 0 || std::all_of(info.reads.begin(), info.reads.end(), [&](const auto& read) {
           if (!moves(read, axis)) return true;
           const auto& last = read.index.back().coef;
           return is_contiguous(read, static_cast<size_t>(axis)) &&
                  std::count(last.begin(), last.end(), 0) + 1 ==
                      static_cast<std::ptrdiff_t>(last.size());
         });
}

void describe_sum(const SketchBuilder& builder, const schedule::StageInfo& e,
                  const std::vector<size_t>& axes, Points& group) {
  const schedule::StageInfo& r = *builder.info(group.reduction);
  group.sums = names_of(r.stage.reduce);
  if (axes.empty()) return;
  group.lane = name_in(e, r, axes.back());
  group.reads_rows = reads_rows_along(r, axis_named(r, group.lane));
}

// Returns a stage with the loops of its body that can be axes as such, and notes these. Of vectors
// of points one store is left in the innermost loop.
schedule::StageInfoPtr lift_body(const SketchBuilder& builder, schedule::StageInfoPtr info,
                                 Points& group, bool& may_be_vector) {
  const std::vector<schedule::LiftableLoop> loops = info->stage.is_extern()
                                                        ? schedule::liftable_loops(info->stage)
                                                        : std::vector<schedule::LiftableLoop>();
  if (loops.empty()) return info;
  for (const schedule::LiftableLoop& loop : loops) group.lifted.push_back(loop.name);
  SketchBuilder lifted = builder;
  if (!lifted.add_step(schedule::Lift{info->stage.name, group.lifted}).ok()) {
    group.lifted.clear();
    return info;
  }
  may_be_vector = loops.back().is_store;
  return lifted.info(info->stage.name);
}

}  // namespace

void add_stage_points(SketchBuilder& builder, const std::string& stage,
                      const std::string& reduction) {
  if (builder.info(stage)->constant) return;  // it runs at compile time, on the host
  auto group = std::make_shared<Points>();
  bool is_lifted_vector = false;
  const schedule::StageInfoPtr info =
      lift_body(builder, builder.info(stage), *group, is_lifted_vector);
  const std::vector<size_t> axes = shared_axes(*info);
  group->stage = stage;
  group->reduction = reduction;
  group->sms = builder.target.gpu().sms;
  for (const size_t a : axes) {
    group->axes.push_back(info->axes[a].var->name);
    group->points *= info->axes[a].extent;
  }
  if (!reduction.empty()) describe_sum(builder, *info, axes, *group);
  if (!axes.empty()) {
    group->innermost = info->axes[axes.back()].extent;
    group->d_threads = builder.add_decision(stage, "threads", DecisionKind::kParallel,
                                            thread_options(*info, builder.target.gpu()));
    const bool is_of_body = is_lifted_vector && group->axes.back() == group->lifted.back();
    const bool is_vector = info->stage.outputs.size() == 1 &&
                           (is_of_body || !info->stage.is_extern()) && info->stage.reduce.empty() &&
                           stride_of(*info, axes.back()) == 1 &&
                           (reduction.empty() || !group->lane.empty());
    if (const auto options = vector_options(*info, axes.back()); is_vector && options.size() > 1)
      group->d_vector = builder.add_decision(stage, "vector", DecisionKind::kVector, options);
    const bool is_point = !info->stage.is_extern() || !group->lifted.empty();
    if (reduction.empty() && is_point && info->stage.reduce.empty())
      group->d_points = builder.add_decision(stage, "points", DecisionKind::kUnroll, {1, 2, 4, 8});
  }
  builder.groups.push_back(std::move(group));
}

Fit add_points(SketchBuilder& builder, const Task&) {
  for (const auto& [stage, reduction] : roots_of(builder.state))
    add_stage_points(builder, stage, reduction);
  return Fit::kPossible;
}

}  // namespace hone::space
