#include "hone/runtime/device_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>
#include <new>

#include "hone/runtime/device/code.h"
#include "hone/runtime/device/device.h"
#include "hone/runtime/device_segments.h"
#include "hone/runtime/float_mode.h"
#include "hone/runtime/model_state.h"

namespace hone::runtime {

class DeviceModel {
 public:
  Model* model = nullptr;
  Device* device = nullptr;
  pid_t process = 0;
  DeviceModule* modules = nullptr;
  DeviceFunction* functions = nullptr;  // per kernel; none for those of the host
  DeviceBuffer arena, weights;
  DeviceBuffer arrays;                   // inputs and outputs of callers whose own are elsewhere
  DeviceArgument* own_arrays = nullptr;  // their places there, per input, then per output
  DeviceArgument* bound = nullptr;       // where this run's inputs and outputs are
  DeviceArgument* given = nullptr;       // room for those that a caller gives
  DeviceArgument* arguments = nullptr;   // of all steps
  int32_t* order = nullptr;              // the steps that a run consists of
  Segments segments;
  DeviceEvent* events = nullptr;  // two a step, while times are measured; else null
  DeviceEvent last;               // the end of the last run in a stream of a caller
  void* last_stream = nullptr;
  bool last_is_callers = false;
  int64_t same_runs = -1;  // runs with the same arrays and steps before this one, in a row
  bool no_graphs = false;  // the driver has none
};

namespace {

// Makes the error of the device that of the model.
int fail(DeviceModel& self) {
  snprintf(self.model->error, kErrorBytes, "%s", device_error(*self.device));
  return 1;
}

// --- Making a model ---

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
    CodeImage image;
    char ignored[kErrorBytes];
    if (!code_choose(plan_table<char>(plan, module.code), device_properties(*self.device), image,
                     ignored) ||
        !device_load(*self.device, image, self.modules[i]))
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

// Frees what is on the device. A child of fork() cannot and need not.
void leave_device(DeviceModel& self) {
  const PlanHeader& plan = *self.model->plan;
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

bool fill(DeviceModel& self, int wanted, char* message) {
  const PlanHeader& plan = *self.model->plan;
  const auto tensors = static_cast<uint64_t>(num_tensors(plan));
  if (!allocate(self.modules, plan.num_modules) || !allocate(self.functions, plan.num_kernels) ||
      !allocate(self.own_arrays, tensors) || !allocate(self.bound, tensors) ||
      !allocate(self.given, tensors) || !allocate(self.arguments, plan.num_arguments) ||
      !allocate(self.order, plan.num_steps)) {
    say(message, "out of memory");
    return false;
  }
  const int index = find_device(plan, wanted, message);
  if (index < 0) return false;
  char why[kDeviceErrorBytes];
  self.device = device_open(plan.device, index, why);
  if (self.device == nullptr) {
    say(message, "%s", why);
    return false;
  }
  for (uint32_t i = 0; i < plan.num_steps; ++i) self.order[i] = static_cast<int32_t>(i);
  if (!load_kernels(self) || !take_memory(self)) {
    say(message, "%s", device_error(*self.device));
    return false;
  }
  bind_memory(self);
  if (choose(self, self.order, static_cast<int32_t>(plan.num_steps))) return true;
  say(message, "out of memory");
  return false;
}

DeviceModel* create(Model& model, int wanted, char* message) {
  const FloatMode mode;  // drivers do not expect the caller's traps
  void* memory = malloc(sizeof(DeviceModel));
  if (memory == nullptr) {
    say(message, "out of memory");
    return nullptr;
  }
  auto* self = new (memory) DeviceModel;
  self->model = &model;
  self->process = getpid();
  if (fill(*self, wanted, message)) return self;
  destroy(self);
  return nullptr;
}

// --- Running ---

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
  const bool ran = wanted && segment.graph.handle != nullptr
                       ? device_launch_graph(*self.device, segment.graph)
                       : launch_steps(self, segment);
  return ran ? 0 : fail(self);
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

// Puts the arguments where the arrays of this run are.
void bind_arrays(DeviceModel& self, const DeviceArgument* arrays) {
  const PlanHeader& plan = *self.model->plan;
  const size_t bytes = static_cast<size_t>(num_tensors(plan)) * sizeof *arrays;
  if (memcmp(self.bound, arrays, bytes) == 0) {
    ++self.same_runs;
    return;
  }
  release_graphs(self);
  self.same_runs = 0;
  memcpy(self.bound, arrays, bytes);
  for (uint32_t i = 0; i < plan.num_arguments; ++i) {
    const PlanArgument& argument = plan_table<PlanArgument>(plan, plan.arguments)[i];
    const bool is_input = argument.kind == ArgumentKind::kInput;
    if (!is_input && argument.kind != ArgumentKind::kOutput) continue;
    const DeviceArgument& at =
        arrays[argument.index + (is_input ? 0 : static_cast<int>(plan.num_inputs))];
    self.arguments[i] = {at.buffer, at.offset + argument.offset};
  }
}

// Goes on in the model's own stream, when the last run in a stream of a caller is done: the runs
// share the memory.
bool enter_own_stream(DeviceModel& self) {
  if (self.last_is_callers && !device_wait(*self.device, self.last)) return false;
  self.last_is_callers = false;
  device_use_own_stream(*self.device);
  return true;
}

// Goes on in a stream of the caller, which waits for the last run. A handle does not tell whether
// that one was in the same stream: a handle is used again for another stream, and one of them
// stands for a stream of each thread.
bool enter_stream(DeviceModel& self, void* stream) {
  self.last_is_callers = true;
  self.last_stream = stream;
  return device_use_stream(*self.device, stream) && device_wait_in_stream(*self.device, self.last);
}

// Times are measured by events if the model asks for a profile.
bool prepare_events(DeviceModel& self) {
  const uint32_t num_steps = self.model->plan->num_steps;
  if (!self.model->profile) release_events(self);
  if (!self.model->profile || self.events != nullptr) return true;
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

bool has_varying_shapes(const PlanHeader& plan) {
  for (uint32_t i = 0; i < plan.num_outputs; ++i)
    if (plan_output(plan, static_cast<int>(i)).actual_shape >= 0) return true;
  return false;
}

// Fetches the shapes that depend on the data, and waits for them.
bool fetch_shapes(DeviceModel& self) {
  const PlanHeader& plan = *self.model->plan;
  if (!has_varying_shapes(plan)) return true;
  for (uint32_t i = 0; i < plan.num_outputs; ++i) {
    const PlanTensor& output = plan_output(plan, static_cast<int>(i));
    if (output.actual_shape >= 0 &&
        !device_download(*self.device, self.model->arena + output.actual_shape, self.arena,
                         output.actual_shape, 8 * output.rank))
      return false;
  }
  return device_synchronize(*self.device);
}

// Returns the bytes of an output whose shape was fetched: what is behind them was never written.
int64_t actual_bytes(const DeviceModel& self, int output) {
  const PlanTensor& tensor = plan_output(*self.model->plan, output);
  if (tensor.actual_shape < 0 || tensor.bytes == 0) return tensor.bytes;
  const int64_t* most = plan_table<int64_t>(*self.model->plan, tensor.shape);
  const int64_t* actual = model_output_shape(*self.model, output);
  int64_t bytes = tensor.bytes;
  for (int32_t d = 0; d < tensor.rank; ++d) bytes /= most[d] > 0 ? most[d] : 1;
  for (int32_t d = 0; d < tensor.rank; ++d)
    bytes *= actual[d] < 0 || actual[d] > most[d] ? most[d] : actual[d];
  return bytes;
}

// The part of a run that is the same wherever the arrays are.
int run_bound(DeviceModel& self) {
  if (!prepare_events(self)) return model_fail(*self.model, "out of memory");
  const int result = run_segments(self);
  if (result != 0) return result;
  if (!fetch_shapes(self)) return fail(self);
  return self.events == nullptr || read_times(self) ? 0 : fail(self);
}

// The driver's state did not survive a fork.
bool is_own_process(DeviceModel& self) {
  if (self.process == getpid()) return true;
  model_fail(*self.model,
             "the model was created before a fork(), and its device cannot be used behind that: "
             "create a model in the child");
  return false;
}

// Copies of a run that failed may still be under way, to and from arrays that the caller frees.
int settled(DeviceModel& self, int result) {
  if (result != 0) (void)device_synchronize(*self.device);
  return result;
}

int run_with_copies(DeviceModel& self, const void* const* inputs, void* const* outputs) {
  const PlanHeader& plan = *self.model->plan;
  if (!enter_own_stream(self)) return fail(self);
  bind_arrays(self, self.own_arrays);
  const int num_inputs = static_cast<int>(plan.num_inputs);
  for (int i = 0; i < num_inputs; ++i)
    if (!device_upload(*self.device, self.arrays, self.own_arrays[i].offset, inputs[i],
                       tensor_at(plan, i).bytes))
      return fail(self);
  if (run_bound(self) != 0) return 1;
  for (int i = 0; i < num_tensors(plan) - num_inputs; ++i)
    if (!device_download(*self.device, outputs[i], self.arrays,
                         self.own_arrays[num_inputs + i].offset, actual_bytes(self, i)))
      return fail(self);
  return device_synchronize(*self.device) ? 0 : fail(self);
}

int run(DeviceModel& self, const void* const* inputs, void* const* outputs) {
  const FloatMode mode;
  return is_own_process(self) ? settled(self, run_with_copies(self, inputs, outputs)) : 1;
}

// Checks the caller's pointer, and chooses where the array of this run is: there, or in the model's
// own memory if it is not aligned.
bool place_array(DeviceModel& self, int tensor, const void* pointer, DeviceArgument& out) {
  const PlanTensor& what = tensor_at(*self.model->plan, tensor);
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
  out = self.own_arrays[tensor];
  if (what.bytes == 0) return true;
  if (!device_check_pointer(*self.device, pointer)) {
    say(self.model->error, "%s '%s': %s",
        tensor < static_cast<int>(self.model->plan->num_inputs) ? "input" : "output",
        plan_string(*self.model->plan, what.name), device_error(*self.device));
    return false;
  }
  if (address % kBufferAlignment == 0) out = {address, 0};
  return true;
}

// Copies the arrays that are not aligned to the model's own memory, or from there.
bool copy_arrays(DeviceModel& self, const void* const* arrays, int first, int count, bool to_own) {
  for (int i = 0; i < count; ++i) {
    const int64_t bytes =
        to_own ? tensor_at(*self.model->plan, first + i).bytes : actual_bytes(self, i);
    if (self.bound[first + i].buffer != self.arrays.handle || bytes == 0) continue;
    const DeviceBuffer given = {reinterpret_cast<uintptr_t>(arrays[i]), bytes};
    const int64_t own = self.own_arrays[first + i].offset;
    const bool copied = to_own ? device_copy(*self.device, self.arrays, own, given, 0, bytes)
                               : device_copy(*self.device, given, 0, self.arrays, own, bytes);
    if (!copied) return false;
  }
  return true;
}

// Returns whether the caller of a run in its stream finds all done.
bool must_wait(const DeviceModel& self) {
  for (int32_t i = 0; i < self.segments.count; ++i)
    if (!self.segments.list[i].on_device) return true;
  return has_varying_shapes(*self.model->plan);
}

int run_in_stream(DeviceModel& self, const void* const* inputs, void* const* outputs,
                  void* stream) {
  const int num_inputs = static_cast<int>(self.model->plan->num_inputs);
  const int num_outputs = static_cast<int>(self.model->plan->num_outputs);
  if (!enter_stream(self, stream)) return fail(self);
  bind_arrays(self, self.given);
  if (!copy_arrays(self, inputs, 0, num_inputs, true)) return fail(self);
  if (run_bound(self) != 0) return 1;
  const bool ended = copy_arrays(self, outputs, num_inputs, num_outputs, false) &&
                     device_record(*self.device, self.last) &&
                     (!must_wait(self) || device_synchronize(*self.device));
  return ended ? 0 : fail(self);
}

int run_there(DeviceModel& self, const void* const* inputs, void* const* outputs, void* stream) {
  const FloatMode mode;
  const PlanHeader& plan = *self.model->plan;
  const int num_inputs = static_cast<int>(plan.num_inputs);
  const int num_outputs = static_cast<int>(plan.num_outputs);
  if (plan.device != DeviceKind::kCuda)
    return model_fail(*self.model,
                      "the model runs by OpenCL, whose memory has no pointers: call run, with "
                      "arrays of the host");
  if (!is_own_process(self)) return 1;
  for (int i = 0; i < num_inputs + num_outputs; ++i)
    if (!place_array(self, i, i < num_inputs ? inputs[i] : outputs[i - num_inputs], self.given[i]))
      return 1;
  return settled(self, run_in_stream(self, inputs, outputs, stream));
}

const char* name(const DeviceModel& self) { return device_properties(*self.device).name; }

int64_t bytes(const DeviceModel& self) { return device_peak(*self.device); }

}  // namespace

const DeviceRunner hone_device_runner = {create, destroy, choose, run, run_there, name, bytes};

}  // namespace hone::runtime
