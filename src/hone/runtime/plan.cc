#include "hone/runtime/plan.h"

#include <string.h>

#include "hone/runtime/device/code.h"
#include "hone/runtime/device/device.h"
#include "hone/runtime/plan_loops.h"
#include "hone/runtime/plan_ranges.h"
#include "hone/runtime/plan_sizes.h"
#include "hone/runtime/pool.h"

namespace hone::runtime {
namespace {

// The most tiles of a step: so many that products with the number of threads do not overflow.
constexpr int64_t kMostTiles = int64_t{1} << 46;

bool tensor_fits(const PlanHeader& plan, const PlanTensor& tensor) {
  if (!string_fits(plan, tensor.name) || tensor.rank < 0 || tensor.rank > kMaxRank) return false;
  const uint64_t rank = static_cast<uint64_t>(tensor.rank);
  if (!table_fits(plan.total_bytes, tensor.shape, rank, sizeof(int64_t))) return false;
  for (uint64_t d = 0; d < rank; ++d)
    if (plan_table<int64_t>(plan, tensor.shape)[d] < 0) return false;
  if (tensor.bytes < 0) return false;
  if (tensor.actual_shape == -1) return true;
  return tensor.actual_shape % 8 == 0 &&
         range_fits(plan.arena_bytes, tensor.actual_shape, tensor.rank * 8);
}

bool argument_fits(const PlanHeader& plan, const PlanArgument& argument) {
  const int64_t bytes = argument.bytes;
  if (argument.written != 0 && argument.written != 1) return false;
  const auto inside = [&](uint32_t count, bool input) {
    if (argument.index < 0 || static_cast<uint32_t>(argument.index) >= count) return false;
    const PlanTensor& tensor =
        input ? plan_input(plan, argument.index) : plan_output(plan, argument.index);
    return range_fits(tensor.bytes, argument.offset, bytes);
  };
  switch (argument.kind) {
    case ArgumentKind::kInput: return inside(plan.num_inputs, true);
    case ArgumentKind::kOutput: return inside(plan.num_outputs, false);
    case ArgumentKind::kArena: return range_fits(plan.arena_bytes, argument.offset, bytes);
    case ArgumentKind::kWeight: return range_fits(plan.weight_bytes, argument.offset, bytes);
  }
  return false;
}

bool step_fits(const PlanHeader& plan, const PlanStep& step) {
  return string_fits(plan, step.name) && string_fits(plan, step.kernel_class) &&
         step.kernel < plan.num_kernels && step.num_tiles >= 0 && step.num_tiles <= kMostTiles &&
         step.max_threads >= 0 &&
         (!runs_on_device(plan, step) ||
          step.num_arguments <= static_cast<uint32_t>(kMaxDeviceArguments)) &&
         step.first_argument <= plan.num_arguments &&
         step.num_arguments <= plan.num_arguments - step.first_argument;
}

bool kernel_fits(const PlanHeader& plan, const PlanKernel& kernel) {
  if (!string_fits(plan, kernel.name) || kernel.module < -1) return false;
  if (kernel.module == -1) return true;
  return static_cast<uint32_t>(kernel.module) < plan.num_modules && kernel.threads >= 1 &&
         kernel.shared_bytes >= 0;
}

// Returns what is wrong with the part of the plan for a device, or null.
const char* check_device(const PlanHeader& plan) {
  if (plan.device < DeviceKind::kNone || plan.device > DeviceKind::kCuda ||
      !string_fits(plan, plan.device_name) ||
      (plan.device == DeviceKind::kNone && plan.num_modules > 0))
    return "the device of the plan is out of range";
  for (uint32_t i = 0; i < plan.num_kernels; ++i)
    if (!kernel_fits(plan, plan_table<PlanKernel>(plan, plan.kernels)[i]))
      return "a kernel of the plan is out of range";
  for (uint32_t i = 0; i < plan.num_modules; ++i) {
    const PlanModule& module = plan_table<PlanModule>(plan, plan.modules)[i];
    if (!table_fits(plan.total_bytes, module.code, module.bytes, 1))
      return "code of the plan is out of range";
    if (const char* wrong = code_check(plan_table<char>(plan, module.code), module.bytes))
      return wrong;
  }
  return nullptr;
}

bool memory_fits(const PlanHeader& plan) {
  int64_t left = kMostBytes;
  const auto take = [&](int64_t bytes) {
    left -= bytes <= left ? bytes : left + 1;
    return left >= 0;
  };
  bool fits = take(plan.arena_bytes) && take(plan.scratch_bytes) && take(plan.weight_bytes);
  for (int i = 0; fits && i < num_tensors(plan); ++i) fits = take(tensor_at(plan, i).bytes);
  return fits;
}

// Those that run together have units, no others.
bool units_fit(const PlanHeader& plan) {
  const PlanStep* steps = plan_table<PlanStep>(plan, plan.steps);
  int64_t units = 0;  // units of the joined steps so far
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    const bool joins = steps[i].joins == 1;
    if (steps[i].joins > 1 || (i == 0 && joins)) return false;
    const bool is_joined = i + 1 < plan.num_steps && steps[i + 1].joins == 1;
    if (joins || is_joined ? steps[i].units < 1 : steps[i].units != 0) return false;
    units = (joins ? units : 0) + steps[i].units;
    if (units > kMaxJoinedUnits) return false;
  }
  return true;
}

}  // namespace

