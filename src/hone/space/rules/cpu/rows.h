// space/rules/cpu/rows.h - what the rules for reductions along rows share (internal to space).
#pragma once

#include "hone/space/sketch.h"

namespace hone::space {

inline bool is_reduction(const schedule::StageInfo& info) { return !info.stage.reduce.empty(); }
// The reduce axis (position in info.axes) along which a read of a single buffer is contiguous and
// which no other dimension of that buffer mentions; -1 if there is none.
[[nodiscard]] int contiguous_reduce_axis(const schedule::StageInfo& info);
// How many different buffers its spatial axes move through: a matrix product has two.
[[nodiscard]] int moving_operands(const schedule::StageInfo& info);
// exp, div and the like: not worth computing twice.
[[nodiscard]] bool is_expensive(const compute::Stage& stage);
// A lone reduction that writes the result gets a stage that copies it out.
[[nodiscard]] Status copy_out(SketchBuilder& builder);

// Elements of a long row, all rows told: for fewer a phase over its parts saves no more than its
// fork and join take, which is a microsecond where threads share no cache; for half as many if
// there are functions of them.
inline constexpr int64_t kLeastLongRow = 1 << 16;
inline constexpr int64_t kRowsPerCore = 4;  // with more there is work for all without parts
// Into how many parts a row of so many elements may be cut, and how long each is.
[[nodiscard]] std::vector<int64_t> row_parts(int64_t length);
[[nodiscard]] int64_t part_of(int64_t length, int64_t parts);

// Few rows that threads share in parts; their number is a decision.
class RowParts : public Group {
 public:
  int64_t rows = 1;
  int cores = 1;
  int d_parts = -1;

  void decide(SketchBuilder& builder, const std::string& stage, const std::vector<int64_t>& parts) {
    d_parts = builder.add_decision(stage, "row_parts", DecisionKind::kParallel, parts);
  }
  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  // Two for each core, so that one that is late gives some away.
  void set_default(MutableChoice& choice) const override {
    choice.set_at_least(d_parts, (2 * cores + rows - 1) / rows);
  }
};

}  // namespace hone::space
