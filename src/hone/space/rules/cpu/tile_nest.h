// space/rules/cpu/tile_nest.h - the loops of a reduction's epilogue E around a register tile
// (internal to space). A Tiling names the axes that may be tiled and the decisions about them; a
// TileNest is the loops of one choice: their order, which of them threads share, the points of E's
// axes that each covers, and how a shorter last tile is run. Legality, the canonical form, the
// steps and the estimates of traffic ask it, and nothing else knows how loops are nested.
#pragma once

#include <array>

#include "hone/space/rules/cpu/loop_nest.h"

namespace hone::space {

// The decisions about a tiled nest, by role. A task leaves only some of them open.
class TileDecisions {
 public:
  enum Role : uint8_t {
    kLanes,    // lanes of a vector of channels
    kVectors,  // vectors of channels of the register tile
    kColumn,   // columns of the register tile
    kRow,      // rows of the register tile
    kBlock,    // register tiles in a block of rows
    // Number of blocks of columns, the outermost of E's loops where there are no rows. If threads
    // also share channels, blocks of columns and tiles of channels form a grid.
    kColumnBlocks,
    kJoin,         // number of groups, of few channels each, that fill a vector
    kOrder,        // order of the loops
    kGroups,       // place of the loop over groups
    kParallel,     // number of outer loops that threads share
    kTail,         // 1: the last tile of columns is peeled; 0: masked
    kRest,         // 1: the last tile of channels is peeled, if it can be
    kLast,         // 1: only the last tile of channels is tested, if not whole; 0: all are masked
    kUnroll,       // terms of the sum in straight-line code
    kTaps,         // 1: a window's taps are in straight-line code, too
    kReduceOrder,  // 1: the longest axis of the sum runs around its others
    // Number of blocks that the longest axis of the sum is cut into. The results of a parallel
    // iteration are summed up block by block, so that a block's operands stay in the cache.
    kSumBlocks,
    // Number of iterations of the sum's outer loop by which the streamed operand is prefetched: the
    // first line of what an iteration reads. 0: there is no prefetching.
    kAhead,
    kPanels,        // Contraction::PanelPlace of the operand along the lanes, if no constant
    kPackedBlocks,  // blocks of vectors * lanes channels packed side by side
    kRoles
  };
  // Adds the decision of a role. The arguments are those of SketchBuilder::add_decision.
  void add(SketchBuilder& builder, const std::string& stage, Role role,
           std::vector<int64_t> options, int64_t extent = 0, bool scales = false);
  // Makes a decision that the caller has added that of a role.
  void share(Role role, DecisionId decision) { decisions_[role] = decision; }
  [[nodiscard]] bool has(Role role) const { return decisions_[role].is_open(); }
  [[nodiscard]] DecisionId operator[](Role role) const { return decisions_[role]; }

 private:
  std::array<DecisionId, kRoles> decisions_;
};

// The axes of E by what the nest does with them; -1: there is none.
struct Roles {
  int vector = -1;         // along the vector lanes: channels
  int column = -1;         // innermost other axis: register tile
  int row = -1;            // the one before: small register tile and a cache block
  std::vector<int> outer;  // the rest
  int groups = -1;         // one of `outer`, along which no operand is shared
};

// The numbers of points that E's loops run through: all, or those of a block if E is computed
// inside of one.
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
  std::vector<compute::Axis> axes;  // axes of E
  Roles roles;
  bool nested = false;      // E is computed inside a loop of another stage: nothing is parallel
  bool pad_vector = false;  // channels behind the last one may be computed: nobody reads them
  // The last tile of channels is always peeled, so that only it has tests.
  bool rest_peeled = false;
  TileDecisions decisions;

