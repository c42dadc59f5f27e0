// runtime/plan_sizes.h - the part of a plan about sizes that the shapes of the inputs decide: its
// check, and the values that follow from those of the symbols. All other functions need a plan that
// was checked.
#pragma once

#include "hone/runtime/plan.h"

namespace hone::runtime {

// The most parts of one tensor's dimensions.
inline constexpr int kMaxParts = 2 * kMaxRank;

// A form that is a factor of others comes before them, follows from symbols alone and is nowhere
// less than 0. Dimensions of inputs have forms of symbols alone.
//
// Returns what is wrong with the symbols, the forms, the dimensions and the limits of steps, or
// null. The other tables must have been checked. In a valid plan no value overflows, the least and
// the largest size of each dimension are those of the least and the largest symbols, and the shapes
// of the inputs together determine every symbol.
[[nodiscard]] const char* sizes_check(const PlanHeader& plan);

inline bool varies(const PlanHeader& plan) { return plan.num_symbols > 0; }
inline const PlanDim& plan_dim(const PlanHeader& plan, const PlanTensor& tensor, int d) {
  return plan_table<PlanDim>(plan, tensor.dims)[d];
}
inline const PlanPart* parts_of(const PlanHeader& plan, const PlanDim& dim) {
  return plan_table<PlanPart>(plan, plan.parts) + dim.first_part;
}

// Each value of `symbols` is in the range of its symbol.
[[nodiscard]] int64_t form_value(const PlanHeader& plan, const PlanForm& form,
                                 const int64_t* symbols);
// Returns the extent of a dimension from the values of all forms.
[[nodiscard]] int64_t dim_value(const PlanHeader& plan, const PlanDim& dim, const int64_t* forms);
[[nodiscard]] int64_t tiles_of(const PlanStep& step, const int64_t* forms);

// A symbol of a dimension that is not known, beside others that are.
struct Unknown {
  // The number of occurrences of unknown symbols in the dimension. The others are set if it is 1.
  int count = 0;
  uint32_t symbol = 0;
  const PlanPart* part = nullptr;  // that has it
  const PlanTerm* term = nullptr;
};
// Looks for the symbols of an input's dimension whose values are less than 0.
[[nodiscard]] Unknown find_unknown(const PlanHeader& plan, const PlanDim& dim,
                                   const int64_t* symbols);
// Returns the least value of the only unknown symbol with which an input's dimension has at least
// this extent, or -1 if none has. The extent is not larger than the dimension's largest.
[[nodiscard]] int64_t solve(const PlanHeader& plan, const PlanDim& dim, const Unknown& unknown,
                            int64_t extent, const int64_t* symbols);

}  // namespace hone::runtime
