#include "hone/space/rules/cpu/bilinear.h"

#include <algorithm>
#include <cmath>

#include "hone/base/round_up.h"

namespace hone::space {
namespace {

using schedule::Steps;
using schedule::Tail;

constexpr int64_t kMaxBlockBytes = 16 << 20;  // of transformed data and products of one block

// An axis of E other than the channels.
struct BlockAxis {
  std::string name;
  int64_t outputs = 1;  // results per tile; 1: the axis is not transformed
  int64_t tiles = 1;
  DecisionId decision;  // tiles in a block; one if there is no choice
};

class BilinearGroup : public Group {
 public:
  std::string epilogue, conv, channel;  // stages, and E's axis of the output channels
  std::vector<BlockAxis> blocks;        // E's other axes in order
  std::shared_ptr<Contraction> product;
  DecisionId d_channels, d_shares;
  int64_t lanes = 8, channels = 1, inputs = 1, points = 1, l2_bytes = 1 << 20;
  int cores = 1;
  size_t point_axes = 1;
  int64_t channel_places = 1;
  // Axes of the transforms, by stage; empty where there is no first one.
  std::vector<compute::Axis> data, weights, first_data, first_weights, first_back, back;
  std::string weight_channel;  // the channels' axis in the weights' transform

  [[nodiscard]] bool legal(const Choice& choice) const override {
    if (!product->legal(choice)) return false;
    const Roles& roles = product->roles;
    const RegisterTile tile = product->tile_of(choice);
    if (tile.columns > block_of(choice, roles.column) || tile.rows > block_of(choice, roles.row))
      return false;
    // What lies side by side in a tile are vectors of all lanes.
    if (channel_places > 1 && tile.lanes != lanes) return false;
    if (choice[d_channels] > 1 && (choice[d_channels] - 1) * tile.width() >= channels) return false;
    if (channel_blocks(choice) % choice[d_shares] != 0) return false;
    return block_bytes(choice) <= kMaxBlockBytes;
  }
  void set_default(MutableChoice& choice) const override;
  void canonicalise(MutableChoice& choice) const override {
    const Roles& roles = product->roles;
    product->canonicalise(
        choice,
        {block_channels(choice), block_of(choice, roles.column), block_of(choice, roles.row)},
        true);
  }
  void append_steps(const Choice& choice, Steps& steps) const override;

