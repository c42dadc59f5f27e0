#include "hone/api/doctor/gpus.h"

#include "hone/backend/gpu_tools.h"
#include "hone/base/status.h"
#include "hone/target/gpu_devices.h"

namespace hone::doctor {
namespace {

using State = Finding::State;

Finding look_at_driver(const char* name, target::GpuApi api, const char* cure) {
  const Result<target::Gpu> gpu = target::detect_gpu(api);
  if (!gpu.ok()) return {name, State::kMissing, false, gpu.status().message(), cure};
  const Result<std::string> product = target::driver_product(*gpu);
  return {name, State::kOk, false, product.ok() ? *product : gpu->arch, ""};
}

}  // namespace

Finding look_at_cuda() {
  return look_at_driver("CUDA", target::GpuApi::kCuda,
                        "for a GPU of NVIDIA: its driver (nvidia-smi shows whether it works); in a "
                        "container, docker run --gpus all");
}

Finding look_at_nvrtc() {
  const Status found = backend::find_cuda_compiler();
  if (found.ok()) return {"NVRTC", State::kOk, false, "CUDA C can be compiled", ""};
  return {"NVRTC", State::kMissing, false, found.message(),
          "for a GPU of NVIDIA: pip install nvidia-cuda-nvrtc-cu12, or export HONE_NVRTC=FILE"};
}

Finding look_at_opencl() {
  return look_at_driver(
      "OpenCL", target::GpuApi::kOpenCl,
      "for other GPUs: apt-get install ocl-icd-libopencl1 and the maker's driver; "
      "for the CPU, pocl-opencl-icd");
}

}  // namespace hone::doctor
