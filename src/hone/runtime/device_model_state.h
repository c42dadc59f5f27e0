// runtime/device_model_state.h - the parts of a model on a device, for the files that make it
// (device_model.cc) and run it (device_run.cc, device_steps.cc).
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "hone/runtime/device/device.h"
#include "hone/runtime/device_model.h"
#include "hone/runtime/device_segments.h"
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
  DeviceArgument* arguments = nullptr;   // those of all steps
  int32_t* order = nullptr;              // the steps that a run consists of
  Segments segments;
  // Two a step, while times are measured and, if the time is limited, until it has run; else null.
  DeviceEvent* events = nullptr;
  DeviceEvent last;  // the end of the last run in a stream of a caller
  void* last_stream = nullptr;
  bool last_is_callers = false;
  int64_t same_runs = -1;  // runs with the same arrays and steps before this one, in a row
  bool no_graphs = false;  // the driver has none
  int64_t time_limit_ns = 0;
  bool has_run = false;  // at least once without an error
  bool told = false;     // which step hangs
};

// Makes the error of the device that of the model, at first with the step that hangs. Returns 1.
int fail(DeviceModel& self);

}  // namespace hone::runtime
