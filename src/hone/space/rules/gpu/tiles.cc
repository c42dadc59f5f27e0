// The rules that give each stage of a task the tiles that suit it best.
#include <algorithm>

#include "hone/space/rules/gpu/matrix.h"
#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

constexpr int64_t kManyTerms = 16;  // with fewer a thread computes its points alone as well
// Smaller products leave most of an instruction's tile empty.
constexpr int64_t kFewRows = 8, kFewTerms = 16;

int64_t points_of(const schedule::StageInfo& info) {
  int64_t points = 1;
  for (const compute::Axis& axis : info.axes) points *= axis.extent;
  return points;
}

// How well the tiles of a stage suit it.
enum class Suits : uint8_t { kNot, kSomewhat, kWell };

// Adds a root of roots_with_sums() by the first of its kinds of tiles that suits it, or else with
// points that each thread computes alone.
Suits add_root(SketchBuilder& builder, const Root& root) {
  const auto& [stage, reduction] = root;
  if (reduction.empty()) {
    if (add_stage_transposes(builder, stage)) return Suits::kWell;
    add_stage_points(builder, stage, "");
    return Suits::kNot;
  }
  if (add_stage_windows(builder, stage, reduction, false)) return Suits::kWell;
  int64_t terms = 1;
  for (const compute::Axis& axis : builder.info(reduction)->stage.reduce) terms *= axis.extent;
  if (add_contraction_tiles(builder, stage, reduction) ||
      add_divided_rows(builder, stage, reduction) || add_stage_rows(builder, stage, reduction))
    return terms >= kManyTerms ? Suits::kWell : Suits::kSomewhat;
  add_stage_points(builder, stage, reduction);
  return Suits::kNot;
}

Fit fit_of(Suits best) {
  if (best == Suits::kNot) return Fit::kNone;
  return best == Suits::kWell ? Fit::kBest : Fit::kPossible;
}

}  // namespace

std::vector<Root> roots_with_sums(SketchBuilder& builder) {
  std::vector<Root> roots = roots_of(builder.state);
  for (Root& root : roots) {
    const schedule::StageInfoPtr info = builder.info(root.stage);
    const compute::Stage& stage = info->stage;
    if (stage.reduce.empty() || stage.outputs.size() != 1 || stage.where || info->constant)
      continue;
    const schedule::StageList readers = builder.state.readers(stage.outputs[0].buffer);
    const auto rival = std::find_if(roots.begin(), roots.end(), [&](const Root& other) {
      return !other.reduction.empty() && readers.size() == 1 &&
             other.stage == builder.state.stages[static_cast<size_t>(readers[0])].name();
    });
    std::string left = root.stage;
    if (rival != roots.end() && points_of(*builder.info(rival->reduction)) < points_of(*info))
      std::swap(left, rival->reduction);
    root.stage = left;
    if (builder.add_step(schedule::CacheWrite{left}).ok()) root.reduction = left + ".acc";
  }
  return roots;
}

Fit add_tiles(SketchBuilder& builder, const Task&) {
  Suits best = Suits::kNot;
  for (const Root& root : roots_with_sums(builder)) best = std::max(best, add_root(builder, root));
  return fit_of(best);
}

Fit add_matrix_tiles(SketchBuilder& builder, const Task& task) {
  Suits best = Suits::kNot;
  for (const Root& root : roots_with_sums(builder)) {
    if (root.reduction.empty() ||
        !add_matrix_product(builder, root.stage, root.reduction, task.accuracy)) {
      (void)add_root(builder, root);
      continue;
    }
    const auto& group = static_cast<const GpuMatrix&>(*builder.groups.back());
    const bool is_large =
        group.rows >= kFewRows && group.columns >= kFewRows && group.terms >= kFewTerms;
    best = std::max(best, is_large ? Suits::kWell : Suits::kSomewhat);
  }
  return fit_of(best);
}

Fit add_shared_windows(SketchBuilder& builder, const Task&) {
  bool any = false;
  for (const Root& root : roots_with_sums(builder)) {
    if (!root.reduction.empty() && add_stage_windows(builder, root.stage, root.reduction, true))
      any = true;
    else
      (void)add_root(builder, root);
  }
  return any ? Fit::kPossible : Fit::kNone;
}

}  // namespace hone::space
