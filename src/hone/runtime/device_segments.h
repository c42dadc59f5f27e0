// runtime/device_segments.h - a run of a model on a device, cut into parts that run on the device
// and parts that run on the host, with the copies that a part of the host needs: before it, all
// that its steps touch comes from the device, behind it, what they may have written goes back.
#pragma once

#include <stdint.h>

#include "hone/runtime/device/device.h"
#include "hone/runtime/plan.h"

namespace hone::runtime {

struct Segment {
  bool on_device = false;
  int32_t first = 0, count = 0;  // positions in the order of the steps
  // The copies of a part of the host: num_downloads from here on, then num_uploads.
  const PlanArgument* copies = nullptr;
  int32_t num_downloads = 0, num_uploads = 0;
  DeviceGraph graph;  // a part of the device as a graph, once it was recorded
};

struct Segments {
  Segment* list = nullptr;
  int32_t count = 0;
  PlanArgument* copies = nullptr;  // the copies of all segments
};

// Cuts the steps, which are indices into the plan's. Returns false if there is no memory.
[[nodiscard]] bool cut_segments(const PlanHeader& plan, const int32_t* order, int32_t count,
                                Segments& out);
void free_segments(Segments& segments);  // graphs must have been released

}  // namespace hone::runtime
