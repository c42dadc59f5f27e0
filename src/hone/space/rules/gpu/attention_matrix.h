// space/rules/gpu/attention_matrix.h - attention by matrix instructions (Dao, "FlashAttention-2")
// (internal to space). attention_matrix.cc makes it and chooses tiles, attention_matrix_steps.cc
// appends the steps.
#pragma once

#include "hone/space/rules/gpu/attention.h"
#include "hone/space/rules/gpu/matrix.h"

namespace hone::space {

// for blocks of batch x heads x tiles of queries (x parts of the keys), in parallel:
//   queries: copied to shared memory
//   for tiles of keys: keys and values: copied, several tiles ahead
//     for warps, 16 or 32 queries of each: in registers of its lanes:
//       scores: a matrix statement;  masked, most, weights, total: rows of four lanes each
//       sums of the tile: a matrix statement;  running maxima, totals and sums join it
//   for warps: the result, divided by the totals
// Scores never leave the registers: the lanes have the result of one matrix instruction where the
// next one wants its first operand. A mask that differs between queries is copied to shared memory.
class GpuMatrixAttention : public Group, public Attention {
 public:
  MatrixOperand copied_queries, copied_keys, copied_values;
  std::string weights_operand;         // the stage of the weights as a matrix
  std::string key, summed;             // the axis of keys, and its name in sums over it
  std::string mask;                    // the buffer of such a mask, or ""
  std::vector<std::string> mask_axes;  // axes of its copy
  int64_t mask_bytes = 4;              // the size of its elements
  int64_t depth = 1, channels = 1;     // terms of a score, and of neighbours in the result
  int64_t element_bytes = 2;
  bool rounds = false;  // float32 to tf32
  target::Gpu gpu;
  target::MatrixInstruction instruction;
  DecisionId d_warps, d_rows;  // warps of a block; queries of a warp
  DecisionId d_keys;           // the keys of a tile
  DecisionId d_depth;          // tiles in shared memory, with those that are copied ahead
  DecisionId d_splits;         // parts of the keys that blocks have
  UsualValues usual;

  [[nodiscard]] bool legal(const Choice& choice) const override;
  void set_default(MutableChoice& choice) const override { usual.set(choice); }
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;
  // Chooses among all tiles by an estimate of the time that they take.
  void find_usual(const std::vector<Decision>& all);

 private:
  [[nodiscard]] int64_t block_rows(const Choice& choice) const {
    return choice[d_warps] * choice[d_rows];
  }
  [[nodiscard]] int64_t threads(const Choice& choice) const { return choice[d_warps] * gpu.warp; }
  [[nodiscard]] int64_t tiles_of_part(const Choice& choice) const;
  [[nodiscard]] int64_t registers(const Choice& choice) const;
  [[nodiscard]] int64_t shared_bytes(const Choice& choice) const;
  [[nodiscard]] double estimate(const Choice& choice) const;
  // Lengths in whole instructions.
  [[nodiscard]] int64_t whole_depth() const;
  [[nodiscard]] int64_t whole_channels() const;

  // A matrix in shared memory: its rows are neighbours' lines there.
  struct Lines {
    int64_t count, length, pad;
  };
  // `side`: points of the operand's rows or columns, `terms`: of what is summed up.
  [[nodiscard]] Lines lines(const MatrixOperand& operand, int64_t side, int64_t terms) const;
  [[nodiscard]] SharedCopy copy_of(const MatrixOperand& operand, int64_t side, int64_t terms,
                                   int64_t slots, const Choice& choice) const;
  [[nodiscard]] SharedCopy copy_of_mask(const Choice& choice) const;

  [[nodiscard]] std::string append_root(const AttentionNames& names, const Choice& choice,
                                        schedule::Steps& steps) const;
  void append_running(const AttentionNames& names, const std::string& block, const Choice& choice,
                      schedule::Steps& steps) const;
  // A stage of which warps have rows for a tile of keys, with all of `columns` if there are some.
  struct Tile {
    std::string stage, rows, columns;
    int64_t whole = 0;       // length that columns are filled up to; 0: as they are
    std::string terms = {};  // what is summed up
  };
  void append_tile(const Tile& tile, const AttentionNames& names, const Choice& choice,
                   bool by_instructions, schedule::Steps& steps) const;
  void append_mask(const AttentionNames& names, const Choice& choice, schedule::Steps& steps) const;
};

}  // namespace hone::space
