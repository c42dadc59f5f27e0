#include "hone/space/rules/gpu/matrix.h"

#include <algorithm>
#include <cmath>

#include "hone/base/round_up.h"
#include "hone/space/rules/gpu/copies.h"

namespace hone::space {

using schedule::Steps;

namespace {

constexpr int64_t kSpareRegisters = 40;  // of a thread: addresses, counters, values loaded early
constexpr int64_t kRowUnit = 16;         // bytes of a row that ldmatrix reads
constexpr double kChunkCycles = 700;     // from the load of a chunk to its use
constexpr double kBarrierCycles = 40;
constexpr double kLaunchCycles = 2000;  // of a phase behind another one
constexpr double kOverlap = 0.25;       // what is hidden costs so much of its time all the same
constexpr int64_t kJoinThreads = 128;   // of a block that adds parts up
constexpr double kEpilogueBytes = 8;    // of global memory per result, with what is added to it

}  // namespace

std::vector<std::string> MatrixOperand::axes(const std::string& terms) const {
  std::vector<std::string> all = outer;
  if (terms_are_neighbours)
    all.insert(all.end(), {side, terms});
  else
    all.insert(all.end(), {terms, side});
  return all;
}

// Eight rows that ldmatrix reads at once are an odd number of units of 16 bytes apart. Lanes read
// float32 one by one: 4 neighbours of 8 rows or 8 neighbours of 4.
int64_t MatrixOperand::pad(int64_t row, int64_t element_bytes) const {
  const int64_t unit = kRowUnit / element_bytes;
  if (element_bytes == 4 && !terms_are_neighbours) return row % 16 == 0 ? 2 * unit : 0;
  return row / unit % 2 == 0 ? unit : 0;
}

int64_t GpuMatrix::registers(const Choice& choice) const {
  const int64_t sums = choice[d_rows] * choice[d_columns] / gpu.warp;
  const int64_t operands = choice[d_rows] / instruction.m * 4 + 4;
  return sums + operands + kSpareRegisters;
}

int64_t GpuMatrix::shared_bytes(const Choice& choice) const {
  int64_t bytes = 0;
  for (const MatrixOperand* operand : {&left, &right}) {
    const int64_t length = row(*operand, choice);
    const int64_t count = side_extent(*operand, choice) * choice[d_terms] / length;
    const int64_t apart = length + operand->pad(length, element_bytes);
    bytes += depth(*operand, choice) * count * apart * element_bytes;
  }
  return bytes;
}

bool GpuMatrix::legal(const Choice& choice) const {
  const int64_t n = threads(choice), per_thread = registers(choice);
  const auto fits = [](int64_t warps, int64_t tile, int64_t extent) {
    return warps == 1 || (warps - 1) * tile < extent;
  };
  const int64_t parts = choice[d_parts];
  const int64_t chunks = ceil_div(terms, parts * choice[d_terms]);
  return (parts == 1 || terms > (parts - 1) * choice[d_terms]) &&
         choice[d_depth] <= chunks &&  // more would never be filled
         fits(choice[d_row_warps], choice[d_rows], rows) &&
         fits(choice[d_column_warps], choice[d_columns], columns) && n <= gpu.threads_per_block &&
         per_thread <= gpu.registers_per_thread && n * per_thread <= gpu.registers_per_sm &&
         shared_bytes(choice) <= gpu.shared_bytes_opt_in;
}

// Cycles of the SM with most blocks: matrix instructions, reads of shared memory and copies of a
// block, and what each chunk waits for unless other blocks of the SM have work.
double GpuMatrix::estimate(const Choice& choice) const {
  const auto m = static_cast<double>(block_rows(choice));
  const auto n = static_cast<double>(block_columns(choice));
  const auto bytes = static_cast<double>(element_bytes);
  const auto parts = static_cast<double>(choice[d_parts]);
  const auto k = static_cast<double>(round_up(terms, choice[d_parts] * choice[d_terms])) / parts;
  const double chunks = k / static_cast<double>(choice[d_terms]);
  const double warps = static_cast<double>(threads(choice)) / gpu.warp;
  const double blocks = parts * static_cast<double>(outer_points) *
                        static_cast<double>(ceil_div(rows, block_rows(choice))) *
                        static_cast<double>(ceil_div(columns, block_columns(choice)));
  const double per_sm = std::ceil(blocks / gpu.sms);
  const double resident =
      std::max(1.0, std::min({per_sm, static_cast<double>(gpu.warps_per_sm) / warps,
                              static_cast<double>(gpu.registers_per_sm) /
                                  static_cast<double>(threads(choice) * registers(choice)),
                              static_cast<double>(gpu.shared_bytes_per_sm) /
                                  static_cast<double>(shared_bytes(choice))}));
  // An SM has four units, each of which runs the instructions of its own warps.
  const double units = std::min(1.0, warps * resident / 4);
  const double arithmetic = m * n * k / (instruction.fma_per_cycle * units);
  const auto row_warps = static_cast<double>(choice[d_row_warps]);
  const auto column_warps = static_cast<double>(choice[d_column_warps]);
  const double shared =
      (m * column_warps + n * row_warps + m + n) * k * bytes / gpu.shared_bytes_per_cycle;
  const double copied = (m + n) * k * bytes / gpu.l2_bytes_per_cycle;
  const double stored = m * n * kEpilogueBytes / gpu.l2_bytes_per_cycle;
  // Chunks that are on their way while others are computed.
  const auto ahead = static_cast<double>(std::min(depth(left, choice), depth(right, choice)) - 1);
  const double busy = std::max({arithmetic, shared, copied}) + kBarrierCycles * chunks / resident;
  const double waiting = kChunkCycles * chunks / (std::max(ahead, 1.0) * resident);
  const double loop =
      ahead > 0 ? std::max(busy, waiting) + kOverlap * std::min(busy, waiting) : busy + waiting;
  const double points = static_cast<double>(outer_points * rows * columns) / gpu.sms;
  const double join = parts == 1 ? 0
                                 : kLaunchCycles + points * (parts + 1) * sizeof(float) /
                                                       static_cast<double>(gpu.l2_bytes_per_cycle);
  return per_sm * (loop + stored) + kChunkCycles + join;
}

void GpuMatrix::find_usual(const std::vector<Decision>& all) {
  std::vector<int> indices(all.size(), 0);
  MutableChoice choice(all, indices);
  std::vector<DecisionId> tiles = {d_row_warps, d_column_warps, d_rows, d_columns,
                                   d_terms,     d_depth,        d_parts};
  Cheapest cheapest(choice);
  for_all_options(choice, tiles, [&] {
    if (legal(choice)) cheapest.consider(estimate(choice));
  });
  cheapest.choose();
  // Neighbouring blocks share the operands of a square of the result in L2.
  choice.set(d_raster, ceil_div(rows, block_rows(choice)) >= 16 ? 8 : 1);
  tiles.push_back(d_raster);
  usual = UsualValues(tiles, choice);
}

GpuMatrix::Tiles GpuMatrix::whole_tiles() const {
  Tiles tiles = {epilogue, reduction, single, rows_of_e, columns_of_e, {}};
  for (const auto& [name, in_sum] : outer) {
    tiles.outer.push_back(name);
    tiles.outer_of_sum.push_back(in_sum);
  }
  return tiles;
}

GpuMatrix::Tiles GpuMatrix::tiles_of_parts(const Choice& choice, Steps& steps) const {
  const int64_t length = round_up(terms, choice[d_parts] * choice[d_terms]) / choice[d_parts];
  const std::string part = reduction + ".rf";
  steps.emplace_back(schedule::RFactor{reduction, "terms", length});
  steps.emplace_back(schedule::CacheWrite{part});
  Tiles tiles = {part, part + ".acc", {"termso"}, {"rows"}, {"columns"}, {}};
  for (const auto& [name, in_sum] : outer) tiles.outer.push_back(in_sum);
  tiles.outer_of_sum = tiles.outer;
  return tiles;
}

void GpuMatrix::append_steps(const Choice& choice, Steps& steps) const {
  const int64_t parts = choice[d_parts];
  steps.emplace_back(
      schedule::MatrixProduct{reduction, rows_of_r, columns_of_r, parts * choice[d_terms]});
  const Tiles tiles = parts > 1 ? tiles_of_parts(choice, steps) : whole_tiles();
  std::string block;
  append_epilogue(choice, tiles, steps, block);
  append_sum(choice, tiles, block, steps);
  append_copy(left, tiles.sum, choice, steps);
  append_copy(right, tiles.sum, choice, steps);
  if (parts > 1) append_join(steps);
}

void GpuMatrix::append_join(Steps& steps) const {
  if (axes.size() > 1) steps.emplace_back(schedule::Reorder{epilogue, axes});
  const std::string fused = fuse_loops(epilogue, axes, steps);
  steps.emplace_back(schedule::Split{epilogue, fused, {kJoinThreads}});
  steps.emplace_back(schedule::Parallel{epilogue, fused + ".0"});
  steps.emplace_back(schedule::Bind{epilogue, fused + ".1"});
  steps.emplace_back(schedule::ComputeAt{reduction, epilogue, fused + ".1"});
  steps.emplace_back(schedule::SetScope{reduction, ir::Scope::kRegister});
  steps.emplace_back(schedule::Unroll{reduction, "termso"});
}

void GpuMatrix::append_epilogue(const Choice& choice, const Tiles& tiles, Steps& steps,
                                std::string& block) const {
  const std::string& e = tiles.epilogue;
  std::vector<std::string> grid = tiles.outer, loops = tiles.outer;
  loops.insert(loops.end(), tiles.rows.begin(), tiles.rows.end());
  loops.insert(loops.end(), tiles.columns.begin(), tiles.columns.end());
  steps.emplace_back(schedule::Reorder{e, loops});
  const std::string m = fuse_loops(e, tiles.rows, steps), n = fuse_loops(e, tiles.columns, steps);
  steps.emplace_back(
      schedule::Split{e, m, {choice[d_row_warps], choice[d_rows]}, schedule::Tail::kWhole});
  steps.emplace_back(
      schedule::Split{e, n, {choice[d_column_warps], choice[d_columns]}, schedule::Tail::kWhole});
  std::string raster = m + ".0";
  if (choice[d_raster] > 1) {
    steps.emplace_back(schedule::Split{e, raster, {choice[d_raster]}});
    grid.push_back(raster + ".0");
    raster += ".1";
    grid.insert(grid.end(), {n + ".0", raster});
  } else {
    grid.insert(grid.end(), {raster, n + ".0"});
  }
  loops = grid;
  loops.insert(loops.end(), {m + ".1", n + ".1", m + ".2", n + ".2"});
  steps.emplace_back(schedule::Reorder{e, std::move(loops)});
  block = fuse_loops(e, grid, steps);
  steps.emplace_back(schedule::Parallel{e, block});
  for (const std::string& warp : {m + ".1", n + ".1"})
    steps.emplace_back(schedule::Bind{e, warp, schedule::ThreadLevel::kWarp});
}

void GpuMatrix::append_sum(const Choice& choice, const Tiles& tiles, const std::string& block,
                           Steps& steps) const {
  const std::string& r = tiles.sum;
  const int64_t m = choice[d_rows], n = choice[d_columns];
  steps.emplace_back(schedule::ComputeAt{r, tiles.epilogue, block});
  steps.emplace_back(schedule::SetScope{r, ir::Scope::kFragment});
  steps.emplace_back(schedule::Split{r, "rows", {choice[d_row_warps], m}, schedule::Tail::kWhole});
  steps.emplace_back(
      schedule::Split{r, "columns", {choice[d_column_warps], n}, schedule::Tail::kWhole});
  steps.emplace_back(schedule::Split{r, "terms", {choice[d_terms]}});
  std::vector<std::string> dims = {quotient("rows", m), quotient("columns", n)},
                           loops = tiles.outer_of_sum;
  dims.insert(dims.end(), loops.begin(), loops.end());
  dims.insert(dims.end(), {remainder("rows", m), remainder("columns", n)});
  steps.emplace_back(schedule::Layout{r, std::move(dims)});
  loops.insert(loops.end(), {"rows.0", "columns.0", "terms.0", "rows.1", "columns.1", "rows.2",
                             "columns.2", "terms.1"});
  steps.emplace_back(schedule::Reorder{r, std::move(loops)});
  for (const char* warp : {"rows.1", "columns.1"})
    steps.emplace_back(schedule::Bind{r, warp, schedule::ThreadLevel::kWarp});
  steps.emplace_back(
      schedule::Tensorize{r, "rows.2", "columns.2", "terms.1",
                          rounds ? schedule::Rounding::kTf32 : schedule::Rounding::kNone});
}

void GpuMatrix::append_copy(const MatrixOperand& operand, const std::string& sum,
                            const Choice& choice, Steps& steps) const {
  std::string s = operand.stage, terms_axis = "terms";
  if (operand.packed) {
    std::vector<std::string> dims = operand.outer;
    dims.insert(dims.end(), {operand.side, "terms"});
    steps.emplace_back(schedule::Layout{s, std::move(dims)});
    steps.emplace_back(schedule::CacheRead{s, sum});
    s += ".cache";
    // A dimension that the sum reads at a place of two axes is named by its number.
    if (choice[d_parts] > 1) terms_axis = fmt::format("d{}", operand.terms_place);
  }
  SharedCopy copy{s, sum, "terms.0"};
  const int64_t length = row(operand, choice);
  copy.axes = copy.dims = operand.axes(terms_axis);
  copy.pad = operand.pad(length, element_bytes);
  copy.elements = side_extent(operand, choice) * choice[d_terms];
  copy.vector = std::min(operand.vector, length);
  copy.threads = threads(choice);
  copy.depth = choice[d_depth] > 1 ? depth(operand, choice) : 1;
  if (!operand.is_async) copy.transport = schedule::Transport::kRegisters;
  space::append_copy(copy, steps);
}

}  // namespace hone::space
