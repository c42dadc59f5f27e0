// A long sum of few results in parts, so that all threads have work: the parts are results of a
// first phase, which another rule computes, and a second one adds them up. Their number is a
// decision, never the number of threads, so that a schedule's results are the same on any.
//
//   R.rf: parallel parts (and what the other rule runs in parallel)
//   E: parallel vectors of results:  R: the sum of the parts, in registers
#include <algorithm>
#include <bit>

#include "hone/base/round_up.h"
#include "hone/space/rules/cpu/contraction.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

using schedule::Steps;

constexpr int64_t kLeastTerms = 512;     // of a part, of an axis that lanes may run along
constexpr int64_t kLeastOthers = 128;    // of another axis
constexpr int64_t kLeastWork = 1 << 17;  // terms, all told: two forks and joins take theirs
constexpr int64_t kVectorsPerCore = 8;   // with more there is work for all without parts
constexpr int64_t kMostParts = 64;

// The axis of a sum that is cut.
struct CutAxis {
  std::string name;
  int64_t length = 1;
  int64_t inner = 1;  // terms of the sum's other axes, for each step along this one
  int64_t unit = 1;   // a part has a multiple of so many steps: whole unrolled vectors of them
  int64_t least_terms = kLeastOthers;  // of a part

  // Steps of each of n parts; the last part may have fewer.
  [[nodiscard]] int64_t part_length(int64_t n) const { return round_up(ceil_div(length, n), unit); }
};

class SplitSum : public Group {
 public:
  std::string epilogue, reduction;
  CutAxis cut;
  std::vector<compute::Axis> axes;           // of E
  std::vector<std::string> reduction_names;  // R's name of each of E's axes
  int vector = -1;                           // E's axis along the lanes
  int64_t lanes = 8;
  std::shared_ptr<const Group> part;
  DecisionId d_parts, d_merge;

  [[nodiscard]] bool legal(const Choice& choice) const override { return part->legal(choice); }
  void set_default(MutableChoice& choice) const override {
    part->set_default(choice);
    choice.set_index(d_parts, 0);
    choice.set_index(d_merge, 0);
  }
  void canonicalise(MutableChoice& choice) const override {
    part->canonicalise(choice);
    choice.shorten(d_merge, ceil_div(axes[vector].extent, lanes));
  }
  void append_steps(const Choice& choice, Steps& steps) const override {
    const std::string partial = reduction + ".rf";
    steps.push_back(schedule::RFactor{reduction, cut.name, cut.part_length(choice[d_parts])});
    steps.push_back(schedule::CacheWrite{partial});
    part->append_steps(choice, steps);

    const std::string& vec = axes[vector].var->name;
    steps.push_back(
        schedule::Split{epilogue, vec, {choice[d_merge], lanes}, schedule::Tail::kMask});
    LoopNest loops{.outer = names_of(axes),
                   .parallel = axes.size(),
                   .unrolled = {vec + ".1"},
                   .vector = vec + ".2"};
    loops.outer.erase(loops.outer.begin() + vector);
    loops.outer.push_back(vec + ".0");
    const std::string fused = append_nest(epilogue, loops, steps);

    steps.push_back(schedule::ComputeAt{reduction, epilogue, fused});
    steps.push_back(schedule::SetScope{reduction, ir::Scope::kRegister});
    const std::string& rvec = reduction_names[vector];
    steps.push_back(schedule::Split{reduction, rvec, {lanes}, schedule::Tail::kMask});
    loops = {.outer = {cut.name + "o"}, .unrolled = reduction_names, .vector = rvec + ".1"};
    loops.unrolled.erase(loops.unrolled.begin() + vector);
    loops.unrolled.push_back(rvec + ".0");
    append_nest(reduction, loops, steps);
  }
};

// How often a sum can be cut: where parts are equal, and else in one of a few numbers.
std::vector<int64_t> part_options(const CutAxis& cut) {
  std::vector<int64_t> parts;
  for (int64_t n = 2; n <= kMostParts; ++n) {
    const int64_t steps = cut.part_length(n);
    const bool equal = n * steps == cut.length;
    const bool few = std::has_single_bit(static_cast<uint64_t>(n)) || n == 3 || n == 6 || n == 12;
    if ((equal || few) && ceil_div(cut.length, steps) == n && steps * cut.inner >= cut.least_terms)
      parts.push_back(n);
  }
  return parts;
}

