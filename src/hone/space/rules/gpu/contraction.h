// space/rules/gpu/contraction.h - a reduction R with reuse of what it reads, in tiles of a block, a
// thread and its registers, inside its pointwise epilogue E (internal to space).
// make_contraction.cc finds axes and operands, and contraction.cc appends the steps.
#pragma once

#include "hone/space/rules/gpu/usual_values.h"

namespace hone::space {

inline constexpr int64_t kMostUnrolled = 1024;  // multiply-adds of a chunk in straight-line code
inline constexpr int64_t kBankBytes = 16;       // rows in shared memory are so far apart in banks

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
  bool is_async = false;   // asynchronous copies can do it, and the device has them
  DecisionId d_shared;     // 0: threads read the operand from global memory instead
};

// The stages and loops that a choice of parts of the sum leads to: E and R, or, if there are
// several parts, which E then joins, the stages of these.
struct ContractionNames {
  std::string epilogue, reduction;
  std::vector<std::pair<std::string, std::string>> outer;  // untiled axes: names in both
  bool is_part = false;
  std::string slice = {};  // the axis of the parts if a block's groups of threads compute them
};

// for blocks, in parallel:
//   R, in registers of all threads: for outer taps, for chunks of the sum:
//     copies of the operands, in shared memory, some chunks ahead
//     for threads: for the chunk's terms: the register tile, unrolled
//   E: for threads: the register tile: bias, activation, residual, store
// Where these are too few blocks, each computes a part of the sum, R.rf, and E joins the parts:
// for blocks, in parallel: for threads: a vector of points: the sum of the parts, and E
// Or groups of a block's threads compute parts, of every so many terms, and join them in shared
// memory: chunks are fewer then, and a block has more warps to hide what each waits for.
// for blocks, in parallel:
//   R.rf, in registers: for chunks:  copies;  for groups: for threads: the terms of the group
//   R.rf, in shared memory: for groups: for threads: the register tile
//   E: for threads: a vector of points: the sum of the parts, and E
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
  DecisionId d_chunk, d_taps;     // length of a chunk; how many of the last taps are in it, too
  DecisionId d_depth;             // chunks in shared memory at a time
  DecisionId d_parts;             // parts of the sum, of blocks
  DecisionId d_slices;            // parts of the sum, of groups of a block's threads
  std::vector<std::string> axes;  // E's, the column's last
  int64_t join_vector = 1;        // points that a thread joins
  int64_t outer_points = 1;
  int64_t result_bytes = 4;  // bytes of each of R's results
  target::Gpu gpu;
  UsualValues usual;

  [[nodiscard]] bool legal(const Choice& choice) const override;
  void set_default(MutableChoice& choice) const override { usual.set(choice); }
  void canonicalise(MutableChoice& choice) const override;
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;
  // Chooses among all tiles by an estimate of the time that they take.
  void find_usual(const std::vector<Decision>& decisions);

 private:
  // How the lanes of a warp lie in a block's tile: so many along the last rows and the columns.
  // Loops over threads are in their natural order if `rows` is 0.
  struct Lanes {
    int64_t rows = 0, columns = 0;
  };
  [[nodiscard]] Lanes lanes(const Choice& choice) const;
  [[nodiscard]] int64_t registers(const Choice& choice) const;
  [[nodiscard]] int64_t threads(const Choice& choice) const;
  [[nodiscard]] int64_t shared_bytes(const Choice& choice) const;
  [[nodiscard]] int64_t blocks(const Choice& choice) const;
  [[nodiscard]] int64_t points() const;
  [[nodiscard]] int64_t chunks(const Choice& choice) const;
  // Returns how many terms of `sum` a thread has, and how many of them in a chunk.
  [[nodiscard]] int64_t terms_of_thread(const Choice& choice) const {
    return sum.extent / (choice[d_parts] * choice[d_slices]);
  }
  [[nodiscard]] int64_t chunk_of_thread(const Choice& choice) const;
  [[nodiscard]] int64_t terms_in_chunk(const Choice& choice) const;
  [[nodiscard]] int64_t tile_points(const Choice& choice) const;
  [[nodiscard]] bool depth_is_legal(const Choice& choice) const;
  [[nodiscard]] double estimate(const Choice& choice) const;
  void for_chunks(MutableChoice& choice, const std::function<void()>& f) const;
  struct Reads {
    double instructions, cycles;
  };
  [[nodiscard]] Reads reads(const Choice& choice) const;
  [[nodiscard]] int64_t tile(const BlockAxis& axis, const Choice& choice) const;
  [[nodiscard]] int64_t row_threads(const BlockAxis& axis, const Choice& choice) const;
  [[nodiscard]] int64_t column_threads(const Choice& choice) const;
  [[nodiscard]] int64_t row_registers(const Choice& choice) const;
  [[nodiscard]] int64_t column_registers(const Choice& choice) const;
  // Returns how many points of one of R's axes a chunk of a block has.
  [[nodiscard]] int64_t points_in_chunk(const std::string& axis, const Choice& choice) const;
  [[nodiscard]] int64_t elements(const OperandCopy& copy, const Choice& choice) const;
  [[nodiscard]] bool is_shared(const OperandCopy& copy, const Choice& choice) const {
    return choice[copy.d_shared] == 1;
  }
  [[nodiscard]] bool any_shared(const Choice& choice) const;
  [[nodiscard]] ContractionNames names(const Choice& choice) const;
  [[nodiscard]] schedule::Tail tail_of(const BlockAxis& axis, const Choice& choice) const;
  void append_epilogue(const ContractionNames& names, const Choice& choice, schedule::Steps& steps,
                       std::string& block) const;
  struct Tile {
    std::vector<std::string> threads, registers;  // loops
  };
  Tile append_tile(const ContractionNames& names, const Choice& choice,
                   schedule::Steps& steps) const;
  // Returns the loop of the chunks.
  std::string append_sum(const ContractionNames& names, const std::string& block,
                         const Choice& choice, schedule::Steps& steps) const;
  void append_copy(const OperandCopy& copy, const ContractionNames& names, const std::string& loop,
                   const Choice& choice, schedule::Steps& steps) const;
  void append_join(schedule::Steps& steps) const;
  // Appends E and the sum of the parts of a block. Returns the loop over blocks.
  std::string append_block_join(const Choice& choice, schedule::Steps& steps) const;
};

}  // namespace hone::space
