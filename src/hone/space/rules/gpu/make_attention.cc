// Attention as one task: a block has a tile of queries, whose scores stay in shared memory (Dao et
// al., FlashAttention). Here are its operands and decisions.
#include <algorithm>

#include "hone/schedule/pipeline.h"
#include "hone/space/rules/gpu/attention.h"
#include "hone/space/rules/gpu/rules.h"
#include "hone/space/rules/gpu/usual_values.h"

namespace hone::space {
namespace {

using schedule::StageInfo;

constexpr int64_t kLeastRows = 4;  // queries of a block, so that keys are read rarely enough
constexpr int64_t kFewKeys = 512;  // of no more, scores of all are there at once
constexpr int64_t kMostSplits = 64;

// Copies what a product reads of one buffer, and returns the copy; nullopt if that is illegal.
std::optional<AttentionOperand> copy_operand(SketchBuilder& builder, const std::string& product,
                                             const ir::BufferPtr& buffer) {
  if (!builder.add_step(schedule::Im2col{product, buffer->name}).ok()) return std::nullopt;
  const int place = builder.state.find_stage(product) - 1;
  const StageInfo& info = *builder.state.stages[static_cast<size_t>(place)].info;
  AttentionOperand copy;
  copy.stage = info.stage.name;
  copy.bytes = dtype_bytes(info.stage.outputs[0].buffer->dtype);
  std::vector<std::pair<int64_t, std::string>> strides;
  for (size_t a = 0; a < info.stage.axes.size(); ++a) {
    int64_t stride = 0;
    for (const compute::Access& read : info.reads) stride = std::max(stride, stride_of(read, a));
    strides.emplace_back(stride, info.stage.axes[a].var->name);
  }
  std::stable_sort(strides.begin(), strides.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  for (const auto& [stride, name] : strides) copy.axes.push_back(name);
  copy.is_whole = strides.back().first == 1;
  copy.is_plain = schedule::is_plain_copy(info.stage);
  return copy;
}

// Returns the buffer that alone moves (or stays) with an axis, of what a product reads.
ir::BufferPtr operand_that(const StageInfo& product, const std::string& axis, bool does_move,
                           const ir::BufferPtr& other) {
  ir::BufferPtr found;
  for (const compute::Access& read : product.reads) {
    if (read.buffer == product.stage.outputs[0].buffer || read.buffer == other) continue;
    if (moves(read, axis_named(product, axis)) != does_move) continue;
    if (found && found != read.buffer) return nullptr;
    found = read.buffer;
  }
  return found;
}

void add_decisions(SketchBuilder& builder, GpuAttention& group) {
  const auto add = [&](AttentionPart part, std::string_view role, DecisionKind kind,
                       std::vector<int64_t> options, int64_t extent = 0) {
    return builder.add_decision(group.stage[part], role, kind, std::move(options), extent);
  };
  const int64_t rows = std::min<int64_t>(64, at_least(group.queries));
  const int64_t vector = kVectorBytes / group.score_bytes;
  group.d_rows = add(kResult, "rows", DecisionKind::kTile, powers_of_2(1, rows), group.queries);
  group.d_queries = add(kScores, "rows", DecisionKind::kTile,
                        powers_of_2(1, std::min<int64_t>(8, rows)), group.queries);
  group.d_vector = add(kScores, "vector", DecisionKind::kVector,
                       powers_of_2(1, std::min(vector, at_least(group.keys))));
  group.d_columns = add(kScores, "threads", DecisionKind::kParallel,
                        powers_of_2(1, std::min<int64_t>(128, at_least(group.keys))));
  group.d_parts = add(kMost, "threads", DecisionKind::kParallel,
                      powers_of_2(1, std::min<int64_t>(32, at_least(group.keys))));
  group.d_sum_queries = add(kSums, "rows", DecisionKind::kTile,
                            powers_of_2(1, std::min<int64_t>(16, rows)), group.queries);
  std::vector<int64_t> lanes = {1};
  while (lanes.back() < vector && group.channels % (2 * lanes.back()) == 0)
    lanes.push_back(2 * lanes.back());
  group.d_lanes = add(kSums, "vector", DecisionKind::kVector, lanes);
  group.d_depth = add(kScores, "stages", DecisionKind::kTile, {1, 2, 3});
  if (!group.joined.empty()) {
    const int64_t most = std::min<int64_t>(kMostSplits, group.tiles());
    if (group.has_few_blocks() && most > 1)
      group.d_splits = add(kResult, "splits", DecisionKind::kParallel, powers_of_2(1, most));
    return;
  }
  group.d_groups = add(kSums, "vectors", DecisionKind::kUnroll,
                       powers_of_2(1, std::min<int64_t>(4, group.channels)));
  group.d_values = add(kSums, "keys", DecisionKind::kTile,
                       powers_of_2(std::min<int64_t>(16, at_least(group.keys)),
                                   std::min<int64_t>(256, at_least(group.keys))),
                       group.keys);
}

bool tile_keys(SketchBuilder& builder, GpuAttention& group) {
  group.joined = group.stage[kSums];
  group.keys = kTileOfKeys;
  if (!builder.add_step(schedule::OnlineSoftmax{group.joined, group.keys}).ok()) return false;
  const int joined = builder.state.find_stage(group.joined);  // behind a tile's sums
  group.stage[kSums] = builder.state.stages[static_cast<size_t>(joined - 1)].name();
  return true;
}

Fit add_attention(SketchBuilder& builder, bool in_tiles) {
  const std::optional<Attention> found = find_attention(builder);
  if (!found || (in_tiles && found->keys <= kTileOfKeys)) return Fit::kNone;
  auto group = std::make_shared<GpuAttention>();
  static_cast<Attention&>(*group) = *found;
  group->gpu = builder.target.gpu();
  const schedule::StageInfoPtr scores = builder.info(group->stage[kScores]);
  const schedule::StageInfoPtr masked = builder.info(group->stage[kMasked]);
  const schedule::StageInfoPtr sums = builder.info(group->stage[kSums]);
  if (scores->stage.reduce.size() != 1 || sums->stage.reduce.size() != 1) return Fit::kNone;
  group->term = scores->stage.reduce[0].var->name;
  group->depth = scores->stage.reduce[0].extent;
  group->summed = sums->stage.reduce[0].var->name;
  group->channels = sums->axes[static_cast<size_t>(axis_named(*sums, group->lane))].extent;
  group->score_bytes = dtype_bytes(masked->stage.outputs[0].buffer->dtype);
  for (const compute::Axis& axis : masked->stage.axes) {
    const std::string& name = axis.var->name;
    const bool is_outer = std::count(group->outer.begin(), group->outer.end(), name) > 0;
    if (!is_outer && name != group->query) group->key = name;
  }
  if (group->key.empty() || axis_named(*scores, group->key) < 0 ||
      axis_named(*scores, group->query) < 0 || masked->stage.axes.size() != group->outer.size() + 2)
    return Fit::kNone;
  for (const compute::Access& read : masked->reads)
    group->mask_moves |= read.buffer != scores->stage.outputs[0].buffer &&
                         moves(read, axis_named(*masked, group->query));
  const ir::BufferPtr weights = builder.info(group->stage[kWeights])->stage.outputs[0].buffer;
  const ir::BufferPtr of_queries = operand_that(*scores, group->key, false, nullptr);
  const ir::BufferPtr of_keys = operand_that(*scores, group->query, false, nullptr);
  const ir::BufferPtr of_values = operand_that(*sums, group->query, false, weights);
  if (!of_queries || !of_keys || !of_values || of_queries == of_keys) return Fit::kNone;
  const auto queries = copy_operand(builder, group->stage[kScores], of_queries);
  const auto keys = copy_operand(builder, group->stage[kScores], of_keys);
  const auto values = copy_operand(builder, group->stage[kSums], of_values);
  if (!queries || !keys || !values) return Fit::kNone;
  group->copied_queries = *queries, group->copied_keys = *keys, group->copied_values = *values;
  group->keys_are_rows = keys->axes.back() == group->term;
  group->all_keys = group->keys;
  if (in_tiles && !tile_keys(builder, *group)) return Fit::kNone;
  add_decisions(builder, *group);
  const std::optional<std::vector<int>> usual = legal_default(builder.decisions, *group);
  if (!usual) return Fit::kNone;
  const Choice choice(builder.decisions, *usual);
  const bool has_rows = choice[group->d_rows] >= std::min(kLeastRows, group->queries);
  const int64_t few = group->has_few_blocks() ? kFewKeys / 4 : kFewKeys;
  const bool is_good = has_rows && (group->all_keys > few) == in_tiles;
  builder.groups.push_back(std::move(group));
  return is_good ? Fit::kBest : Fit::kPossible;
}

}  // namespace

Fit add_gpu_attention(SketchBuilder& builder, const Task&) { return add_attention(builder, false); }
Fit add_gpu_attention_tiles(SketchBuilder& builder, const Task&) {
  return add_attention(builder, true);
}

}  // namespace hone::space
