// fuzz/task_data.h - operands of random tasks, and how results of their kernels are compared.
#pragma once

#include <string>
#include <vector>

#include "hone/ir/stmt.h"

#include "random_task.h"

namespace hone::fuzz {

enum class Data : uint8_t { kPlain, kIntegers, kInfinite, kNan, kDenormal };

// Outputs are all ones before a run: what no stage writes is the same in both.
[[nodiscard]] std::vector<Tensor> arguments(const RandomTask& task, const ir::Program& program,
                                            Data data, uint64_t seed);

// Of every parameter, how far its elements move where rounding moves operands; NaN: so far that
// some are numbers and some are not.
using Spread = std::vector<std::vector<double>>;

// Returns how far a result may be off because of rounding alone: near the pole of a reciprocal or
// where terms cancel, the last bits of the operands decide, and long sums round. The naive program
// on operands that are off by some units in the last place, up or down by chance, tells (the
// condition of the task there), and how far it is from itself in double.
[[nodiscard]] Spread spread_of(const RandomTask& task, Data data, uint64_t seed,
                               const std::vector<Tensor>& expected);

// Returns "" if each element of an output is within `tolerance` of the largest finite one and its
// own `spread` (none: 0), or as infinite or as little of a number. If `in_place`, what no stage
// writes is what an input left there.
[[nodiscard]] std::string difference(const ir::Program& program, const std::vector<Tensor>& want,
                                     const std::vector<Tensor>& got, double tolerance,
                                     bool in_place, const Spread& spread = {});

}  // namespace hone::fuzz
