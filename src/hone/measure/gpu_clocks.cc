#include "hone/measure/gpu_clocks.h"

#include <dlfcn.h>

#include <chrono>
#include <thread>

namespace hone::measure {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr int kSuccess = 0;
constexpr int kClockOfSms = 1;
// Reasons of the library for a lower clock: the hardware slows down, by heat (as software or
// hardware sees it), or by a signal of the power supply.
constexpr unsigned long long kSlowdown = 0x8, kSoftwareThermal = 0x20, kHardwareThermal = 0x40,
                             kPowerBrake = 0x80;
constexpr unsigned long long kThrottled =
    kSlowdown | kSoftwareThermal | kHardwareThermal | kPowerBrake;

// The functions of the library, with the types of its header.
struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*find)(const char* pci_address, void** device) = nullptr;
  int (*clock)(void* device, int which, unsigned* mhz) = nullptr;
  int (*reasons)(void* device, unsigned long long* bits) = nullptr;
};

template <typename Function>
bool find_symbol(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

class NvmlClocks final : public GpuClocks {
 public:
  NvmlClocks(void* library, const Nvml& nvml, void* device)
      : library_(library), nvml_(nvml), device_(device) {}
  ~NvmlClocks() override {
    (void)nvml_.shutdown();
    dlclose(library_);
  }
  NvmlClocks(const NvmlClocks&) = delete;
  NvmlClocks& operator=(const NvmlClocks&) = delete;
  [[nodiscard]] int mhz() const override {
    unsigned value = 0;
    return nvml_.clock(device_, kClockOfSms, &value) == kSuccess ? static_cast<int>(value) : 0;
  }
  [[nodiscard]] bool is_throttled() const override {
    unsigned long long bits = 0;
    return nvml_.reasons(device_, &bits) == kSuccess && (bits & kThrottled) != 0;
  }

 private:
  void* library_;
  Nvml nvml_;
  void* device_;
};

}  // namespace

bool GpuClocks::wait(double seconds) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (is_throttled()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return true;
}

std::unique_ptr<const GpuClocks> open_gpu_clocks(const std::string& pci_address,
                                                 const char* library) {
  void* const loaded = pci_address.empty() ? nullptr : dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return nullptr;
  Nvml nvml;
  const bool complete =
      find_symbol(loaded, "nvmlInit_v2", nvml.init) &&
      find_symbol(loaded, "nvmlShutdown", nvml.shutdown) &&
      find_symbol(loaded, "nvmlDeviceGetHandleByPciBusId_v2", nvml.find) &&
      find_symbol(loaded, "nvmlDeviceGetClockInfo", nvml.clock) &&
      find_symbol(loaded, "nvmlDeviceGetCurrentClocksThrottleReasons", nvml.reasons);
  if (complete && nvml.init() == kSuccess) {
    void* device = nullptr;
    if (nvml.find(pci_address.c_str(), &device) == kSuccess)
      return std::make_unique<const NvmlClocks>(loaded, nvml, device);
    (void)nvml.shutdown();
  }
  dlclose(loaded);
  return nullptr;
}

std::string pci_address_of_cuda(int index) {
  // The driver is there already if a device of it is open.
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return "";
  int (*ask)(char* text, int bytes, int device) = nullptr;
  char text[32] = "";
  const bool known =
      find_symbol(driver, "cuDeviceGetPCIBusId", ask) && ask(text, sizeof text, index) == kSuccess;
  dlclose(driver);
  return known ? text : "";
}

}  // namespace hone::measure
