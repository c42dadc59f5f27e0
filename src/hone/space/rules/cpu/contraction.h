// space/rules/cpu/contraction.h - the steps of a reduction R computed inside its pointwise epilogue
// E around a register tile (internal to space; make_contraction.cc says how the loops lie).
#pragma once

#include <algorithm>
#include <array>

#include "hone/space/rules/cpu/panels.h"
#include "hone/space/sketch.h"

namespace hone::space {

// The axes of E by what the rule does with them.
struct Roles {
  int vector = -1;         // along the vector lanes
  int column = -1;         // innermost other axis: register tile
  int row = -1;            // the one before: small register tile and a cache block
  std::vector<int> outer;  // the rest
  int groups = -1;         // one of `outer`, along which no operand is shared
};

// Points that E's loops run through: all, or those of a block if E is computed inside of one.
struct Extents {
  int64_t channels = 1, columns = 1, rows = 1;
};

class Contraction : public Group {
 public:
  static constexpr int kSpareRegisters = 3;  // for what the compiler loads early
  static constexpr int kFewTaps = 4;         // in a body
  static constexpr int kLeastJoined = 6;     // points of a tile that any registers hold

  std::string epilogue, reduction, packed;   // stage names; packed = "" if no operand is packed
  std::string streamed;                      // the buffer of which d_ahead prefetches
  std::vector<compute::Axis> axes;           // of E
  std::vector<std::string> reduction_names;  // R's name of each of E's axes
  std::vector<compute::Axis> reduce;         // R's reduce axes, innermost by rule last
  std::vector<std::string> packed_axes;      // axes of the packed operand
  Roles roles;
  bool reuses = false;  // some operand does not move with the vector lanes
  int registers = 16;
  int lanes = 8;
  int cores = 1;
  bool joinable = false;     // results of neighbouring groups are neighbours
  bool pad_vector = false;   // only the packed operand moves with the lanes
  bool nested = false;       // E is computed inside a loop of another stage: nothing is parallel
  bool by_rows = false;      // another stage is computed inside the parallel loop, over rows
  bool row_lanes = false;    // the lanes run along another axis than the results' innermost one
  bool dear_rests = false;   // of channels of computed operands: where masks are no instructions
  bool from_memory = false;  // `streamed` is larger than half of the shared cache
  int64_t line = 0;          // elements of a cache line; 0: the lanes' operand is read in one piece
  bool tests_data = false;   // some data are read under a condition, as at a border
  // Zeros around the data may be left out, in which case a column by itself is told from others.
  bool skips_zeros = false;
  // The last tile of channels lies apart in any case, as only it has tests.
  bool rest_peeled = false;
  // decisions; -1 if there is nothing to decide
  int d_lanes = -1, d_vectors = -1, d_column = -1, d_row = -1, d_block = -1;
  int d_blocks = -1;  // of vm * v channels that are packed side by side, for a loop around E
  int d_order = -1, d_parallel = -1, d_unroll = -1, d_taps = -1, d_reduce_order = -1, d_tail = -1;
  // 1: the last tile of channels lies apart, if it can; 0: it is a whole one.
  int d_rest = -1;
  // Where the loop over groups lies: 0: outermost; 1: inside of the blocks of rows, as neighbouring
  // groups read parts of the same lines; 2: inside of the rows and columns.
  int d_groups = -1;
  // So many groups, of few channels each, fill a vector; 1: a vector is one group's.
  int d_join = -1;
  // 1: code without tests for all tiles of channels but the last, if that is no whole one.
  int d_last = -1;
  // Iterations of the sum's outer loop by which the first line of what one reads of `streamed` is
  // prefetched; 0: not.
  int d_ahead = -1;
  // Blocks of columns, the outermost of E's loops where there are no rows: their number. With
  // threads that share channels, too, they are a grid.
  int d_bands = -1;
  // Blocks that the longest axis of the sum is cut into: their number. What a parallel iteration
  // computes is summed up block by block, so that a block's operands stay near.
  int d_sums = -1;
  // Where the operand that moves with the lanes is copied into panels, if it is no constant.
  int d_panels = -1;
  enum PanelPlace : uint8_t {
    kNone,
    kPhase,  // all of it, ahead of E
    kNear,   // what one block of the sum needs, or else what E's parallel iteration does
  };
  std::optional<Panels> panels;
  [[nodiscard]] int64_t panel_place(const Choice& choice) const {
    return d_panels < 0 ? int64_t{kNone} : choice[d_panels];
  }
  int64_t near_bytes = 1 << 20;  // of a core's own cache

