// space/rules/cpu/tile_nest.h - the loops of a reduction's epilogue E around a register tile
// (internal to space). A Tiling says what may be tiled and what is decided of it; a TileNest is the
// loops of one choice: their order, which of them threads share, the points of E's axes that each
// covers, and how a shorter last tile is run. Legality, the canonical form, the steps and the
// estimates of traffic ask it, and nothing else knows how loops lie.
#pragma once

#include <array>

#include "hone/schedule/step.h"
#include "hone/space/sketch.h"

namespace hone::space {

// What is decided of a tiled nest, by role. A task leaves only some of it open.
class TileDecisions {
 public:
  enum Role : uint8_t {
    kLanes,    // of a vector of channels
    kVectors,  // of the register tile
    kColumn,   // columns of the register tile
    kRow,      // rows of it
    kBlock,    // register tiles in a block of rows
    // Blocks of columns, the outermost of E's loops where there are no rows: their number. With
    // threads that share channels, too, they are a grid.
    kColumnBlocks,
    kJoin,      // so many groups, of few channels each, fill a vector; 1: a vector is one group's
    kOrder,     // of the loops
    kGroups,    // where the loop over groups lies
    kParallel,  // so many of the loops are shared by threads
    kTail,      // 1: the last tile of columns is peeled; 0: masked
    kRest,      // 1: the last tile of channels lies apart, if it can; 0: it is a whole one
    kLast,      // 1: no tests for tiles of channels but the last, if that is no whole one
    kUnroll,    // terms of the sum in straight code
    kTaps,      // 1: so are a window's taps
    kReduceOrder,  // 1: the longest axis of the sum runs around its others
    // Blocks that the longest axis of the sum is cut into: their number. What a parallel iteration
    // computes is summed up block by block, so that a block's operands stay near.
    kSumBlocks,
    // Iterations of the sum's outer loop by which the first line of what one reads of the streamed
    // operand is prefetched; 0: not.
    kAhead,
    kPanels,        // where the operand that moves with the lanes is copied to, if no constant
    kPackedBlocks,  // of vectors * lanes channels, packed side by side for a loop around E
    kRoles
  };
  TileDecisions() { indices_.fill(-1); }
  // Leaves one open; the arguments are those of SketchBuilder::add_decision.
  void add(SketchBuilder& builder, const std::string& stage, Role role,
           std::vector<int64_t> options, int64_t extent = 0, bool scales = false);
  // Takes over what a caller has decided.
  void share(Role role, int decision) { indices_[role] = decision; }
  [[nodiscard]] bool has(Role role) const { return indices_[role] >= 0; }
  // As Choice numbers them: -1 if there is no choice.
  [[nodiscard]] int operator[](Role role) const { return indices_[role]; }

 private:
  std::array<int, kRoles> indices_;
};

// The axes of E by what the nest does with them; -1: there is none.
struct Roles {
  int vector = -1;         // along the vector lanes: channels
  int column = -1;         // innermost other axis: register tile
  int row = -1;            // the one before: small register tile and a cache block
  std::vector<int> outer;  // the rest
  int groups = -1;         // one of `outer`, along which no operand is shared
};

// Points that E's loops run through: all, or those of a block if E is computed inside of one.
struct Extents {
  int64_t channels = 1, columns = 1, rows = 1;
};

struct RegisterTile {
  int64_t columns = 1, rows = 1, vectors = 1, lanes = 1;
  int64_t joined = 1;  // groups in a vector
  [[nodiscard]] int64_t points() const { return columns * rows; }
  [[nodiscard]] int64_t width() const { return vectors * lanes; }  // channels
};

struct Tiling {
  std::vector<compute::Axis> axes;  // of E
  Roles roles;
  bool nested = false;      // E is computed inside a loop of another stage: nothing is parallel
  bool pad_vector = false;  // channels behind the last one may be computed: nobody reads them
  // The last tile of channels lies apart in any case, as only it has tests.
  bool rest_peeled = false;
  TileDecisions decisions;

