#include "hone/space/rules/cpu/contraction.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "hone/base/round_up.h"

namespace hone::space {

using enum TileDecisions::Role;

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
constexpr double kRemainderCost = 1.5;
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

bool Contraction::legal(const Choice& choice) const {
  const RegisterTile tile = tile_of(choice);
  // Operands that wait in registers: the vectors of the packed operand and, if the instruction
  // cannot read a broadcast from memory, one broadcast.
  const int64_t operands = operand_registers(tile.points(), tile.vectors);
  if (tile.points() * tile.vectors + operands > registers) return false;
  // Data of several groups are permuted into registers, which the taps of a window share.
  const int64_t most = std::max<int64_t>(kLeastJoined, registers / 4);
  if (tile.joined > 1 && (tile.vectors > 1 || tile.lanes != lanes || tile.points() > most ||
                          value(choice, kSumBlocks) > 1))
    return false;
  if (tile.vectors > 1 && tile.width() - tile.lanes >= whole().channels) return false;
  // Beyond, compile time and the instruction cache suffer.
  return body(choice) <= 768 && blocks_legal(choice);
}

int64_t Contraction::body(const Choice& choice) const {
  const RegisterTile tile = tile_of(choice);
  return tile.points() * tile.vectors * value(choice, kUnroll) *
         (taps_unrolled(choice) ? taps() : 1);
}

int64_t Contraction::taps() const {
  int64_t product = 1;
  for (size_t i = 0; i + 1 < reduce.size(); ++i) product *= reduce[i].extent;
  return product;
}

// Side by side, each point of the tile holds an accumulator and a vector of data that taps share,
// and each vector a weight: where registers lack for that, but not for one vector's data at a time.
// With few taps memory is the limit, and lines side by side are best read together.
bool Contraction::vectors_outside(const Choice& choice) const {
  const RegisterTile tile = tile_of(choice);
  const int64_t most = registers - kSpareRegisters;
  return !reuses && taps_unrolled(choice) && taps() * value(choice, kUnroll) > kFewTaps &&
         tile.vectors > 1 && (2 * tile.points() + 1) * tile.vectors > most &&
         (tile.vectors + 1) * tile.points() + 1 <= most;
}

void Contraction::set_default(MutableChoice& choice) const {
  const auto set = [&](Decided::Role role, int64_t wanted) { choice.set(decisions[role], wanted); };
  const Extents all = whole();
  set(kLanes, lanes);
  set(kRow, 1);
  double best = INFINITY;
  for (const int64_t vectors : choice.options(decisions[kVectors])) {
    for (const int64_t column : choice.options(decisions[kColumn])) {
      if (column * vectors + operand_registers(column, vectors) > registers) continue;
      if (vectors > 1 && (vectors - 1) * lanes >= all.channels) continue;
      double cost = tile_cost(column, vectors, lanes, all.columns, all.channels, reuses, 1) +
                    line_cycles(column, vectors);
      if (slow_remainders && all.channels % (vectors * lanes) != 0) cost *= kRemainderCost;
      if (cost >= best) continue;
      best = cost;
      set(kVectors, vectors);
      set(kColumn, column);
    }
  }
  set(kUnroll, reuses ? 4 : 1);
  set(kTaps, taps() <= 9 && !reuses ? 1 : 0);
  set(kTail, 1);
  set(kAhead, from_memory ? 8 : 0);
  set(kLast, 1);
  set(kBlock, std::max<int64_t>(1, all.rows / (4 * cores)));
  set(kParallel, 2);
  for (const Decided::Role role :
       {kReduceOrder, kRest, kOrder, kGroups, kJoin, kColumnBlocks, kSumBlocks, kPanels})
    choice.set_index(decisions[role], 0);
  if (!legal(choice)) set(kUnroll, 1);
  if (!legal(choice)) set(kTaps, 0);
  set_default_blocks(choice);
}

// Sums whose operand for a register tile would leave a core's own cache before the next tile reads
// it, and operands of which neighbouring rows share sets of the caches.
void Contraction::set_default_blocks(MutableChoice& choice) const {
  if (roles.row >= 0 || roles.column < 0) return;
  const std::vector<int> before = choice.indices();
  const auto set = [&](Decided::Role role, int64_t wanted) { choice.set(decisions[role], wanted); };
  constexpr int64_t kLeastTiles = 8;  // that share a panel
  const Extents all = whole();
  const RegisterTile tile = tile_of(choice);
  if (ceil_div(all.columns, tile.columns) < kLeastTiles) return;
  const int64_t width = tile.width();
  const int64_t bytes = taps() * reduce.back().extent * static_cast<int64_t>(sizeof(float));
  const bool copies = has(kPanels) && bytes * all.channels >= near_bytes;
  const bool cuts = has(kSumBlocks) && 4 * bytes * width > 3 * near_bytes;
  if (!copies && !cuts) return;
  if (copies) set(kPanels, kPhase);
  if (cuts) set(kSumBlocks, ceil_div(8 * bytes * width, near_bytes));
  // Threads share blocks of channels, and of columns if there are too few, or if the sums of all of
  // them fill the cache; the tiles of a block are one loop, of which the last one is peeled.
  const int64_t blocks = ceil_div(all.channels, width);
  const int64_t sums = width * all.columns * static_cast<int64_t>(sizeof(float));
  const bool shares = blocks % cores != 0 && blocks < 4 * cores;
  int64_t bands = shares ? ceil_div(4 * cores, blocks) : 1;
  if (cuts) bands = std::max(bands, ceil_div(2 * sums, near_bytes));
  set(kColumnBlocks, bands);
  set(kParallel, bands > 1 && has(kColumnBlocks) ? 2 : 1);
  if (copies && cuts && !legal(choice)) set(kSumBlocks, 1);
  if (!legal(choice)) choice.indices() = before;
}

void Contraction::set_tile(MutableChoice& choice, int64_t columns, int64_t channels) const {
  double best = INFINITY;
  const std::vector<int> before = choice.indices();
  std::vector<int> chosen = before;
  for (const int64_t vectors : choice.options(decisions[kVectors])) {
    for (const int64_t column : choice.options(decisions[kColumn])) {
      choice.indices() = before;
      choice.set(decisions[kVectors], vectors);
      choice.set(decisions[kColumn], column);
      if (column > columns || !legal(choice)) continue;
      const double cost = tile_cost(column, vectors, lanes, columns, channels, reuses, 1);
      if (cost >= best) continue;
      best = cost;
      chosen = choice.indices();
    }
  }
  choice.indices() = std::move(chosen);
}

int64_t block_of_sum(int64_t extent, int64_t n) {
  constexpr int64_t kVector =
      16;  // whole vectors and unrolled bodies of what is copied, but at the end
  return std::min(extent, round_up(ceil_div(extent, n), kVector));
}

int64_t Contraction::terms(const Choice& choice) const {
  return block_of_sum(reduce.back().extent, value(choice, kSumBlocks));
}

bool Contraction::blocks_legal(const Choice& choice) const {
  const bool sums = value(choice, kSumBlocks) > 1;
  const int64_t place = or_zero(choice, kPanels);
  if (!sums && place == kNone && !has(kColumnBlocks)) return true;
  const TileNest nest = this->nest(choice);
  const bool blocks = nest.has_column_blocks();
  if (!blocks && !sums && place == kNone) return true;
  if (blocks && nest.joins(TileNest::kBlocks, TileNest::kColumns)) return false;
  const TileNest::Repeating loops = nest.repeating();
  if (sums && loops.parallel == loops.size) return false;  // a block's operands are read once
  // What an iteration of the parallel loop computes, and what it reads of the panels at a time.
  const int64_t channels = nest.points_of_iteration(roles.vector);
  const int64_t results =
      channels * nest.points_of_iteration(roles.column) * nest.points_of_iteration(roles.row);
  constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
  if (sums && results * kBytes > near_bytes) return false;
  if (place == kNone) return true;
  if (place == kPhase) return nest[TileNest::kColumns].repeats;
  return nest[TileNest::kColumns].is_serial() &&
         taps() * terms(choice) * channels * kBytes <= near_bytes;
}

void Contraction::canonicalise(MutableChoice& choice, const Extents& extents, bool reorders) const {
  const auto first = [&](Decided::Role role) { choice.set_index(decisions[role], 0); };
  choice.shorten(decisions[kColumn], extents.columns);
  choice.shorten(decisions[kRow], extents.rows);
  choice.shorten(decisions[kBlock], ceil_div(extents.rows, value(choice, kRow)));
  if (has(kColumnBlocks)) {  // the first number that makes such blocks
    const int64_t tiles = TileNest(*this, choice, extents).block_tiles();
    int number = 0;
    do {
      choice.set_index(decisions[kColumnBlocks], number++);
    } while (TileNest(*this, choice, extents).block_tiles() != tiles);
  }
  const TileNest nest(*this, choice, extents);
  const TileNest::Repeating loops = nest.repeating();
  if (nest.tile().joined > 1 || !nest.leaves_rest()) first(kRest);
  if (extents.channels % nest.tile().width() == 0) first(kLast);
  // Columns are not told apart if all are whole tiles, and never in a parallel loop.
  const int64_t columns = nest.tile().columns;
  const bool blocks = nest.has_column_blocks();
  const bool whole_tiles =
      extents.columns % columns == 0 && !tests_data && !(skips_zeros && columns == 1);
  const bool whole_blocks =
      whole_tiles && (!blocks || (extents.columns / columns) % nest.block_tiles() == 0);
  if (!nest[TileNest::kColumns].repeats || whole_blocks ||
      (!blocks && nest[TileNest::kColumns].is_shared()))
    choice.set_index(decisions[kTail], 1);
  if (!reorders) return;
  // Rows in one loop are blocks of one tile.
  if (nest[TileNest::kRows].repeats && !nest[TileNest::kBlocks].repeats) {
    const int before = choice.index(decisions[kBlock]);
    first(kBlock);
    if (take_first(loops.with(TileNest::kBlocks, TileNest::kRows), extents, choice)) return;
    choice.set_index(decisions[kBlock], before);
  }
  const bool found = take_first(loops, extents, choice);
  HONE_ASSERT(found, "the loops that were there");
}

bool Contraction::take_first(const TileNest::Repeating& loops, const Extents& extents,
                             MutableChoice& choice) const {
  const auto count = [&](Decided::Role role) {
    return static_cast<int>(choice.options(decisions[role]).size());
  };
  for (int place = 0; place < count(kGroups); ++place) {
    choice.set_index(decisions[kGroups], place);
    for (int order = 0; order < count(kOrder); ++order) {
      choice.set_index(decisions[kOrder], order);
      for (int depth = 0; depth < count(kParallel); ++depth) {
        choice.set_index(decisions[kParallel], depth);
        const TileNest::Repeating now = TileNest(*this, choice, extents).repeating();
        if (now == loops) return true;
        if (now.roles != loops.roles || now.size != loops.size) break;  // whatever the depth
      }
    }
  }
  return false;
}

}  // namespace hone::space
