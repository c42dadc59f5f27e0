#include "hone/space/rules/gpu/attention_matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/round_up.h"
#include "hone/schedule/pipeline.h"
#include "hone/space/rules/gpu/rules.h"

namespace hone::space {
namespace {

constexpr int64_t kMostWarps = 8, kMostRows = 32, kMostKeys = 128, kMostDepth = 4, kMostSplits = 64;
constexpr int64_t kSpareRegisters = 44;  // of a thread: addresses, rows, values loaded early
constexpr double kTileCycles = 700;      // from the load of a tile to its use
constexpr double kBarrierCycles = 40;
constexpr double kLaunchCycles = 4000;     // of a launch behind another one
constexpr double kOverlap = 0.25;          // what is hidden costs so much of its time all the same
constexpr double kScoreInstructions = 22;  // scale, mask, maximum, power, sum, rounding
constexpr double kSumInstructions = 3;     // of a sum that is scaled and joined
constexpr int64_t kFewTerms = 8;           // less leaves most of an instruction's tile empty

}  // namespace

int64_t GpuMatrixAttention::whole_depth() const { return round_up(depth, instruction.k); }
int64_t GpuMatrixAttention::whole_channels() const { return round_up(channels, instruction.n); }

int64_t GpuMatrixAttention::tiles_of_part(const Choice& choice) const {
  return ceil_div(ceil_div(keys, choice[d_keys]), choice[d_splits]);
}

// Scores, the weights made of them, sums of a tile and running ones; and operands on their way.
int64_t GpuMatrixAttention::registers(const Choice& choice) const {
  const int64_t rows = choice[d_rows];
  const int64_t scores = rows * choice[d_keys] / gpu.warp;
  const int64_t sums = rows * whole_channels() / gpu.warp;
  const int64_t weights = scores * element_bytes / 4;
  return std::max(scores + sums, weights + 2 * sums) + rows / instruction.m * 4 + kSpareRegisters;
}

GpuMatrixAttention::Lines GpuMatrixAttention::lines(const MatrixOperand& operand, int64_t side,
                                                    int64_t terms) const {
  const bool of_terms = operand.terms_are_neighbours;
  const int64_t count = of_terms ? side : terms, length = of_terms ? terms : side;
  return {count, length, operand.pad(length, element_bytes)};
}

SharedCopy GpuMatrixAttention::copy_of(const MatrixOperand& operand, int64_t side, int64_t terms,
                                       int64_t slots, const Choice& choice) const {
  const Lines of = lines(operand, side, terms);
  SharedCopy copy = {.stage = operand.stage, .axes = operand.axes(), .threads = threads(choice)};
  copy.pad = of.pad;
  copy.elements = of.count * of.length;
  copy.vector = std::min(operand.vector, std::gcd(of.length, operand.vector));
  copy.depth = slots;
  if (!operand.is_async) copy.transport = schedule::Transport::kRegisters;
  return copy;
}

SharedCopy GpuMatrixAttention::copy_of_mask(const Choice& choice) const {
  SharedCopy copy = {.stage = mask + ".cache", .axes = mask_axes, .threads = threads(choice)};
  copy.elements = block_rows(choice) * choice[d_keys];
  while (copy.vector * mask_bytes < kVectorBytes && keys % (2 * copy.vector) == 0) copy.vector *= 2;
  return copy;
}

int64_t GpuMatrixAttention::shared_bytes(const Choice& choice) const {
  const auto bytes = [&](const MatrixOperand& operand, int64_t side, int64_t terms) {
    const Lines of = lines(operand, side, terms);
    return of.count * (of.length + of.pad) * element_bytes;
  };
  const int64_t tile = choice[d_keys];
  const int64_t masks = mask.empty() ? 0 : block_rows(choice) * tile * mask_bytes;
  return bytes(copied_queries, block_rows(choice), whole_depth()) + masks +
         choice[d_depth] * (bytes(copied_keys, tile, whole_depth()) +
                            bytes(copied_values, whole_channels(), tile));
}

bool GpuMatrixAttention::legal(const Choice& choice) const {
  const int64_t n = threads(choice), per_thread = registers(choice), slots = choice[d_depth];
  const int64_t tiles = ceil_div(keys, choice[d_keys]), splits = choice[d_splits];
  return (choice[d_warps] == 1 || (choice[d_warps] - 1) * choice[d_rows] < queries) &&
         (splits == 1 || (splits - 1) * tiles_of_part(choice) < tiles) &&
         slots <= tiles_of_part(choice) &&
         can_work_ahead(copy_of(copied_keys, choice[d_keys], whole_depth(), slots, choice)) &&
         can_work_ahead(copy_of(copied_values, whole_channels(), choice[d_keys], slots, choice)) &&
         n <= gpu.threads_per_block && per_thread <= gpu.registers_per_thread &&
         n * per_thread <= gpu.registers_per_sm && shared_bytes(choice) <= gpu.shared_bytes_opt_in;
}

// Cycles of the SM with most blocks: matrix instructions, what lanes compute of the scores, reads
// of shared memory and copies of a block, and what each tile waits for unless other blocks of the
// SM have work.
double GpuMatrixAttention::estimate(const Choice& choice) const {
  const auto m = static_cast<double>(block_rows(choice)), n = static_cast<double>(choice[d_keys]);
  const auto d = static_cast<double>(whole_depth()), c = static_cast<double>(whole_channels());
  const auto bytes = static_cast<double>(element_bytes);
  const auto splits = static_cast<double>(choice[d_splits]);
  const auto warps = static_cast<double>(choice[d_warps]);
  const auto tiles = static_cast<double>(tiles_of_part(choice));
  const double blocks = splits * static_cast<double>(blocks_outside) *
                        static_cast<double>(ceil_div(queries, block_rows(choice)));
  const double per_sm = std::ceil(blocks / gpu.sms);
  const double shared_of_sm =
      static_cast<double>(gpu.shared_bytes_per_sm) / static_cast<double>(shared_bytes(choice));
  const double registers_of_sm = static_cast<double>(gpu.registers_per_sm) /
                                 static_cast<double>(threads(choice) * registers(choice));
  const double resident =
      std::max(1.0, std::floor(std::min({per_sm, static_cast<double>(gpu.blocks_per_sm),
                                         static_cast<double>(gpu.warps_per_sm) / warps,
                                         registers_of_sm, shared_of_sm})));
  // An SM has four units, each of which runs the instructions of its own warps.
  const double units = std::min(1.0, warps * resident / 4);
  const double products = m * n * (d + c) / (instruction.fma_per_cycle * units);
  const double others =
      m * (n * kScoreInstructions + c * kSumInstructions) / (gpu.fma_per_cycle * units);
  const double shared = n * (d + c) * bytes * (warps + 1) / gpu.shared_bytes_per_cycle;
  const double copied = n * (d + c) * bytes / gpu.l2_bytes_per_cycle;
  const auto ahead = static_cast<double>(choice[d_depth] - 1);
  const double busy = std::max(products + others, std::max(shared, copied)) +
                      kBarrierCycles * (ahead > 0 ? 1 : 2) / resident;
  const double waiting = kTileCycles / (std::max(ahead, 1.0) * resident);
  const double tile =
      ahead > 0 ? std::max(busy, waiting) + kOverlap * std::min(busy, waiting) : busy + waiting;
  const double stored = m * (d + c) * bytes / gpu.l2_bytes_per_cycle;
  const auto results = static_cast<double>(blocks_outside * queries * channels) / gpu.sms;
  const double join = splits == 1
                          ? 0
                          : kLaunchCycles + splits * kJoinCycles +
                                results * (splits + 1) * sizeof(float) / gpu.l2_bytes_per_cycle;
  return per_sm * (tiles * tile + stored) + kTileCycles + join;
}

void GpuMatrixAttention::find_usual(const std::vector<Decision>& all) {
  std::vector<int> indices(all.size(), 0);
  MutableChoice choice(all, indices);
  const DecisionId decisions[] = {d_warps, d_rows, d_keys, d_depth, d_splits};
  Cheapest cheapest(choice);
  for_all_options(choice, decisions, [&] {
    if (legal(choice)) cheapest.consider(estimate(choice));
  });
  cheapest.choose();
  usual = UsualValues(decisions, choice);
}

namespace {

void add_decisions(SketchBuilder& builder, GpuMatrixAttention& group) {
  const auto add = [&](AttentionPart part, std::string_view role, DecisionKind kind, int64_t from,
                       int64_t most) {
    return most > from || from > 1 ? builder.add_decision(group.stage[part], role, kind,
                                                          powers_of_2(from, std::max(from, most)))
                                   : DecisionId();
  };
  const auto& one = group.instruction;
  const int64_t rows = at_least(group.queries), keys = at_least(group.keys);
  group.d_rows = add(kResult, "row.tile", DecisionKind::kUnroll, one.m, std::min(kMostRows, rows));
  group.d_warps = add(kResult, "row.warps", DecisionKind::kTile, 1,
                      std::min<int64_t>(kMostWarps, at_least(ceil_div(group.queries, one.m))));
  group.d_keys =
      add(kSums, "keys", DecisionKind::kTile, std::max(one.k, one.n), std::min(kMostKeys, keys));
  std::vector<int64_t> depths;
  const int64_t tiles = ceil_div(group.keys, std::max(one.k, one.n));
  for (int64_t n = 1; n <= std::min(kMostDepth, tiles); ++n) depths.push_back(n);
  if (depths.size() > 1)
    group.d_depth = builder.add_decision(group.stage[kSums], "stages", DecisionKind::kTile, depths);
  const int64_t blocks = group.blocks_outside * ceil_div(group.queries, 4 * one.m);
  if (blocks < 2 * group.gpu.sms)
    group.d_splits =
        add(kResult, "splits", DecisionKind::kParallel, 1, std::min(kMostSplits, at_least(tiles)));
}

// Finds what is added to the scores of some queries alone; false if there are several.
bool find_mask(const schedule::StageInfo& masked, const schedule::StageInfo& scores,
               const schedule::State& start, GpuMatrixAttention& group) {
  for (const compute::Access& read : masked.reads) {
    if (read.buffer == scores.stage.outputs[0].buffer ||
        !moves(read, axis_named(masked, group.query)))
      continue;
    if (!group.mask.empty()) return false;
    group.mask = read.buffer->name;
    group.mask_bytes = dtype_bytes(read.buffer->dtype);
  }
  if (group.mask.empty()) return true;
  const auto state = schedule::apply(schedule::CacheRead{group.mask, masked.stage.name}, start);
  if (!state.ok()) return false;
  const int copy = state->find_stage(group.mask + ".cache");
  if (copy < 0) return false;
  group.mask_axes = names_of(state->stages[static_cast<size_t>(copy)].info->stage.axes);
  return true;
}

// Applies the steps that all points begin with, to find out what they make.
bool find_operands(const SketchBuilder& builder, trial::Accuracy accuracy,
                   GpuMatrixAttention& group) {
  const std::string& part = group.stage[kSums];
  const auto info = [](const schedule::State& state, int stage) -> const schedule::StageInfo& {
    return *state.stages[static_cast<size_t>(stage)].info;
  };
  const auto type_of = [&](const schedule::State& state, int stage) {
    return info(state, stage).stage.outputs[0].buffer->dtype;
  };
  const schedule::OnlineSoftmax tiles{part, kTileOfKeys, schedule::KeyTiles::kWhole};
  Result<schedule::State> state = schedule::apply(tiles, builder.state);
  if (!state.ok()) return false;
  const schedule::StageInfo scores = info(*state, state->find_stage(group.stage[kScores]));
  const schedule::StageInfo masked = info(*state, state->find_stage(group.stage[kMasked]));
  if (!find_mask(masked, scores, *state, group)) return false;
  for (const compute::Axis& axis : scores.stage.axes) {
    const std::string& name = axis.var->name;
    const bool is_outer = std::count(group.outer.begin(), group.outer.end(), name) > 0;
    if (!is_outer && name != group.query && name != "t") group.key = name;
  }
  if (group.key.empty() || axis_named(scores, "t") < 0 ||
      masked.stage.axes.size() != group.outer.size() + 3)
    return false;
  group.depth = scores.stage.reduce[0].extent;
  state =
      schedule::apply(schedule::MatrixProduct{group.stage[kScores], {group.query}, {group.key}, 16},
                      *std::move(state));
  if (!state.ok()) return false;
  const int product = state->find_stage(group.stage[kScores]);
  const DType type = type_of(*state, product - 1);
  const target::MatrixInstruction* instruction = matrix_instruction(group.gpu, type);
  group.rounds = type == DType::kF32;
  if (instruction == nullptr || type_of(*state, product - 2) != type ||
      (group.rounds && accuracy != trial::Accuracy::kFast))
    return false;
  group.instruction = *instruction;
  group.element_bytes = dtype_bytes(type);
  group.copied_queries = matrix_operand(*state, product - 2, "rows", group.query, scores);
  group.copied_keys = matrix_operand(*state, product - 1, "columns", group.key, scores);
  const std::string tile = part + ".part";
  const int sums = state->find_stage(tile);
  if (sums < 0) return false;
  const schedule::StageInfo of_tile = info(*state, sums);
  group.summed = of_tile.stage.reduce[0].var->name;
  group.channels = of_tile.axes[static_cast<size_t>(axis_named(of_tile, group.lane))].extent;
  state = schedule::apply(schedule::MatrixProduct{tile, {group.query}, {group.lane}, 16},
                          *std::move(state));
  if (!state.ok()) return false;
  const int joined = state->find_stage(tile);
  if (type_of(*state, joined - 1) != type || type_of(*state, joined - 2) != type) return false;
  group.weights_operand = state->stages[static_cast<size_t>(joined - 2)].name();
  group.copied_values = matrix_operand(*state, joined - 1, "columns", group.lane, of_tile);
  for (MatrixOperand* operand : {&group.copied_queries, &group.copied_keys, &group.copied_values}) {
    if (operand->packed) return false;
    operand->is_async = is_copied_async(*state, *operand, group.gpu);
  }
  return true;
}

}  // namespace

Fit add_gpu_attention_matrix(SketchBuilder& builder, const Task& task) {
  const std::optional<Attention> found = find_attention(builder);
  if (!found) return Fit::kNone;
  auto group = std::make_shared<GpuMatrixAttention>();
  static_cast<Attention&>(*group) = *found;
  group->gpu = builder.target.gpu();
  if (!find_operands(builder, task.accuracy, *group)) return Fit::kNone;
  add_decisions(builder, *group);
  group->find_usual(builder.decisions);
  if (!legal_default(builder.decisions, *group)) return Fit::kNone;
  const bool is_good = group->depth >= kFewTerms && group->channels >= kFewTerms;
  builder.groups.push_back(std::move(group));
  return is_good ? Fit::kBest : Fit::kPossible;
}

}  // namespace hone::space
