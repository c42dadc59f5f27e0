// target/gpu_devices.h - the GPUs that target.h names: those that are described (gpu_table.h) and
// the one of this machine, as its driver describes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hone/base/status.h"
#include "hone/runtime/device/device_properties.h"
#include "hone/target/gpu.h"

namespace hone::target {

// Returns the names of the GPUs that are described, and such a description.
[[nodiscard]] std::vector<std::string> described_gpus();
[[nodiscard]] std::optional<Gpu> described_gpu(std::string_view name);

// Returns the first GPU of this machine that the interface has. Its driver is loaded and asked
// once. The error says what is missing.
[[nodiscard]] Result<Gpu> detect_gpu(GpuApi api);
// Returns the kind by which the runtime knows the device, and the text of its name or its
// platform's by which the driver finds it; empty for the first of the kind.
[[nodiscard]] runtime::DeviceKind driver_kind(const Gpu& gpu);
[[nodiscard]] std::string driver_name(const Gpu& gpu);
// Returns what the driver calls the device of this machine that a description means.
[[nodiscard]] Result<std::string> driver_product(const Gpu& gpu);
// Returns the GPU of this machine that a description means, as its driver describes it.
[[nodiscard]] Result<Gpu> detect_gpu(const Gpu& described);
// Returns the GPU that a driver describes: what it does not say is that of the described GPU which
// is most like it. It is an error if code for it cannot be made.
[[nodiscard]] Result<Gpu> gpu_of(const runtime::DeviceProperties& properties);

// Returns "sm_90a-132sm-50M-80G": architecture, SMs, L2 cache and memory. A driver keeps a part of
// the memory for itself, so its size is rounded up to what is on the board, a multiple of 8 GiB.
[[nodiscard]] std::string device_key(const Gpu& gpu);
// Returns what of_key() in target.h returns; nothing if the architecture is not known.
[[nodiscard]] std::optional<Gpu> gpu_of_key(std::string_view key);
// Returns the lines of describe() after the name and the key.
[[nodiscard]] std::string describe(const Gpu& gpu);

}  // namespace hone::target
