// session/variant_kernels.h - the code of schedules for smaller sizes (session/size_variants.h),
// beside that of the kernels that they stand in for.
#pragma once

#include <functional>

#include "hone/session/kernel.h"
#include "hone/session/size_variants.h"

namespace hone {

struct VariantKernel {
  KernelPtr kernel;
  artifact::ArtifactInterval when;
  double share = 1;  // SizeVariant::share
};
struct VariantKernels {
  artifact::ArtifactInterval own;  // the sizes for which the kernel itself runs
  std::vector<VariantKernel> others;
};

// Which of the schedules that were chosen for a kernel (SizeVariants) have code that is used.
struct VariantUse {
  bool replaces_own = false;  // the kernel is of SizeVariants::replaces_own
  bool has_others = false;    // SizeVariants::others, or there are none
};

// A kernel with its variants.
struct VariedKernel {
  KernelPtr own;
  VariantKernels variants;
  VariantUse use;
};

// A kernel per group of calls, and its variants for smaller sizes.
struct GroupKernels {
  std::vector<KernelPtr> own;
  std::vector<VariantKernels> variants;
  std::vector<VariantUse> uses;
};

// Returns whether all that runs with the model is one phase without a workspace, so that the kernel
// may run at the same time as others.
[[nodiscard]] bool is_one_phase(const Kernel& kernel);
// Returns whether a phase runs with the model, not before it.
[[nodiscard]] inline bool runs(const backend::EntryPoint& phase) { return !phase.prepare; }

// Returns whether a variant can stand in for a kernel, which `own_steps` made: it takes the same
// arguments and reads no elements that the kernel leaves out.
[[nodiscard]] bool can_stand_in(const Kernel& variant, const Kernel& own,
                                const schedule::Steps& own_steps, const compute::Dag& dag,
                                const KernelLimits& limits);
// Compiles the variants of a kernel of a task. Returns none if one cannot stand in for it.
[[nodiscard]] Result<VariantKernels> compile_variants(
    const SizeVariants& variants, const Kernel& own, const schedule::Steps& own_steps,
    const compute::Dag& dag, const KernelLimits& limits,
    const std::function<Result<KernelPtr>(const schedule::Steps&)>& compile);

// Compiles a kernel with these steps, or those that replace them, and its variants. It has none if
// `variants` is null or one of them has no code or cannot stand in for it.
[[nodiscard]] Result<VariedKernel> compile_varied(
    const schedule::Steps& steps, const SizeVariants* variants, const compute::Dag& dag,
    const KernelLimits& limits,
    const std::function<Result<KernelPtr>(const schedule::Steps&)>& compile);

// Returns the arguments of a kernel's program for a variant of it: those that the model gives, and
// packed weights. Others are empty.
[[nodiscard]] std::vector<Tensor> arguments_for(const Kernel& variant, const Kernel& own,
                                                std::span<const Tensor> arguments);

}  // namespace hone