 private:
  [[nodiscard]] int64_t block_channels(const Choice& choice) const {
    return choice[d_channels] * product->tile_of(choice).width();
  }
  [[nodiscard]] int64_t channel_blocks(const Choice& choice) const {
    return ceil_div(channels, block_channels(choice));
  }
  // Tiles in a block along an axis of the products.
  [[nodiscard]] int64_t block_of(const Choice& choice, int axis) const {
    if (axis < 0) return 1;
    const std::string& name = product->axes[static_cast<size_t>(axis)].var->name;
    for (const BlockAxis& block : blocks) {
      if (name == block.name || name == block.name + "_t") return choice[block.decision];
    }
    return 1;
  }
  [[nodiscard]] int64_t block_tiles(const Choice& choice) const {
    int64_t tiles = 1;
    for (const BlockAxis& block : blocks) tiles *= choice[block.decision];
    return tiles;
  }
  [[nodiscard]] int64_t block_bytes(const Choice& choice) const {
    return 4 * points * block_tiles(choice) * (inputs + block_channels(choice));
  }
  void set_default_tile(MutableChoice& choice) const;
  // The steps of E; returns its parallel loop.
  std::string append_epilogue(const Choice& choice, Steps& steps) const;
  void append_data(const std::string& block, Steps& steps) const;
  void append_weights(Steps& steps) const;
  void append_back(Steps& steps) const;
};

// A small stage of straight code: every loop unrolled, the last axis in vector lanes.
void append_straight(const std::string& stage, const std::vector<compute::Axis>& axes,
                     Steps& steps) {
  append_body(stage, names_of(std::span(axes).first(axes.size() - 1)), axes.back().var->name,
              steps);
}

void BilinearGroup::set_default(MutableChoice& choice) const {
  product->set_default(choice);
  choice.set(d_channels, 1);
  choice.set(d_shares, 1);
  for (const BlockAxis& block : blocks) choice.set(block.decision, 1);
  // Blocks grow, the innermost axis first, while they stay in the cache and leave work for all.
  for (size_t b = blocks.size(); b-- > 0;) {
    const DecisionId decision = blocks[b].decision;
    for (int o = 1; o < std::ssize(choice.options(decision)); ++o) {
      const int before = choice.index(decision);
      choice.set_index(decision, o);
      int64_t pieces = 1;
      for (const BlockAxis& block : blocks) pieces *= block.tiles / choice[block.decision];
      if (4 * points * block_tiles(choice) * (inputs + 64) <= l2_bytes / 2 && pieces >= 2 * cores)
        continue;
      choice.set_index(decision, before);
      break;
    }
  }
  set_default_tile(choice);
}

// The register tile that wastes least of a block.
void BilinearGroup::set_default_tile(MutableChoice& choice) const {
  const TileDecisions& of = product->decisions;
  const DecisionId vectors_at = of[TileDecisions::kVectors], column_at = of[TileDecisions::kColumn],
                   row_at = of[TileDecisions::kRow];
  const auto columns = block_of(choice, product->roles.column);
  const auto rows = block_of(choice, product->roles.row);
  double best = INFINITY;
  std::vector<int> chosen = choice.indices();
  for (const int64_t vectors : choice.options(vectors_at)) {
    for (const int64_t column : choice.options(column_at)) {
      for (const int64_t row : choice.options(row_at)) {
        choice.set(vectors_at, vectors);
        choice.set(column_at, column);
        choice.set(row_at, row);
        if (!legal(choice)) continue;
        const double tail = static_cast<double>(round_up(rows, row)) / static_cast<double>(rows);
        const double cost =
            tail * tile_cost(column, vectors, product->lanes, columns, channels, true, row);
        if (cost >= best) continue;
        best = cost;
        chosen = choice.indices();
      }
    }
  }
  choice.indices() = std::move(chosen);
}

std::string BilinearGroup::append_epilogue(const Choice& choice, Steps& steps) const {
  const RegisterTile tile = product->tile_of(choice);
  const int64_t shared = channel_blocks(choice) / choice[d_shares];
  const bool pairs = channel_places > 1;
  std::vector<int64_t> lengths = {shared, choice[d_channels], tile.vectors, tile.lanes};
  if (pairs) lengths.insert(lengths.end() - 1, channel_places);
  steps.emplace_back(schedule::Split{epilogue, channel, lengths, Tail::kPad});
  LoopNest loops{.outer = {channel + ".0"}, .vector = channel + (pairs ? ".5" : ".4")};
  std::vector<std::string> tiles;
  for (const BlockAxis& axis : blocks) {
    const int64_t length = choice[axis.decision];
    if (axis.outputs > 1) {
      steps.emplace_back(schedule::Split{epilogue, axis.name, {length, axis.outputs}, Tail::kMask});
      loops.unrolled.push_back(axis.name + ".2");
    } else {
      steps.emplace_back(schedule::Split{epilogue, axis.name, {length}, Tail::kMask});
    }
    loops.outer.push_back(axis.name + ".0");
    tiles.push_back(axis.name + ".1");
  }
  if (pairs) loops.unrolled.push_back(channel + ".4");
  loops.parallel = loops.outer.size();
  loops.outer.push_back(channel + ".1");
  loops.outer.insert(loops.outer.end(), tiles.begin(), tiles.end());
  loops.outer.insert(loops.outer.end(), {channel + ".2", channel + ".3"});
  return append_nest(epilogue, loops, steps);
}

void BilinearGroup::append_back(Steps& steps) const {
  std::vector<std::string> stages = {conv};
  if (!first_back.empty()) stages.push_back(conv + ".y1");
  for (const std::string& stage : stages) {
    steps.emplace_back(schedule::ComputeAt{stage, epilogue, channel + ".3"});
    steps.emplace_back(schedule::SetScope{stage, ir::Scope::kRegister});
    append_straight(stage, stage == conv ? back : first_back, steps);
  }
}

void BilinearGroup::append_data(const std::string& block, Steps& steps) const {
  const std::string stage = conv + ".v", in = data.back().var->name;
  steps.emplace_back(schedule::ComputeAt{stage, epilogue, block});
  steps.emplace_back(schedule::Split{stage, in, {lanes}, Tail::kMask});
  LoopNest loops{.outer = names_of(std::span(data).subspan(point_axes)),
                 .unrolled = names_of(std::span(data).first(point_axes)),
                 .vector = in + ".1"};
  loops.outer.back() = in + ".0";
  append_nest(stage, loops, steps);
  if (first_data.empty()) return;
  steps.emplace_back(schedule::ComputeAt{stage + "1", stage, in + ".0"});
  steps.emplace_back(schedule::SetScope{stage + "1", ir::Scope::kRegister});
  append_straight(stage + "1", first_data, steps);
}

void BilinearGroup::append_weights(Steps& steps) const {
  const std::string stage = conv + ".u";
  steps.emplace_back(schedule::Split{stage, weight_channel, {lanes}, Tail::kMask});
  LoopNest loops{.outer = {weight_channel + ".0"},
                 .parallel = 1,
                 .unrolled = names_of(std::span(weights).first(point_axes)),
                 .vector = weight_channel + ".1"};
  for (size_t a = point_axes; a < weights.size(); ++a) {
    if (weights[a].var->name != weight_channel) loops.outer.push_back(weights[a].var->name);
  }
  append_nest(stage, loops, steps);
  if (first_weights.empty()) return;
  std::vector<compute::Axis> axes = first_weights;
  const auto at = std::find_if(axes.begin(), axes.end(), [&](const compute::Axis& axis) {
    return axis.var->name == weight_channel;
  });
  std::rotate(at, at + 1, axes.end());
  const std::vector<std::string> names = names_of(axes);
  // Halves of all that is summed lie apart.
  const bool whole = channel_places > 1;
  steps.emplace_back(
      schedule::ComputeAt{stage + "1", stage, whole ? loops.outer.front() : loops.outer.back()});
  steps.emplace_back(
      schedule::SetScope{stage + "1", whole ? ir::Scope::kThread : ir::Scope::kRegister});
  steps.emplace_back(schedule::Reorder{stage + "1", names});
  if (whole) {
    steps.emplace_back(schedule::Vectorize{stage + "1", names.back()});
  } else {
    append_straight(stage + "1", axes, steps);
  }
}

void BilinearGroup::append_steps(const Choice& choice, Steps& steps) const {
  const std::string block = append_epilogue(choice, steps);
  append_back(steps);
  steps.emplace_back(schedule::ComputeAt{product->epilogue, epilogue, channel + ".1"});
  product->append_steps(choice, steps);
  append_data(block, steps);
  append_weights(steps);
}

// Tiles in a block: what divides their number, so that no block needs a test.
std::vector<int64_t> block_options(int64_t tiles) {
  std::vector<int64_t> options;
  for (int64_t n = 1; n <= std::min<int64_t>(tiles, 64); ++n) {
    if (tiles % n == 0) options.push_back(n);
  }
  return options;
}

// None if the algorithm has no such stage.
std::vector<compute::Axis> axes_if_any(const SketchBuilder& builder, const std::string& stage) {
  return builder.state.find_stage(stage) < 0 ? std::vector<compute::Axis>()
                                             : builder.info(stage)->axes;
}

// The blocks along E's axes; empty if their roles are unclear.
std::vector<BlockAxis> make_blocks(SketchBuilder& builder, const schedule::StageInfo& e,
                                   const std::vector<std::string>& names, int vector,
                                   const std::vector<Bilinear::Tiled>& tiled_axes) {
  std::vector<BlockAxis> blocks;
  for (int a = 0; a < e.num_spatial(); ++a) {
    if (a == vector) continue;
    const compute::Axis& axis = e.axes[static_cast<size_t>(a)];
    BlockAxis block{axis.var->name, 1, axis.extent, {}};
    bool tiled = false;
    for (const Bilinear::Tiled& own : tiled_axes) {
      if (own.axis != names[static_cast<size_t>(a)]) continue;
      block.outputs = own.outputs;
      block.tiles = (axis.extent + own.outputs - 1) / own.outputs;
      tiled = true;
    }
    // The products' axes are named after the convolution's; groups and the batch are not blocked.
    if (names[static_cast<size_t>(a)] != block.name) return {};
    if ((tiled || names[static_cast<size_t>(a)].starts_with('o')) && block.tiles > 1) {
      block.decision =
          builder.add_decision(e.stage.name, block.name + ".block", DecisionKind::kTile,
                               block_options(block.tiles), block.tiles, true);
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

}  // namespace

Fit add_bilinear(SketchBuilder& builder, const Task& task, const Bilinear& algorithm) {
  const std::string &epilogue = task.epilogue, &conv = task.reduction;
  const schedule::StageInfoPtr e = builder.info(epilogue), r = builder.info(conv);
  const int vector = unit_stride_axis(*e);
  const auto names = match_axes(*e, *r);
  if (vector < 0 || !names || e->stage.where || e->stage.outputs.size() != 1 || e->constant)
    return Fit::kNone;
  auto group = std::make_shared<BilinearGroup>();
  group->epilogue = epilogue;
  group->conv = conv;
  group->channel = e->axes[static_cast<size_t>(vector)].var->name;
  group->weight_channel = (*names)[static_cast<size_t>(vector)];
  for (const Bilinear::Tiled& tiled : algorithm.tiled) {
    if (tiled.axis == group->weight_channel) return Fit::kNone;
  }
  group->channels = e->axes[static_cast<size_t>(vector)].extent / algorithm.channel_places;
  group->point_axes = algorithm.point_axes;
  group->channel_places = algorithm.channel_places;
  group->points = algorithm.points;
  group->lanes = builder.cpu().lanes(4);
  group->cores = builder.cpu().cores;
  if (builder.cpu().caches.size() > 1) group->l2_bytes = builder.cpu().caches[1].bytes;
  group->blocks = make_blocks(builder, *e, *names, vector, algorithm.tiled);
  if (group->blocks.empty()) return Fit::kNone;
  if (!builder.add_step(algorithm.step).ok()) return Fit::kNone;
  if (!builder.add_step(schedule::CacheWrite{conv + ".m"}).ok()) return Fit::kNone;
  group->data = builder.info(conv + ".v")->axes;
  group->weights = builder.info(conv + ".u")->axes;
  group->back = builder.info(conv)->axes;
  group->first_data = axes_if_any(builder, conv + ".v1");
  group->first_weights = axes_if_any(builder, conv + ".u1");
  group->first_back = axes_if_any(builder, conv + ".y1");
  group->inputs = group->data.back().extent;
  // Lanes along channels throughout, which all read the same data: lanes behind the last channel
  // would read data that are not there.
  const auto has_channel = [&](const std::vector<compute::Axis>& axes) {
    return std::any_of(axes.begin(), axes.end(), [&](const compute::Axis& axis) {
      return axis.var->name == group->weight_channel;
    });
  };
  if (group->back.back().var->name != group->weight_channel || !has_channel(group->weights) ||
      has_channel(group->data))
    return Fit::kNone;
  group->product =
      make_contraction(builder, conv + ".m", conv + ".m.acc",
                       {.nested = true, .fixed = algorithm.point_axes, .packed = conv + ".u"});
  if (!group->product) return Fit::kNone;
  group->d_channels =
      builder.add_decision(conv, "channels", DecisionKind::kTile, {1, 2, 3, 4, 6, 8});
  group->product->decisions.share(TileDecisions::kPackedBlocks, group->d_channels);
  group->d_shares = builder.add_decision(conv, "shares", DecisionKind::kParallel, {1, 2, 4, 8});
  builder.groups.push_back(std::move(group));
  return Fit::kPossible;
}

}  // namespace hone::space
