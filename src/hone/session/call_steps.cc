#include "hone/session/call_steps.h"

#include <algorithm>
#include <cstring>

#include "hone/base/allocation.h"
#include "hone/base/hash.h"
#include "hone/base/round_up.h"
#include "hone/compute/bytes_moved.h"
#include "hone/session/call_costs.h"

namespace hone {
namespace {

// The arguments of a call's kernel as tensors: constants given, packed weights computed.
Result<std::vector<Tensor>> constant_arguments(const graph::TaskList& tasks,
                                               const graph::TaskCall& call, const Kernel& kernel,
                                               const target::Target& target, int threads) {
  std::vector<Tensor> arguments(kernel.program().params.size());
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const graph::Argument& argument = call.arguments[i];
    if (argument.kind != graph::Argument::Kind::kConstant) continue;
    arguments[i] = tasks.constants[static_cast<size_t>(argument.index)];
  }
  HONE_RETURN_IF_ERROR(prepare(kernel, target, arguments, threads));
  return arguments;
}

}  // namespace

CallSteps::CallSteps(Session& session, const graph::TaskList& tasks, const GroupKernels& kernels,
                     std::span<const std::vector<int64_t>> offsets,
                     std::span<const int> first_symbol, const graph::MemoryPlan& memory,
                     const TogetherOptions& together, Assembly& assembly)
    : session_(session),
      tasks_(tasks),
      kernels_(kernels),
      offsets_(offsets),
      first_symbol_(first_symbol),
      memory_(memory),
      together_(together),
      assembly_(assembly),
      workspace_(round_up(memory.arena_bytes, graph::MemoryPlan::kAlignment)) {
  assembly_.spec.arena_bytes = workspace_;
  size_t next = kernels.own.size();
  for (const VariantKernels& variants : kernels.variants) {
    first_variant_.push_back(next);
    next += variants.others.size();
  }
}

Status CallSteps::add(int call) {
  const graph::TaskCall& made = tasks_.calls[static_cast<size_t>(call)];
  const auto [entry, fresh] =
      packed_.try_emplace({made.group, graph::constants_hash(tasks_, made)});
  if (fresh) {
    HONE_ASSIGN_OR_RETURN(entry->second, pack(made));
  }
  const std::vector<Part> parts = parts_of(static_cast<size_t>(made.group));
  for (size_t i = 0; i < parts.size(); ++i)
    add_part(call, parts[i], arguments_of(made, *parts[i].kernel, entry->second[i]));
  return ok_status();
}

std::vector<CallSteps::Part> CallSteps::parts_of(size_t group) const {
  const VariantKernels& variants = kernels_.variants[group];
  std::vector<Part> parts = {{kernels_.own[group].get(), first_symbol_[group], variants.own, 0}};
  const double seconds = together_.seconds.empty() ? 0 : together_.seconds[group];
  for (size_t i = 0; i < variants.others.size(); ++i) {
    const VariantKernel& variant = variants.others[i];
    parts.push_back({variant.kernel.get(), first_symbol_[first_variant_[group] + i], variant.when,
                     thread_limit(cost_of(variant, seconds, together_), together_)});
  }
  return parts;
}

Result<std::vector<std::vector<int>>> CallSteps::pack(const graph::TaskCall& call) {
  const auto group = static_cast<size_t>(call.group);
  const Kernel& own = *kernels_.own[group];
  const AllocatesFor purpose(fmt::format("the kernel of node '{}'", call.name));
  HONE_ASSIGN_OR_RETURN(
      const std::vector<Tensor> arguments,
      constant_arguments(tasks_, call, own, session_.target(), session_.pool().threads()));
  std::vector<std::vector<int>> indices = {add_used(own, arguments)};
  for (const VariantKernel& variant : kernels_.variants[group].others)
    indices.push_back(add_used(*variant.kernel, arguments_for(*variant.kernel, own, arguments)));
  return indices;
}

// Those of a kernel's arguments that phases of the model read: an index per param, or -1.
std::vector<int> CallSteps::add_used(const Kernel& kernel, std::span<const Tensor> arguments) {
  std::vector<int> indices;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ir::Role role = kernel.program().params[i].role;
    const bool constant = role == ir::Role::kConstant || role == ir::Role::kPacked;
    indices.push_back(kernel.used()[i] && constant ? add_weight(arguments[i]) : -1);
  }
  return indices;
}

int CallSteps::add_weight(const Tensor& tensor) {
  const auto bytes = static_cast<size_t>(tensor.bytes());
  const uint64_t hash = hash_bytes(tensor.data(), bytes);
  for (auto [it, end] = weights_.equal_range(hash); it != end; ++it) {
    const Tensor& other = assembly_.weights[static_cast<size_t>(it->second)];
    if (other.bytes() == tensor.bytes() && std::memcmp(other.data(), tensor.data(), bytes) == 0)
      return it->second;
  }
  const int index = static_cast<int>(assembly_.weights.size());
  assembly_.weights.push_back(tensor);
  assembly_.spec.weights.push_back({tensor.data(), tensor.bytes()});
  weights_.emplace(hash, index);
  return index;
}

