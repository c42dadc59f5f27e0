// The steps of a point of GpuContraction.
#include <algorithm>

#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/contraction.h"
#include "hone/space/rules/gpu/copies.h"

namespace hone::space {

using schedule::Steps;

namespace {

constexpr int64_t kJoinThreads = 128;  // of a block that joins parts

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void bind_loops(const std::string& stage, const std::vector<std::string>& loops, Steps& steps) {
  for (const std::string& loop : loops) steps.emplace_back(schedule::Bind{stage, loop});
}

void unroll_loops(const std::string& stage, const std::vector<std::string>& loops, Steps& steps) {
  for (const std::string& loop : loops) steps.emplace_back(schedule::Unroll{stage, loop});
}

// Loops over threads, those of the rows before those of the columns: warps, then lanes.
std::vector<std::string> interleaved(const std::vector<std::string>& rows,
                                     const std::vector<std::string>& columns) {
  if (columns.size() == 1) {
    std::vector<std::string> all = rows;
    all.push_back(columns[0]);
    return all;
  }
  std::vector<std::string> all(rows.begin(), rows.end() - 1);
  all.insert(all.end(), {columns[0], rows.back(), columns[1]});
  return all;
}

}  // namespace

ContractionNames GpuContraction::names(const Choice& choice) const {
  const bool has_slices = choice[d_slices] > 1;
  if (choice[d_parts] == 1 && !has_slices) return {epilogue, reduction, outer};
  const std::string part = reduction + ".rf", each = sum.var->name + (has_slices ? "i" : "o");
  ContractionNames made{part, part + ".acc", {}, true};
  if (has_slices)
    made.slice = each;
  else
    made.outer = {{each, each}};
  for (const auto& [name, in_sum] : outer) made.outer.emplace_back(in_sum, in_sum);
  return made;
}

schedule::Tail GpuContraction::tail_of(const BlockAxis& axis, const Choice& choice) const {
  const bool is_direct =
      axis.is_read || std::any_of(copies.begin(), copies.end(), [&](const OperandCopy& copy) {
        return contains(copy.axes, axis.in_sum) && !is_shared(copy, choice);
      });
  return is_direct ? schedule::Tail::kMask : schedule::Tail::kPad;
}

void GpuContraction::append_steps(const Choice& choice, Steps& steps) const {
  for (const OperandCopy& copy : copies) {
    if (!is_shared(copy, choice)) steps.emplace_back(schedule::Inline{copy.stage});
  }
  const ContractionNames used = names(choice);
  const bool has_slices = !used.slice.empty();
  if (used.is_part) {
    steps.emplace_back(schedule::RFactor{
        reduction, sum.var->name, has_slices ? choice[d_slices] : sum.extent / choice[d_parts],
        has_slices ? schedule::Parts::kStrided : schedule::Parts::kBlocks});
    steps.emplace_back(schedule::CacheWrite{used.epilogue});
  }
  std::string block;
  if (has_slices) {
    block = append_block_join(choice, steps);
    steps.emplace_back(schedule::ComputeAt{used.epilogue, epilogue, block});
    steps.emplace_back(schedule::SetScope{used.epilogue, ir::Scope::kShared});
  }
  append_epilogue(used, choice, steps, block);
  const std::string chunks = append_sum(used, block, choice, steps);
  for (const OperandCopy& copy : copies) {
    if (is_shared(copy, choice)) append_copy(copy, used, chunks, choice, steps);
  }
  if (used.is_part && !has_slices) append_join(steps);
}

void GpuContraction::append_epilogue(const ContractionNames& names, const Choice& choice,
                                     Steps& steps, std::string& block) const {
  const std::string& e = names.epilogue;
  const Lanes warp = lanes(choice);
  std::vector<std::string> grid, row_loops, tile;
  for (const auto& [name, in_sum] : names.outer) grid.push_back(name);
  for (const BlockAxis& axis : rows) {
    const std::string& name = names.is_part ? axis.in_sum : axis.name;
    const bool is_split = warp.rows > 0 && &axis == &rows.back();
    std::vector<int64_t> lengths = {choice[axis.d_threads], choice[axis.d_registers]};
    if (is_split) lengths = {lengths[0] / warp.rows, warp.rows, lengths[1]};
    grid.push_back(name + ".0");
    row_loops.push_back(name + ".1");
    if (is_split) row_loops.push_back(name + ".2");
    tile.push_back(name + (is_split ? ".3" : ".2"));
    steps.emplace_back(schedule::Split{e, name, std::move(lengths), tail_of(axis, choice)});
  }
  const std::string& c = names.is_part ? column.in_sum : column.name;
  std::vector<int64_t> lengths = {choice[d_blocks], choice[column.d_threads], choice[d_vector]};
  std::vector<std::string> column_loops = {c + ".2"};
  std::string vector = c + ".3";
  if (warp.rows > 0) {
    lengths = {lengths[0], lengths[1] / warp.columns, warp.columns, lengths[2]};
    column_loops.push_back(vector);
    vector = c + ".4";
  }
  steps.emplace_back(schedule::Split{e, c, std::move(lengths), tail_of(column, choice)});
  grid.push_back(c + ".0");
  tile.push_back(c + ".1");
  std::vector<std::string> threads = interleaved(row_loops, column_loops);
  if (!names.slice.empty()) threads.insert(threads.begin(), names.slice);
  std::vector<std::string> loops = grid;
  loops.insert(loops.end(), threads.begin(), threads.end());
  loops.insert(loops.end(), tile.begin(), tile.end());
  loops.push_back(vector);
  steps.emplace_back(schedule::Reorder{e, std::move(loops)});
  block = fuse_loops(e, grid, steps);
  if (names.slice.empty()) steps.emplace_back(schedule::Parallel{e, block});
  bind_loops(e, threads, steps);
  unroll_loops(e, tile, steps);
  steps.emplace_back(schedule::Vectorize{e, vector});
}

// Splits R's axes as E's are; the fragment's leading dimensions are the loops over threads.
GpuContraction::Tile GpuContraction::append_tile(const ContractionNames& names,
                                                 const Choice& choice, Steps& steps) const {
  const std::string& r = names.reduction;
  const Lanes warp = lanes(choice);
  std::vector<std::string> row_dims, row_loops, column_dims, column_loops, in_tile, tile;
  for (const auto& [name, in_sum] : names.outer) in_tile.push_back(in_sum);
  for (const BlockAxis& axis : rows) {
    const int64_t registers = choice[axis.d_registers];
    const std::string& name = axis.in_sum;
    in_tile.push_back(remainder(name, registers));
    if (warp.rows > 0 && &axis == &rows.back()) {
      steps.emplace_back(schedule::Split{r, name, {warp.rows, registers}});
      row_dims.push_back(quotient(name, warp.rows * registers));
      row_dims.push_back(remainder(quotient(name, registers), warp.rows));
      row_loops.insert(row_loops.end(), {name + ".0", name + ".1"});
      tile.push_back(name + ".2");
      continue;
    }
    steps.emplace_back(schedule::Split{r, name, {registers}});
    row_dims.push_back(quotient(name, registers));
    row_loops.push_back(name + ".0");
    tile.push_back(name + ".1");
  }
  const std::string& c = column.in_sum;
  const int64_t t = choice[column.d_threads], v = choice[d_vector];
  const bool has_blocks = choice[d_blocks] > 1;
  if (warp.rows > 0) {
    const int64_t lanes = warp.columns;
    steps.emplace_back(schedule::Split{r, c, {t / lanes, lanes, v}});
    const std::string of_warp = quotient(c, lanes * v);
    column_dims = {has_blocks ? remainder(of_warp, t / lanes) : of_warp,
                   remainder(quotient(c, v), lanes)};
    column_loops = {c + ".1", c + ".2"};
    tile.insert(tile.end(), {c + ".0", c + ".3"});
  } else {
    steps.emplace_back(schedule::Split{r, c, {t, v}});
    column_dims = {has_blocks ? remainder(quotient(c, v), t) : quotient(c, v)};
    column_loops = {c + ".1"};
    tile.insert(tile.end(), {c + ".0", c + ".2"});
  }
  if (has_blocks) in_tile.push_back(quotient(c, t * v));
  in_tile.push_back(remainder(c, v));
  std::vector<std::string> dims = interleaved(row_dims, column_dims);
  std::vector<std::string> loops = interleaved(row_loops, column_loops);
  if (!names.slice.empty()) {
    dims.insert(dims.begin(), names.slice);
    loops.insert(loops.begin(), names.slice);
  }
  dims.insert(dims.end(), in_tile.begin(), in_tile.end());
  steps.emplace_back(schedule::Layout{r, std::move(dims)});
  return {std::move(loops), std::move(tile)};
}

std::string GpuContraction::append_sum(const ContractionNames& names, const std::string& block,
                                       const Choice& choice, Steps& steps) const {
  const std::string &r = names.reduction, &k = sum.var->name;
  steps.emplace_back(schedule::ComputeAt{r, names.epilogue, block});
  steps.emplace_back(schedule::SetScope{r, ir::Scope::kFragment});
  const auto [threads, tile] = append_tile(names, choice, steps);
  const bool works_ahead = choice[d_depth] > 1;
  // A loop of taps and chunks is no loop of chunks alone, whose last one could be peeled.
  const size_t outside = taps.size() - static_cast<size_t>(choice.or_zero(d_taps));
  const bool is_whole = terms_of_thread(choice) % choice[d_chunk] == 0;
  const bool is_fused = works_ahead && outside > 0;
  steps.emplace_back(
      schedule::Split{r,
                      k,
                      {choice[d_chunk]},
                      is_whole || is_fused ? schedule::Tail::kMask : schedule::Tail::kPeel});
  std::vector<std::string> loops, outer_loops;
  for (size_t i = 0; i < outside; ++i) outer_loops.push_back(taps[i].var->name);
  outer_loops.push_back(k + ".0");
  for (const auto& [name, in_sum] : names.outer) loops.push_back(in_sum);
  loops.insert(loops.end(), outer_loops.begin(), outer_loops.end());
  loops.insert(loops.end(), threads.begin(), threads.end());
  for (size_t i = outside; i < taps.size(); ++i) loops.push_back(taps[i].var->name);
  loops.push_back(k + ".1");
  loops.insert(loops.end(), tile.begin(), tile.end());
  steps.emplace_back(schedule::Reorder{r, std::move(loops)});
  const std::string chunks = is_fused ? fuse_loops(r, outer_loops, steps) : outer_loops.back();
  bind_loops(r, threads, steps);
  if (terms_in_chunk(choice) * row_registers(choice) * column_registers(choice) <= kMostUnrolled) {
    for (size_t i = outside; i < taps.size(); ++i)
      steps.emplace_back(schedule::Unroll{r, taps[i].var->name});
    steps.emplace_back(schedule::Unroll{r, k + ".1"});
  }
  unroll_loops(r, tile, steps);
  return chunks;
}

void GpuContraction::append_copy(const OperandCopy& copy, const ContractionNames& names,
                                 const std::string& loop, const Choice& choice,
                                 Steps& steps) const {
  SharedCopy made{copy.stage, names.reduction, loop, copy.layout, copy.axes};
  if (copy.layout.back() != copy.axes.back()) made.pad = kBankBytes / copy.element_bytes;
  made.elements = elements(copy, choice);
  made.threads = threads(choice);
  const int64_t row = points_in_chunk(copy.axes.back(), choice);
  made.vector = copy.vector;
  while (made.vector > 1 && (row % made.vector != 0 || copy.source_row % made.vector != 0))
    made.vector /= 2;
  made.depth = choice[d_depth];
  if (!copy.is_async) made.transport = schedule::Transport::kRegisters;
  if (made.depth > 1 && !copy.is_async) made.most_unrolled = made.elements;
  space::append_copy(made, steps);
}

void GpuContraction::append_join(Steps& steps) const {
  std::vector<std::string> loops = axes, order;
  const std::string lane = axes.back() + ".1";
  if (join_vector > 1) {
    steps.emplace_back(schedule::Split{epilogue, axes.back(), {join_vector}});
    loops.back() += ".0";
  }
  order = loops;
  if (join_vector > 1) order.push_back(lane);
  if (order.size() > 1) steps.emplace_back(schedule::Reorder{epilogue, std::move(order)});
  const std::string fused = fuse_loops(epilogue, loops, steps), thread = fused + ".1";
  steps.emplace_back(schedule::Split{epilogue, fused, {kJoinThreads}});
  steps.emplace_back(schedule::Parallel{epilogue, fused + ".0"});
  steps.emplace_back(schedule::Bind{epilogue, thread});
  if (join_vector > 1) steps.emplace_back(schedule::Vectorize{epilogue, lane});
  steps.emplace_back(schedule::ComputeAt{reduction, epilogue, thread});
  steps.emplace_back(schedule::SetScope{reduction, ir::Scope::kRegister});
  if (join_vector == 1) return;
  steps.emplace_back(schedule::Reorder{reduction, {sum.var->name + "o", column.in_sum}});
  steps.emplace_back(schedule::Vectorize{reduction, column.in_sum});
}

std::string GpuContraction::append_block_join(const Choice& choice, Steps& steps) const {
  const std::string &e = epilogue, &c = column.name;
  std::vector<std::string> grid, tile;
  for (const auto& [name, in_sum] : outer) grid.push_back(name);
  for (const BlockAxis& axis : rows) {
    steps.emplace_back(schedule::Split{
        e, axis.name, {choice[axis.d_threads] * choice[axis.d_registers]}, tail_of(axis, choice)});
    grid.push_back(axis.name + ".0");
    tile.push_back(axis.name + ".1");
  }
  const int64_t vector = choice[d_vector];
  steps.emplace_back(schedule::Split{
      e, c, {choice[d_blocks] * choice[column.d_threads], vector}, tail_of(column, choice)});
  grid.push_back(c + ".0");
  tile.push_back(c + ".1");
  const std::string lane = c + ".2";
  std::vector<std::string> loops = grid;
  loops.insert(loops.end(), tile.begin(), tile.end());
  loops.push_back(lane);
  steps.emplace_back(schedule::Reorder{e, std::move(loops)});
  std::string block = fuse_loops(e, grid, steps);
  steps.emplace_back(schedule::Parallel{e, block});
  const std::string points =
      append_threads(e, tile, tile_points(choice) / vector, threads(choice), kMostCopies, steps);
  steps.emplace_back(schedule::Vectorize{e, lane});
  const std::string &r = reduction, slice = sum.var->name + "i";
  steps.emplace_back(schedule::ComputeAt{r, e, points});
  steps.emplace_back(schedule::SetScope{r, ir::Scope::kRegister});
  steps.emplace_back(schedule::Reorder{r, {slice, column.in_sum}});
  steps.emplace_back(schedule::Unroll{r, slice});
  steps.emplace_back(schedule::Vectorize{r, column.in_sum});
  return block;
}

}  // namespace hone::space
