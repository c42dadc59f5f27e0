// session/call_steps.h - the steps of an artifact that run a model's calls, with their arguments;
// packs the weights that they read.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "hone/session/assemble.h"
#include "hone/session/variant_kernels.h"

namespace hone {

class CallSteps {
 public:
  // All arguments must outlive it. `offsets` has, by group, the bytes by which the arguments of a
  // kernel begin behind those of its calls; an empty list: none. `first_symbol` has the index of
  // the first symbol of each kernel, then of each variant, in ArtifactSpec::kernel_symbols. Steps,
  // weights and the size of the arena are added to the assembly.
  CallSteps(Session& session, const graph::TaskList& tasks, const GroupKernels& kernels,
            std::span<const std::vector<int64_t>> offsets, std::span<const int> first_symbol,
            const graph::MemoryPlan& memory, const TogetherOptions& together, Assembly& assembly);

  // Adds a step for each phase of a call, and of each variant of its kernel.
  [[nodiscard]] Status add(int call);

 private:
  // A kernel or a variant of it.
  struct Part {
    const Kernel* kernel;
    int symbol;  // index of its first one
    artifact::ArtifactInterval when;
    int max_threads;
  };
  [[nodiscard]] std::vector<Part> parts_of(size_t group) const;
  [[nodiscard]] Result<std::vector<std::vector<int>>> pack(const graph::TaskCall& call);
  [[nodiscard]] std::vector<int> add_used(const Kernel& kernel, std::span<const Tensor> arguments);
  [[nodiscard]] int add_weight(const Tensor& tensor);
  [[nodiscard]] std::vector<int64_t> offsets_of_sizes(const graph::TaskCall& call,
                                                      const Kernel& kernel) const;
  [[nodiscard]] std::vector<artifact::ArtifactArgument> arguments_of(
      const graph::TaskCall& call, const Kernel& kernel, const std::vector<int>& weights);
  void add_part(int call, const Part& part, std::vector<artifact::ArtifactArgument> arguments);

  Session& session_;
  const graph::TaskList& tasks_;
  const GroupKernels& kernels_;
  std::span<const std::vector<int64_t>> offsets_;
  std::span<const int> first_symbol_;
  std::vector<size_t> first_variant_;  // where each group's are in `first_symbol_`
  const graph::MemoryPlan& memory_;
  const TogetherOptions& together_;
  Assembly& assembly_;
  // Workspaces of a call lie behind the arena, for all calls at one place, because calls that have
  // one run one after the other.
  const int64_t workspace_;
  // Constants of equal calls are packed once. An index of a weight per param, or -1: of the kernel,
  // then of its variants; by group and constants.
  std::map<std::pair<int, uint64_t>, std::vector<std::vector<int>>> packed_;
  std::multimap<uint64_t, int> weights_;  // by hash of their content
};

}  // namespace hone
