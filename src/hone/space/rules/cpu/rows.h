// space/rules/cpu/rows.h - definitions that the rules for reductions along rows share (internal to
// space).
#pragma once

#include "hone/space/rules/rows.h"

namespace hone::space {

// The least number of elements, in all rows together, for which rows are cut into parts; half of it
// suffices if functions of the elements are computed. With fewer, a phase over the parts saves no
// more than its fork and join take, which is a microsecond if threads share no cache.
inline constexpr int64_t kLeastLongRow = 1 << 16;
inline constexpr int64_t kRowsPerCore = 4;  // with more rows all cores have work without parts
// Return the numbers of parts into which a row of so many elements may be cut, and the length of
// each part.
[[nodiscard]] std::vector<int64_t> row_parts(int64_t length);
[[nodiscard]] int64_t part_of(int64_t length, int64_t parts);

// A group for few rows that threads share in parts. The number of parts is a decision.
class RowParts : public Group {
 public:
  int64_t rows = 1;
  int cores = 1;
  DecisionId d_parts;

  void decide(SketchBuilder& builder, const std::string& stage, const std::vector<int64_t>& parts) {
    d_parts = builder.add_decision(stage, "row_parts", DecisionKind::kParallel, parts);
  }
  [[nodiscard]] bool legal(const Choice&) const override { return true; }
  // Chooses two parts for each core, so that a core that is late leaves some to others.
  void set_default(MutableChoice& choice) const override {
    choice.set_at_least(d_parts, (2 * cores + rows - 1) / rows);
  }
};

}  // namespace hone::space
