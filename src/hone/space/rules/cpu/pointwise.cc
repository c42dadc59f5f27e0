#include <algorithm>

#include "hone/schedule/lift_loops.h"
#include "hone/space/rules/cpu/loop_nest.h"
#include "hone/space/rules/cpu/rules.h"

namespace hone::space {
namespace {

// for the other axes, fused, in parallel:  for blocks of the vector axis:  vector
// or, where input and output are contiguous along different axes, so that the lines that a block
// touches stay in the cache:  for blocks of the vector axis:  for the other axes:  vector
// or, likewise, in square tiles of both axes, which the code generator turns in registers,
// or, where the other axes are few points, for them and pieces of the vector axis, in parallel:
// for blocks of the piece:  vector
class Pointwise : public Group {
 public:
  std::string stage;
  std::vector<compute::Axis> axes;
  std::vector<int64_t> vector_axes;  // candidates: unit stride in the output, then in the input
  int64_t lanes = 8;
  DecisionId d_axis, d_width, d_parallel;
  DecisionId d_blocks_outside, d_tile, d_piece;

  [[nodiscard]] bool legal(const Choice& choice) const override {
    if (in_pieces(choice)) return choice[d_piece] % choice[d_width] == 0;
    if (!tiled(choice)) return true;
    return choice[d_axis] != vector_axes[0] && choice[d_width] == lanes &&
           parallel_tile_loops(choice) > 0;
  }

  void set_default(MutableChoice& choice) const override {
    // A short output axis (three colours) is no vector: prefer the longer of the first two.
    const bool is_short = vector_axes.size() > 1 && axes[vector_axes[0]].extent < lanes &&
                          axes[vector_axes[1]].extent > axes[vector_axes[0]].extent;
    choice.set_index(d_axis, is_short ? 1 : 0);
    choice.set(d_width, lanes);
    choice.set_last(d_parallel);
    choice.set_index(d_piece, 1);
    if (!d_tile.is_open() || axes[vector_axes[0]].extent < lanes ||
        axes[vector_axes[1]].extent < lanes)
      return;
    const std::vector<int> untiled = choice.indices();
    choice.set_index(d_axis, 1);
    choice.set_index(d_tile, 1);
    if (!legal(choice)) choice.indices() = untiled;
  }

  void canonicalise(MutableChoice& choice) const override {
    if (tiled(choice)) {
      if (legal(choice))
        choice.set_index(d_parallel, static_cast<int>(parallel_tile_loops(choice)) - 1);
      return;
    }
    if (in_pieces(choice)) return choice.set_last(d_parallel);
    const int64_t extent = axes[choice[d_axis]].extent;
    choice.shorten(d_width, extent);
    const bool blocks = choice[d_width] < extent;  // their loop runs more than once
    const int parallel = parallel_loops(choice, blocks);
    // The first place of the blocks and depth with the same loops in parallel.
    const int last_outside = choice.index(d_blocks_outside), last_depth = choice.index(d_parallel);
    const auto depths = static_cast<int>(choice.options(d_parallel).size());
    for (int outside = blocks ? last_outside : 0; outside <= last_outside; ++outside) {
      choice.set_index(d_blocks_outside, outside);
      for (int depth = 0; depth < (outside < last_outside ? depths : last_depth + 1); ++depth) {
        choice.set_index(d_parallel, depth);
        if (parallel_loops(choice, blocks) == parallel) return;
      }
    }
  }

  void append_steps(const Choice& choice, schedule::Steps& steps) const override {
    if (tiled(choice)) return append_tiles(choice, steps);
    const int64_t vector = choice[d_axis];
    const std::string& vec = axes[vector].var->name;
    if (in_pieces(choice)) return append_pieces(choice, steps);
    const bool blocks_outside = choice.or_zero(d_blocks_outside) == 1;
    // A loop in parallel is never peeled.
    const auto tail = blocks_outside ? schedule::Tail::kMask : schedule::Tail::kPeel;
    steps.push_back(schedule::Split{stage, vec, {choice[d_width]}, tail});
    std::vector<std::string> outer = names_of_others({vector});
    outer.insert(blocks_outside ? outer.begin() : outer.end(), vec + ".0");
    const size_t depth = std::min<size_t>(outer.size(), static_cast<size_t>(choice[d_parallel]));
    append_nest(stage,
                {.outer = outer, .parallel = std::max<size_t>(depth, 1), .vector = vec + ".1"},
                steps);
  }

 private:
  [[nodiscard]] bool tiled(const Choice& choice) const { return choice[d_tile] > 1; }
  [[nodiscard]] bool in_pieces(const Choice& choice) const { return choice.or_zero(d_piece) > 0; }

  [[nodiscard]] std::vector<std::string> names_of_others(
      std::initializer_list<int64_t> chosen) const {
    std::vector<std::string> names;
    for (int64_t a = 0; a < static_cast<int64_t>(axes.size()); ++a) {
      if (std::count(chosen.begin(), chosen.end(), a) == 0)
        names.push_back(axes[static_cast<size_t>(a)].var->name);
    }
    return names;
  }

