// api/doctor/gpus.h - the drivers of GPUs, and the compiler of CUDA. None is needed for CPUs.
#pragma once

#include "hone/doctor.h"

namespace hone::doctor {

[[nodiscard]] Finding look_at_cuda();
[[nodiscard]] Finding look_at_nvrtc();
[[nodiscard]] Finding look_at_opencl();

}  // namespace hone::doctor