const char* plan_check(const void* block, uint64_t bytes) {
  const PlanHeader& plan = *static_cast<const PlanHeader*>(block);
  if (bytes < sizeof(PlanHeader)) return "the plan is cut off";
  if (memcmp(plan.magic, kPlanMagic, sizeof kPlanMagic) != 0) return "this is not a plan";
  if (plan.version != kPlanVersion) return "the plan has a version that this runtime does not know";
  const uint64_t total = plan.total_bytes;
  if (total > bytes) return "the plan is cut off";
  if (plan.arena_bytes < 0 || plan.scratch_bytes < 0 || plan.weight_bytes < 0)
    return "the plan has a negative size";
  const uint64_t num_tensors = static_cast<uint64_t>(plan.num_inputs) + plan.num_outputs;
  if (!table_fits(total, plan.tensors, num_tensors, sizeof(PlanTensor)) ||
      !table_fits(total, plan.steps, plan.num_steps, sizeof(PlanStep)) ||
      !table_fits(total, plan.arguments, plan.num_arguments, sizeof(PlanArgument)) ||
      !table_fits(total, plan.zeroed, plan.num_zeroed, sizeof(PlanRegion)) ||
      !table_fits(total, plan.features, plan.num_features, sizeof(uint64_t)) ||
      !table_fits(total, plan.kernels, plan.num_kernels, sizeof(PlanKernel)) ||
      !table_fits(total, plan.modules, plan.num_modules, sizeof(PlanModule)) ||
      !table_fits(total, plan.symbols, plan.num_symbols, sizeof(PlanSymbol)) ||
      !table_fits(total, plan.forms, plan.num_forms, sizeof(PlanForm)) ||
      !table_fits(total, plan.terms, plan.num_terms, sizeof(PlanTerm)) ||
      !table_fits(total, plan.factors, plan.num_factors, sizeof(uint32_t)) ||
      !table_fits(total, plan.parts, plan.num_parts, sizeof(PlanPart)) ||
      !table_fits(total, plan.loops, plan.num_loops, sizeof(PlanLoop)) ||
      !table_fits(total, plan.copies, plan.num_copies, sizeof(PlanCopy)))
    return "a table of the plan is out of range";
  if (const char* wrong = check_device(plan)) return wrong;
  for (uint64_t i = 0; i < num_tensors; ++i)
    if (!tensor_fits(plan, plan_table<PlanTensor>(plan, plan.tensors)[i]))
      return "an input or output of the plan is out of range";
  if (!memory_fits(plan)) return "the plan needs more memory than any machine has";
  for (uint32_t i = 0; i < plan.num_steps; ++i)
    if (!step_fits(plan, plan_table<PlanStep>(plan, plan.steps)[i]))
      return "a step of the plan is out of range";
  if (!units_fit(plan)) return "the steps of the plan that run together do not fit together";
  if (const char* wrong = loops_check(plan)) return wrong;
  for (uint32_t i = 0; i < plan.num_arguments; ++i)
    if (!argument_fits(plan, plan_table<PlanArgument>(plan, plan.arguments)[i]))
      return "an argument of the plan is out of range";
  for (uint32_t i = 0; i < plan.num_zeroed; ++i) {
    const PlanRegion& region = plan_table<PlanRegion>(plan, plan.zeroed)[i];
    if (!range_fits(plan.arena_bytes, region.offset, region.bytes))
      return "a zeroed region of the plan is out of range";
  }
  for (uint32_t i = 0; i < plan.num_features; ++i)
    if (!string_fits(plan, plan_table<uint64_t>(plan, plan.features)[i]))
      return "a required CPU feature of the plan is out of range";
  if (const char* wrong = sizes_check(plan)) return wrong;
  return written_places_check(plan);
}

}  // namespace hone::runtime
