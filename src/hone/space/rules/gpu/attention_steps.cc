#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/attention.h"

namespace hone::space {

using schedule::Steps;
using schedule::Tail;

namespace {

constexpr int64_t kTerms = 4;          // of a sum that straight code adds: a vector of a row
constexpr int64_t kJoinThreads = 128;  // of a block that joins parts of keys
constexpr int64_t kMostJoined = 16;    // parts that straight code joins

// The loops of a sum over `terms` into a register tile.
void append_register_tile(const std::string& sums, std::vector<std::string> loops,
                          const std::string& terms, const std::vector<std::string>& tile,
                          Steps& steps) {
  steps.emplace_back(schedule::Split{sums, terms, {kTerms}, Tail::kPeel});
  loops.insert(loops.end(), {terms + ".0", terms + ".1"});
  loops.insert(loops.end(), tile.begin(), tile.end());
  steps.emplace_back(schedule::Reorder{sums, std::move(loops)});
  steps.emplace_back(schedule::Unroll{sums, terms + ".1"});
  for (const std::string& loop : tile) steps.emplace_back(schedule::Unroll{sums, loop});
}

}  // namespace

AttentionNames divide_keys(const Attention& attention, const std::string& sums,
                           int64_t tiles_of_part, Steps& steps) {
  AttentionNames names = {sums + ".rf", sums + ".rf.acc", attention.outer, attention.outer};
  steps.emplace_back(schedule::RFactor{sums, "t", tiles_of_part});
  steps.emplace_back(schedule::CacheWrite{names.root});
  for (auto* axes : {&names.outer_of_root, &names.outer_of_running})
    axes->insert(axes->begin(), "to");
  return names;
}

void append_join_of_keys(const Attention& attention, const std::string& sums, int64_t parts,
                         Steps& steps) {
  const std::string& result = attention.stage[kResult];
  std::vector<std::string> axes = attention.outer;
  axes.insert(axes.end(), {attention.query, attention.lane});
  steps.emplace_back(schedule::Reorder{result, axes});
  const std::string fused = fuse_loops(result, axes, steps), thread = fused + ".1";
  steps.emplace_back(schedule::Split{result, fused, {kJoinThreads}});
  steps.emplace_back(schedule::Parallel{result, fused + ".0"});
  steps.emplace_back(schedule::Bind{result, thread});
  steps.emplace_back(schedule::ComputeAt{sums, result, thread});
  steps.emplace_back(schedule::SetScope{sums, ir::Scope::kRegister});
  axes.insert(axes.begin(), "to");
  steps.emplace_back(schedule::Reorder{sums, std::move(axes)});
  if (parts <= kMostJoined) steps.emplace_back(schedule::Unroll{sums, "to"});
}

void GpuAttention::compute_at(const std::string& what, const Place& place, ir::Scope scope,
                              Steps& steps) {
  steps.emplace_back(schedule::ComputeAt{what, place.stage, place.loop});
  steps.emplace_back(schedule::SetScope{what, scope});
}

// The outer axes of a stage. Those of a tile of keys have its number, too.
std::vector<std::string> GpuAttention::outer_of(AttentionPart part) const {
  std::vector<std::string> axes = outer;
  if (!joined.empty() && part != kScores && part != kMasked) axes.insert(axes.begin(), "t");
  return axes;
}

AttentionNames GpuAttention::names(const Choice& choice, Steps& steps) const {
  if (choice[d_splits] > 1)
    return divide_keys(*this, joined, ceil_div(tiles(), choice[d_splits]), steps);
  return {stage[kResult], joined.empty() ? stage[kSums] : joined, outer, outer};
}

void GpuAttention::append_steps(const Choice& choice, Steps& steps) const {
  for (const AttentionPart part : {kMost, kTotal}) {
    steps.emplace_back(
        schedule::RFactor{stage[part], summed, choice[d_parts], schedule::Parts::kStrided});
    steps.emplace_back(schedule::CacheWrite{stage[part] + ".rf"});
  }
  const AttentionNames of = names(choice, steps);
  const int64_t slots = choice[d_depth];
  const std::string block = append_root(of, choice, steps);
  const Place all = {of.root, block}, tile = {of.running, "t"};
  const Place& around = joined.empty() ? all : tile;
  append_sums(of, choice, all, steps);
  if (!joined.empty()) append_part(of, steps);
  append_copy(copied_values, joined.empty() ? Place{stage[kSums], summed + ".0"} : tile,
              {summed, lane}, slots, choice, steps);
  append_row(kTotal, around, steps);
  append_scores(kWeights, choice, around, steps);
  append_row(kMost, around, steps);
  append_scores(kMasked, choice, around, steps);
  append_products(choice, steps);
  append_copy(copied_keys, joined.empty() ? Place{stage[kMasked], key + ".0"} : tile, key_dims(),
              slots, choice, steps);
  append_copy(copied_queries, all, {query, term}, 1, choice, steps);
  if (choice[d_splits] > 1) append_join_of_keys(*this, joined, choice[d_splits], steps);
}

// Returns the loop over blocks.
std::string GpuAttention::append_root(const AttentionNames& names, const Choice& choice,
                                      Steps& steps) const {
  const std::string& root = names.root;
  const int64_t queries_each = choice[d_sum_queries];
  steps.emplace_back(schedule::Split{root,
                                     query,
                                     {ceil_div(choice[d_rows], queries_each), queries_each},
                                     mask_moves ? Tail::kMask : Tail::kPad});
  steps.emplace_back(schedule::Split{
      root, lane, {choice[d_groups], channel_threads(choice), choice[d_lanes]}, Tail::kPad});
  std::vector<std::string> grid = names.outer_of_root, loops;
  grid.insert(grid.end(), {query + ".0", lane + ".0"});
  loops = grid;
  loops.insert(loops.end(), {query + ".1", lane + ".2", query + ".2", lane + ".1", lane + ".3"});
  steps.emplace_back(schedule::Reorder{root, std::move(loops)});
  const std::string block = fuse_loops(root, grid, steps);
  steps.emplace_back(schedule::Parallel{root, block});
  for (const char* of : {".1", ".2"})
    steps.emplace_back(schedule::Bind{root, (of[1] == '1' ? query : lane) + of});
  for (const std::string& loop : {query + ".2", lane + ".1"})
    steps.emplace_back(schedule::Unroll{root, loop});
  steps.emplace_back(schedule::Vectorize{root, lane + ".3"});
  return block;
}

// The sums over all keys, or over tiles of them, in registers of all threads.
void GpuAttention::append_sums(const AttentionNames& names, const Choice& choice,
                               const Place& place, Steps& steps) const {
  const std::string& sums = names.running;
  const int64_t t = channel_threads(choice), v = choice[d_lanes], rows = choice[d_sum_queries];
  compute_at(sums, place, ir::Scope::kFragment, steps);
  steps.emplace_back(schedule::Split{sums, query, {rows}});
  steps.emplace_back(schedule::Split{sums, lane, {t, v}});
  std::vector<std::string> terms = {"t"}, inside;
  if (joined.empty()) {
    append_layout(choice, steps);
    const int64_t straight = std::min(kTerms, choice[d_values]);
    steps.emplace_back(
        schedule::Split{sums, summed, {choice[d_values] / straight, straight}, Tail::kPeel});
    terms = {summed + ".0"}, inside = {summed + ".1", summed + ".2"};
  }
  std::vector<std::string> loops = names.outer_of_running;
  loops.insert(loops.end(), terms.begin(), terms.end());
  loops.insert(loops.end(), {query + ".0", lane + ".1"});
  loops.insert(loops.end(), inside.begin(), inside.end());
  loops.insert(loops.end(), {query + ".1", lane + ".0", lane + ".2"});
  steps.emplace_back(schedule::Reorder{sums, std::move(loops)});
  for (const std::string& loop : {query + ".0", lane + ".1"})
    steps.emplace_back(schedule::Bind{sums, loop});
  if (!inside.empty()) steps.emplace_back(schedule::Unroll{sums, inside.back()});
  for (const std::string& loop : {query + ".1", lane + ".0", lane + ".2"})
    steps.emplace_back(schedule::Unroll{sums, loop});
}

void GpuAttention::append_layout(const Choice& choice, Steps& steps) const {
  const int64_t t = channel_threads(choice), v = choice[d_lanes], rows = choice[d_sum_queries];
  std::vector<std::string> dims = {quotient(query, rows)};
  dims.push_back(choice[d_groups] > 1 ? remainder(quotient(lane, v), t) : quotient(lane, v));
  dims.insert(dims.end(), outer.begin(), outer.end());
  dims.push_back(remainder(query, rows));
  if (choice[d_groups] > 1) dims.push_back(quotient(lane, t * v));
  dims.push_back(remainder(lane, v));
  steps.emplace_back(schedule::Layout{stage[kSums], std::move(dims)});
}

// The sums over one tile of keys, by the threads that join them.
void GpuAttention::append_part(const AttentionNames& names, Steps& steps) const {
  compute_at(stage[kSums], {names.running, lane + ".1"}, ir::Scope::kRegister, steps);
  append_register_tile(stage[kSums], outer_of(kSums), summed, {query, lane}, steps);
}

// Scores of a block in shared memory, those of a tile of keys at a time.
void GpuAttention::append_scores(AttentionPart part, const Choice& choice, const Place& place,
                                 Steps& steps) const {
  const std::string& scores = stage[part];
  compute_at(scores, place, ir::Scope::kShared, steps);
  steps.emplace_back(schedule::Split{scores, query, {choice[d_queries]}});
  std::vector<int64_t> lengths = {choice[d_columns], choice[d_vector]};
  if (keys_are_rows) std::swap(lengths[0], lengths[1]);
  const std::string thread = key + (keys_are_rows ? ".2" : ".1");
  const std::string each = key + (keys_are_rows ? ".1" : ".2");
  steps.emplace_back(
      schedule::Split{scores, key, std::move(lengths), part == kMasked ? Tail::kPad : Tail::kMask});
  std::vector<std::string> dims = outer_of(part), loops = dims;
  dims.insert(dims.end(), {query, key + fmt::format("+{}", padding(score_bytes))});
  steps.emplace_back(schedule::Layout{scores, std::move(dims)});
  loops.insert(loops.end(), {key + ".0", query + ".0", thread, query + ".1", each});
  steps.emplace_back(schedule::Reorder{scores, std::move(loops)});
  for (const std::string& loop : {query + ".0", thread})
    steps.emplace_back(schedule::Bind{scores, loop});
  steps.emplace_back(schedule::Unroll{scores, query + ".1"});
  if (keys_are_rows)
    steps.emplace_back(schedule::Unroll{scores, each});
  else
    steps.emplace_back(schedule::Vectorize{scores, each});
}

// The register tile of scores.
void GpuAttention::append_products(const Choice& choice, Steps& steps) const {
  const std::string& scores = stage[kScores];
  const int64_t rows = choice[d_queries], t = choice[d_columns], v = choice[d_vector];
  compute_at(scores, {stage[kMasked], key + ".0"}, ir::Scope::kFragment, steps);
  steps.emplace_back(schedule::Split{scores, query, {rows}});
  steps.emplace_back(schedule::Split{scores, key, {keys_are_rows ? t : v}});
  const std::string thread = key + (keys_are_rows ? ".1" : ".0");
  const std::string each = key + (keys_are_rows ? ".0" : ".1");
  std::vector<std::string> dims = {quotient(query, rows)}, loops = outer;
  dims.push_back(keys_are_rows ? remainder(key, t) : quotient(key, v));
  dims.insert(dims.end(), outer.begin(), outer.end());
  dims.push_back(remainder(query, rows));
  dims.push_back(keys_are_rows ? quotient(key, t) : remainder(key, v));
  steps.emplace_back(schedule::Layout{scores, std::move(dims)});
  loops.insert(loops.end(), {query + ".0", thread});
  append_register_tile(scores, std::move(loops), term, {query + ".1", each}, steps);
  for (const std::string& loop : {query + ".0", thread})
    steps.emplace_back(schedule::Bind{scores, loop});
}

// A maximum or sum of each row: partial results of which neighbouring threads take neighbouring
// terms, and a thread that joins them.
void GpuAttention::append_row(AttentionPart part, const Place& at, Steps& steps) const {
  const std::string parts = stage[part] + ".rf", each = summed + "i";
  const auto place = [&](const std::string& what, const std::vector<std::string>& bound,
                         const std::string& inside) {
    compute_at(what, at, ir::Scope::kShared, steps);
    std::vector<std::string> loops = outer_of(part);
    loops.insert(loops.end(), bound.begin(), bound.end());
    if (!inside.empty()) loops.push_back(inside);
    if (loops.size() > 1) steps.emplace_back(schedule::Reorder{what, std::move(loops)});
    for (const std::string& loop : bound) steps.emplace_back(schedule::Bind{what, loop});
  };
  place(stage[part], {query}, each);
  place(parts, {query, each}, "");
  compute_at(parts + ".acc", {parts, each}, ir::Scope::kRegister, steps);
}

// Points of an axis that a copy has at a time.
int64_t GpuAttention::points_of(const std::string& axis, const Choice& choice) const {
  if (axis == query) return choice[d_rows];
  if (axis == key) return std::min(copied_keys_at_once(choice), keys);
  if (axis == term) return depth;
  if (axis == summed) return values_at_once(choice);
  return axis == lane ? channels : 1;
}

std::vector<std::string> GpuAttention::key_dims() const {
  return keys_are_rows ? std::vector<std::string>{key, term} : std::vector<std::string>{term, key};
}

SharedCopy GpuAttention::copy_of(const AttentionOperand& operand, const std::string& last,
                                 int64_t slots, const Choice& choice) const {
  const std::string& axis = operand.axes.back();
  SharedCopy copy = {.stage = operand.stage, .axes = operand.axes, .threads = threads(choice)};
  copy.vector = axis == last && operand.is_whole ? kVectorBytes / operand.bytes : 1;
  const int64_t whole = axis == key || axis == summed ? all_keys : points_of(axis, choice);
  while (copy.vector > 1 &&
         (points_of(axis, choice) % copy.vector != 0 || whole % copy.vector != 0))
    copy.vector /= 2;
  for (const std::string& each : operand.axes) copy.elements *= points_of(each, choice);
  copy.depth = slots;
  if (!gpu.async_copy || !operand.is_plain || copy.vector * operand.bytes < kLeastAsync)
    copy.transport = schedule::Transport::kRegisters;
  return copy;
}

// `dims`: the order of the last two axes in shared memory.
void GpuAttention::append_copy(const AttentionOperand& operand, const Place& place,
                               const std::vector<std::string>& dims, int64_t slots,
                               const Choice& choice, Steps& steps) const {
  SharedCopy copy = copy_of(operand, dims.back(), slots, choice);
  copy.reader = place.stage, copy.loop = place.loop;
  for (const std::string& axis : operand.axes) {
    if (std::find(dims.begin(), dims.end(), axis) == dims.end()) copy.dims.push_back(axis);
  }
  copy.dims.insert(copy.dims.end(), dims.begin(), dims.end());
  copy.pad = padding(operand.bytes);
  space::append_copy(copy, steps);
}

}  // namespace hone::space
