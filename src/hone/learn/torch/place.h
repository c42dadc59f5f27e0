// learn/torch/place.h - the device on which a net is computed.
#pragma once

#include <ATen/ATen.h>

#include "hone/cost/net/torch_api.h"

namespace hone::learn::torch_module {

struct Place {
  at::Device device = at::kCPU;
  // If true, only libtorch's operators are used, on large batches. Otherwise the net is computed by
  // the processor, whose threads have parts of a batch each and use code of this library for what
  // libtorch does slowly there.
  bool generic = false;
  at::ScalarType type = at::kFloat;  // the type of all numbers; double for tests of gradients
};

// Throws c10::Error if libtorch has no such device.
[[nodiscard]] inline Place place_of(const HoneTorchOptions& options) {
  switch (options.place) {
    case kHoneTorchProcessor: return {};
    case kHoneTorchGeneric: return {at::kCPU, true};
    case kHoneTorchCuda: {
      TORCH_CHECK(at::hasCUDA(), "this libtorch finds no CUDA device");
      return {at::Device(at::kCUDA, 0), true};
    }
    default: TORCH_CHECK(false, "unknown place ", options.place);
  }
}

}  // namespace hone::learn::torch_module
