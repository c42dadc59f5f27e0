#include "hone/runtime/device_model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>
#include <new>

#include "hone/runtime/device/code.h"
#include "hone/runtime/device_model_state.h"
#include "hone/runtime/device_run.h"
#include "hone/runtime/device_steps.h"
#include "hone/runtime/float_mode.h"

namespace hone::runtime {
namespace {

// Returns whether the device runs all code of the plan.
bool runs_code(const PlanHeader& plan, const DeviceProperties& device, char* message) {
  for (uint32_t i = 0; i < plan.num_modules; ++i) {
    const PlanModule& module = plan_table<PlanModule>(plan, plan.modules)[i];
    CodeImage image;
    if (!code_choose(plan_table<char>(plan, module.code), device, image, message)) return false;
  }
  return true;
}

// Finds the device: the one that the caller names, or the first with the plan's name that runs all
// of its code. Returns -1 after a failure.
int find_device(const PlanHeader& plan, int wanted, char* message) {
  char why[kDeviceErrorBytes] = "";
  char first_why[kErrorBytes] = "";
  const char* name = plan_string(plan, plan.device_name);
  const int count = device_count(plan.device, why);
  if (count == 0) {
    say(message, "%s", why);
    return -1;
  }
  if (wanted < 0 || wanted > count) {
    say(message, "there is no device %d, but %d, from 1 on", wanted, count);
    return -1;
  }
  for (int i = 0; i < count; ++i) {
    DeviceProperties found;
    if (wanted > 0 && i + 1 != wanted) continue;
    if (device_describe(plan.device, i, found, why)) {
      if (wanted == 0 && strstr(found.name, name) == nullptr &&
          strstr(found.platform, name) == nullptr)
        continue;
      if (runs_code(plan, found, why)) return i;
    }
    if (first_why[0] == '\0') snprintf(first_why, sizeof first_why, "%s", why);
  }
  if (first_why[0] != '\0')
    say(message, "%s", first_why);
  else
    say(message, "none of the %d devices here is named '%s'", count, name);
  return -1;
}

bool load_kernels(DeviceModel& self) {
  const PlanHeader& plan = *self.model->plan;
  for (uint32_t i = 0; i < plan.num_modules; ++i) {
    const PlanModule& module = plan_table<PlanModule>(plan, plan.modules)[i];
    if (!device_load_best(*self.device, plan_table<char>(plan, module.code), self.modules[i]))
      return false;
  }
  for (uint32_t i = 0; i < plan.num_kernels; ++i) {
    const PlanKernel& kernel = plan_table<PlanKernel>(plan, plan.kernels)[i];
    if (kernel.module >= 0 &&
        !device_function(*self.device, self.modules[kernel.module], plan_string(plan, kernel.name),
                         kernel.threads, kernel.shared_bytes, self.functions[i]))
      return false;
  }
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    const PlanStep& step = plan_table<PlanStep>(plan, plan.steps)[i];
    if (runs_on_device(plan, step) &&
        !device_check_arguments(*self.device, self.functions[step.kernel],
                                static_cast<int>(step.num_arguments)))
      return false;
  }
  return true;
}

bool take_memory(DeviceModel& self) {
  const PlanHeader& plan = *self.model->plan;
  Device& device = *self.device;
  int64_t arrays = 0;
  for (int i = 0; i < num_tensors(plan); ++i) {
    self.own_arrays[i].offset = arrays;
    arrays += round_up(tensor_at(plan, i).bytes, kArrayAlignment);
  }
  if (!device_allocate(device, plan.arena_bytes, self.arena) ||
      !device_allocate(device, plan.weight_bytes, self.weights) ||
      !device_allocate(device, arrays, self.arrays) ||
      !device_upload(device, self.weights, 0, self.model->image.weights, plan.weight_bytes))
    return false;
  for (int i = 0; i < num_tensors(plan); ++i) self.own_arrays[i].buffer = self.arrays.handle;
  for (uint32_t i = 0; i < plan.num_zeroed; ++i) {
    const PlanRegion& region = plan_table<PlanRegion>(plan, plan.zeroed)[i];
    if (!device_zero(device, self.arena, region.offset, region.bytes)) return false;
  }
  return device_synchronize(device);
}

// Points the arguments at memory that stays, and those of the host's steps at the copies there.
void bind_memory(DeviceModel& self) {
  const Model& model = *self.model;
  const PlanHeader& plan = *model.plan;
  for (uint32_t i = 0; i < plan.num_arguments; ++i) {
    const PlanArgument& argument = plan_table<PlanArgument>(plan, plan.arguments)[i];
    if (argument.kind == ArgumentKind::kArena)
      self.arguments[i] = {self.arena.handle, argument.offset};
    if (argument.kind == ArgumentKind::kWeight)
      self.arguments[i] = {self.weights.handle, argument.offset};
    if (argument.kind == ArgumentKind::kInput)
      model.arguments[i] = model.staging[argument.index] + argument.offset;
    if (argument.kind == ArgumentKind::kOutput)
      model.arguments[i] =
          model.staging[static_cast<int>(plan.num_inputs) + argument.index] + argument.offset;
  }
  // Steps of the host run one by one: those that they could run with may be on the device.
  for (uint32_t i = 0; i < plan.num_steps; ++i) {
    model.phases[i].joins = false;
    model.phases[i].units = 0;
  }
}

// Frees what is on the device. A child of fork() cannot and need not.
void leave_device(DeviceModel& self) {
  const PlanHeader& plan = *self.model->plan;
  device_start_timer(*self.device, self.time_limit_ns);
  (void)device_wait(*self.device, self.last);
  release_graphs(self);
  release_events(self);
  device_release(*self.device, self.last);
  for (uint32_t i = 0; self.functions != nullptr && i < plan.num_kernels; ++i)
    device_release(*self.device, self.functions[i]);
  for (uint32_t i = 0; self.modules != nullptr && i < plan.num_modules; ++i)
    device_unload(*self.device, self.modules[i]);
  for (DeviceBuffer* buffer : {&self.arena, &self.weights, &self.arrays})
    device_free(*self.device, *buffer);
}

void destroy(DeviceModel* self) {
  const FloatMode mode;
  if (self->device != nullptr && self->process == getpid()) leave_device(*self);
  device_close(self->device);
  free_segments(self->segments);
  free(self->modules);
  free(self->functions);
  free(self->own_arrays);
  free(self->bound);
  free(self->given);
  free(self->arguments);
  free(self->order);
  free(self->events);
  free(self);
}

bool choose(DeviceModel& self, const int32_t* steps, int32_t count) {
  const FloatMode mode;
  Segments segments;
  if (!cut_segments(*self.model->plan, steps, count, segments)) return false;
  release_graphs(self);
  free_segments(self.segments);
  self.segments = segments;
  memmove(self.order, steps, static_cast<size_t>(count) * sizeof *steps);
  self.same_runs = -1;
  return true;
}

bool fill(DeviceModel& self, const ModelOptions& options, char* message) {
  const PlanHeader& plan = *self.model->plan;
  const auto tensors = static_cast<uint64_t>(num_tensors(plan));
  if (!allocate(self.modules, plan.num_modules) || !allocate(self.functions, plan.num_kernels) ||
      !allocate(self.own_arrays, tensors) || !allocate(self.bound, tensors) ||
      !allocate(self.given, tensors) || !allocate(self.arguments, plan.num_arguments) ||
      !allocate(self.order, plan.num_steps)) {
    say(message, "out of memory");
    return false;
  }
  const int index = find_device(plan, options.device, message);
  if (index < 0) return false;
  char why[kDeviceErrorBytes];
  self.device = device_open(plan.device, index, why);
  if (self.device == nullptr) {
    say(message, "%s", why);
    return false;
  }
  for (uint32_t i = 0; i < plan.num_steps; ++i) self.order[i] = static_cast<int32_t>(i);
  const bool loaded = load_kernels(self);
  self.time_limit_ns = options.time_limit_ns;
  device_start_timer(*self.device, self.time_limit_ns > 0 ? kAmpleNs : 0);
  if (!loaded || !take_memory(self)) {
    say(message, "%s", device_error(*self.device));
    return false;
  }
  bind_memory(self);
  if (choose(self, self.order, static_cast<int32_t>(plan.num_steps))) return true;
  say(message, "out of memory");
  return false;
}

DeviceModel* create(Model& model, const ModelOptions& options, char* message) {
  const FloatMode mode;  // drivers do not expect the caller's traps
  void* memory = malloc(sizeof(DeviceModel));
  if (memory == nullptr) {
    say(message, "out of memory");
    return nullptr;
  }
  auto* self = new (memory) DeviceModel;
  self->model = &model;
  self->process = getpid();
  if (fill(*self, options, message)) return self;
  destroy(self);
  return nullptr;
}

const char* name(const DeviceModel& self) { return device_properties(*self.device).name; }

int64_t bytes(const DeviceModel& self) { return device_peak(*self.device); }

}  // namespace

const DeviceRunner hone_device_runner = {create,        destroy, choose, run_from_host,
                                         run_on_device, name,    bytes};

}  // namespace hone::runtime
