// runtime/device_steps.h - the steps of a run of a model on a device: launches and graphs of those
// of the device, copies and calls of those of the host, and the times of both.
#pragma once

#include "hone/runtime/device_model_state.h"

namespace hone::runtime {

// Runs all segments in the device's stream, behind what it holds. The arguments are bound. Returns
// 0, or 1 with the reason in the model's error.
[[nodiscard]] int run_segments(DeviceModel& self);
void release_graphs(DeviceModel& self);

// Times are measured by events if the model asks for a profile.
[[nodiscard]] bool prepare_events(DeviceModel& self);
[[nodiscard]] bool read_times(DeviceModel& self);
void release_events(DeviceModel& self);

}  // namespace hone::runtime
