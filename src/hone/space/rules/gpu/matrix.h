// space/rules/gpu/matrix.h - a sum of products R by matrix instructions, inside its pointwise
// epilogue E (internal to space). make_matrix.cc finds the axes, and matrix.cc appends the steps.
#pragma once

#include <algorithm>

#include "hone/space/rules/gpu/usual_values.h"

namespace hone::space {

// One of the matrices that are multiplied, left[rows, terms] or right[terms, columns], whose chunks
// are in shared memory.
struct MatrixOperand {
  std::string stage;                  // that lays the operand out
  bool packed = false;                // at compile time, and then copied to shared memory
  std::vector<std::string> outer;     // its axes before rows, columns and terms
  std::string side;                   // "rows" or "columns"
  int terms_place = 0;                // where terms are among the axes of the stage
  bool terms_are_neighbours = false;  // in global memory; else those of `side` are
  int64_t vector = 1;                 // elements that a thread copies at once
  bool is_async = false;              // copied without waiting; else through registers

  // Returns the axes in the order of the copy in shared memory. Terms may have another name there.
  [[nodiscard]] std::vector<std::string> axes(const std::string& terms = "terms") const;
  // Returns how many elements lie unused behind a row of such a length in shared memory, so that
  // the rows that are read together lie in all banks.
  [[nodiscard]] int64_t pad(int64_t row, int64_t element_bytes) const;
};

// Finds how threads copy an operand, from the stage that lays it out. Constants of which they could
// not copy 16 bytes at once are laid out anew at compile time. `last` is the axis of R that is the
// innermost digit of its rows or columns.
[[nodiscard]] MatrixOperand matrix_operand(const schedule::State& state, int index,
                                           const std::string& side, const std::string& last,
                                           const schedule::StageInfo& r);
// Returns whether asynchronous copies can copy it.
[[nodiscard]] bool is_copied_async(const schedule::State& state, const MatrixOperand& operand,
                                   const target::Gpu& gpu);
// Returns the instruction for elements of that type with sums in float32; null if there is none.
[[nodiscard]] const target::MatrixInstruction* matrix_instruction(const target::Gpu& gpu,
                                                                  DType type);

// for blocks, in parallel:
//   R, in registers of warps: for chunks of terms:
//     for threads: copies of both operands, in shared memory, several chunks ahead
//     for warps: a matrix statement
//   E: for warps: bias, activation, residual, store
// With parts of the sum, blocks of each part store what they have, and E, in a phase of its own,
// adds that up: for shapes that have too few blocks otherwise.
// The axes of R that only its left factor has are one axis of rows, those of its right factor one
// of columns (schedule/matrix_product.h).
class GpuMatrix : public Group {
 public:
  std::string epilogue, reduction;
  std::vector<std::pair<std::string, std::string>> outer;  // other axes: names in E and in R
  std::vector<std::string> rows_of_e, columns_of_e, rows_of_r, columns_of_r;
  std::vector<std::string> axes;    // all of E's, that of neighbouring results last
  std::vector<std::string> single;  // axes of E with one point that are rows or columns of R
  int64_t rows = 1, columns = 1, terms = 1, outer_points = 1;
  int64_t element_bytes = 2;
  bool rounds = false;  // float32 to tf32
  MatrixOperand left, right;
  target::Gpu gpu;
  target::MatrixInstruction instruction;
  DecisionId d_row_warps, d_column_warps;  // warps of a block along rows and columns
  DecisionId d_rows, d_columns;            // lengths of a warp's part of the result
  DecisionId d_terms;                      // length of a chunk
  DecisionId d_depth;                      // chunks in shared memory, with those copied ahead
  DecisionId d_parts;                      // parts of the sum that blocks compute by themselves
  DecisionId d_raster;                     // blocks of rows that neighbouring blocks run through
  UsualValues usual;

  [[nodiscard]] bool legal(const Choice& choice) const override;
  void set_default(MutableChoice& choice) const override { usual.set(choice); }
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;
  // Chooses among all tiles by an estimate of the time that they take.
  void find_usual(const std::vector<Decision>& decisions);

 private:
  [[nodiscard]] int64_t block_rows(const Choice& choice) const {
    return choice[d_row_warps] * choice[d_rows];
  }
  [[nodiscard]] int64_t block_columns(const Choice& choice) const {
    return choice[d_column_warps] * choice[d_columns];
  }
  [[nodiscard]] int64_t threads(const Choice& choice) const {
    return choice[d_row_warps] * choice[d_column_warps] * gpu.warp;
  }
  [[nodiscard]] int64_t depth(const MatrixOperand& operand, const Choice& choice) const {
    return operand.is_async ? choice[d_depth] : std::min<int64_t>(choice[d_depth], 2);
  }
  [[nodiscard]] int64_t registers(const Choice& choice) const;
  [[nodiscard]] int64_t shared_bytes(const Choice& choice) const;
  [[nodiscard]] double estimate(const Choice& choice) const;
  // Returns the length of a row of a chunk in shared memory.
  [[nodiscard]] int64_t row(const MatrixOperand& operand, const Choice& choice) const {
    return operand.terms_are_neighbours ? choice[d_terms] : side_extent(operand, choice);
  }
  [[nodiscard]] int64_t side_extent(const MatrixOperand& operand, const Choice& choice) const {
    return operand.side == "rows" ? block_rows(choice) : block_columns(choice);
  }
  // Two stages in tiles: the sum, and who stores it. Axes of both have these names.
  struct Tiles {
    std::string epilogue, sum;
    std::vector<std::string> outer, rows, columns, outer_of_sum;
  };
  [[nodiscard]] Tiles whole_tiles() const;
  [[nodiscard]] Tiles tiles_of_parts(const Choice& choice, schedule::Steps& steps) const;
  void append_epilogue(const Choice& choice, const Tiles& tiles, schedule::Steps& steps,
                       std::string& block) const;
  void append_sum(const Choice& choice, const Tiles& tiles, const std::string& block,
                  schedule::Steps& steps) const;
  void append_copy(const MatrixOperand& operand, const std::string& sum, const Choice& choice,
                   schedule::Steps& steps) const;
  // Appends the phase that adds the parts up.
  void append_join(schedule::Steps& steps) const;
};

}  // namespace hone::space
