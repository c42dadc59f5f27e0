// What is decided of a contraction.
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/cpu/contraction.h"
#include "hone/target/loop_plan.h"

namespace hone::space {
namespace {

using schedule::StageInfo;
using enum TileDecisions::Role;

// Whether every tile of two to four whole vectors computes vectors that are not there.
bool leaves_rest(const Contraction& group) {
  const int64_t vectors = ceil_div(group.whole().channels, group.lanes);
  return group.reuses && !group.nested && !group.by_rows && vectors > 4 && vectors % 2 != 0 &&
         vectors % 3 != 0;
}

// How many groups, each with all of its channels, fill a vector; 1 if none do. Each of them reads
// data of its own, which takes a permutation (target/loop_plan.h).
int64_t groups_of_vector(const target::Cpu& target, const StageInfo& e, const Contraction& group) {
  if (group.roles.groups < 0 || group.row_lanes || !target::permutes_lanes(target)) return 1;
  const int64_t channels = group.whole().channels;
  // Results of neighbouring groups must be neighbours.
  if (e.writes[0].back().coef[static_cast<size_t>(group.roles.groups)] != channels) return 1;
  const int64_t groups = channels < group.lanes ? group.lanes / channels : 1;
  const bool fills = groups * channels == group.lanes && groups <= 4;
  return fills && group.extent(group.roles.groups) % groups == 0 ? groups : 1;
}

constexpr int64_t kLeastBlock = 256;  // terms, of a block of a sum

// Whether what a register tile reads of the operand along the lanes fills a core's own cache.
bool is_long(const Contraction& group) {
  const int64_t vectors = group.roles.row < 0 ? 4 : 2;  // of a usual tile
  const int64_t terms = group.taps() * group.reduce.back().extent;
  const auto width = vectors * group.lanes * static_cast<int64_t>(sizeof(float));
  return 4 * terms * width >= 3 * group.near_bytes;
}

// Whether neighbouring columns read the same of the operand along the lanes.
bool shares_operand(const Contraction& group, const StageInfo& sum) {
  const auto axis = [&](int role) {
    return axis_named(sum, group.reduction_names[static_cast<size_t>(role)]);
  };
  const int lanes = axis(group.roles.vector), column = axis(group.roles.column);
  return std::none_of(sum.reads.begin(), sum.reads.end(), [&](const compute::Access& read) {
    return lanes >= 0 && column >= 0 && moves(read, lanes) && moves(read, column);
  });
}

// All that a sum reads and writes.
int64_t bytes_of(const StageInfo& sum) {
  int64_t bytes = 0;
  for (const compute::Access& read : sum.reads) bytes += read.buffer->bytes();
  for (const compute::Output& output : sum.stage.outputs) bytes += output.buffer->bytes();
  return bytes;
}

// Those of `all` that are `most` or less.
std::vector<int64_t> up_to(int64_t most, std::initializer_list<int64_t> all) {
  std::vector<int64_t> options;
  std::copy_if(all.begin(), all.end(), std::back_inserter(options),
               [&](int64_t n) { return n <= most; });
  return options;
}

std::vector<int64_t> vector_options(const Contraction& group, const std::vector<int64_t>& lanes) {
  const int64_t channels = group.whole().channels;
  const int64_t most = std::max<int64_t>(1, ceil_div(channels, group.lanes / 2));
  // 40 or 112 channels, five half vectors or seven whole ones: other tiles of several vectors of
  // that length leave a rest.
  const auto fits_odd = [&](int64_t n) {
    return group.reuses && std::any_of(lanes.begin(), lanes.end(), [&](int64_t v) {
             return channels % (n * v) == 0 && channels % (2 * v) != 0 && channels % (3 * v) != 0;
           });
  };
  std::vector<int64_t> vectors = up_to(most, {1, 2, 3, 4, 5, 6, 7, 8});
  std::erase_if(vectors, [&](int64_t n) { return (n == 5 || n == 7) && !fits_odd(n); });
  // Few columns leave registers for more of them, a longer piece of memory in a row.
  if (group.row_lanes) {
    for (const int64_t n : up_to(most, {12, 16})) vectors.push_back(n);
  }
  // Where nothing is reused, all channels of a point at once are one stream from memory.
  for (const int64_t all : {ceil_div(channels, group.lanes), most}) {
    if (!group.reuses && all > vectors.back() && all + 2 <= group.registers) vectors.push_back(all);
  }
  return vectors;
}

void add_block_decisions(SketchBuilder& builder, const StageInfo& r, Contraction& group) {
  const auto add = [&](TileDecisions::Role role, std::vector<int64_t> options) {
    group.decisions.add(builder, group.epilogue, role, std::move(options));
  };
  const Extents all = group.whole();
  if (group.roles.column < 0 || bytes_of(r) < group.near_bytes || !shares_operand(group, r)) return;
  if (group.roles.row < 0 && all.columns >= 32)
    add(kColumnBlocks, up_to(all.columns / 16, {1, 2, 3, 4, 6, 8, 12, 16, 24, 32}));
  const int64_t longest = group.reduce.back().extent;
  const schedule::RFactor cut{group.reduction, group.reduce.back().var->name, kLeastBlock};
  if (is_long(group) && schedule::check(cut, builder.state).ok()) {
    std::vector<int64_t> sums = {1};
    for (const int64_t n : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
      const int64_t terms = block_of_sum(longest, n);
      if (terms * group.taps() >= kLeastBlock && ceil_div(longest, terms) == n) sums.push_back(n);
    }
    if (sums.size() > 1) add(kSumBlocks, std::move(sums));
  }
  if (!group.packed.empty()) return;
  const auto name = [&](int axis) { return group.reduction_names[static_cast<size_t>(axis)]; };
  group.panels = Panels::find(builder.state, group.reduction, name(group.roles.vector),
                              name(group.roles.column));
  if (!group.panels) return;
  group.slow_remainders = !builder.cpu().masked_memory;
  add(kPanels, {Contraction::kNone, Contraction::kPhase, Contraction::kNear});
}

}  // namespace

// In the order in which points are encoded.
void add_decisions(SketchBuilder& builder, const StageInfo& e, const StageInfo& r, bool blocks,
                   Contraction& group) {
  const auto add = [&](TileDecisions::Role role, std::vector<int64_t> options, int64_t extent = 0,
                       bool scales = false) {
    group.decisions.add(builder, group.epilogue, role, std::move(options), extent, scales);
  };
  using Options = std::vector<int64_t>;
  const Extents all = group.whole();
  Options lanes = {group.lanes};
  if (group.lanes >= 8) lanes.insert(lanes.begin(), group.lanes / 2);
  add(kLanes, lanes);
  add(kVectors, vector_options(group, lanes));
  const int64_t groups = groups_of_vector(builder.cpu(), e, group);
  if (groups > 1) add(kJoin, {1, groups});
  if (leaves_rest(group)) add(kRest, {0, 1});
  if (group.roles.column >= 0) {
    add(kColumn, tile_options(all.columns, group.registers - 2), all.columns);
    add(kTail, {0, 1});
  }
  if (group.roles.row >= 0) add(kRow, tile_options(all.rows, 7), all.rows);
  if (group.roles.row >= 0 && !group.nested)
    add(kBlock, up_to(all.rows, {1, 2, 3, 4, 7, 8, 14, 16, 28, 32, 56, 112}), all.rows, true);
  // Under a mask each of several values is chosen once more; a product's or a pool's costs no more.
  if (r.stage.outputs.size() > 1 && !group.nested && !group.pad_vector) add(kLast, {0, 1});
  add(kOrder, group.by_rows ? Options{0} : Options{0, 1, 2});
  if (group.roles.groups >= 0) add(kGroups, {0, 1, 2});
  if (!group.nested) add(kParallel, group.by_rows ? Options{1} : Options{1, 2, 3, 4});
  const int64_t last = group.reduce.back().extent;
  add(kUnroll, up_to(last, {1, 2, 4, 8}));
  // One row: weights stream by, and the hardware's prefetchers, which stop at each page, are led to
  // the next one.
  if (!group.streamed.empty()) add(kAhead, {0, 8});
  // Unrolled taps share loads of a register tile's operands, which then outnumber the registers;
  // where every lane has its own data, or few channels, sharing is the point.
  if (group.taps() > 1 && (!group.reuses || last < 16)) add(kTaps, {0, 1});
  if (group.taps() > 1) add(kReduceOrder, {0, 1});
  if (blocks && !group.nested && !group.by_rows && !group.row_lanes)
    add_block_decisions(builder, r, group);
}

}  // namespace hone::space