  [[nodiscard]] bool has(TileDecisions::Role role) const { return decisions.has(role); }
  [[nodiscard]] int64_t value(const Choice& choice, TileDecisions::Role role) const {
    return choice[decisions[role]];
  }
  // Returns the value of a switch or a place, which is 0 where there is no choice.
  [[nodiscard]] int64_t or_zero(const Choice& choice, TileDecisions::Role role) const {
    return choice.or_zero(decisions[role]);
  }
  [[nodiscard]] RegisterTile tile_of(const Choice& choice) const;
  // Returns the extent of an axis; 1 for axis -1.
  [[nodiscard]] int64_t extent(int axis) const {
    return axis < 0 ? 1 : axes[static_cast<size_t>(axis)].extent;
  }
  [[nodiscard]] Extents whole() const {
    return {extent(roles.vector), extent(roles.column), extent(roles.row)};
  }
};

class TileNest {
 public:
  // The loops around the register tile, inside of the axes that stay outermost. Blocks are blocks
  // of rows, or of columns where there are no rows.
  enum Role : uint8_t { kGroups, kBlocks, kChannels, kRows, kColumns, kRoles };
  using Order = std::array<Role, kRoles>;
  struct Loop {
    int axis = -1;            // axis of E; -1: there is no such loop
    std::string_view suffix;  // end of its name, which begins with that of the axis
    int64_t span = 1;         // points of the axis that all of its iterations cover
    bool repeats = false;     // the loop runs more than once
    bool parallel = false;    // threads share its iterations
    [[nodiscard]] bool is_serial() const { return repeats && !parallel; }
    [[nodiscard]] bool is_shared() const { return repeats && parallel; }
  };
  TileNest(const Tiling& tiling, const Choice& choice, const Extents& extents);

  [[nodiscard]] const RegisterTile& tile() const { return tile_; }
  [[nodiscard]] bool has_column_blocks() const { return column_blocks_; }
  // Returns the number of register tiles in a block of columns, or in all columns if these are one
  // block.
  [[nodiscard]] int64_t block_tiles() const { return block_tiles_; }
  [[nodiscard]] const Loop& operator[](Role role) const { return loops_[role]; }
  // Returns whether `second` follows `first` and both are parallel or both are not, so that they
  // are in effect one loop.
  [[nodiscard]] bool joins(Role first, Role second) const;
  // Returns the number of points of an axis that one iteration of the parallel loop covers.
  [[nodiscard]] int64_t points_of_iteration(int axis) const;

  // Returns whether the last tile of channels is peeled by the decision kRest: it has fewer
  // vectors, and threads do not share the loop over channels.
  [[nodiscard]] bool leaves_rest() const;
  [[nodiscard]] schedule::Tail channel_tail() const;
  [[nodiscard]] schedule::Tail column_tail() const;
  [[nodiscard]] schedule::Tail block_tail() const;  // tail of the blocks of columns

  // The loops that run more than once, in order; threads share the first ones. Nests with equal
  // tiles run the same program if these loops are equal.
  struct Repeating {
    Order roles{};
    int size = 0, parallel = 0;
    bool operator==(const Repeating&) const = default;
    // Returns these loops with `by` in the place of `instead_of`.
    [[nodiscard]] Repeating with(Role by, Role instead_of) const;
  };
  [[nodiscard]] Repeating repeating() const;

  // Appends the splits of the axes of E, or of a stage that has them under these names. Returns the
  // loops around the register tile and in it.
  LoopNest split(const std::string& stage, const std::vector<std::string>& axes,
                 schedule::Steps& steps) const;

 private:
  // Returns whether a role is the loop over groups and stays among the outermost axes.
  [[nodiscard]] bool fixes(Role role) const { return role == kGroups && place_ == 0; }

  const Tiling& tiling_;
  const Choice& choice_;
  Extents extents_;
  RegisterTile tile_;
  int64_t block_tiles_ = 1;
  int64_t place_ = 0;  // place of the loop over groups
  bool column_blocks_ = false;
  std::array<Loop, kRoles> loops_;  // by role
  Order order_;
};

}  // namespace hone::space
