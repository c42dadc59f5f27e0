#include "hone/space/rules/cpu/tile_nest.h"

#include <algorithm>

#include "hone/base/round_up.h"

namespace hone::space {
namespace {

using schedule::Split;
using schedule::Tail;
using enum TileDecisions::Role;

struct NamedRole {
  std::string_view name;
  DecisionKind kind;
};
// In the order of TileDecisions::Role. A caller names what is shared.
constexpr NamedRole kNames[] = {
    {"lanes", DecisionKind::kVector},    {"vectors", DecisionKind::kTile},
    {"column", DecisionKind::kTile},     {"row", DecisionKind::kTile},
    {"block", DecisionKind::kTile},      {"column_blocks", DecisionKind::kParallel},
    {"join", DecisionKind::kVector},     {"order", DecisionKind::kOrder},
    {"groups", DecisionKind::kOrder},    {"parallel", DecisionKind::kParallel},
    {"tail", DecisionKind::kTail},       {"rest", DecisionKind::kTail},
    {"last", DecisionKind::kTail},       {"unroll", DecisionKind::kUnroll},
    {"taps", DecisionKind::kUnroll},     {"reduce_order", DecisionKind::kOrder},
    {"sum_blocks", DecisionKind::kTile}, {"ahead", DecisionKind::kPacking},
    {"panels", DecisionKind::kPacking}};
static_assert(std::size(kNames) == kPackedBlocks);

// Which operand stays while the other moves: a block of rows keeps a block of weights, weights
// outermost, or data outermost; each with the loop over groups outermost, inside of the blocks of
// rows, as neighbouring groups read parts of the same lines, or inside of the rows and columns.
const TileNest::Order& loop_order(int64_t order, int64_t place) {
  using enum TileNest::Role;
  static constexpr TileNest::Order kOrders[][3] = {
      {{kGroups, kBlocks, kChannels, kRows, kColumns},
       {kGroups, kChannels, kBlocks, kRows, kColumns},
       {kGroups, kBlocks, kRows, kColumns, kChannels}},
      {{kBlocks, kGroups, kChannels, kRows, kColumns},
       {kChannels, kBlocks, kGroups, kRows, kColumns},
       {kBlocks, kGroups, kRows, kColumns, kChannels}},
      {{kBlocks, kChannels, kRows, kColumns, kGroups},
       {kChannels, kBlocks, kRows, kColumns, kGroups},
       {kBlocks, kRows, kColumns, kGroups, kChannels}}};
  return kOrders[place][order];
}

}  // namespace

void TileDecisions::add(SketchBuilder& builder, const std::string& stage, Role role,
                        std::vector<int64_t> options, int64_t extent, bool scales) {
  decisions_[role] = builder.add_decision(stage, kNames[role].name, kNames[role].kind,
                                          std::move(options), extent, scales);
}

RegisterTile Tiling::tile_of(const Choice& choice) const {
  return {value(choice, kColumn), value(choice, kRow), value(choice, kVectors),
          value(choice, kLanes), value(choice, kJoin)};
}

TileNest::TileNest(const Tiling& tiling, const Choice& choice, const Extents& extents)
    : tiling_(tiling), choice_(choice), extents_(extents), tile_(tiling.tile_of(choice)) {
  const Roles& roles = tiling.roles;
  const int64_t tiles = ceil_div(extents.columns, tile_.columns);
  const int64_t blocks = tiling.value(choice, kColumnBlocks);
  block_tiles_ = std::min(tiles, std::max<int64_t>(2, ceil_div(tiles, blocks)));
  column_blocks_ = tiling.has(kColumnBlocks) && block_tiles_ < tiles;
  const int64_t block = tiling.value(choice, kBlock), rows = block * tile_.rows;
  const bool joins = tile_.joined > 1;
  if (tiling.has(TileDecisions::kGroups))
    loops_[kGroups] = {roles.groups, joins ? ".0" : "", 1, true};
  if (!joins)
    loops_[kChannels] = {roles.vector, ".0", extents.channels, tile_.width() < extents.channels};
  if (column_blocks_) loops_[kBlocks] = {roles.column, ".0", extents.columns, true};
  if (roles.row >= 0) {
    loops_[kBlocks] = {roles.row, ".0", extents.rows, rows < extents.rows};
    loops_[kRows] = {roles.row, ".1", rows, block > 1 && tile_.rows < extents.rows};
  }
  if (roles.column >= 0)
    loops_[kColumns] = {roles.column, column_blocks_ ? ".1.0" : ".0", block_tiles_ * tile_.columns,
                        tile_.columns < extents.columns};
  place_ = tiling.or_zero(choice, TileDecisions::kGroups);
  order_ = loop_order(tiling.value(choice, kOrder), place_);
  int64_t depth = tiling.nested ? 0 : tiling.value(choice, kParallel);
  for (const Role role : order_) {
    Loop& loop = loops_[role];
    if (loop.axis >= 0) loop.parallel = fixes(role) || depth-- > 0;
  }
}

bool TileNest::joins(Role first, Role second) const {
  const Repeating now = repeating();
  for (int i = 0; i + 1 < now.size; ++i) {
    if (now.roles[i] == first && now.roles[i + 1] == second) return i + 1 != now.parallel;
  }
  return false;
}

int64_t TileNest::points_of_iteration(int axis) const {
  for (const Role role : order_) {
    if (loops_[role].axis == axis && loops_[role].is_serial()) return loops_[role].span;
  }
  const Roles& roles = tiling_.roles;
  return axis < 0               ? 1
         : axis == roles.vector ? tile_.width()
         : axis == roles.column ? tile_.columns
                                : tile_.rows;
}

bool TileNest::leaves_rest() const {
  const int64_t left = extents_.channels % tile_.width();
  return tiling_.or_zero(choice_, kRest) == 1 && left > 0 && left <= tile_.width() - tile_.lanes &&
         !loops_[kChannels].parallel;
}

Tail TileNest::channel_tail() const {
  if (tiling_.rest_peeled || leaves_rest()) return Tail::kPeel;
  if (tiling_.pad_vector) return Tail::kPad;
  const bool whole = extents_.channels % tile_.width() == 0;
  if (tiling_.or_zero(choice_, kLast) == 0 || whole) return Tail::kMask;
  return loops_[kChannels].parallel ? Tail::kTest : Tail::kPeel;
}

Tail TileNest::column_tail() const {
  return tiling_.value(choice_, kTail) == 1 ? Tail::kPeel : Tail::kMask;
}

Tail TileNest::block_tail() const {
  const Tail tail = column_tail();
  return tail == Tail::kPeel && !loops_[kBlocks].is_serial() ? Tail::kTest : tail;
}

TileNest::Repeating TileNest::repeating() const {
  Repeating found;
  for (const Role role : order_) {
    if (!loops_[role].repeats) continue;
    found.roles[found.size++] = role;
    found.parallel += loops_[role].parallel ? 1 : 0;
  }
  return found;
}

TileNest::Repeating TileNest::Repeating::with(Role by, Role instead_of) const {
  Repeating other = *this;
  std::replace(other.roles.begin(), other.roles.begin() + other.size, instead_of, by);
  return other;
}

LoopNest TileNest::split(const std::string& stage, const std::vector<std::string>& axes,
                         schedule::Steps& steps) const {
  const auto name = [&](int axis, std::string_view suffix = "") {
    return axes[static_cast<size_t>(axis)] + std::string(suffix);
  };
  const Roles& roles = tiling_.roles;
  LoopNest names{.outer = {}, .joined = tile_.joined > 1};
  if (names.joined) {
    steps.emplace_back(Split{stage, name(roles.groups), {tile_.joined}, Tail::kMask});
  } else {
    steps.emplace_back(
        Split{stage, name(roles.vector), {tile_.vectors, tile_.lanes}, channel_tail()});
  }
  if (roles.row >= 0) {
    const int64_t block = tiling_.value(choice_, kBlock);
    steps.emplace_back(Split{stage, name(roles.row), {block, tile_.rows}, Tail::kMask});
    names.unrolled.push_back(name(roles.row, ".2"));
  }
  if (roles.column >= 0) {
    std::string column = name(roles.column);
    if (column_blocks_) {
      steps.emplace_back(Split{stage, column, {block_tiles_ * tile_.columns}, block_tail()});
      column += ".1";
    }
    steps.emplace_back(Split{stage, column, {tile_.columns}, column_tail()});
    names.unrolled.push_back(column + ".1");
  }
  names.unrolled.push_back(name(names.joined ? roles.groups : roles.vector, ".1"));
  names.vector = name(roles.vector, names.joined ? "" : ".2");
  for (const int axis : roles.outer) {
    const bool is_group = axis == roles.groups;
    if (!is_group) names.outer.push_back(name(axis));
    if (is_group && place_ == 0) names.outer.push_back(name(axis, loops_[kGroups].suffix));
  }
  names.parallel = names.outer.size();
  for (const Role role : order_) {
    const Loop& loop = loops_[role];
    if (loop.axis < 0 || fixes(role)) continue;
    names.outer.push_back(name(loop.axis, loop.suffix));
    names.parallel += loop.parallel ? 1 : 0;
  }
  return names;
}

}  // namespace hone::space
