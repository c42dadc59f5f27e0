// space/rules/gpu/contraction.h - a reduction R with reuse of what it reads, in tiles of a block, a
// thread and its registers, inside its pointwise epilogue E (internal to space).
// make_contraction.cc finds axes and operands, and contraction.cc appends the steps.
#pragma once

#include "hone/space/sketch.h"

namespace hone::space {

// One of E's axes that blocks divide among threads, and threads into registers.
struct BlockAxis {
  std::string name, in_sum;  // names of the axis in E and in R
  int64_t extent = 1;
  bool is_read = false;  // some operand that moves with it has no copy and must not be padded
  DecisionId d_threads, d_registers;
};

// The stage that copies one of R's operands ahead of each chunk of the sum.
struct OperandCopy {
  std::string stage;
  std::vector<std::string> axes;    // the contiguous one of the source last
  std::vector<std::string> layout;  // in shared memory
  int64_t element_bytes = 4;
  // Elements that threads copy at once if the tile and the source allow it; 1: it cannot.
  int64_t vector = 1;
  int64_t source_row = 1;  // extent of the contiguous axis
  DecisionId d_shared;     // 0: threads read the operand from global memory instead
};

// for blocks, in parallel:
//   R, in registers of all threads: for outer taps, for chunks of the sum:
//     copies of the operands, in shared memory
//     for threads: for the chunk's terms: the register tile, unrolled
//   E: for threads: the register tile: bias, activation, residual, store
class GpuContraction : public Group {
 public:
  std::string epilogue, reduction;
  std::vector<std::pair<std::string, std::string>> outer;  // untiled axes: names in E and in R
  std::vector<BlockAxis> rows;                             // outermost first; none, one or two
  BlockAxis column;                                        // the contiguous axis of the result
  DecisionId d_vector, d_blocks;    // column's registers: vectors of neighbours, in blocks
  std::vector<compute::Axis> taps;  // R's reduce axes but one, outermost first
  compute::Axis sum;                // the longest one, which is cut into chunks
  std::vector<OperandCopy> copies;
  DecisionId d_chunk, d_taps;  // length of a chunk; how many of the last taps are in it, too
  int64_t outer_points = 1;
  target::Gpu gpu;
  std::vector<int64_t> usual;  // values of all decisions of the default point, in `order`
  std::vector<DecisionId> order;

  [[nodiscard]] bool legal(const Choice& choice) const override;
  void set_default(MutableChoice& choice) const override;
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;
  // Chooses among all tiles by an estimate of the time that they take.
  void find_usual(const std::vector<Decision>& decisions);

 private:
  [[nodiscard]] int64_t registers(const Choice& choice) const;
  [[nodiscard]] int64_t threads(const Choice& choice) const;
  [[nodiscard]] int64_t shared_bytes(const Choice& choice) const;
  [[nodiscard]] double estimate(const Choice& choice) const;
  [[nodiscard]] int64_t tile(const BlockAxis& axis, const Choice& choice) const;
  [[nodiscard]] int64_t column_threads(const Choice& choice) const;
  [[nodiscard]] int64_t row_registers(const Choice& choice) const;
  [[nodiscard]] int64_t column_registers(const Choice& choice) const;
  // Returns how many points of one of R's axes a chunk of a block has.
  [[nodiscard]] int64_t points_in_chunk(const std::string& axis, const Choice& choice) const;
  [[nodiscard]] bool is_shared(const OperandCopy& copy, const Choice& choice) const {
    return choice[copy.d_shared] == 1;
  }
  [[nodiscard]] schedule::Tail tail_of(const BlockAxis& axis, const Choice& choice) const;
  void append_epilogue(const Choice& choice, schedule::Steps& steps, std::string& block) const;
  void append_sum(const Choice& choice, const std::string& block, schedule::Steps& steps) const;
  void append_copy(const OperandCopy& copy, const Choice& choice, schedule::Steps& steps) const;
};

}  // namespace hone::space