  [[nodiscard]] bool legal(const Choice& choice) const override {
    const int64_t tile = value(choice, d_column) * value(choice, d_row);
    const int64_t vectors = value(choice, d_vectors);
    const int64_t accumulators = tile * vectors;
    // Operands that wait in registers: the vectors of the packed operand and, if the instruction
    // cannot read a broadcast from memory, one broadcast.
    const int64_t operands = operand_registers(tile, vectors);
    if (accumulators + operands > registers) return false;
    // Data of several groups are permuted into registers, which the taps of a window share.
    const int64_t most = std::max<int64_t>(kLeastJoined, registers / 4);
    if (joined(choice) > 1 &&
        (vectors > 1 || choice[d_lanes] != lanes || tile > most || value(choice, d_sums) > 1))
      return false;
    if (choice[d_vectors] > 1 &&
        (choice[d_vectors] - 1) * choice[d_lanes] >= axes[roles.vector].extent)
      return false;
    // Beyond, compile time and the instruction cache suffer.
    return body(choice) <= 768 && blocks_legal(choice);
  }
  // Multiply-adds of the straight code of a whole register tile.
  [[nodiscard]] int64_t body(const Choice& choice) const {
    return value(choice, d_column) * value(choice, d_row) * value(choice, d_vectors) *
           value(choice, d_unroll) * (taps_unrolled(choice) ? taps() : 1);
  }

  void set_default(std::vector<int>& choices) const override;
  void canonicalise(std::vector<int>& choices) const override {
    canonicalise(choices, whole(), true);
  }
  // `reorders`: loops may change places if the program stays the same.
  void canonicalise(std::vector<int>& choices, const Extents& extents, bool reorders) const;
  [[nodiscard]] Extents whole() const;
  // The register tile that wastes least of a block of so many columns and channels.
  void set_tile(std::vector<int>& choices, int64_t columns, int64_t channels) const;
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;
  // E's parallel loop, if it runs over rows.
  [[nodiscard]] std::string rows_loop() const;

  [[nodiscard]] static int64_t value(const Choice& choice, int decision) {
    return decision < 0 ? 1 : choice[decision];
  }
  // Cycles that the cache lines of one term of the sum take, where rows lie apart: a tile of
  // columns reads all of them, a tile's last one may be the next one's first, and a first one is
  // waited for.
  [[nodiscard]] double line_cycles(int64_t column, int64_t vectors) const;
  // Of `tile` points by `vectors`; a vector that one point uses may stay in memory.
  [[nodiscard]] int64_t operand_registers(int64_t tile, int64_t vectors) const {
    return reuses && !(row_lanes && tile == 1) ? vectors + 1 : 2;
  }
  [[nodiscard]] bool taps_unrolled(const Choice& choice) const {
    return d_taps >= 0 && choice[d_taps] != 0;
  }
  // Whether a body of unrolled taps takes its vectors one after the other, each with all taps. Side
  // by side, each point of the tile holds an accumulator and a vector of data that taps share, and
  // each vector a weight: where registers lack for that, but not for one vector's data at a time.
  // With few taps memory is the limit, and lines side by side are best read together.
  [[nodiscard]] bool vectors_outside(const Choice& choice) const {
    const int64_t tile = value(choice, d_column) * value(choice, d_row);
    const int64_t vectors = value(choice, d_vectors);
    const int64_t most = registers - kSpareRegisters;
    return !reuses && taps_unrolled(choice) && taps() * value(choice, d_unroll) > kFewTaps &&
           vectors > 1 && (2 * tile + 1) * vectors > most && (vectors + 1) * tile + 1 <= most;
  }
  // Points of the small reduce axes (a kernel's window).
  [[nodiscard]] int64_t taps() const {
    int64_t product = 1;
    for (size_t i = 0; i + 1 < reduce.size(); ++i) product *= reduce[i].extent;
    return product;
  }
  std::vector<Decision> own_decisions;  // a copy of the options, for the rule of thumb

  // Terms of the sum's longest axis that are added up at a time.
  [[nodiscard]] int64_t terms(const Choice& choice) const;

 private:
  // The option nearest to what is wanted of a decision, if there is one.
  void set_nearest(std::vector<int>& choices, int decision, int64_t wanted) const;
  void set_default_blocks(std::vector<int>& choices) const;
  // Loops of E, or of R where it adds up blocks: around the register tile and of it.
  struct TileLoops {
    std::vector<std::string> outer, inner;
    size_t fixed = 0;  // so many of `outer` are ahead of loop_order()'s
  };
  // Splits the axes of a stage, which has them under these names.
  [[nodiscard]] TileLoops append_tiles(const Choice& choice, const std::string& stage,
                                       const std::vector<std::string>& names,
                                       schedule::Steps& steps) const;
  // E's loops; those around the register tile, and the parallel one.
  [[nodiscard]] TileLoops append_epilogue(const Choice& choice, schedule::Steps& steps,
                                          std::string& parallel) const;
  // R as the sum of its blocks, in memory near by; the loop that a block's sum is computed in.
  [[nodiscard]] std::string append_sums(const Choice& choice, const std::string& parallel,
                                        schedule::Steps& steps) const;
  // The sum around the register tile, of all terms or of a block: stage `sum`.
  void append_reduction(const Choice& choice, const std::string& sum, schedule::Steps& steps) const;
  // The dimensions of the packed operand, in the order in which R reads it.
  [[nodiscard]] std::vector<std::string> packed_layout(const Choice& choice) const;
  // Whether the last tile of channels lies apart: it has fewer vectors, and no loop that threads
  // share runs over it.
  [[nodiscard]] bool rest_apart(const Choice& choice, int64_t channels) const;
  [[nodiscard]] schedule::Tail channel_tail(const Choice& choice) const;
  // Whether threads share the loop over tiles of channels.
  [[nodiscard]] bool shares_channels(const Choice& choice) const;
  // Whether R's last reduce axis runs around its others.
  [[nodiscard]] bool last_outside(const Choice& choice) const {
    return value(choice, d_reduce_order) == 1 && reduce.size() > 1;
  }

