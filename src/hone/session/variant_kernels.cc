#include "hone/session/variant_kernels.h"

#include <algorithm>

#include "hone/ir/passes/size_limits.h"

namespace hone {
namespace {

bool is_given(const ir::Param& param) { return param.role != ir::Role::kWorkspace; }

// The sizes of the run, the last input; null if the kernel does not read them.
const ir::Param* sizes_of(const Kernel& kernel) {
  const std::vector<ir::Param>& params = kernel.program().params;
  const auto last = std::find_if(params.rbegin(), params.rend(), [](const ir::Param& param) {
    return param.role == ir::Role::kInput;
  });
  const ir::BufferPtr sizes = ir::make_sizes(graph::kMaxForms);
  const bool is_there = last != params.rend() && last->buffer->name == sizes->name &&
                        last->buffer->dtype == sizes->dtype && last->buffer->shape == sizes->shape;
  return is_there ? &*last : nullptr;
}

// The params that both kernels have, in order: all but workspaces and the sizes.
std::vector<const ir::Param*> common_params(const Kernel& kernel) {
  std::vector<const ir::Param*> params;
  const ir::Param* sizes = sizes_of(kernel);
  for (const ir::Param& param : kernel.program().params)
    if (is_given(param) && &param != sizes) params.push_back(&param);
  return params;
}

bool same_params(const Kernel& a, const Kernel& b) {
  const auto same = [](const ir::Param* x, const ir::Param* y) {
    return x->role == y->role && x->buffer->dtype == y->buffer->dtype &&
           x->buffer->shape == y->buffer->shape;
  };
  const std::vector<const ir::Param*> own = common_params(a), other = common_params(b);
  return std::equal(own.begin(), own.end(), other.begin(), other.end(), same);
}

// Whether no more is needed by `inner` than by `outer`.
bool is_within(const ir::SizeLimit& inner, const ir::SizeLimit& outer) {
  return inner.form == outer.form && inner.dimension == outer.dimension &&
         inner.period == outer.period && inner.scale == outer.scale && inner.unit == outer.unit &&
         inner.offset <= outer.offset;
}
bool is_within(const std::vector<ir::Interval>& inner, const std::vector<ir::Interval>& outer) {
  for (size_t d = 0; d < inner.size(); ++d) {
    if (!inner[d].empty() && (inner[d].lo < outer[d].lo || inner[d].hi > outer[d].hi)) return false;
  }
  return true;
}

// Whether a variant needs nothing that the kernel leaves out, so that nobody may have computed it.
bool reads_no_more(const Kernel& variant, const Kernel& own, const compute::Dag& dag,
                   const KernelLimits& limits) {
  const ir::Program naive = compute::naive_program(dag);
  const ir::RunFacts facts{.multiples = limits.multiples};
  const ir::SizeLimits any(naive, limits.outputs, nullptr, facts);  // holds for all schedules
  const auto limits_of = [&](const Kernel& kernel) {
    const ir::Param* sizes = sizes_of(kernel);
    return ir::SizeLimits(kernel.program(), limits.outputs, sizes ? sizes->buffer : nullptr, facts);
  };
  const ir::SizeLimits mine = limits_of(variant), given = limits_of(own);
  const std::vector<const ir::Param*> params = common_params(variant), others = common_params(own);
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i]->role != ir::Role::kInput) continue;
    std::vector<ir::SizeLimit> found = mine.of_param(params[i]->buffer);
    if (i < dag.params.size()) {
      for (const ir::SizeLimit& limit : any.of_param(dag.params[i].buffer)) found.push_back(limit);
    }
    for (const ir::SizeLimit& outer : given.of_param(others[i]->buffer)) {
      if (std::none_of(found.begin(), found.end(),
                       [&](const ir::SizeLimit& inner) { return is_within(inner, outer); }))
        return false;
    }
    if (!is_within(mine.indices_of_param(params[i]->buffer),
                   given.indices_of_param(others[i]->buffer)))
      return false;
  }
  return true;
}

}  // namespace

bool is_one_phase(const Kernel& kernel) {
  const std::vector<backend::EntryPoint>& phases = kernel.executable.entries;
  const std::vector<ir::Param>& params = kernel.program().params;
  return std::count_if(phases.begin(), phases.end(), runs) == 1 &&
         std::all_of(params.begin(), params.end(), is_given);
}

bool can_stand_in(const Kernel& variant, const Kernel& own, const schedule::Steps& own_steps,
                  const compute::Dag& dag, const KernelLimits& limits) {
  // Otherwise a schedule computes each element from the same elements.
  const bool asks = !limits.ends.empty() || mixes_rows(own_steps);
  return same_params(own, variant) && (!asks || reads_no_more(variant, own, dag, limits));
}

Result<VariantKernels> compile_variants(
    const SizeVariants& variants, const Kernel& own, const schedule::Steps& own_steps,
    const compute::Dag& dag, const KernelLimits& limits,
    const std::function<Result<KernelPtr>(const schedule::Steps&)>& compile) {
  VariantKernels made{variants.own, {}};
  for (const SizeVariant& variant : variants.others) {
    HONE_ASSIGN_OR_RETURN(KernelPtr kernel, compile(variant.steps));
    if (!can_stand_in(*kernel, own, own_steps, dag, limits)) return VariantKernels{};
    made.others.push_back({std::move(kernel), variant.when, variant.share});
  }
  return made;
}

Result<VariedKernel> compile_varied(
    const schedule::Steps& steps, const SizeVariants* variants, const compute::Dag& dag,
    const KernelLimits& limits,
    const std::function<Result<KernelPtr>(const schedule::Steps&)>& compile) {
  VariedKernel made;
  const schedule::Steps* own = &steps;
  if (variants != nullptr && variants->replaces_own) {
    Result<KernelPtr> kernel = compile(*variants->replaces_own);
    made.use.replaces_own = kernel.ok();
    if (kernel.ok()) made.own = *std::move(kernel), own = &*variants->replaces_own;
    if (!kernel.ok()) variants = nullptr;
  }
  if (made.own == nullptr) {
    HONE_ASSIGN_OR_RETURN(made.own, compile(steps));
  }
  if (variants == nullptr) return made;
  Result<VariantKernels> others =
      compile_variants(*variants, *made.own, *own, dag, limits, compile);
  // A point that nobody compiled before may have no code.
  const Code code = others.status().code();
  if (!others.ok() && code != Code::kUnsupported && code != Code::kInvalid) return others.status();
  if (others.ok()) made.variants = *std::move(others);
  made.use.has_others = made.variants.others.size() == variants->others.size();
  return made;
}

std::vector<Tensor> arguments_for(const Kernel& variant, const Kernel& own,
                                  std::span<const Tensor> arguments) {
  std::vector<Tensor> made(variant.program().params.size());
  const std::vector<const ir::Param*> from = common_params(own), to = common_params(variant);
  for (size_t i = 0; i < to.size(); ++i) {
    const auto own_place = static_cast<size_t>(from[i] - own.program().params.data());
    const auto place = static_cast<size_t>(to[i] - variant.program().params.data());
    made[place] = arguments[own_place];
  }
  return made;
}

}  // namespace hone
