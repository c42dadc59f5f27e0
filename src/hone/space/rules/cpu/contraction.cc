#include "hone/space/rules/cpu/contraction.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/round_up.h"

namespace hone::space {

double tile_cost(int64_t column, int64_t vectors, int64_t lanes, int64_t columns, int64_t channels,
                 bool reuses, int64_t rows) {
  const double fma = static_cast<double>(column * vectors * rows);
  const double loads = reuses ? static_cast<double>(column * rows + vectors) : 2 * fma;
  // Latency of a dependent multiply-add bounds small tiles; loads cost a little even when hidden.
  const double cycles = std::max({fma / 2, loads / 2, 4.0}) + 0.1 * loads;
  const double tiles =
      std::ceil(static_cast<double>(columns) / static_cast<double>(column)) *
      std::ceil(static_cast<double>(channels) / static_cast<double>(vectors * lanes));
  // A peeled tail tile costs its own, smaller, time; count it in part.
  const double tail = columns % column == 0 ? 0 : 0.25;
  return cycles * (tiles + tail) / static_cast<double>(rows);
}

namespace {
// Of tiles with tests in all of them over tiles without; 2 and more with AVX2 where they were met.
constexpr double kDearRest = 1.5;
}  // namespace

double Contraction::line_cycles(int64_t column, int64_t vectors) const {
  constexpr double kOfLine = 2;
  if (line == 0) return 0;
  const Extents all = whole();
  const int64_t points = vectors * lanes;
  const double lines = static_cast<double>(all.channels) / static_cast<double>(line);
  const double torn = 1.5 * static_cast<double>(line) - static_cast<double>(std::gcd(points, line));
  const double more = points >= all.channels ? 0 : torn / static_cast<double>(points);
  return kOfLine * lines * (1 + more) * static_cast<double>(ceil_div(all.columns, column));
}

void Contraction::set_nearest(std::vector<int>& choices, int decision, int64_t wanted) const {
  if (decision < 0) return;
  const auto d = static_cast<size_t>(decision);
  choices[d] = nearest_option(own_decisions[d], wanted);
}

void Contraction::set_default(std::vector<int>& choices) const {
  const auto set = [&](int decision, int64_t wanted) { set_nearest(choices, decision, wanted); };
  const int64_t channels = axes[roles.vector].extent;
  set(d_lanes, lanes);
  set(d_row, 1);
  const int64_t columns = roles.column >= 0 ? axes[roles.column].extent : 1;
  double best = INFINITY;
  for (const int64_t vectors : own_decisions[d_vectors].options) {
    const std::vector<int64_t> one = {1};
    for (const int64_t column : d_column >= 0 ? own_decisions[d_column].options : one) {
      if (column * vectors + operand_registers(column, vectors) > registers) continue;
      if (vectors > 1 && (vectors - 1) * lanes >= channels) continue;
      double cost = tile_cost(column, vectors, lanes, columns, channels, reuses, 1) +
                    line_cycles(column, vectors);
      if (dear_rests && channels % (vectors * lanes) != 0) cost *= kDearRest;
      if (cost >= best) continue;
      best = cost;
      set(d_vectors, vectors);
      set(d_column, column);
    }
  }
  set(d_unroll, reuses ? 4 : 1);
  set(d_taps, taps() <= 9 && !reuses ? 1 : 0);
  set(d_reduce_order, 0);
  set(d_tail, 1);
  set(d_rest, 0);
  set(d_ahead, from_memory ? 8 : 0);
  set(d_last, 1);
  set(d_order, 0);
  set(d_groups, 0);
  set(d_join, 1);
  const int64_t rows = roles.row >= 0 ? axes[roles.row].extent : 1;
  set(d_block, std::max<int64_t>(1, rows / (4 * cores)));
  set(d_parallel, 2);
  for (const int decision : {d_bands, d_sums, d_panels}) {
    if (decision >= 0) choices[static_cast<size_t>(decision)] = 0;
  }
  const Choice choice(own_decisions, choices);
  if (!legal(choice)) set(d_unroll, 1);
  if (!legal(choice)) set(d_taps, 0);
  set_default_blocks(choices);
}

// Sums whose operand for a register tile would leave a core's own cache before the next tile reads
// it, and operands of which neighbouring rows share sets of the caches.
void Contraction::set_default_blocks(std::vector<int>& choices) const {
  if (roles.row >= 0 || roles.column < 0) return;
  const std::vector<int> before = choices;
  const auto set = [&](int decision, int64_t wanted) { set_nearest(choices, decision, wanted); };
  const Choice choice(own_decisions, choices);
  constexpr int64_t kLeastTiles = 8;  // that share a panel
  const int64_t tiles = column_tiles(choice), width = choice[d_vectors] * choice[d_lanes];
  if (tiles < kLeastTiles) return;
  const int64_t bytes = taps() * reduce.back().extent * static_cast<int64_t>(sizeof(float));
  const bool copies = d_panels >= 0 && bytes * whole().channels >= near_bytes;
  const bool cuts = d_sums >= 0 && 4 * bytes * width > 3 * near_bytes;
  if (!copies && !cuts) return;
  if (copies) set(d_panels, kPhase);
  if (cuts) set(d_sums, ceil_div(8 * bytes * width, near_bytes));
  // Threads share blocks of channels, and of columns if there are too few, or if the sums of all of
  // them fill the cache; the tiles of a block are one loop, of which the last one is peeled.
  const int64_t blocks = ceil_div(whole().channels, width);
  const int64_t sums = width * whole().columns * static_cast<int64_t>(sizeof(float));
  const bool shares = blocks % cores != 0 && blocks < 4 * cores;
  int64_t bands = shares ? ceil_div(4 * cores, blocks) : 1;
  if (cuts) bands = std::max(bands, ceil_div(2 * sums, near_bytes));
  set(d_parallel, 1);
  if (bands > 1) {
    set(d_bands, bands);
    set(d_parallel, d_bands >= 0 ? 2 : 1);
  }
  if (copies && cuts && !legal(choice)) set(d_sums, 1);
  if (!legal(choice)) choices = before;
}

void Contraction::set_tile(std::vector<int>& choices, int64_t columns, int64_t channels) const {
  const std::vector<int64_t> one = {1};
  double best = INFINITY;
  std::vector<int> chosen = choices;
  for (const int64_t vectors : own_decisions[d_vectors].options) {
    for (const int64_t column : d_column >= 0 ? own_decisions[d_column].options : one) {
      std::vector<int> trial = choices;
      trial[d_vectors] = nearest_option(own_decisions[d_vectors], vectors);
      if (d_column >= 0) trial[d_column] = nearest_option(own_decisions[d_column], column);
      if (column > columns || !legal(Choice(own_decisions, trial))) continue;
      const double cost = tile_cost(column, vectors, lanes, columns, channels, reuses, 1);
      if (cost >= best) continue;
      best = cost;
      chosen = std::move(trial);
    }
  }
  choices = std::move(chosen);
}

Extents Contraction::whole() const {
  const auto extent = [&](int axis) {
    return axis < 0 ? 1 : axes[static_cast<size_t>(axis)].extent;
  };
  return {extent(roles.vector), extent(roles.column), extent(roles.row)};
}

bool Contraction::rest_apart(const Choice& choice, int64_t channels) const {
  if (d_rest < 0 || choice[d_rest] == 0) return false;
  const int64_t left = channels % (choice[d_vectors] * choice[d_lanes]);
  if (left == 0 || left > (choice[d_vectors] - 1) * choice[d_lanes]) return false;
  return !shares_channels(choice);
}

bool Contraction::shares_channels(const Choice& choice) const {
  int64_t depth = value(choice, d_parallel);
  const int64_t groups = groups_place(choice);
  for (const OuterLoop loop : loop_order(value(choice, d_order), groups)) {
    if (loop == kChannels) break;
    depth -= has(loop, has_bands(choice)) && (loop != kGroups || groups > 0) ? 1 : 0;
  }
  return depth > 0;
}

schedule::Tail Contraction::channel_tail(const Choice& choice) const {
  const int64_t channels = axes[roles.vector].extent;
  if (rest_peeled || rest_apart(choice, channels)) return schedule::Tail::kPeel;
  if (pad_vector) return schedule::Tail::kPad;
  const bool whole = channels % (value(choice, d_vectors) * choice[d_lanes]) == 0;
  if (d_last < 0 || choice[d_last] == 0 || whole) return schedule::Tail::kMask;
  return shares_channels(choice) ? schedule::Tail::kTest : schedule::Tail::kPeel;
}

// Which operand stays while the other moves: a block of rows keeps a block of weights, weights
// outermost, or data outermost; of each with the groups in their places.
const Contraction::LoopOrder& Contraction::loop_order(int64_t order, int64_t groups) {
  static constexpr LoopOrder kOrders[][3] = {{{kGroups, kBlocks, kChannels, kRows, kColumns},
                                              {kGroups, kChannels, kBlocks, kRows, kColumns},
                                              {kGroups, kBlocks, kRows, kColumns, kChannels}},
                                             {{kBlocks, kGroups, kChannels, kRows, kColumns},
                                              {kChannels, kBlocks, kGroups, kRows, kColumns},
                                              {kBlocks, kGroups, kRows, kColumns, kChannels}},
                                             {{kBlocks, kChannels, kRows, kColumns, kGroups},
                                              {kChannels, kBlocks, kRows, kColumns, kGroups},
                                              {kBlocks, kRows, kColumns, kGroups, kChannels}}};
  return kOrders[groups][order];
}

bool Contraction::Nest::runs_serially(OuterLoop loop) const {
  return std::find(loops.begin() + parallel, loops.begin() + size, loop) != loops.begin() + size;
}

bool Contraction::Nest::joins(OuterLoop first, OuterLoop second) const {
  for (int i = 0; i + 1 < size; ++i) {
    if (loops[static_cast<size_t>(i)] == first && loops[static_cast<size_t>(i + 1)] == second)
      return i + 1 != parallel;
  }
  return false;
}

Contraction::Nest Contraction::nest(const Choice& choice, const Runs& runs) const {
  Nest nest;
  const int64_t groups = groups_place(choice);
  int64_t depth = nested ? 0 : value(choice, d_parallel);
  if (groups == 0 && d_groups >= 0) ++depth;  // the outer axes are parallel in any case
  for (const OuterLoop loop : loop_order(value(choice, d_order), groups)) {
    if (!has(loop, has_bands(choice)) || (loop == kChannels && joined(choice) > 1)) continue;
    if (runs[loop]) {
      nest.loops[static_cast<size_t>(nest.size++)] = loop;
      nest.parallel += depth > 0 ? 1 : 0;
    }
    --depth;
  }
  return nest;
}

Contraction::Runs Contraction::runs_of(const Choice& choice, const Extents& extents) const {
  const int64_t row = value(choice, d_row), block = value(choice, d_block);
  Runs runs{};
  runs[kBlocks] = roles.row >= 0 ? block * row < extents.rows : has_bands(choice);
  runs[kChannels] = joined(choice) == 1 && choice[d_vectors] * choice[d_lanes] < extents.channels;
  runs[kGroups] = true;
  runs[kRows] = block > 1 && row < extents.rows;
  runs[kColumns] = value(choice, d_column) < extents.columns;
  return runs;
}

int64_t Contraction::column_tiles(const Choice& choice) const {
  return ceil_div(whole().columns, value(choice, d_column));
}

int64_t Contraction::band(const Choice& choice) const {
  const int64_t tiles = column_tiles(choice);
  return std::max<int64_t>(2, ceil_div(tiles, value(choice, d_bands)));
}

int64_t block_of_sum(int64_t extent, int64_t n) {
  constexpr int64_t kVector =
      16;  // whole vectors and unrolled bodies of what is copied, but at the end
  return std::min(extent, round_up(ceil_div(extent, n), kVector));
}

int64_t Contraction::terms(const Choice& choice) const {
  return block_of_sum(reduce.back().extent, value(choice, d_sums));
}

bool Contraction::blocks_legal(const Choice& choice) const {
  const bool bands = has_bands(choice), sums = value(choice, d_sums) > 1;
  const int64_t place = panel_place(choice);
  if (!bands && !sums && place == kNone) return true;
  const Extents all = whole();
  const Nest now = nest(choice, runs_of(choice, all));
  if (bands && now.joins(kBlocks, kColumns)) return false;
  if (sums && now.parallel == now.size) return false;  // a block's operands are read once
  // What an iteration of the parallel loop computes, and what it reads of the panels at a time.
  const int64_t channels =
      now.runs_serially(kChannels) ? all.channels : choice[d_vectors] * choice[d_lanes];
  int64_t columns = value(choice, d_column);
  if (now.runs_serially(kColumns)) columns *= bands ? band(choice) : column_tiles(choice);
  if (bands && now.runs_serially(kBlocks)) columns = all.columns;
  int64_t rows = value(choice, d_row);
  if (now.runs_serially(kRows)) rows *= value(choice, d_block);
  if (roles.row >= 0 && now.runs_serially(kBlocks)) rows = all.rows;
  constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
  if (sums && channels * columns * rows * kBytes > near_bytes) return false;
  if (place == kNone) return true;
  if (place == kPhase) return column_tiles(choice) > 1;
  return now.runs_serially(kColumns) && taps() * terms(choice) * channels * kBytes <= near_bytes;
}

void Contraction::canonicalise(std::vector<int>& choices, const Extents& extents,
                               bool reorders) const {
  const Choice choice(own_decisions, choices);
  shorten_tile(own_decisions, d_column, extents.columns, choices);
  shorten_tile(own_decisions, d_row, extents.rows, choices);
  const int64_t column = value(choice, d_column);
  shorten_tile(own_decisions, d_block, ceil_div(extents.rows, value(choice, d_row)), choices);
  if (d_bands >= 0) {  // the first number that makes such blocks
    int& bands = choices[static_cast<size_t>(d_bands)];
    const int64_t length = has_bands(choice) ? band(choice) : column_tiles(choice);
    for (bands = 0; std::min(band(choice), column_tiles(choice)) != length;) ++bands;
  }
  if (joined(choice) > 1 && d_rest >= 0) choices[static_cast<size_t>(d_rest)] = 0;
  Runs runs = runs_of(choice, extents);
  const auto nest_now = [&] { return nest(choice, runs); };
  const Nest wanted = nest_now();
  const auto* const end = wanted.loops.begin() + wanted.size;
  const auto* const serial = wanted.loops.begin() + wanted.parallel;
  if (d_rest >= 0 && !rest_apart(choice, extents.channels))
    choices[static_cast<size_t>(d_rest)] = 0;
  if (d_last >= 0 && extents.channels % (choice[d_vectors] * choice[d_lanes]) == 0)
    choices[static_cast<size_t>(d_last)] = 0;
  // Columns are not told apart if all are whole tiles, and never in a parallel loop.
  const bool whole_tiles =
      extents.columns % column == 0 && !tests_data && !(skips_zeros && column == 1);
  const bool bands = has_bands(choice);
  const bool whole_bands = whole_tiles && (!bands || column_tiles(choice) % band(choice) == 0);
  if (d_tail >= 0 && (!runs[kColumns] || whole_bands ||
                      (!bands && std::find(wanted.loops.begin(), serial, kColumns) != serial)))
    choices[static_cast<size_t>(d_tail)] = 1;
  if (!reorders) return;
  // The first order and depth that make such loops; whether there are any.
  const int depths = nested ? 1 : static_cast<int>(own_decisions[d_parallel].options.size());
  const auto orders = static_cast<int>(own_decisions[d_order].options.size());
  const int places = d_groups < 0 ? 1 : static_cast<int>(own_decisions[d_groups].options.size());
  const auto take_first = [&](const Nest& loops) {
    for (int i = 0; i < places * orders * depths;) {
      if (d_groups >= 0) choices[static_cast<size_t>(d_groups)] = i / depths / orders;
      choices[static_cast<size_t>(d_order)] = i / depths % orders;
      if (!nested) choices[static_cast<size_t>(d_parallel)] = i % depths;
      const Nest now = nest_now();
      if (now == loops) return true;
      i = now.loops == loops.loops ? i + 1 : (i / depths + 1) * depths;  // else of no depth
    }
    return false;
  };
  // Rows in one loop are blocks of one tile.
  const auto* const rows = std::find(wanted.loops.begin(), end, kRows);
  if (rows != end && !runs[kBlocks]) {
    Nest single = wanted;
    single.loops[static_cast<size_t>(rows - wanted.loops.begin())] = kBlocks;
    const int before = choices[static_cast<size_t>(d_block)];
    choices[static_cast<size_t>(d_block)] = 0;
    std::swap(runs[kBlocks], runs[kRows]);
    if (take_first(single)) return;
    choices[static_cast<size_t>(d_block)] = before;
    std::swap(runs[kBlocks], runs[kRows]);
  }
  const bool found = take_first(wanted);
  HONE_ASSERT(found, "the loops that were there");
}

}  // namespace hone::space