  [[nodiscard]] bool has(TileDecisions::Role role) const { return decisions.has(role); }
  [[nodiscard]] int64_t value(const Choice& choice, TileDecisions::Role role) const {
    return choice[decisions[role]];
  }
  // Of a switch or a place: 0 where there is no choice.
  [[nodiscard]] int64_t or_zero(const Choice& choice, TileDecisions::Role role) const {
    return has(role) ? value(choice, role) : 0;
  }
  [[nodiscard]] RegisterTile tile_of(const Choice& choice) const;
  // Of an axis; 1 for -1.
  [[nodiscard]] int64_t extent(int axis) const {
    return axis < 0 ? 1 : axes[static_cast<size_t>(axis)].extent;
  }
  [[nodiscard]] Extents whole() const {
    return {extent(roles.vector), extent(roles.column), extent(roles.row)};
  }
};

class TileNest {
 public:
  // Loops around the register tile, inside of the axes that stay outermost. Blocks are those of
  // rows, or of columns where there are no rows.
  enum Role : uint8_t { kGroups, kBlocks, kChannels, kRows, kColumns, kRoles };
  using Order = std::array<Role, kRoles>;
  struct Loop {
    int axis = -1;            // of E; -1: there is no such loop
    std::string_view suffix;  // its name is the axis' and this
    int64_t span = 1;         // points of the axis that all of its iterations cover
    bool repeats = false;     // it runs more than once
    bool parallel = false;    // threads share its iterations
    [[nodiscard]] bool is_serial() const { return repeats && !parallel; }
    [[nodiscard]] bool is_shared() const { return repeats && parallel; }
  };
  TileNest(const Tiling& tiling, const Choice& choice, const Extents& extents);

  [[nodiscard]] const RegisterTile& tile() const { return tile_; }
  [[nodiscard]] bool has_column_blocks() const { return column_blocks_; }
  // Register tiles in a block of columns, or of all columns if these are one block.
  [[nodiscard]] int64_t block_tiles() const { return block_tiles_; }
  [[nodiscard]] const Loop& operator[](Role role) const { return loops_[role]; }
  // Two loops that are one: neighbours, both parallel or both not.
  [[nodiscard]] bool joins(Role first, Role second) const;
  // Points of an axis that one iteration of the parallel loop covers.
  [[nodiscard]] int64_t points_of_iteration(int axis) const;

  // Whether the last tile of channels lies apart: it has fewer vectors, and no loop that threads
  // share runs over it.
  [[nodiscard]] bool leaves_rest() const;
  [[nodiscard]] schedule::Tail channel_tail() const;
  [[nodiscard]] schedule::Tail column_tail() const;
  [[nodiscard]] schedule::Tail block_tail() const;  // of blocks of columns

  // The loops that repeat, in order; threads share the first ones. What runs is the same where
  // these are.
  struct Repeating {
    Order roles{};
    int size = 0, parallel = 0;
    bool operator==(const Repeating&) const = default;
    // As if another loop ran in the place of one.
    [[nodiscard]] Repeating with(Role by, Role instead_of) const;
  };
  [[nodiscard]] Repeating repeating() const;

  // Loops of a stage around the register tile and of it, the outermost first; threads may share so
  // many of the outer ones.
  struct Names {
    std::vector<std::string> outer, tile;
    size_t parallel = 0;
  };
  // Splits the axes of E, or of a stage that has them under these names.
  Names split(const std::string& stage, const std::vector<std::string>& axes,
              schedule::Steps& steps) const;

 private:
  // Whether the loop over groups stays among the outermost axes.
  [[nodiscard]] bool fixes(Role role) const { return role == kGroups && place_ == 0; }

  const Tiling& tiling_;
  const Choice& choice_;
  Extents extents_;
  RegisterTile tile_;
  int64_t block_tiles_ = 1;
  int64_t place_ = 0;  // of the loop over groups
  bool column_blocks_ = false;
  std::array<Loop, kRoles> loops_;  // by role
  Order order_;
};

}  // namespace hone::space
