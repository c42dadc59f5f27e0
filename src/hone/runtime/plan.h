// runtime/plan.h - the binary plan of an artifact: which kernels run on which buffers.
//
// The plan is one read-only block, little-endian: a PlanHeader, followed by tables at byte offsets
// from its start. All tables are 8-byte aligned; strings end in a zero. `plan_check` proves that
// every offset and index is in range; only then may the functions below be used. A change of any
// struct here changes kPlanVersion.
#pragma once

#include <stdint.h>

#include "hone/runtime/device/device_properties.h"

namespace hone::runtime {

inline constexpr uint32_t kPlanVersion = 10;
inline constexpr char kPlanMagic[8] = {'H', 'O', 'N', 'E', 'P', 'L', 'A', 'N'};
inline constexpr int64_t kBufferAlignment = 64;
inline constexpr int kMaxRank = 16;
inline constexpr uint32_t kMostShownRank = 64;  // An error names no shapes of a larger one.
// The most symbols of a plan, and the number of elements that kernels may read of `sizes`.
inline constexpr int kMaxSymbols = 64;
inline constexpr int kMaxForms = 64;
// The largest divisor of a form: its product with a size does not overflow.
inline constexpr int64_t kMostDivisor = 1 << 16;

struct PlanHeader {
  char magic[8];
  uint32_t version;
  uint32_t num_kernels;  // entries of the artifact's table of functions
  uint64_t total_bytes;  // size of this block
  int64_t arena_bytes;
  int64_t scratch_bytes;  // scratch memory per thread
  int64_t weight_bytes;
  uint32_t num_inputs;
  uint32_t num_outputs;
  uint32_t num_steps;
  uint32_t num_arguments;
  uint32_t num_zeroed;
  uint32_t num_features;
  uint64_t tensors;    // PlanTensor[num_inputs + num_outputs]
  uint64_t steps;      // PlanStep[num_steps]
  uint64_t arguments;  // PlanArgument[num_arguments]
  uint64_t zeroed;     // PlanRegion[num_zeroed]: parts of the arena that are zeroed once, at create
  uint64_t features;   // uint64_t[num_features]: offsets of the names that cpu_feature() knows
  uint64_t kernels;    // PlanKernel[num_kernels]
  uint64_t modules;    // PlanModule[num_modules]: the code for the device
  uint64_t device_name;  // offset of a string, part of the name of the device or of its platform
  DeviceKind device;     // kNone: all kernels run on the host
  uint32_t num_modules;
  // The sizes that the shapes of the inputs decide (runtime/plan_sizes.h). A plan whose shapes are
  // fixed has none of these tables.
  uint64_t symbols;  // PlanSymbol[num_symbols]
  uint64_t forms;    // PlanForm[num_forms]
  uint64_t terms;    // PlanTerm[num_terms]
  uint64_t factors;  // uint32_t[num_factors]: indices into `symbols`, and behind them `forms`
  uint64_t parts;    // PlanPart[num_parts]
  uint32_t num_symbols;
  uint32_t num_forms;
  uint32_t num_terms;
  uint32_t num_factors;
  uint32_t num_parts;
  uint32_t reserved;
  // Arena offset of int64_t[kMaxForms], the value of each form in a run, or -1 if there are none.
  int64_t sizes;
  uint64_t
      loops;  // PlanLoop[num_loops]: in the order of their first steps, each before those inside
  uint64_t copies;  // PlanCopy[num_copies]
  uint32_t num_loops;
  uint32_t num_copies;
};

struct PlanTensor {
  uint64_t name;   // offset of a string
  uint64_t shape;  // offset of int64_t[rank]; the largest shape, for an output whose shape varies
  int32_t dtype;   // code of ONNX
  int32_t rank;
  int64_t bytes;  // size of the dense array
  // Arena offset of int64_t[rank] that a step writes, or -1 if it does not depend on the data.
  int64_t actual_shape;
  // Offset of PlanDim[rank], or 0 if `shape` is that of every run. An array of a run is dense;
  // kernels see one of the largest shape, of which it is a box.
  uint64_t dims;
};

// A number that the shapes of the inputs decide, of a range that includes both ends.
struct PlanSymbol {
  uint64_t name;  // offset of a string
  int64_t min;
  int64_t max;
};

// A number that follows from symbols: the sum of the terms and the offset, divided by the divisor
// and rounded down, but not less than `least` nor more than `most`.
struct PlanForm {
  int64_t offset;
  int64_t divisor;
  int64_t least;
  int64_t most;
  uint32_t first_term;  // index into `terms`
  uint32_t num_terms;
};

// A factor times the product of symbols and of forms (runtime/plan_sizes.h).
struct PlanTerm {
  int64_t factor;
  uint32_t first_factor;  // index into `factors`
  uint32_t num_factors;
};

// A form and its largest value, or, if the form is -1, a number.
struct PlanPart {
  int32_t form;
  int32_t reserved;
  int64_t most;
};

// A dimension is the product of its parts. Its elements lie as those of an array with a dimension
// for each part, the first one slowest.
struct PlanDim {
  uint64_t text;        // offset of a string, such as "past + seq"; "" for a fixed dimension
  uint32_t first_part;  // index into `parts`
  uint32_t num_parts;   // at least 1
};

// The step runs ceil(size / divisor) * multiplier of its tiles, where `size` is the value of the
// form, or all if that is more or the form is -1.
struct TileLimit {
  int32_t form;
  int32_t reserved;
  int64_t divisor;
  int64_t multiplier;
};

// The step runs if the value of the form is `from` to `most`, or always if the form is -1. Several
// steps may do the same work in different ways, each for other sizes.
struct SizeInterval {
  int32_t form;
  int32_t reserved;
  int64_t from;
  int64_t most;
};

// A run leaves the step out if the value of the form is less than `least`; none does if the form is
// -1.
struct RunLimit {
  int32_t form;
  int32_t reserved;
  int64_t least;
};

struct PlanStep {
  uint64_t name;          // offset of a string
  uint64_t kernel_class;  // offset of a string
  double flops;
  double bytes;  // bytes that are read and written, each counted once
  double least_flops;
  int64_t num_tiles;
  uint32_t kernel;          // index into the table of functions
  uint32_t first_argument;  // index into `arguments`
  uint32_t num_arguments;
  int32_t max_threads;  // 0 means all
  uint32_t joins;       // 1 if it runs concurrently with the step before, 0 if it runs after it
  // For concurrent steps this is the step's share of their work (PhaseCall::units), else 0.
  int32_t units;
  TileLimit limit;
  SizeInterval when;
  RunLimit run;
};

// Steps that are repeated, perhaps not once. Places are offsets in the arena, or -1 where there is
// none. Before each turn the loop looks at them: it goes on while the condition is true, `limit` is
// above the number of turns so far, and there were fewer than `most`.
struct PlanLoop {
  uint64_t name;    // offset of a string: the node
  uint64_t beyond;  // offset of a string: the error of a run that wants more than `most` turns
  int64_t most;
  int64_t condition;  // one byte
  int64_t limit;      // int64_t
  int64_t turn;       // int64_t, written before each turn: its number, from 0 on
  int64_t turns;      // int64_t, written at the end: how many there were
  int64_t shapes;     // int64_t[2 * rank]: two shapes of this rank that the error names
  uint32_t first_step;
  uint32_t end_step;
  uint32_t first_copy;  // index into `copies`: what is copied at the end of each turn
  uint32_t num_copies;
  uint32_t num_nested;     // the number of loops inside, which follow in the table
  uint32_t may_want_more;  // 1 if more than `most` turns are an error; 0 if the loop then ends
  uint32_t rank;           // 0 if the error names no shapes
  uint32_t reserved;       // 0
};

// A copy of `bytes` bytes from one place of the arena to `to` + turn * `stride`.
struct PlanCopy {
  int64_t from;
  int64_t to;
  int64_t bytes;
  int64_t stride;
};

struct PlanKernel {
  uint64_t name;         // offset of a string: the function's name in its module; "" on the host
  int32_t module;        // index into `modules`, or -1 for a function of the artifact's table
  int32_t threads;       // threads of a block on the device, which runs one tile
  int64_t shared_bytes;  // shared memory that a block asks for
};

struct PlanModule {
  uint64_t code;  // offset of a container (runtime/device/code.h)
  uint64_t bytes;
};

enum class ArgumentKind : int32_t { kInput, kOutput, kArena, kWeight };

struct PlanArgument {
  ArgumentKind kind;
  int32_t index;   // number of the input or output; 0 for the others
  int64_t offset;  // bytes from the start of the input, output, arena or weights
  // The bytes that the step may touch, and 1 if it may write them. They are there for steps of the
  // host beside a device, which work on copies, and where there are sizes; else both are 0.
  int64_t bytes;
  int64_t written;
};

struct PlanRegion {
  int64_t offset;
  int64_t bytes;
};

// Returns null if the block is a valid plan, else the problem (a constant string).
[[nodiscard]] const char* plan_check(const void* plan, uint64_t bytes);

template <typename T>
const T* plan_table(const PlanHeader& plan, uint64_t offset) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(&plan) + offset);
}
inline const char* plan_string(const PlanHeader& plan, uint64_t offset) {
  return plan_table<char>(plan, offset);
}
inline const PlanTensor& plan_input(const PlanHeader& plan, int i) {
  return plan_table<PlanTensor>(plan, plan.tensors)[i];
}
inline const PlanTensor& plan_output(const PlanHeader& plan, int i) {
  return plan_table<PlanTensor>(plan, plan.tensors)[plan.num_inputs + static_cast<uint32_t>(i)];
}

inline const PlanKernel& plan_kernel(const PlanHeader& plan, const PlanStep& step) {
  return plan_table<PlanKernel>(plan, plan.kernels)[step.kernel];
}
inline bool runs_on_device(const PlanHeader& plan, const PlanStep& step) {
  return plan_kernel(plan, step).module >= 0;
}
inline int num_tensors(const PlanHeader& plan) {
  return static_cast<int>(plan.num_inputs + plan.num_outputs);
}
// Returns an input, or behind all of them an output.
inline const PlanTensor& tensor_at(const PlanHeader& plan, int i) {
  return plan_table<PlanTensor>(plan, plan.tensors)[i];
}

}  // namespace hone::runtime
