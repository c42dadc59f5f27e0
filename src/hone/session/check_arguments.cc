#include "hone/session/check_arguments.h"

#include <algorithm>

#include "hone/compute/kernel_params.h"

namespace hone {
namespace {

// The bytes behind an argument of a call.
int64_t bytes_of(const graph::TaskList& tasks, const graph::Argument& argument) {
  const auto i = static_cast<size_t>(argument.index);
  const auto bytes = [](const graph::TensorInfo& info) {
    return num_elements(info.shape) * dtype_bytes(info.dtype);
  };
  switch (argument.kind) {
    case graph::Argument::Kind::kInput: return bytes(tasks.inputs[i]);
    case graph::Argument::Kind::kOutput: return bytes(tasks.outputs[i]);
    case graph::Argument::Kind::kConstant: return tasks.constants[i].bytes();
    case graph::Argument::Kind::kArena: break;
  }
  return tasks.buffers[i].bytes();
}

// Whether a kernel takes what a call of its group gives: no task may run another one's kernel with
// a list of arguments that is not that kernel's.
Status check_arguments(const graph::TaskList& tasks, const graph::TaskCall& call,
                       const Kernel& kernel, const std::vector<int64_t>& offsets) {
  const graph::TaskGroup& group = tasks.groups[static_cast<size_t>(call.group)];
  const graph::TaskCall& first = tasks.calls[static_cast<size_t>(group.calls.front())];
  HONE_RETURN_IF_ERROR(compute::check_same_params(first.dag, call.dag));
  const std::vector<ir::Param>& params = kernel.program().params;
  if (call.arguments.size() != call.dag.params.size() || call.arguments.size() > params.size())
    return error(Code::kInternal, "bug: its kernel takes {} arguments, but the call gives {}",
                 call.dag.params.size(), call.arguments.size());
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const graph::Argument& argument = call.arguments[i];
    const ir::Param &takes = params[i], &gives = call.dag.params[i];
    const bool constant = argument.kind == graph::Argument::Kind::kConstant;
    const int64_t offset = offsets.empty() ? 0 : offsets[i];
    const int64_t bytes = takes.buffer->bytes(), given = gives.buffer->bytes();
    const bool same = takes.role == gives.role && takes.buffer->dtype == gives.buffer->dtype &&
                      (offsets.empty() ? bytes == given : offset + bytes <= given) &&
                      constant == (takes.role == ir::Role::kConstant) &&
                      offset + bytes <= bytes_of(tasks, argument);
    if (!same) {
      return error(Code::kInternal,
                   "bug: argument {} of its kernel is {} of {} bytes, but the call gives {} bytes",
                   i, ir::role_name(takes.role), takes.buffer->bytes(), bytes_of(tasks, argument));
    }
  }
  const auto inputs =
      std::count_if(params.begin() + std::ssize(call.arguments), params.end(),
                    [](const ir::Param& param) { return param.role == ir::Role::kInput; });
  const int64_t sizes = std::ssize(call.sizes) + (kernel.tiles.empty() ? 0 : 1);
  if (inputs != sizes)
    return error(Code::kInternal, "bug: its kernel reads {} arrays of sizes, but the call gives {}",
                 inputs, sizes);
  for (size_t i = call.arguments.size(); i < params.size(); ++i) {
    const bool own = params[i].role == ir::Role::kPacked ||
                     params[i].role == ir::Role::kWorkspace || params[i].role == ir::Role::kInput;
    if (!own && params[i].buffer->values.empty())
      return error(Code::kInternal, "bug: the call gives no argument {} to its kernel", i);
  }
  return ok_status();
}

}  // namespace

Status check_arguments(const graph::TaskList& tasks, std::span<const KernelPtr> kernels,
                       std::span<const std::vector<int64_t>> offsets) {
  static const std::vector<int64_t> none;
  for (const graph::TaskCall& call : tasks.calls) {
    const auto group = static_cast<size_t>(call.group);
    const Status status = check_arguments(tasks, call, *kernels[group],
                                          group < offsets.size() ? offsets[group] : none);
    if (!status.ok()) return error(status.code(), "{}: {}", call.name, status.message());
  }
  return ok_status();
}

}  // namespace hone
