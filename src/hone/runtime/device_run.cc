#include "hone/runtime/device_run.h"

#include <string.h>
#include <unistd.h>

#include "hone/runtime/device_steps.h"
#include "hone/runtime/float_mode.h"
#include "hone/runtime/hone_model.h"

namespace hone::runtime {
namespace {

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
  return !self.model->profile || read_times(self) ? 0 : fail(self);
}

// Begins the time of a run. The one before may still be under way in a stream of its
// caller, and late.
bool start_timer(DeviceModel& self) {
  if (!device_is_in_time(*self.device, self.last)) return fail(self) == 0;
  device_start_timer(*self.device, self.time_limit_ns);
  return true;
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
int end_run(DeviceModel& self, int result) {
  if (result != 0) (void)device_synchronize(*self.device);
  self.has_run |= result == 0;
  self.model->is_in_use = device_hangs(*self.device);
  return result != 0 && device_hangs(*self.device) ? HONE_TIME_IS_OVER : result;
}

// Makes the error of the device that of the model, with the name of the array. Returns false.
bool refuse_array(DeviceModel& self, int tensor) {
  const PlanHeader& plan = *self.model->plan;
  say(self.model->error, "%s '%s': %s",
      tensor < static_cast<int>(plan.num_inputs) ? "input" : "output",
      plan_string(plan, tensor_at(plan, tensor).name), device_error(*self.device));
  return false;
}

bool are_of_host(DeviceModel& self, const void* const* inputs, void* const* outputs) {
  const PlanHeader& plan = *self.model->plan;
  const int num_inputs = static_cast<int>(plan.num_inputs);
  for (int i = 0; i < num_tensors(plan); ++i) {
    const void* pointer = i < num_inputs ? inputs[i] : outputs[i - num_inputs];
    if (tensor_at(plan, i).bytes > 0 && !device_check_host_pointer(*self.device, pointer))
      return refuse_array(self, i);
  }
  return true;
}

int run_with_copies(DeviceModel& self, const void* const* inputs, void* const* outputs) {
  const PlanHeader& plan = *self.model->plan;
  if (!enter_own_stream(self)) return fail(self);
  bind_arrays(self, self.own_arrays);
  const int num_inputs = static_cast<int>(plan.num_inputs);
  // With a limit, the caller's arrays are read before what may hang.
  const bool limited = self.time_limit_ns > 0;
  device_start_timer(*self.device, limited ? kAmpleNs : 0);
  for (int i = 0; i < num_inputs; ++i)
    if (!device_upload(*self.device, self.arrays, self.own_arrays[i].offset, inputs[i],
                       tensor_at(plan, i).bytes))
      return fail(self);
  if (limited && !device_synchronize(*self.device)) return fail(self);
  device_start_timer(*self.device, self.time_limit_ns);
  if (run_bound(self) != 0) return 1;
  for (int i = 0; i < num_tensors(plan) - num_inputs; ++i)
    if (!device_download(*self.device, outputs[i], self.arrays,
                         self.own_arrays[num_inputs + i].offset, actual_bytes(self, i)))
      return fail(self);
  return device_synchronize(*self.device) ? 0 : fail(self);
}

// Checks the caller's pointer, and chooses where the array of this run is: there, or in the model's
// own memory if it is not aligned.
bool place_array(DeviceModel& self, int tensor, const void* pointer, DeviceArgument& out) {
  const PlanTensor& what = tensor_at(*self.model->plan, tensor);
  const auto address = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
  out = self.own_arrays[tensor];
  if (what.bytes == 0) return true;
  if (!device_check_pointer(*self.device, pointer)) return refuse_array(self, tensor);
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

}  // namespace

int run_from_host(DeviceModel& self, const void* const* inputs, void* const* outputs) {
  const FloatMode mode;
  if (!is_own_process(self)) return 1;
  if (!start_timer(self)) return end_run(self, 1);
  if (!are_of_host(self, inputs, outputs)) return 1;
  return end_run(self, run_with_copies(self, inputs, outputs));
}

int run_on_device(DeviceModel& self, const void* const* inputs, void* const* outputs,
                  void* stream) {
  const FloatMode mode;
  const PlanHeader& plan = *self.model->plan;
  const int num_inputs = static_cast<int>(plan.num_inputs);
  const int num_outputs = static_cast<int>(plan.num_outputs);
  if (plan.device != DeviceKind::kCuda)
    return model_fail(*self.model,
                      "the model runs by OpenCL, whose memory has no pointers: call run, with "
                      "arrays of the host");
  if (!is_own_process(self)) return 1;
  if (!start_timer(self)) return end_run(self, 1);
  for (int i = 0; i < num_inputs + num_outputs; ++i)
    if (!place_array(self, i, i < num_inputs ? inputs[i] : outputs[i - num_inputs], self.given[i]))
      return 1;
  return end_run(self, run_in_stream(self, inputs, outputs, stream));
}

}  // namespace hone::runtime