// Returns where the kernel reads sizes, in the order of the params behind the arguments of the
// call: those of the run, if it takes them, and those that data decide.
std::vector<int64_t> CallSteps::offsets_of_sizes(const graph::TaskCall& call,
                                                 const Kernel& kernel) const {
  const std::vector<ir::Param>& params = kernel.program().params;
  const auto begin = params.begin() + std::ssize(call.arguments);
  const auto inputs = std::ranges::count(begin, params.end(), ir::Role::kInput, &ir::Param::role);
  std::vector<int64_t> offsets;
  if (inputs > std::ssize(call.sizes)) offsets.push_back(assembly_.spec.sizes);
  for (const int buffer : call.sizes)
    offsets.push_back(memory_.offsets[static_cast<size_t>(buffer)]);
  return offsets;
}

// Workspaces lie one behind the other. What only prepare phases use may be anything.
std::vector<artifact::ArtifactArgument> CallSteps::arguments_of(const graph::TaskCall& call,
                                                                const Kernel& kernel,
                                                                const std::vector<int>& weights) {
  int64_t workspace = workspace_;
  const std::vector<ir::Param>& params = kernel.program().params;
  std::vector<artifact::ArtifactArgument> arguments(params.size());
  const std::vector<int64_t> sizes = offsets_of_sizes(call, kernel);
  auto size = sizes.begin();
  for (size_t i = 0; i < params.size(); ++i) {
    artifact::ArtifactArgument& argument = arguments[i];
    argument.bytes = params[i].buffer->bytes();
    if (weights[i] >= 0) {
      argument.kind = artifact::ArgumentKind::kWeight;
      argument.index = weights[i];
    } else if (i < call.arguments.size()) {
      const graph::Argument& from = call.arguments[i];
      switch (from.kind) {
        case graph::Argument::Kind::kInput:
          argument.kind = artifact::ArgumentKind::kInput;
          argument.index = from.index;
          break;
        case graph::Argument::Kind::kOutput:
          argument.kind = artifact::ArgumentKind::kOutput;
          argument.index = from.index;
          break;
        case graph::Argument::Kind::kArena:
          argument.offset = memory_.offsets[static_cast<size_t>(from.index)];
          break;
        case graph::Argument::Kind::kConstant: argument.bytes = 0; break;
      }
      const std::vector<int64_t>& moved = offsets_[static_cast<size_t>(call.group)];
      if (!moved.empty()) argument.offset += moved[i];
    } else if (params[i].role == ir::Role::kInput) {
      argument.offset = *size++;
    } else if (params[i].role == ir::Role::kWorkspace) {
      argument.offset = workspace;
      workspace += round_up(params[i].buffer->bytes(), graph::MemoryPlan::kAlignment);
    } else {
      argument.bytes = 0;
    }
    argument.written =
        params[i].role == ir::Role::kWorkspace || params[i].role == ir::Role::kOutput;
  }
  assembly_.spec.arena_bytes = std::max(assembly_.spec.arena_bytes, workspace);
  return arguments;
}

void CallSteps::add_part(int call_index, const Part& part,
                         std::vector<artifact::ArtifactArgument> arguments) {
  artifact::ArtifactStep step;
  step.when = part.when;
  step.max_threads = part.max_threads;
  const graph::TaskCall& call = tasks_.calls[static_cast<size_t>(call_index)];
  step.name = call.name;
  step.kernel_class = compute::kernel_class(call.dag);
  // Of each call once, with its first step.
  if (assembly_.calls.empty() || assembly_.calls.back() != call_index) {
    step.flops = compute::flops(call.dag);
    step.bytes = compute::bytes_moved(call.dag);
  }
  step.arguments = std::move(arguments);
  const std::vector<backend::EntryPoint>& phases = part.kernel->executable.entries;
  int symbol = part.symbol;
  for (size_t p = 0; p < phases.size(); ++p) {
    if (!runs(phases[p])) continue;
    step.kernel = symbol++;
    step.num_tiles = phases[p].num_tiles;
    step.limit = {};
    if (p < part.kernel->tiles.size()) {
      const ir::TileLimit& limit = part.kernel->tiles[p];
      step.limit = {limit.form, limit.divisor, limit.multiplier};
    }
    assembly_.spec.steps.push_back(step);
    assembly_.calls.push_back(call_index);
    step.flops = step.bytes = 0;
  }
}

}  // namespace hone
