// backend/gpu/kernel_runner_testing.h - runs printed kernels on a device of this machine, for
// tests.
#pragma once

#include <string>
#include <vector>

#include "hone/backend/gpu/print_c.h"
#include "hone/runtime/device/device_testing.h"
#include "hone/tensor/tensor.h"

namespace hone::backend::gpu::testing {

class KernelRunner {
 public:
  explicit KernelRunner(runtime::Device& device) : device_(device) {}
  ~KernelRunner() { runtime::device_unload(device_, module_); }
  KernelRunner(const KernelRunner&) = delete;
  KernelRunner& operator=(const KernelRunner&) = delete;

  [[nodiscard]] Status load(const runtime::CodeImage& code) {
    return check(runtime::device_load(device_, code, module_));
  }
  // Runs kernels one after the other on the arguments of their program, in two parts if they have
  // several tiles. Each argument begins somewhere inside its buffer.
  [[nodiscard]] Status run(const std::vector<Kernel>& kernels, std::vector<Tensor>& args) {
    std::vector<std::unique_ptr<runtime::testing::Buffer>> buffers;
    std::vector<runtime::DeviceArgument> arguments;
    for (const Tensor& tensor : args) {
      buffers.push_back(
          std::make_unique<runtime::testing::Buffer>(device_, kOffset + tensor.bytes()));
      HONE_RETURN_IF_ERROR(check(buffers.back()->made() &&
                                 runtime::device_upload(device_, buffers.back()->get(), kOffset,
                                                        tensor.data(), tensor.bytes())));
      arguments.push_back(buffers.back()->at(kOffset));
    }
    for (const Kernel& kernel : kernels) {
      runtime::DeviceFunction function;
      HONE_RETURN_IF_ERROR(
          check(runtime::device_function(device_, module_, kernel.symbol.c_str(), kernel.threads,
                                         kernel.dynamic_bytes, function)));
      const int64_t middle = kernel.tiles / 2;
      const Status ran = check(launch(function, arguments, 0, middle) &&
                               launch(function, arguments, middle, kernel.tiles - middle));
      runtime::device_release(device_, function);
      HONE_RETURN_IF_ERROR(ran);
    }
    for (size_t i = 0; i < args.size(); ++i)
      HONE_RETURN_IF_ERROR(check(runtime::device_download(
          device_, args[i].data(), buffers[i]->get(), kOffset, args[i].bytes())));
    return check(runtime::device_synchronize(device_));
  }

 private:
  static constexpr int64_t kOffset = 64;  // bytes in front of an argument

  Status check(bool good) const {
    if (good) return ok_status();
    return {Code::kInternal, runtime::device_error(device_)};
  }
  bool launch(const runtime::DeviceFunction& function,
              const std::vector<runtime::DeviceArgument>& arguments, int64_t first, int64_t tiles) {
    return tiles == 0 || runtime::device_launch(device_, function, tiles, arguments.data(),
                                                static_cast<int>(arguments.size()), first);
  }

  runtime::Device& device_;
  runtime::DeviceModule module_;
};

}  // namespace hone::backend::gpu::testing
