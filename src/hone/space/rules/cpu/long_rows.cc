// Few long rows (softmax over a vocabulary, a sum of all elements), so that all threads have work:
// a row is cut into parts, and each reduction along it is a phase over these and one that joins
// what they came to. The number of parts is a decision, never the number of threads, so that a
// schedule's results are the same on any.
//
//   R.rf: parallel parts and rows:  R.rf.acc: the part, vectorized
//   R: the parts of each row joined
//   E: parallel parts and rows:  elements, vectorized
#include <algorithm>

#include "hone/space/rules/cpu/loop_nest.h"
#include "hone/space/rules/cpu/rows.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using schedule::StageInfoPtr;
using schedule::Steps;

constexpr int64_t kLeastScalar = 64;
constexpr int64_t kUnit = 128;           // elements: parts end at lines, after unrolled vectors
constexpr int64_t kLeastPart = 1 << 11;  // of a row
constexpr int64_t kMostParts = 64;

class LongRows : public RowParts {
 public:
  struct Reduction {
    std::string stage;
    std::vector<std::string> rows;  // spatial axes
    LoopNest along;                 // reduce axes, the contiguous one along the lanes
    std::string cut;                // the longest of them
    int64_t length = 1;             // of that
    int64_t count = 1;              // of rows
    int64_t elements = 1;           // all told
  };
  std::vector<Reduction> reductions;
  std::string root;
  std::vector<std::string> root_rows;
  std::string elements;  // the root's axis along its rows; "": none, or of another length

  void append_steps(const Choice& choice, Steps& steps) const override {
    for (const Reduction& reduction : reductions) append_parts(reduction, choice[d_parts], steps);
    if (elements.empty()) return;
    const int64_t length = reductions.back().length, part = part_of(length, choice[d_parts]);
    const auto tail = length % part == 0 ? schedule::Tail::kMask : schedule::Tail::kTest;
    steps.push_back(schedule::Split{root, elements, {part}, tail});
    LoopNest loops{.outer = root_rows, .parallel = root_rows.size() + 1, .vector = elements + ".1"};
    loops.outer.insert(loops.outer.begin(), elements + ".0");
    append_nest(root, loops, steps);
  }

 private:
  static void append_parts(const Reduction& r, int64_t parts, Steps& steps) {
    const int64_t part = part_of(r.length, parts);
    steps.push_back(schedule::RFactor{r.stage, r.cut, part});
    const std::string partial = r.stage + ".rf", sum = partial + ".acc";
    steps.push_back(schedule::CacheWrite{partial});
    std::vector<std::string> tiles = {r.cut + "o"};
    if (r.length % part != 0) {  // only the last part's points are tested
      steps.push_back(schedule::Split{partial, tiles[0], {1}, schedule::Tail::kTest});
      tiles = {r.cut + "o.0", r.cut + "o.1"};
    }
    tiles.insert(tiles.end(), r.rows.begin(), r.rows.end());
    const std::string tile = fuse_loops(partial, tiles, steps);
    steps.push_back(schedule::Parallel{partial, tile});
    steps.push_back(schedule::ComputeAt{sum, partial, tile});
    append_nest(sum, r.along, steps);
  }
};

// What is to be known of a stage; nothing if it is no reduction along few long rows.
std::optional<LongRows::Reduction> long_reduction(const StageInfo& info, int cores) {
  if (moving_operands(info) != 1) return std::nullopt;
  const int contiguous = contiguous_reduce_axis(info);
  if (contiguous < 0 || !info.stage.outputs[0].merge || info.stage.until) return std::nullopt;
  LongRows::Reduction made;
  made.stage = info.stage.name;
  made.rows = names_of(info.stage.axes);
  for (const compute::Axis& axis : info.stage.axes) made.count *= axis.extent;
  made.elements = made.count;
  for (size_t a = static_cast<size_t>(info.num_spatial()); a < info.axes.size(); ++a) {
    const compute::Axis& axis = info.axes[a];
    made.elements *= axis.extent;
    if (axis.extent > made.length || made.cut.empty()) {
      made.cut = axis.var->name;
      made.length = axis.extent;
    }
    if (static_cast<int>(a) != contiguous) made.along.outer.push_back(axis.var->name);
  }
  made.along.vector = info.axes[static_cast<size_t>(contiguous)].var->name;
  if (made.count > kRowsPerCore * cores) return std::nullopt;
  return made;
}

}  // namespace

// The same for all stages, so that a thread finds its part in its cache.
int64_t part_of(int64_t length, int64_t parts) {
  if (length % parts == 0) return length / parts;
  return (length + parts * kUnit - 1) / (parts * kUnit) * kUnit;
}

std::vector<int64_t> row_parts(int64_t length) {
  std::vector<int64_t> parts;
  for (int64_t n = 2; n <= kMostParts && n * kLeastPart <= length; n *= 2) parts.push_back(n);
  return parts;
}

Fit add_long_rows(SketchBuilder& builder, const Task&) {
  if (!copy_out(builder).ok() || !inline_stages(builder, [](const auto&) { return true; }).ok())
    return Fit::kNone;
  const auto group = std::make_shared<LongRows>();
  group->cores = builder.cpu().cores;
  const bool functions =
      std::any_of(builder.state.stages.begin(), builder.state.stages.end(), [](const auto& stage) {
        return is_reduction(*stage.info) && is_expensive(stage.info->stage);
      });
  const int64_t least = functions ? kLeastLongRow / 2 : kLeastLongRow;
  // Where nothing is left of the rows no other rule has vectors for them.
  const bool scalar = builder.state.stages.back().info->stage.axes.empty();
  int64_t shortest = INT64_MAX, fewest = INT64_MAX;
  for (const schedule::StageState& stage : builder.state.stages) {
    const StageInfo& info = *stage.info;
    const bool last = &stage == &builder.state.stages.back();
    if (info.stage.is_extern() || info.stage.where || info.constant ||
        info.stage.outputs.size() != 1 || is_reduction(info) == last ||
        builder.state.is_param(info.stage.outputs[0].buffer) != last)
      return Fit::kNone;
    if (last) break;
    const auto made = long_reduction(info, group->cores);
    if (!made || made->elements < (scalar ? kLeastScalar : least)) return Fit::kNone;
    fewest = std::min(fewest, made->elements);
    group->rows = std::max(group->rows, made->count);
    shortest = std::min(shortest, made->length);
    group->reductions.push_back(*made);
  }
  if (group->reductions.empty()) return Fit::kNone;
  const StageInfo& root = *builder.state.stages.back().info;
  group->root = root.stage.name;
  const int unit = unit_stride_axis(root);
  for (int a = 0; a < root.num_spatial(); ++a) {
    const std::string& name = root.axes[static_cast<size_t>(a)].var->name;
    const bool is_row =
        a == unit && root.axes[static_cast<size_t>(a)].extent == group->reductions.back().length;
    if (is_row)
      group->elements = name;
    else
      group->root_rows.push_back(name);
  }
  std::vector<int64_t> parts;
  if (scalar) parts.push_back(1);
  if (fewest >= least) {
    for (const int64_t n : row_parts(shortest)) parts.push_back(n);
  }
  if (parts.empty()) return Fit::kNone;
  builder.for_threads = !scalar;
  group->decide(builder, group->root, parts);
  builder.groups.push_back(group);
  if (group->elements.empty() && !add_pointwise(builder, group->root))
    add_fallback(builder, group->root);
  return Fit::kBest;
}

}  // namespace hone::space