// The longest axis of a sum of few results that is long enough to be cut.
std::optional<CutAxis> cut_axis(const schedule::StageInfo& e, const schedule::StageInfo& r,
                                int64_t lanes, int64_t cores) {
  int64_t results = 1, terms = 1;
  for (const compute::Axis& axis : e.stage.axes) results *= axis.extent;
  size_t longest = static_cast<size_t>(r.num_spatial());
  for (size_t a = longest; a < r.axes.size(); ++a) {
    terms *= r.axes[a].extent;
    if (r.axes[a].extent > r.axes[longest].extent) longest = a;
  }
  if (results * terms < kLeastWork || results > kVectorsPerCore * cores * lanes)
    return std::nullopt;
  CutAxis cut{.name = r.axes[longest].var->name, .length = r.axes[longest].extent};
  cut.inner = terms / cut.length;
  const bool has_lanes = std::any_of(r.reads.begin(), r.reads.end(), [&](const auto& read) {
    return moves(read, static_cast<int>(longest)) && is_contiguous(read, longest);
  });
  if (has_lanes) cut.unit = 8 * lanes, cut.least_terms = kLeastTerms;
  return cut;
}

// The group of a stage of parts, by another rule; null if none applies. `rows`: E's axis along the
// lanes if these are rows, or -1.
std::shared_ptr<const Group> sum_of_part(SketchBuilder& builder, const std::string& part, int rows,
                                         const std::string& packed) {
  if (!builder.add_step(schedule::CacheWrite{part}).ok()) return nullptr;
  const std::string sum = part + ".acc";
  const int lanes_along = rows < 0 ? -1 : rows + 1;  // the parts' axis stands first
  return make_contraction(
      builder, part, sum,
      {.vector = lanes_along, .fixed = 1, .ends_early = true, .packed = packed});
}

}  // namespace

Fit add_split_sum(SketchBuilder& builder, const Task& task) {
  const std::string &epilogue = task.epilogue, &reduction = task.reduction;
  const schedule::StageInfoPtr e = builder.info(epilogue), r = builder.info(reduction);
  if (e->constant || e->stage.where || r->stage.where || e->stage.outputs.size() != 1 ||
      !r->stage.outputs[0].merge)
    return Fit::kNone;
  const auto names = match_axes(*e, *r);
  if (!names) return Fit::kNone;
  const int rows = row_lanes_axis(builder, *e, *r, *names), unit = unit_stride_axis(*e);
  const int vector = unit < 0 ? rows : unit;
  if (vector < 0) return Fit::kNone;
  auto group = std::make_shared<SplitSum>();
  group->lanes = lanes_of(builder.cpu(), *e);
  const std::optional<CutAxis> found = cut_axis(*e, *r, group->lanes, builder.cpu().cores);
  if (!found) return Fit::kNone;
  const CutAxis& cut = group->cut = *found;
  const std::vector<int64_t> parts = part_options(cut);
  if (parts.empty()) return Fit::kNone;
  group->epilogue = epilogue;
  group->reduction = reduction;
  group->axes = e->stage.axes;
  group->reduction_names = *names;
  group->vector = vector;

  // The constant operand is packed as a whole, before the sum is cut, if the lanes run along it.
  std::string packed;
  const int along = axis_named(*r, (*names)[static_cast<size_t>(rows < 0 ? vector : rows)]);
  const compute::Access* operand = packable(builder.state, *r, axis_named(*r, cut.name));
  if (operand != nullptr && moves(*operand, along)) {
    packed = add_copy(builder, operand->buffer->name, reduction);
    if (packed.empty()) return Fit::kNone;
  }
  // The other rule sees the smallest parts; its decisions suit larger ones.
  SketchBuilder probe = builder;
  const schedule::RFactor smallest{reduction, cut.name, cut.part_length(parts.back())};
  if (!probe.add_step(smallest).ok()) return Fit::kNone;
  group->part = sum_of_part(probe, reduction + ".rf", rows, packed);
  if (!group->part) return Fit::kNone;
  builder.decisions = std::move(probe.decisions);
  group->d_parts = builder.add_decision(epilogue, "parts", DecisionKind::kParallel, parts);
  group->d_merge = builder.add_decision(epilogue, "merge", DecisionKind::kVector, {1, 2, 4});
  builder.groups.push_back(std::move(group));
  return Fit::kPossible;
}

}  // namespace hone::space