  void append_pieces(const Choice& choice, schedule::Steps& steps) const {
    const int64_t vector = choice[d_axis], width = choice[d_width];
    const std::string& vec = axes[vector].var->name;
    steps.push_back(
        schedule::Split{stage, vec, {choice[d_piece] / width, width}, schedule::Tail::kMask});
    LoopNest loops{.outer = names_of_others({vector}), .vector = vec + ".2"};
    loops.parallel = loops.outer.size() + 1;
    loops.outer.insert(loops.outer.end(), {vec + ".0", vec + ".1"});
    append_nest(stage, loops, steps);
  }

  // The two axes of the tiles, that of the outer loop over them first.
  [[nodiscard]] std::pair<int64_t, int64_t> tile_axes(const Choice& choice) const {
    if (choice[d_blocks_outside] == 1) return {choice[d_axis], vector_axes[0]};
    return {vector_axes[0], choice[d_axis]};
  }
  // So many of the outer loops run in parallel: at most the first axis' tiles.
  [[nodiscard]] size_t parallel_tile_loops(const Choice& choice) const {
    return std::min<size_t>(static_cast<size_t>(choice[d_parallel]), axes.size() - 1);
  }
  void append_tiles(const Choice& choice, schedule::Steps& steps) const {
    const auto [first, second] = tile_axes(choice);
    LoopNest loops{.outer = names_of_others({first, second})};
    loops.parallel = parallel_tile_loops(choice);
    const bool fuses = loops.parallel > loops.outer.size();
    for (const int64_t axis : {first, second}) {
      const std::string& name = axes[axis].var->name;
      const bool fused = axis == first && fuses;
      const bool even = axes[axis].extent % lanes == 0;
      const auto in_parallel = even ? schedule::Tail::kMask : schedule::Tail::kTest;
      steps.push_back(
          schedule::Split{stage, name, {lanes}, fused ? in_parallel : schedule::Tail::kPeel});
    }
    for (const int64_t axis : {first, second}) loops.outer.push_back(axes[axis].var->name + ".0");
    loops.unrolled = {axes[vector_axes[0]].var->name + ".1"};
    loops.vector = axes[choice[d_axis]].var->name + ".1";
    append_nest(stage, loops, steps);
  }
  // How many loops that run more than once the parallel one is made of; `blocks`: that of blocks
  // is one of them.
  [[nodiscard]] int parallel_loops(const Choice& choice, bool blocks) const {
    int64_t depth = choice[d_parallel];
    int loops = 0;
    if (choice.or_zero(d_blocks_outside) == 1) {
      loops += blocks ? 1 : 0;
      --depth;
    }
    for (size_t a = 0; a < axes.size() && depth > 0; ++a) {
      if (static_cast<int64_t>(a) == choice[d_axis]) continue;
      loops += axes[a].extent > 1 ? 1 : 0;
      --depth;
    }
    return loops;
  }
};

class Extern : public Group {
 public:
  std::string stage;
  std::vector<std::string> axes;  // those that run in parallel
  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  void set_default(MutableChoice&) const override {}
  void append_steps(const Choice&, schedule::Steps& steps) const override {
    if (axes.empty()) return;
    const std::string fused = fuse_loops(stage, axes, steps);
    steps.push_back(schedule::Parallel{stage, fused});
  }
};

class Fallback : public Group {
 public:
  std::string stage;
  std::string parallel;  // "" if there is no spatial axis to run in parallel
  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  void set_default(MutableChoice&) const override {}
  void append_steps(const Choice&, schedule::Steps& steps) const override {
    if (!parallel.empty()) steps.push_back(schedule::Parallel{stage, parallel});
  }
};

// Lengths of pieces of an axis of which several threads get some each: about so many times as many
// pieces as cores, whole vectors, and if possible such that no piece is cut off. 0: not in pieces.
// None if the `others` points are enough for the threads, or the axis is short.
std::vector<int64_t> piece_options(int64_t extent, int64_t others, int64_t lanes, int64_t cores) {
  constexpr int64_t kEnough = 4, kLeastVectors = 8;
  std::vector<int64_t> options = {0};
  if (others >= kEnough * cores) return options;
  for (const int64_t times : {4, 16, 1}) {
    const int64_t vectors = extent / (times * cores * others * lanes);
    if (vectors < kLeastVectors) continue;
    int64_t piece = vectors * lanes;
    for (int64_t v = vectors; v > vectors / 2; --v) {
      if (extent % (v * lanes) != 0) continue;
      piece = v * lanes;
      break;
    }
    if (std::count(options.begin(), options.end(), piece) == 0) options.push_back(piece);
  }
  return options;
}

}  // namespace

bool add_pointwise(SketchBuilder& builder, const std::string& stage) {
  const schedule::StageInfoPtr info = builder.info(stage);
  if (info->constant || info->stage.outputs.size() != 1 || info->stage.axes.empty()) return false;
  auto group = std::make_shared<Pointwise>();
  group->stage = stage;
  group->axes = info->stage.axes;
  group->lanes = lanes_of(builder.cpu(), *info);
  const int unit = unit_stride_axis(*info);
  if (unit >= 0) group->vector_axes.push_back(unit);
  for (const compute::Access& read : info->reads) {
    for (int a = 0; a < info->num_spatial(); ++a) {
      const bool fastest =
          !read.index.empty() && read.index.back().coef[a] == 1 && info->axes[a].extent > 1;
      if (fastest && std::count(group->vector_axes.begin(), group->vector_axes.end(), a) == 0)
        group->vector_axes.push_back(a);
    }
  }
  if (group->vector_axes.empty()) group->vector_axes.push_back(info->num_spatial() - 1);
  group->d_axis =
      builder.add_decision(stage, "vector_axis", DecisionKind::kVector, group->vector_axes);
  group->d_width = builder.add_decision(stage, "width", DecisionKind::kVector,
                                        {group->lanes, 2 * group->lanes, 4 * group->lanes});
  // The fused loop must not swallow the peeled loop over vectors, hence at most the other axes.
  std::vector<int64_t> depths;
  for (int64_t d = 1; d <= std::max<int64_t>(1, static_cast<int64_t>(group->axes.size()) - 1); ++d)
    depths.push_back(d);
  group->d_parallel = builder.add_decision(stage, "parallel", DecisionKind::kParallel, depths);
  if (group->vector_axes.size() > 1) {
    group->d_blocks_outside =
        builder.add_decision(stage, "blocks_outside", DecisionKind::kOrder, {0, 1});
    const bool words = dtype_bytes(info->stage.outputs[0].buffer->dtype) == 4;
    if (words && unit >= 0 && group->lanes >= 4)
      group->d_tile = builder.add_decision(stage, "tile", DecisionKind::kUnroll, {1, group->lanes});
  } else {
    const auto& along = group->axes[static_cast<size_t>(group->vector_axes[0])];
    int64_t others = 1;
    for (const compute::Axis& axis : group->axes) others *= &axis == &along ? 1 : axis.extent;
    const std::vector<int64_t> pieces =
        piece_options(along.extent, others, group->lanes, builder.cpu().cores);
    if (pieces.size() > 1)
      group->d_piece =
          builder.add_decision(stage, "piece", DecisionKind::kTile, pieces, along.extent);
  }
  builder.groups.push_back(std::move(group));
  return true;
}

// Returns whether the body is one store inside of loops.
static bool is_one_store(const compute::Stage& stage) {
  const std::vector<ir::Stmt>* body = &stage.body;
  while (body->size() == 1 && body->front()->kind == ir::StmtKind::kFor)
    body = &body->front()->body;
  return body->size() == 1 && body->front()->kind == ir::StmtKind::kStore;
}

// Makes points of the loops of a body that has none itself, such as a row at one index: of the
// innermost one vectors, some at a time.
static bool lift_row(SketchBuilder& builder, const std::string& stage) {
  const schedule::StageInfoPtr info = builder.info(stage);
  if (!info->stage.axes.empty() || info->stage.outputs.size() != 1 || !is_one_store(info->stage))
    return false;
  std::vector<std::string> names;
  int64_t extent = 1;
  for (const schedule::LiftableLoop& loop : schedule::liftable_loops(info->stage)) {
    names.push_back(loop.name);
    extent = loop.extent;
  }
  const int64_t lanes = lanes_of(builder.cpu(), *info);
  for (const int64_t vectors : {4, 2, 1}) {
    if (names.empty() || extent % (vectors * lanes) != 0) continue;
    return builder.add_step(schedule::Lift{stage, names, vectors * lanes}).ok();
  }
  return false;
}

static bool has_loop(const std::vector<ir::Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [](const ir::Stmt& s) {
    return s->kind == ir::StmtKind::kFor || has_loop(s->body);
  });
}

