// space/rules/cpu/contraction.h - a reduction R computed inside its pointwise epilogue E around a
// register tile (internal to space). contraction_decisions.cc adds its decisions, tile_nest.h
// describes E's loops, and contraction_steps.cc appends the steps that make them.
#pragma once

#include "hone/space/rules/cpu/panels.h"
#include "hone/space/rules/cpu/tile_nest.h"
#include "hone/space/rules/roots.h"

namespace hone::space {

class Contraction : public Group, public Tiling {
 public:
  using Decided = TileDecisions;

  static constexpr int kSpareRegisters = 3;  // registers for values that the compiler loads early
  // With so few taps in a straight-line body memory is the limit.
  static constexpr int kFewTaps = 4;
  // Points of a tile of joined groups that fit any registers.
  static constexpr int kLeastJoined = 6;

  std::string epilogue, reduction, packed;   // stage names; packed = "" if no operand is packed
  std::string streamed;                      // the buffer whose lines are prefetched
  std::vector<std::string> reduction_names;  // R's name of each of E's axes
  std::vector<compute::Axis> reduce;         // R's reduce axes, the last one innermost by default
  std::vector<std::string> packed_axes;      // axes of the packed operand
  bool reuses = false;                       // some operand does not move with the vector lanes
  int registers = 16;
  int lanes = 8;
  int cores = 1;
  bool by_rows = false;          // another stage is computed inside the parallel loop, over rows
  bool row_lanes = false;        // the lanes run along another axis than the results' innermost one
  bool slow_remainders = false;  // remainders of channels are slow, without masked loads and stores
  bool from_memory = false;      // `streamed` is larger than half of the shared cache
  int64_t line = 0;         // elements of a cache line; 0: the lanes' operand is read in one piece
  bool tests_data = false;  // some data are read under a condition, as at a border
  // Known zeros around the data may be skipped, in which case tiles of one column differ from one
  // another.
  bool skips_zeros = false;
  enum PanelPlace : uint8_t {
    kNone,
    kPhase,  // all panels, in a phase ahead of E
    // The panels that a block of the sum needs or, without blocks, an iteration of E's parallel
    // loop.
    kNear,
  };
  std::optional<Panels> panels;
  int64_t near_bytes = 1 << 20;  // size of a core's own cache

  [[nodiscard]] bool legal(const Choice& choice) const override;
  void set_default(MutableChoice& choice) const override;
  void canonicalise(MutableChoice& choice) const override { canonicalise(choice, whole(), true); }
  // Makes the choice canonical for a nest of these extents. If it `reorders`, loops may change
  // places as long as the program stays the same.
  void canonicalise(MutableChoice& choice, const Extents& extents, bool reorders) const;
  // Chooses the register tile that wastes least of a block of so many columns and channels.
  void set_tile(MutableChoice& choice, int64_t columns, int64_t channels) const;
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;

  // Returns the name of E's parallel loop, which must run over rows.
  [[nodiscard]] std::string rows_loop() const;
  // Returns the number of multiply-adds in the straight-line code of a whole register tile.
  [[nodiscard]] int64_t body(const Choice& choice) const;
  // Returns the number of points of the small reduce axes (a kernel's window).
  [[nodiscard]] int64_t taps() const;

 private:
  [[nodiscard]] TileNest nest(const Choice& choice) const { return {*this, choice, whole()}; }
  void set_default_blocks(MutableChoice& choice) const;
  // Returns the cycles that the cache lines of one term of the sum take if rows lie apart: a tile
  // of columns reads all of them, a tile's last one may be the next one's first, and a first one is
  // waited for.
  [[nodiscard]] double line_cycles(int64_t column, int64_t vectors) const;
  // Returns the registers for the operands of a tile of `tile` points by `vectors`. A vector that
  // only one point uses may stay in memory.
  [[nodiscard]] int64_t operand_registers(int64_t tile, int64_t vectors) const {
    return reuses && !(row_lanes && tile == 1) ? vectors + 1 : 2;
  }
  // Returns whether blocks of columns and of the sum, and panels, can gain anything and fit in a
  // core's own cache.
  [[nodiscard]] bool blocks_legal(const Choice& choice) const;
  // Chooses the first order and depth that make the loops `loops`. Returns whether there is one.
  bool take_first(const TileNest::Repeating& loops, const Extents& extents,
                  MutableChoice& choice) const;

