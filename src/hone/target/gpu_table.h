// target/gpu_table.h - the GPUs that are described, as data only: what the generations of NVIDIA's
// GPUs can do, on one device of each, and two devices of OpenCL. Each number has its source beside
// it; what no document says is marked as an estimate.
#pragma once

#include <span>
#include <string_view>

#include "hone/target/gpu.h"

namespace hone::target {

struct NamedGpu {
  std::string_view name;  // as target::find takes it: "cuda-sm_80"
  Gpu gpu;
};

[[nodiscard]] std::span<const NamedGpu> gpu_table();

}  // namespace hone::target
