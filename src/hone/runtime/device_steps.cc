#include "hone/runtime/device_steps.h"

#include <stdlib.h>

namespace hone::runtime {
namespace {

// Returns the first step of the device whose end was recorded and has not come, or null.
const PlanStep* unfinished_step(const DeviceModel& self) {
  const PlanHeader& plan = *self.model->plan;
  for (int32_t s = 0; self.events != nullptr && s < self.segments.count; ++s) {
    const Segment& segment = self.segments.list[s];
    for (int32_t i = segment.first; segment.on_device && i < segment.first + segment.count; ++i)
      if (!device_has_happened(*self.device, self.events[2 * i + 1]))
        return &plan_table<PlanStep>(plan, plan.steps)[self.order[i]];
  }
  return nullptr;
}

// Returns the place of an input or output of this run, as a buffer from its start on.
DeviceBuffer array_of(const DeviceModel& self, int tensor) {
  const DeviceArgument& at = self.bound[tensor];
  return {at.buffer, at.offset + tensor_at(*self.model->plan, tensor).bytes};
}

// Copies one range from the device to the host's copy, or back.
bool copy_range(DeviceModel& self, const PlanArgument& range, bool to_host) {
  const Model& model = *self.model;
  DeviceBuffer there = self.arena;
  int64_t offset = range.offset;
  char* here = model.arena + range.offset;
  if (range.kind != ArgumentKind::kArena) {
    const bool is_input = range.kind == ArgumentKind::kInput;
    const int tensor = range.index + (is_input ? 0 : static_cast<int>(model.plan->num_inputs));
    there = array_of(self, tensor);
    offset += self.bound[tensor].offset;
    here = model.staging[tensor] + range.offset;
  }
  return to_host ? device_download(*self.device, here, there, offset, range.bytes)
                 : device_upload(*self.device, there, offset, here, range.bytes);
}

int run_host_steps(DeviceModel& self, const Segment& segment) {
  Model& model = *self.model;
  for (int32_t i = 0; i < segment.num_downloads; ++i)
    if (!copy_range(self, segment.copies[i], true)) return fail(self);
  if (!device_synchronize(*self.device)) return fail(self);
  for (int32_t i = segment.first; i < segment.first + segment.count; ++i) {
    pool_expect_other_work(model.pool);  // each step is a run of the pool
    const int result = pool_run(model.pool, &model.phases[self.order[i]], 1, model.scratch,
                                model.scratch_stride, model.profile ? &model.step_ns[i] : nullptr);
    if (result == 0) continue;
    say(model.error, "a kernel failed with code %d", result);
    return 1;
  }
  for (int32_t i = 0; i < segment.num_uploads; ++i)
    if (!copy_range(self, segment.copies[segment.num_downloads + i], false)) return fail(self);
  return 0;
}

bool launch_steps(DeviceModel& self, const Segment& segment) {
  const PlanHeader& plan = *self.model->plan;
  for (int32_t i = segment.first; i < segment.first + segment.count; ++i) {
    const PlanStep& step = plan_table<PlanStep>(plan, plan.steps)[self.order[i]];
    if (!device_keep_up(*self.device)) return false;
    if (self.events != nullptr && !device_record(*self.device, self.events[2 * i])) return false;
    if (!device_launch(*self.device, self.functions[step.kernel], step.num_tiles,
                       self.arguments + step.first_argument, static_cast<int>(step.num_arguments)))
      return false;
    if (self.events != nullptr && !device_record(*self.device, self.events[2 * i + 1]))
      return false;
  }
  return true;
}

// Records the graph of a segment in the model's own stream. A driver that has no graphs gets
// launches.
void record_graph(DeviceModel& self, Segment& segment) {
  device_use_own_stream(*self.device);
  self.no_graphs = !device_begin_graph(*self.device);
  if (!self.no_graphs) {
    const bool launched = launch_steps(self, segment);
    self.no_graphs = !device_end_graph(*self.device, segment.graph) || !launched;
    if (self.no_graphs) device_release(*self.device, segment.graph);
  }
  if (self.last_is_callers) (void)device_use_stream(*self.device, self.last_stream);
}

int run_device_steps(DeviceModel& self, Segment& segment) {
  // A graph holds the arrays of its run, so it pays if they come again; one launch needs none.
  const bool wanted = self.same_runs > 0 && segment.count > 1 && self.events == nullptr &&
                      self.model->plan->device == DeviceKind::kCuda && !self.no_graphs;
  if (wanted && segment.graph.handle == nullptr) record_graph(self, segment);
  const bool ran =
      wanted && segment.graph.handle != nullptr
          ? device_keep_up(*self.device) && device_launch_graph(*self.device, segment.graph)
          : launch_steps(self, segment);
  return ran ? 0 : fail(self);
}

}  // namespace

int fail(DeviceModel& self) {
  const PlanHeader& plan = *self.model->plan;
  char* error = self.model->error;
  const bool tells = device_hangs(*self.device) && !self.told;
  const PlanStep* step = tells ? unfinished_step(self) : nullptr;
  self.told |= tells;
  if (step != nullptr)
    say(error, "step '%s' (kernel %s) did not end: %s", plan_string(plan, step->name),
        plan_string(plan, plan_kernel(plan, *step).name), device_error(*self.device));
  else
    say(error, "%s%s", tells ? "a kernel of the model did not end: " : "",
        device_error(*self.device));
  return 1;
}

int run_segments(DeviceModel& self) {
  for (int32_t i = 0; i < self.segments.count; ++i) {
    Segment& segment = self.segments.list[i];
    const int result =
        segment.on_device ? run_device_steps(self, segment) : run_host_steps(self, segment);
    if (result != 0) return result;
  }
  return 0;
}

void release_graphs(DeviceModel& self) {
  for (int32_t i = 0; i < self.segments.count; ++i)
    device_release(*self.device, self.segments.list[i].graph);
}

void release_events(DeviceModel& self) {
  for (uint32_t i = 0; self.events != nullptr && i < 2 * self.model->plan->num_steps; ++i)
    device_release(*self.device, self.events[i]);
  free(self.events);
  self.events = nullptr;
}

bool prepare_events(DeviceModel& self) {
  const uint32_t num_steps = self.model->plan->num_steps;
  const bool wanted = self.model->profile || (self.time_limit_ns > 0 && !self.has_run);
  if (!wanted) release_events(self);
  if (!wanted || self.events != nullptr) return true;
  return allocate(self.events, 2 * static_cast<uint64_t>(num_steps));
}

bool read_times(DeviceModel& self) {
  const Segments& segments = self.segments;
  for (int32_t s = 0; s < segments.count; ++s) {
    const Segment& segment = segments.list[s];
    for (int32_t i = segment.first; segment.on_device && i < segment.first + segment.count; ++i) {
      double seconds = 0;
      if (!device_elapsed(*self.device, self.events[2 * i], self.events[2 * i + 1], seconds))
        return false;
      self.model->step_ns[i] = static_cast<int64_t>(seconds * 1e9);
    }
  }
  return true;
}

}  // namespace hone::runtime