  [[nodiscard]] bool taps_unrolled(const Choice& choice) const {
    return or_zero(choice, Decided::kTaps) != 0;
  }
  // Returns whether a body of unrolled taps takes its vectors one after the other, each with all
  // taps.
  [[nodiscard]] bool vectors_outside(const Choice& choice) const;
  // Returns whether R's last reduce axis runs around its others.
  [[nodiscard]] bool last_outside(const Choice& choice) const {
    return value(choice, Decided::kReduceOrder) == 1 && reduce.size() > 1;
  }
  // Returns the number of terms of the sum's longest axis that are added up at a time.
  [[nodiscard]] int64_t terms(const Choice& choice) const;

  // Appends the steps of E's loops. Returns the loop around the register tile, and sets `parallel`
  // to the parallel loop.
  [[nodiscard]] std::string append_epilogue(const TileNest& nest, schedule::Steps& steps,
                                            std::string& parallel) const;
  // Appends the steps that make R the sum of its blocks, inside the loop `parallel`. Returns the
  // loop in which a block's sum is computed.
  [[nodiscard]] std::string append_sums(const TileNest& nest, const std::string& parallel,
                                        schedule::Steps& steps) const;
  // Appends the steps of stage `sum`, which computes the sum of all terms, or of a block, for a
  // register tile.
  void append_reduction(const Choice& choice, const std::string& sum, schedule::Steps& steps) const;
  // Returns its loops in order, and sets `along_sum` to the number of outer loops around the
  // register tile.
  [[nodiscard]] std::vector<std::string> reduction_loops(const Choice& choice,
                                                         size_t& along_sum) const;
  // Returns the dimensions of the packed operand, in the order in which R reads it.
  [[nodiscard]] std::vector<std::string> packed_layout(const Choice& choice) const;
};

// Returns the number of terms of each of n blocks of a sum; the last block may have fewer.
[[nodiscard]] int64_t block_of_sum(int64_t extent, int64_t n);

struct ContractionOptions {
  bool nested = false;
  bool by_rows = false;  // its parallel loop runs over blocks of rows, whole in their channels
  int vector = -1;       // E's axis along the lanes; -1: the axis whose results are contiguous
  size_t fixed = 0;      // number of E's leading axes that stay outermost and untiled
  std::vector<std::string> outer = {};  // names of further axes that stay outermost and untiled
  bool fixed_groups = false;            // groups, which share no operand, stay outermost, too
  // R has a condition, as some points of its outermost axis have shorter sums.
  bool ends_early = false;
  // The stage that makes the constant operand. If it is "", a copy is added where possible.
  std::string packed = {};
  bool blocks = false;  // columns and the sum may be cut into blocks, an operand copied into panels
};
// Adds the structural steps and decisions of a contraction. Returns null if the stages are no
// contraction. The caller adds the group.
[[nodiscard]] std::shared_ptr<Contraction> make_contraction(SketchBuilder& builder,
                                                            const std::string& epilogue,
                                                            const std::string& reduction,
                                                            const ContractionOptions& options = {});

// Adds the decisions that the task leaves open (contraction_decisions.cc). `blocks` is that of
// ContractionOptions.
void add_decisions(SketchBuilder& builder, const schedule::StageInfo& e,
                   const schedule::StageInfo& r, bool blocks, Contraction& group);

// Adds a stage ahead of `reader` that copies what it reads of a buffer. Returns the name of the
// stage, or "" if the buffer cannot be copied.
[[nodiscard]] std::string add_copy(SketchBuilder& builder, std::string buffer,
                                   const std::string& reader);
// Returns the names of a stage's axes with more than one point.
[[nodiscard]] std::vector<std::string> long_axes(const SketchBuilder& builder,
                                                 const std::string& stage);

// Returns E's axis of rows that suits the vector lanes better than its few columns (row_lanes.cc),
// or -1 if there is none. `names` are the names of E's axes in R.
[[nodiscard]] int row_lanes_axis(const SketchBuilder& builder, const schedule::StageInfo& e,
                                 const schedule::StageInfo& r,
                                 const std::vector<std::string>& names);

// Returns the read of the largest constant operand of R that is worth packing: it moves with `axis`
// (position in r.axes), and each of its dimensions is a single axis. Returns null if there is none.
[[nodiscard]] const compute::Access* packable(const schedule::State& state,
                                              const schedule::StageInfo& r, int axis);

// Estimates the cycles per row that one term of the sum takes for all columns and channels, tails
// counted, with register tiles of column x rows points by vectors x lanes channels: lower is
// better.
[[nodiscard]] double tile_cost(int64_t column, int64_t vectors, int64_t lanes, int64_t columns,
                               int64_t channels, bool reuses, int64_t rows);

}  // namespace hone::space
