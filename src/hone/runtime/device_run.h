// runtime/device_run.h - a whole run of a model on a device: with arrays of the host, which are
// copied, or with arrays there, in a stream of the caller. Runs share the model's memory, so each
// one waits for the one before. Both functions return 0, or 1 with the reason in the model's error.
#pragma once

#include "hone/runtime/device_model_state.h"

namespace hone::runtime {

[[nodiscard]] int run_from_host(DeviceModel& self, const void* const* inputs, void* const* outputs);
[[nodiscard]] int run_on_device(DeviceModel& self, const void* const* inputs, void* const* outputs,
                                void* stream);

}  // namespace hone::runtime
