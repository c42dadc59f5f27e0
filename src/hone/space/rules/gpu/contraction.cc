#include "hone/space/rules/gpu/contraction.h"

#include <algorithm>
#include <cmath>

#include "hone/base/round_up.h"

namespace hone::space {

using schedule::Steps;

namespace {

constexpr int64_t kSpareRegisters = 24;  // of a thread: addresses, counters, values loaded early
// Multiply-adds of a warp that an SM has at a time, at least, so that it waits for none of them.
constexpr double kInFlight = 40;
constexpr int64_t kMostUnrolled = 1024;  // multiply-adds in the straight-line code of a chunk
constexpr int64_t kMostCopies = 16;      // copies of a thread in straight-line code
constexpr int64_t kBankBytes = 16;       // rows in shared memory are so far apart in banks

// Threads along an axis whose points in registers are `registers`, if its tile covers the axis.
int64_t threads_along(int64_t extent, int64_t threads, int64_t registers) {
  return std::min(threads, ceil_div(extent, registers));
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

int64_t GpuContraction::tile(const BlockAxis& axis, const Choice& choice) const {
  const int64_t whole = &axis == &column
                            ? choice[column.d_threads] * choice[d_vector] * choice[d_blocks]
                            : choice[axis.d_threads] * choice[axis.d_registers];
  return std::min(whole, axis.extent);
}

int64_t GpuContraction::column_threads(const Choice& choice) const {
  return threads_along(column.extent, choice[column.d_threads], choice[d_vector]);
}

int64_t GpuContraction::threads(const Choice& choice) const {
  int64_t threads = column_threads(choice);
  for (const BlockAxis& axis : rows)
    threads *= threads_along(axis.extent, choice[axis.d_threads], choice[axis.d_registers]);
  return threads;
}

int64_t GpuContraction::row_registers(const Choice& choice) const {
  int64_t product = 1;
  for (const BlockAxis& axis : rows) product *= choice[axis.d_registers];
  return product;
}

int64_t GpuContraction::column_registers(const Choice& choice) const {
  return choice[d_vector] * choice[d_blocks];
}

int64_t GpuContraction::registers(const Choice& choice) const {
  const int64_t r = row_registers(choice), c = column_registers(choice);
  return r * c + r + c + kSpareRegisters;
}

int64_t GpuContraction::points_in_chunk(const std::string& axis, const Choice& choice) const {
  if (axis == sum.var->name) return std::min(choice[d_chunk], sum.extent);
  if (axis == column.in_sum) return tile(column, choice);
  for (const BlockAxis& row : rows) {
    if (row.in_sum == axis) return tile(row, choice);
  }
  const auto inside = static_cast<size_t>(choice.or_zero(d_taps));
  for (size_t i = taps.size() - inside; i < taps.size(); ++i) {
    if (taps[i].var->name == axis) return taps[i].extent;
  }
  return 1;
}

int64_t GpuContraction::shared_bytes(const Choice& choice) const {
  int64_t bytes = 0;
  for (const OperandCopy& copy : copies) {
    if (!is_shared(copy, choice)) continue;
    const int64_t pad = copy.layout.back() == copy.axes.back() ? 0 : kBankBytes;
    int64_t rows_of_copy = 1;
    for (const std::string& axis : copy.axes) {
      if (axis != copy.layout.back()) rows_of_copy *= points_in_chunk(axis, choice);
    }
    bytes +=
        rows_of_copy * (points_in_chunk(copy.layout.back(), choice) * copy.element_bytes + pad);
  }
  return bytes;
}

bool GpuContraction::legal(const Choice& choice) const {
  for (const BlockAxis& axis : rows) {
    const int64_t t = choice[axis.d_threads], r = choice[axis.d_registers];
    if ((t - 1) * r >= axis.extent) return false;
  }
  const int64_t t = choice[column.d_threads], v = choice[d_vector], blocks = choice[d_blocks];
  if ((t - 1) * v >= column.extent) return false;
  if (blocks > 1 && t * v * (blocks - 1) >= column.extent) return false;
  const int64_t n = threads(choice), per_thread = registers(choice);
  const bool registers_fit = gpu.registers_per_sm == 0 || n * per_thread <= gpu.registers_per_sm;
  return n > 1 && n <= gpu.threads_per_block && per_thread <= gpu.registers_per_thread &&
         registers_fit && shared_bytes(choice) <= gpu.shared_bytes;
}

// Cycles of the SM with most blocks: multiply-adds, reads of shared memory and copies of a block,
// with so many threads that latencies are hidden, or fewer.
double GpuContraction::estimate(const Choice& choice) const {
  const double warps = static_cast<double>(ceil_div(threads(choice), gpu.warp));
  const auto r = static_cast<double>(row_registers(choice));
  const auto c = static_cast<double>(column_registers(choice));
  double blocks = static_cast<double>(outer_points) *
                  static_cast<double>(ceil_div(column.extent, tile(column, choice)));
  double tile_rows = 1;
  for (const BlockAxis& axis : rows) {
    blocks *= static_cast<double>(ceil_div(axis.extent, tile(axis, choice)));
    tile_rows *= static_cast<double>(tile(axis, choice));
  }
  double terms = static_cast<double>(sum.extent);
  for (const compute::Axis& axis : taps) terms *= static_cast<double>(axis.extent);
  const double arithmetic = warps * r * c * gpu.warp / gpu.fma_per_cycle;
  // A row's element is one for all lanes; columns are read by as many instructions as vectors.
  const auto v = static_cast<double>(choice[d_vector]);
  const double reads = warps * (std::ceil(r / 4) + c + c / v);
  const double copied = (tile_rows + static_cast<double>(tile(column, choice))) * 4 /
                        static_cast<double>(gpu.l2_bytes_per_cycle);
  const double per_sm = std::ceil(blocks / gpu.sms);
  const double resident =
      warps * std::min({per_sm, static_cast<double>(gpu.warps_per_sm) / warps,
                        static_cast<double>(gpu.shared_bytes_per_sm) /
                            static_cast<double>(std::max<int64_t>(shared_bytes(choice), 1))});
  const double busy = std::min(1.0, resident * std::min(r * c, 8.0) / kInFlight);
  const double chunks = terms / static_cast<double>(choice[d_chunk]);
  const double barriers = 40 * chunks;
  return per_sm * (terms * std::max(arithmetic, reads) + terms * copied + barriers) / busy;
}

void GpuContraction::find_usual(const std::vector<Decision>& decisions) {
  std::vector<int> indices(decisions.size(), 0);
  MutableChoice choice(decisions, indices);
  for (const DecisionId d : {d_chunk, d_taps}) {
    if (d.is_open()) order.push_back(d);
  }
  std::vector<DecisionId> tiles;
  for (const BlockAxis& axis : rows) tiles.insert(tiles.end(), {axis.d_threads, axis.d_registers});
  for (const DecisionId d : {column.d_threads, d_vector, d_blocks}) tiles.push_back(d);
  std::erase_if(tiles, [](DecisionId d) { return !d.is_open(); });
  choice.set(d_chunk, 8);
  for (const OperandCopy& copy : copies) choice.set_index(copy.d_shared, 0);
  double best = INFINITY;
  std::vector<int> found = indices;
  const auto search = [&](const auto& self, size_t i) -> void {
    if (i == tiles.size()) {
      if (!legal(choice)) return;
      if (const double cycles = estimate(choice); cycles < best) best = cycles, found = indices;
      return;
    }
    for (size_t o = 0; o < choice.options(tiles[i]).size(); ++o) {
      choice.set_index(tiles[i], static_cast<int>(o));
      self(self, i + 1);
    }
  };
  search(search, 0);
  indices = found;
  order.insert(order.end(), tiles.begin(), tiles.end());
  for (const OperandCopy& copy : copies) {
    if (copy.d_shared.is_open()) order.push_back(copy.d_shared);
  }
  for (const DecisionId d : order) usual.push_back(choice[d]);
}

void GpuContraction::set_default(MutableChoice& choice) const {
  for (size_t i = 0; i < order.size(); ++i) choice.set(order[i], usual[i]);
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
  std::string block;
  append_epilogue(choice, steps, block);
  append_sum(choice, block, steps);
  for (const OperandCopy& copy : copies) {
    if (is_shared(copy, choice)) append_copy(copy, choice, steps);
  }
}

void GpuContraction::append_epilogue(const Choice& choice, Steps& steps, std::string& block) const {
  std::vector<std::string> grid, threads, tile;
  for (const auto& [name, in_sum] : outer) grid.push_back(name);
  for (const BlockAxis& axis : rows) {
    steps.emplace_back(schedule::Split{epilogue,
                                       axis.name,
                                       {choice[axis.d_threads], choice[axis.d_registers]},
                                       tail_of(axis, choice)});
    grid.push_back(axis.name + ".0");
    threads.push_back(axis.name + ".1");
    tile.push_back(axis.name + ".2");
  }
  const std::string& c = column.name;
  steps.emplace_back(schedule::Split{epilogue,
                                     c,
                                     {choice[d_blocks], choice[column.d_threads], choice[d_vector]},
                                     tail_of(column, choice)});
  grid.push_back(c + ".0");
  tile.push_back(c + ".1");
  threads.push_back(c + ".2");
  std::vector<std::string> loops = grid;
  loops.insert(loops.end(), threads.begin(), threads.end());
  loops.insert(loops.end(), tile.begin(), tile.end());
  loops.push_back(c + ".3");
  steps.emplace_back(schedule::Reorder{epilogue, std::move(loops)});
  block = fuse_loops(epilogue, grid, steps);
  steps.emplace_back(schedule::Parallel{epilogue, block});
  for (const std::string& loop : threads) steps.emplace_back(schedule::Bind{epilogue, loop});
  for (const std::string& loop : tile) steps.emplace_back(schedule::Unroll{epilogue, loop});
  steps.emplace_back(schedule::Vectorize{epilogue, c + ".3"});
}

void GpuContraction::append_sum(const Choice& choice, const std::string& block,
                                Steps& steps) const {
  const std::string& r = reduction;
  steps.emplace_back(schedule::ComputeAt{r, epilogue, block});
  steps.emplace_back(schedule::SetScope{r, ir::Scope::kFragment});
  std::vector<std::string> dims, in_tile, threads, tile, loops;
  for (const auto& [name, in_sum] : outer) loops.push_back(in_sum), in_tile.push_back(in_sum);
  for (const BlockAxis& axis : rows) {
    const int64_t registers = choice[axis.d_registers];
    steps.emplace_back(schedule::Split{r, axis.in_sum, {registers}});
    dims.push_back(quotient(axis.in_sum, registers));
    in_tile.push_back(remainder(axis.in_sum, registers));
    threads.push_back(axis.in_sum + ".0");
    tile.push_back(axis.in_sum + ".1");
  }
  const std::string& c = column.in_sum;
  const int64_t t = choice[column.d_threads], v = choice[d_vector];
  steps.emplace_back(schedule::Split{r, c, {t, v}});
  if (choice[d_blocks] > 1) {
    dims.push_back(remainder(quotient(c, v), t));
    in_tile.push_back(quotient(c, t * v));
  } else {
    dims.push_back(quotient(c, v));
  }
  in_tile.push_back(remainder(c, v));
  dims.insert(dims.end(), in_tile.begin(), in_tile.end());
  steps.emplace_back(schedule::Layout{r, std::move(dims)});
  threads.push_back(c + ".1");
  tile.insert(tile.end(), {c + ".0", c + ".2"});
  const std::string& k = sum.var->name;
  steps.emplace_back(schedule::Split{r, k, {choice[d_chunk]}, schedule::Tail::kPeel});
  const size_t outside = taps.size() - static_cast<size_t>(choice.or_zero(d_taps));
  for (size_t i = 0; i < outside; ++i) loops.push_back(taps[i].var->name);
  loops.push_back(k + ".0");
  loops.insert(loops.end(), threads.begin(), threads.end());
  int64_t terms = choice[d_chunk];
  for (size_t i = outside; i < taps.size(); ++i) {
    loops.push_back(taps[i].var->name);
    terms *= taps[i].extent;
  }
  loops.push_back(k + ".1");
  loops.insert(loops.end(), tile.begin(), tile.end());
  steps.emplace_back(schedule::Reorder{r, std::move(loops)});
  for (const std::string& loop : threads) steps.emplace_back(schedule::Bind{r, loop});
  if (terms * row_registers(choice) * column_registers(choice) <= kMostUnrolled) {
    for (size_t i = outside; i < taps.size(); ++i)
      steps.emplace_back(schedule::Unroll{r, taps[i].var->name});
    steps.emplace_back(schedule::Unroll{r, k + ".1"});
  }
  for (const std::string& loop : tile) steps.emplace_back(schedule::Unroll{r, loop});
}

void GpuContraction::append_copy(const OperandCopy& copy, const Choice& choice,
                                 Steps& steps) const {
  steps.emplace_back(schedule::ComputeAt{copy.stage, reduction, sum.var->name + ".0"});
  steps.emplace_back(schedule::SetScope{copy.stage, ir::Scope::kShared});
  std::vector<std::string> dims = copy.layout;
  if (copy.layout.back() != copy.axes.back())
    dims.back() += fmt::format("+{}", kBankBytes / copy.element_bytes);
  if (dims.size() > 1 || dims[0] != copy.layout[0])
    steps.emplace_back(schedule::Layout{copy.stage, std::move(dims)});
  std::vector<std::string> loops = copy.axes;
  int64_t elements = 1;
  for (const std::string& axis : copy.axes) elements *= points_in_chunk(axis, choice);
  const int64_t row = points_in_chunk(copy.axes.back(), choice);
  int64_t vector = copy.vector;
  while (vector > 1 && (row % vector != 0 || copy.source_row % vector != 0)) vector /= 2;
  const std::string lane = copy.axes.back() + ".1";
  if (vector > 1) {
    steps.emplace_back(schedule::Split{copy.stage, copy.axes.back(), {vector}});
    loops.back() += ".0";
  }
  if (loops.size() > 1) {
    steps.emplace_back(schedule::Reorder{copy.stage, loops});
    if (vector > 1) std::get<schedule::Reorder>(steps.back()).loops.push_back(lane);
  }
  const std::string fused = fuse_loops(copy.stage, loops, steps);
  const int64_t in_block = threads(choice);
  steps.emplace_back(schedule::Split{copy.stage, fused, {in_block}});
  steps.emplace_back(schedule::Reorder{copy.stage, {fused + ".1", fused + ".0"}});
  steps.emplace_back(schedule::Bind{copy.stage, fused + ".1"});
  if (ceil_div(elements, in_block * vector) <= kMostCopies)
    steps.emplace_back(schedule::Unroll{copy.stage, fused + ".0"});
  if (vector > 1) steps.emplace_back(schedule::Vectorize{copy.stage, lane});
}

}  // namespace hone::space
