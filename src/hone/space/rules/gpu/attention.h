// space/rules/gpu/attention.h - attention by the threads of a block (internal to space).
// make_attention.cc finds operands, attention.cc says what is legal and usual, and
// attention_steps.cc appends the steps.
#pragma once

#include <bit>

#include "hone/space/rules/attention.h"
#include "hone/space/rules/gpu/copies.h"

namespace hone::space {

inline constexpr int64_t kTileOfKeys = 64;

// Returns the least power of 2 that covers an extent.
[[nodiscard]] inline int64_t at_least(int64_t extent) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
}

// The stages of an attention in parts of its keys, which blocks compute by themselves and another
// launch joins, as there are too few blocks otherwise (Dao et al., Flash-Decoding).
struct AttentionNames {
  std::string root, running;  // who stores results, and who sums up in registers
  std::vector<std::string> outer_of_root, outer_of_running;
};
// Divides the stage `sums`, which joins tiles of keys, into parts of so many tiles.
[[nodiscard]] AttentionNames divide_keys(const Attention& attention, const std::string& sums,
                                         int64_t tiles_of_part, schedule::Steps& steps);
// A thread needs so many cycles to join a part: for loads and powers.
inline constexpr double kJoinCycles = 500;
// Returns in how many parts tiles of keys of one query are computed and joined soonest.
[[nodiscard]] int64_t usual_parts(int64_t tiles);
// Appends the launch that joins the parts.
void append_join_of_keys(const Attention& attention, const std::string& sums, int64_t parts,
                         schedule::Steps& steps);

// Returns whether a copy can work as far ahead as it says: registers hold one tile, which a thread
// copies in straight-line code.
[[nodiscard]] bool can_work_ahead(const SharedCopy& copy);

// A copy of an operand in shared memory.
struct AttentionOperand {
  std::string stage;
  std::vector<std::string> axes;  // the contiguous one of the source last
  int64_t bytes = 4;              // the size of its elements
  bool is_whole = true;           // its contiguous axis is a dimension of the source
  bool is_plain = true;           // elements are copied as they are
};

// for blocks of batch x heads x tiles of queries, in parallel:
//   queries: copied to shared memory
//   for tiles of keys: keys, copied;  scores, masked: a register tile of each thread
//   most, weights, total: along rows, partial results of which threads join
//   for tiles of keys: values, copied;  sums: a register tile of each thread
//   the result: divided by the totals
// Of many keys the scores would not fit: in a second sketch (schedule/online_softmax.h) all between
// the queries and the result runs over a tile of keys at a time, and running maxima and sums, in
// registers, join the tiles. `keys` are those whose scores are there at a time, and kSums, of keys
// in tiles, is a tile's.
class GpuAttention : public Group, public Attention {
 public:
  std::string joined;  // the stage that joins tiles of keys; "": all keys at once
  // Axes of the scores: keys, and what they sum; and the keys that the values are summed over.
  std::string key, term, summed;
  int64_t depth = 1, channels = 1;  // extents of `term` and of `lane`
  AttentionOperand copied_queries, copied_keys, copied_values;
  int64_t score_bytes = 4;
  bool mask_moves = false;  // what is added to the scores differs between queries
  // The terms of a key's scores are neighbours in memory, in shared memory, too. Then a thread has
  // keys far apart, so that neighbouring threads read neighbouring rows.
  bool keys_are_rows = false;
  int64_t all_keys = 1;
  target::Gpu gpu;
  DecisionId d_rows;                            // queries of a block
  DecisionId d_queries, d_vector, d_columns;    // a thread's scores; threads along keys
  DecisionId d_parts;                           // threads of a row
  DecisionId d_sum_queries, d_lanes, d_groups;  // a thread's sums: queries, vectors
  DecisionId d_values;                          // keys whose values are copied at a time
  DecisionId d_depth;                           // copies of keys, and of values, at a time
  DecisionId d_splits;                          // parts of the keys that blocks have

  [[nodiscard]] bool legal(const Choice& choice) const override;
  void set_default(MutableChoice& choice) const override;
  void canonicalise(MutableChoice& choice) const override;
  void append_steps(const Choice& choice, schedule::Steps& steps) const override;
  [[nodiscard]] int64_t tiles() const;  // the number of tiles of keys
  // Returns whether tiles of queries alone leave most of the device idle.
  [[nodiscard]] bool has_few_blocks() const;

 private:
  struct Place {
    std::string stage, loop;
  };
  static void compute_at(const std::string& what, const Place& place, ir::Scope scope,
                         schedule::Steps& steps);
  [[nodiscard]] std::vector<std::string> outer_of(AttentionPart part) const;
  [[nodiscard]] AttentionNames names(const Choice& choice, schedule::Steps& steps) const;
  [[nodiscard]] int64_t channel_threads(const Choice& choice) const;
  [[nodiscard]] int64_t keys_at_once(const Choice& choice) const;
  [[nodiscard]] int64_t copied_keys_at_once(const Choice& choice) const;
  [[nodiscard]] int64_t values_at_once(const Choice& choice) const;
  [[nodiscard]] int64_t threads(const Choice& choice) const;
  [[nodiscard]] int64_t padding(int64_t bytes) const { return kVectorBytes / bytes; }
  [[nodiscard]] int64_t shared_bytes(const Choice& choice) const;
  [[nodiscard]] bool all_parts_have_tiles(const Choice& choice) const;
  [[nodiscard]] bool depth_is_legal(const Choice& choice) const;
  bool try_default(MutableChoice& choice) const;
  // Returns how threads copy an operand; `last`: the axis that is contiguous in shared memory.
  [[nodiscard]] SharedCopy copy_of(const AttentionOperand& operand, const std::string& last,
                                   int64_t depth, const Choice& choice) const;
  [[nodiscard]] std::vector<std::string> key_dims() const;
  [[nodiscard]] int64_t points_of(const std::string& axis, const Choice& choice) const;

  // Returns the loop over blocks.
  std::string append_root(const AttentionNames& names, const Choice& choice,
                          schedule::Steps& steps) const;
  void append_sums(const AttentionNames& names, const Choice& choice, const Place& place,
                   schedule::Steps& steps) const;
  void append_layout(const Choice& choice, schedule::Steps& steps) const;
  void append_part(const AttentionNames& names, schedule::Steps& steps) const;
  void append_scores(AttentionPart part, const Choice& choice, const Place& place,
                     schedule::Steps& steps) const;
  void append_products(const Choice& choice, schedule::Steps& steps) const;
  void append_row(AttentionPart part, const Place& at, schedule::Steps& steps) const;
  void append_copy(const AttentionOperand& operand, const Place& place,
                   const std::vector<std::string>& dims, int64_t depth, const Choice& choice,
                   schedule::Steps& steps) const;
};

}  // namespace hone::space
