// measure/gpu_clocks.h - watches whether a GPU of CUDA is slowed down by heat or by its power
// supply, through NVIDIA's management library, which is loaded at run time. That a GPU stays within
// the power that it may take is usual under load and no slowdown here.
#pragma once

#include <memory>
#include <string>

namespace hone::measure {

class GpuClocks {
 public:
  virtual ~GpuClocks() = default;
  // Returns the clock of the multiprocessors, or 0 if it is not known.
  [[nodiscard]] virtual int mhz() const = 0;
  [[nodiscard]] virtual bool is_throttled() const = 0;
  // Waits until it is not throttled, at most for so many seconds. Returns whether it is not.
  [[nodiscard]] bool wait(double seconds) const;
};

// Returns the clocks of the GPU with this PCI address; null if the library is not there or does not
// know it.
[[nodiscard]] std::unique_ptr<const GpuClocks> open_gpu_clocks(
    const std::string& pci_address, const char* library = "libnvidia-ml.so.1");
// Returns the PCI address of CUDA's device of this number; empty if it is not known.
[[nodiscard]] std::string pci_address_of_cuda(int index);

}  // namespace hone::measure