  // E's loops around the register tile and inside of the outer axes.
  enum OuterLoop : uint8_t { kBlocks, kChannels, kRows, kColumns, kGroups, kOuterLoops };
  using LoopOrder = std::array<OuterLoop, kOuterLoops>;
  using Runs = std::array<bool, kOuterLoops>;  // those that run more than once
  [[nodiscard]] static const LoopOrder& loop_order(int64_t order, int64_t groups);
  [[nodiscard]] bool has(OuterLoop loop, bool bands) const {
    if (loop == kGroups) return d_groups >= 0;
    if (loop == kBlocks) return roles.row >= 0 || bands;
    return loop == kChannels || (loop == kColumns ? roles.column : roles.row) >= 0;
  }
  [[nodiscard]] int64_t groups_place(const Choice& choice) const {
    return d_groups < 0 ? 0 : choice[d_groups];
  }
  [[nodiscard]] int64_t joined(const Choice& choice) const { return value(choice, d_join); }
  [[nodiscard]] int64_t column_tiles(const Choice& choice) const;
  // Register tiles of a block of columns; all if there is one block.
  [[nodiscard]] int64_t band(const Choice& choice) const;
  [[nodiscard]] bool has_bands(const Choice& choice) const {
    return d_bands >= 0 && band(choice) < column_tiles(choice);
  }
  // Those that run more than once, in order, and how many of them the parallel loop takes.
  struct Nest {
    LoopOrder loops{};
    int size = 0, parallel = 0;
    bool operator==(const Nest&) const = default;
    [[nodiscard]] bool runs_serially(OuterLoop loop) const;
    // Two loops that are one: neighbours, both parallel or both not.
    [[nodiscard]] bool joins(OuterLoop first, OuterLoop second) const;
  };
  [[nodiscard]] Runs runs_of(const Choice& choice, const Extents& extents) const;
  [[nodiscard]] Nest nest(const Choice& choice, const Runs& runs) const;
  // Whether blocks of columns and of the sum, and panels, can gain anything and fit near by.
  [[nodiscard]] bool blocks_legal(const Choice& choice) const;
};

// Terms of each of n blocks of a sum; the last may have fewer.
[[nodiscard]] int64_t block_of_sum(int64_t extent, int64_t n);

struct ContractionOptions {
  bool nested = false;
  bool by_rows = false;  // its parallel loop runs over blocks of rows, whole in their channels
  int vector = -1;       // E's axis along the lanes; -1: along which results are neighbours
  size_t fixed = 0;      // so many of E's leading axes stay outermost and untiled
  std::vector<std::string> outer = {};  // and these
  bool fixed_groups = false;            // likewise groups, which share no operand
  bool ends_early = false;  // some points of R's outermost axis have shorter sums, which it tests
  // The stage that makes the constant operand; "": a copy is made if one can be.
  std::string packed = {};
  bool blocks = false;  // columns and the sum may be cut into blocks, an operand copied into panels
};
// Adds the structural steps and decisions of a contraction; null if the stages are none. The caller
// adds the group.
[[nodiscard]] std::shared_ptr<Contraction> make_contraction(SketchBuilder& builder,
                                                            const std::string& epilogue,
                                                            const std::string& reduction,
                                                            const ContractionOptions& options = {});

// E's axis for each of R's spatial axes, as the name that it has in R; nothing unless they
// correspond one to one.
[[nodiscard]] std::optional<std::vector<std::string>> match_axes(const schedule::StageInfo& e,
                                                                 const schedule::StageInfo& r);

// E's axis of rows that suit the vector lanes better than its few columns (row_lanes.cc),
// whose names in R are `names`; -1 if there is none.
[[nodiscard]] int row_lanes_axis(const SketchBuilder& builder, const schedule::StageInfo& e,
                                 const schedule::StageInfo& r,
                                 const std::vector<std::string>& names);

// The largest constant operand of R that moves with an axis (position in r.axes) and whose
// dimensions are single axes: worth packing; null if there is none.
[[nodiscard]] const compute::Access* packable(const schedule::State& state,
                                              const schedule::StageInfo& r, int axis);

// Instructions per useful multiply-add of a register tile of column x rows points by vectors x
// lanes channels, tails counted: lower is better.
[[nodiscard]] double tile_cost(int64_t column, int64_t vectors, int64_t lanes, int64_t columns,
                               int64_t channels, bool reuses, int64_t rows);

}  // namespace hone::space
