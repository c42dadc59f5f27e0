// space/rules/cpu/contraction.h - a reduction R computed inside its pointwise epilogue E around a
// register tile (internal to space). make_contraction.cc says what of it is decided, tile_nest.h
// how E's loops lie, contraction_steps.cc which steps make them.
#pragma once

#include "hone/space/rules/cpu/panels.h"
#include "hone/space/rules/cpu/tile_nest.h"

namespace hone::space {

class Contraction : public Group, public Tiling {
 public:
  using Decided = TileDecisions;

  static constexpr int kSpareRegisters = 3;  // for what the compiler loads early
  static constexpr int kFewTaps = 4;         // in a body
  static constexpr int kLeastJoined = 6;     // points of a tile that any registers hold

  std::string epilogue, reduction, packed;   // stage names; packed = "" if no operand is packed
  std::string streamed;                      // the buffer of which lines are prefetched
  std::vector<std::string> reduction_names;  // R's name of each of E's axes
  std::vector<compute::Axis> reduce;         // R's reduce axes, innermost by rule last
  std::vector<std::string> packed_axes;      // axes of the packed operand
  bool reuses = false;                       // some operand does not move with the vector lanes
  int registers = 16;
  int lanes = 8;
  int cores = 1;
  bool by_rows = false;      // another stage is computed inside the parallel loop, over rows
  bool row_lanes = false;    // the lanes run along another axis than the results' innermost one
  bool dear_rests = false;   // of channels of computed operands: where masks are no instructions
  bool from_memory = false;  // `streamed` is larger than half of the shared cache
  int64_t line = 0;          // elements of a cache line; 0: the lanes' operand is read in one piece
  bool tests_data = false;   // some data are read under a condition, as at a border
  // Zeros around the data may be left out, in which case a column by itself is told from others.
  bool skips_zeros = false;
  enum PanelPlace : uint8_t {
    kNone,
    kPhase,  // all of it, ahead of E
    kNear,   // what one block of the sum needs, or else what E's parallel iteration does
  };
  std::optional<Panels> panels;
  int64_t near_bytes = 1 << 20;  // of a core's own cache

  [[nodiscard]] bool legal(const Choice& choice) const override;
  void set_default(MutableChoice& choice) const override;
  void canonicalise(MutableChoice& choice) const override { canonicalise(choice, whole(), true); }
  // `reorders`: loops may change places if the program stays the same.
  void canonicalise(MutableChoice& choice, const Extents& extents, bool reorders) const;
  // The register tile that wastes least of a block of so many columns and channels.
  void set_tile(MutableChoice& choice, int64_t columns, int64_t channels) const;
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;

  // E's parallel loop, if it runs over rows.
  [[nodiscard]] std::string rows_loop() const;
  // Multiply-adds of the straight code of a whole register tile.
  [[nodiscard]] int64_t body(const Choice& choice) const;
  // Points of the small reduce axes (a kernel's window).
  [[nodiscard]] int64_t taps() const;

 private:
  [[nodiscard]] TileNest nest(const Choice& choice) const { return {*this, choice, whole()}; }
  void set_default_blocks(MutableChoice& choice) const;
  // Cycles that the cache lines of one term of the sum take, where rows lie apart: a tile of
  // columns reads all of them, a tile's last one may be the next one's first, and a first one is
  // waited for.
  [[nodiscard]] double line_cycles(int64_t column, int64_t vectors) const;
  // Of `tile` points by `vectors`; a vector that one point uses may stay in memory.
  [[nodiscard]] int64_t operand_registers(int64_t tile, int64_t vectors) const {
    return reuses && !(row_lanes && tile == 1) ? vectors + 1 : 2;
  }
  // Whether blocks of columns and of the sum, and panels, can gain anything and fit near by.
  [[nodiscard]] bool blocks_legal(const Choice& choice) const;
  // Makes the loops those, by the first order and depth that do; whether any does.
  bool take_first(const TileNest::Repeating& loops, const Extents& extents,
                  MutableChoice& choice) const;

  [[nodiscard]] bool taps_unrolled(const Choice& choice) const {
    return or_zero(choice, Decided::kTaps) != 0;
  }
  // Whether a body of unrolled taps takes its vectors one after the other, each with all taps.
  [[nodiscard]] bool vectors_outside(const Choice& choice) const;
  // Whether R's last reduce axis runs around its others.
  [[nodiscard]] bool last_outside(const Choice& choice) const {
    return value(choice, Decided::kReduceOrder) == 1 && reduce.size() > 1;
  }
  // Terms of the sum's longest axis that are added up at a time.
  [[nodiscard]] int64_t terms(const Choice& choice) const;

  // E's loops; those around the register tile, and the parallel one.
  [[nodiscard]] TileNest::Names append_epilogue(const TileNest& nest, schedule::Steps& steps,
                                                std::string& parallel) const;
  // R as the sum of its blocks, in memory near by; the loop that a block's sum is computed in.
  [[nodiscard]] std::string append_sums(const TileNest& nest, const std::string& parallel,
                                        schedule::Steps& steps) const;
  // The sum around the register tile, of all terms or of a block: stage `sum`.
  void append_reduction(const Choice& choice, const std::string& sum, schedule::Steps& steps) const;
  // The order of its loops, and how many of them, the outermost, run along the sum.
  [[nodiscard]] std::vector<std::string> reduction_loops(const Choice& choice,
                                                         size_t& along_sum) const;
  // The dimensions of the packed operand, in the order in which R reads it.
  [[nodiscard]] std::vector<std::string> packed_layout(const Choice& choice) const;
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

// What of it is open (contraction_decisions.cc); `blocks` as in the options.
void add_decisions(SketchBuilder& builder, const schedule::StageInfo& e,
                   const schedule::StageInfo& r, bool blocks, Contraction& group);

// A stage that copies what `reader` reads of a buffer, ahead of it; "" if it cannot be copied.
[[nodiscard]] std::string add_copy(SketchBuilder& builder, std::string buffer,
                                   const std::string& reader);
// A stage's axes with more than one point.
[[nodiscard]] std::vector<std::string> long_axes(const SketchBuilder& builder,
                                                 const std::string& stage);

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
