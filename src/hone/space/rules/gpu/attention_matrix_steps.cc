#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/attention_matrix.h"

namespace hone::space {

using schedule::Steps;
using schedule::Tail;

void GpuMatrixAttention::append_steps(const Choice& choice, Steps& steps) const {
  const std::string &sums = stage[kSums], part = sums + ".part";
  const int64_t tile = choice[d_keys], k = instruction.k;
  steps.emplace_back(schedule::OnlineSoftmax{sums, tile, schedule::KeyTiles::kWhole});
  steps.emplace_back(schedule::MatrixProduct{stage[kScores], {query}, {key}, k});
  steps.emplace_back(schedule::MatrixProduct{part, {query}, {lane}, k});
  if (!mask.empty()) steps.emplace_back(schedule::CacheRead{mask, stage[kMasked]});
  AttentionNames names = {stage[kResult], sums, outer, outer};
  if (choice[d_splits] > 1) names = divide_keys(*this, sums, tiles_of_part(choice), steps);
  const std::string block = append_root(names, choice, steps);
  append_running(names, block, choice, steps);

  const int64_t slots = choice[d_depth];
  const auto copy = [&](const MatrixOperand& operand, int64_t side, int64_t terms, bool of_tile) {
    SharedCopy made = copy_of(operand, side, terms, of_tile ? slots : 1, choice);
    made.reader = of_tile ? names.running : names.root;
    made.loop = of_tile ? "t" : block;
    made.dims = made.axes;
    append_copy(made, steps);
  };
  const auto append = [&](const Tile& what, bool by_instructions = false) {
    append_tile(what, names, choice, by_instructions, steps);
  };
  append({part, "rows", "columns", whole_channels(), "terms"}, true);
  append({weights_operand, "rows", "terms"});
  copy(copied_values, whole_channels(), tile, true);
  append({stage[kTotal], query, "", 0, summed});
  append({stage[kWeights], query, key});
  append({stage[kMost], query, "", 0, summed});
  append({stage[kMasked], query, key});
  append({stage[kScores], "rows", "columns", 0, "terms"}, true);
  if (!mask.empty()) append_mask(names, choice, steps);
  copy(copied_keys, tile, whole_depth(), true);
  copy(copied_queries, block_rows(choice), whole_depth(), false);
  if (choice[d_splits] > 1) append_join_of_keys(*this, sums, choice[d_splits], steps);
}

std::string GpuMatrixAttention::append_root(const AttentionNames& names, const Choice& choice,
                                            Steps& steps) const {
  const std::string& root = names.root;
  steps.emplace_back(schedule::Split{root, query, {choice[d_warps], choice[d_rows]}, Tail::kWhole});
  steps.emplace_back(schedule::Split{root, lane, {whole_channels()}, Tail::kWhole});
  std::vector<std::string> grid = names.outer_of_root;
  grid.insert(grid.end(), {query + ".0", lane + ".0"});
  std::vector<std::string> loops = grid;
  loops.insert(loops.end(), {query + ".1", query + ".2", lane + ".1"});
  steps.emplace_back(schedule::Reorder{root, std::move(loops)});
  const std::string block = fuse_loops(root, grid, steps);
  steps.emplace_back(schedule::Parallel{root, block});
  steps.emplace_back(schedule::Bind{root, query + ".1", schedule::ThreadLevel::kWarp});
  return block;
}

void GpuMatrixAttention::append_running(const AttentionNames& names, const std::string& block,
                                        const Choice& choice, Steps& steps) const {
  const std::string& sums = names.running;
  steps.emplace_back(schedule::ComputeAt{sums, names.root, block});
  steps.emplace_back(schedule::SetScope{sums, ir::Scope::kFragment});
  steps.emplace_back(schedule::Split{sums, query, {choice[d_warps], choice[d_rows]}, Tail::kWhole});
  steps.emplace_back(schedule::Split{sums, lane, {whole_channels()}, Tail::kWhole});
  std::vector<std::string> loops = names.outer_of_running;
  loops.insert(loops.end(),
               {"t", query + ".0", query + ".1", query + ".2", lane + ".0", lane + ".1"});
  steps.emplace_back(schedule::Reorder{sums, std::move(loops)});
  steps.emplace_back(schedule::Bind{sums, query + ".1", schedule::ThreadLevel::kWarp});
}

void GpuMatrixAttention::append_tile(const Tile& tile, const AttentionNames& names,
                                     const Choice& choice, bool by_instructions,
                                     Steps& steps) const {
  const std::string &what = tile.stage, &rows = tile.rows;
  const int64_t of_warp = choice[d_rows];
  steps.emplace_back(schedule::ComputeAt{what, names.running, "t"});
  steps.emplace_back(schedule::SetScope{what, ir::Scope::kFragment});
  steps.emplace_back(schedule::Split{what, rows, {choice[d_warps], of_warp}, Tail::kWhole});
  std::vector<std::string> dims = {quotient(rows, of_warp), "t"}, loops = {"t"};
  dims.insert(dims.end(), outer.begin(), outer.end());
  loops.insert(loops.end(), outer.begin(), outer.end());
  dims.push_back(remainder(rows, of_warp));
  loops.push_back(rows + ".0");
  std::string columns = tile.columns;
  if (tile.whole > 0) {
    steps.emplace_back(schedule::Split{what, columns, {tile.whole}, Tail::kWhole});
    loops.push_back(columns + ".0");
    columns += ".1";
  }
  if (!columns.empty()) dims.push_back(tile.columns);
  steps.emplace_back(schedule::Layout{what, std::move(dims)});
  loops.insert(loops.end(), {rows + ".1", rows + ".2"});
  if (!columns.empty()) loops.push_back(columns);
  if (!tile.terms.empty()) loops.push_back(tile.terms);
  steps.emplace_back(schedule::Reorder{what, std::move(loops)});
  steps.emplace_back(schedule::Bind{what, rows + ".1", schedule::ThreadLevel::kWarp});
  if (!by_instructions) return;
  steps.emplace_back(
      schedule::Tensorize{what, rows + ".2", columns, tile.terms,
                          rounds ? schedule::Rounding::kTf32 : schedule::Rounding::kNone});
}

void GpuMatrixAttention::append_mask(const AttentionNames& names, const Choice& choice,
                                     Steps& steps) const {
  SharedCopy copy = copy_of_mask(choice);
  copy.reader = names.running, copy.loop = "t";
  copy.dims = copy.axes;
  append_copy(copy, steps);
}

}  // namespace hone::space
