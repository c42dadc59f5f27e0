// measure/device_memory.h - memory of a device in pieces, each of which has a buffer of its own. As
// in arena.h, a guard zone, which nobody may write, lies before each piece and behind it. Errors
// say what the driver says.
#pragma once

#include <cstdint>
#include <vector>

#include "hone/base/status.h"
#include "hone/runtime/device/device.h"

namespace hone::measure {

// Returns the device's last error if a call of runtime/device failed.
[[nodiscard]] Status device_status(const runtime::Device& device, bool succeeded);

class DeviceMemory {
 public:
  explicit DeviceMemory(runtime::Device& device) : device_(device) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  // Discards all pieces and makes pieces of these sizes. Buffers that are large enough are kept.
  [[nodiscard]] Status reserve(const std::vector<int64_t>& sizes);
  [[nodiscard]] runtime::DeviceArgument piece(size_t i) const;
  // Copies the first `bytes` of a piece. The host's memory must stay as it is until the device has
  // been waited for.
  [[nodiscard]] Status upload(size_t i, const void* from, int64_t bytes);
  [[nodiscard]] Status download(size_t i, void* to, int64_t bytes) const;
  // Sets all bytes of a piece to 0xff, which is NaN, -1 or "true" and hardly ever a right answer.
  [[nodiscard]] Status poison(size_t i);
  // Repairs the guard zones after damage, which would otherwise be reported again.
  [[nodiscard]] Status restore_zones();
  // Waits for the device and returns whether a guard zone was written.
  [[nodiscard]] Result<bool> is_damaged() const;

 private:
  struct Piece {
    runtime::DeviceBuffer buffer;
    int64_t bytes = 0;
  };
  runtime::Device& device_;
  std::vector<Piece> pieces_;
};

}  // namespace hone::measure
