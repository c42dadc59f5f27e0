#include "hone/session/step_run.h"

#include <algorithm>
#include <cstring>

#include "hone/backend/registry.h"
#include "hone/base/allocation.h"
#include "hone/runtime/loops.h"
#include "hone/runtime/model.h"

namespace hone {

Result<StepRun> StepRun::create(const Assembly& assembly, int threads) {
  StepRun run(assembly, threads);
  HONE_ASSIGN_OR_RETURN(run.kernels_, machine::load_kernels(assembly.spec));
  run.places_ = artifact::kernel_places(assembly.spec);
  for (const backend::Executable& executable : assembly.spec.executables) {
    backend::LoadedPtr& program = run.programs_.emplace_back();
    if (executable.kind == target::Kind::kGpu) {
      HONE_ASSIGN_OR_RETURN(program, backend::load(executable));
    }
  }
  return run;
}

const void* StepRun::memory(const graph::Buffer& buffer, int index) const {
  const auto i = static_cast<size_t>(index);
  switch (buffer.kind) {
    case graph::Buffer::Kind::kInput: return inputs_[static_cast<size_t>(buffer.index)].data();
    case graph::Buffer::Kind::kOutput: return outputs_[static_cast<size_t>(buffer.index)].data();
    case graph::Buffer::Kind::kArena:
      if (assembly_->plan.offsets[i] < 0) return nullptr;
      return static_cast<const char*>(arena_.data()) + assembly_->plan.offsets[i];
    case graph::Buffer::Kind::kConstant: break;
  }
  HONE_ASSERT(false, "constants are no buffers of a run");
}

// The tiles that a step runs at these sizes.
static int64_t tiles_of(const artifact::ArtifactStep& step, const std::vector<Tensor>& inputs) {
  const auto value = [&](int form) {
    return inputs.back().as<int64_t>()[static_cast<size_t>(form)];
  };
  const artifact::ArtifactInterval& when = step.when;
  if (when.form >= 0 && (value(when.form) < when.from || value(when.form) > when.most)) return 0;
  const artifact::ArtifactTileLimit& limit = step.limit;
  if (step.run.form >= 0 && value(step.run.form) < step.run.least) return 0;
  if (limit.form < 0) return step.num_tiles;
  const int64_t size = value(limit.form);
  const int64_t groups = size <= 0 ? 0 : (size - 1) / limit.divisor + 1;
  return std::min(step.num_tiles, groups * limit.multiplier);
}

Status StepRun::run(std::span<const Tensor> inputs, const std::function<Status(int)>& on_call) {
  const artifact::ArtifactSpec& spec = assembly_->spec;
  inputs_.assign(inputs.begin(), inputs.end());
  outputs_.clear();
  const AllocatesFor purpose("what is between the model's kernels, and its outputs");
  arena_ = Tensor(DType::kU8, {spec.arena_bytes});
  if (spec.arena_bytes > 0) std::memset(arena_.data(), 0xff, static_cast<size_t>(spec.arena_bytes));
  for (const auto& [offset, bytes] : spec.zeroed)
    std::memset(static_cast<char*>(arena_.data()) + offset, 0, static_cast<size_t>(bytes));
  if (spec.sizes >= 0) {
    HONE_ASSERT(inputs.size() == spec.inputs.size() + 1, "the sizes are behind the inputs");
    std::memcpy(static_cast<char*>(arena_.data()) + spec.sizes, inputs.back().data(),
                static_cast<size_t>(inputs.back().bytes()));
  }
  for (const artifact::ArtifactTensor& output : spec.outputs) {
    Tensor& tensor = outputs_.emplace_back(output.dtype, output.shape);
    if (tensor.bytes() > 0) std::memset(tensor.data(), 0xff, static_cast<size_t>(tensor.bytes()));
  }
  // Steps and loops return 0 or 1 and leave the reason here.
  Status status;
  const auto run_range = [&](uint32_t first, uint32_t end) {
    for (uint32_t s = first; s < end && status.ok(); ++s) status = run_step(s, on_call);
    return status.ok() ? 0 : 1;
  };
  const std::vector<runtime::PlanLoop> loops = artifact::plan_loops(spec);
  const auto fail = [&](const runtime::PlanLoop& loop) {
    char message[runtime::kErrorBytes];
    runtime::write_fault(message, sizeof message,
                         spec.loops[static_cast<size_t>(&loop - loops.data())].beyond.c_str(), loop,
                         static_cast<const char*>(arena_.data()));
    status = invalid("{}", message);
    return 1;
  };
  const runtime::LoopRunner<decltype(run_range), decltype(fail)> runner(
      loops.data(), spec.copies.data(), static_cast<char*>(arena_.data()), run_range, fail);
  (void)runner.run(0, static_cast<uint32_t>(spec.steps.size()), 0,
                   static_cast<uint32_t>(loops.size()));
  return status;
}

Status StepRun::run_step(size_t s, const std::function<Status(int)>& on_call) {
  const artifact::ArtifactSpec& spec = assembly_->spec;
  const artifact::ArtifactStep& step = spec.steps[s];
  const artifact::KernelPlace& place = places_[static_cast<size_t>(step.kernel)];
  std::vector<void*> args;
  for (const artifact::ArtifactArgument& argument : step.arguments) {
    const auto i = static_cast<size_t>(argument.index);
    const void* base = arena_.data();
    if (argument.kind == artifact::ArgumentKind::kInput) base = inputs_[i].data();
    if (argument.kind == artifact::ArgumentKind::kOutput) base = outputs_[i].data();
    if (argument.kind == artifact::ArgumentKind::kWeight) base = spec.weights[i].data;
    args.push_back(const_cast<char*>(static_cast<const char*>(base)) + argument.offset);
    // A device gets copies. Constants that only prepared others have no memory in a run.
    const bool is_there = argument.kind != artifact::ArgumentKind::kArena ||
                          argument.offset + argument.bytes <= spec.arena_bytes;
    if (place.entry != nullptr && !is_there) args.back() = nullptr;
  }
  const hone_kernel kernel = kernels_.functions[static_cast<size_t>(step.kernel)];
  const auto run_kernel = [&](void* scratch, int64_t first, int64_t end, int thread) -> Status {
    if (place.entry != nullptr)
      return programs_[static_cast<size_t>(place.executable)]->run(*place.entry, args.data(),
                                                                   scratch, first, end, thread);
    const int code = kernel(args.data(), scratch, first, end, thread);
    return code == 0
               ? ok_status()
               : error(Code::kInternal, "{}: its kernel failed with code {}", step.name, code);
  };
  HONE_RETURN_IF_ERROR(
      run_tiles(run_kernel, tiles_of(step, inputs_), spec.scratch_bytes, threads_));
  const bool last = s + 1 == spec.steps.size() || assembly_->calls[s + 1] != assembly_->calls[s];
  return last ? on_call(assembly_->calls[s]) : ok_status();
}

}  // namespace hone