// Returns whether the points of the innermost axis, which are elements, follow each other in a loop
// of their own, not as a part of the parallel one: to divide by its length costs more than to move
// an element.
static bool has_serial_rows(const compute::Stage& stage, int64_t cores) {
  constexpr int64_t kLeastRow = 16, kMostInOneThread = 4096;
  const std::vector<compute::Axis>& axes = stage.axes;
  if (axes.size() < 2 || axes.back().extent < kLeastRow || has_loop(stage.body)) return false;
  int64_t rows = 1;
  for (size_t a = 0; a + 1 < axes.size(); ++a) rows *= axes[a].extent;
  return rows >= cores || rows * axes.back().extent <= kMostInOneThread;
}

void add_extern(SketchBuilder& builder, const std::string& stage) {
  const bool lifted = lift_row(builder, stage);
  auto group = std::make_shared<Extern>();
  group->stage = stage;
  const compute::Stage& what = builder.info(stage)->stage;
  group->axes = names_of(what.axes);
  if (lifted || has_serial_rows(what, builder.cpu().cores)) group->axes.pop_back();
  builder.groups.push_back(std::move(group));
}

void add_fallback(SketchBuilder& builder, const std::string& stage) {
  const schedule::StageInfoPtr info = builder.info(stage);
  auto group = std::make_shared<Fallback>();
  group->stage = stage;
  if (!info->constant && !info->stage.axes.empty()) group->parallel = info->stage.axes[0].var->name;
  builder.groups.push_back(std::move(group));
}

}  // namespace hone::space
