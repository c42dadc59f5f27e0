// These tests show what models on devices say of bad drivers, code, memory, arrays and streams, and
// of calls at the same time. Most of it needs a driver of CUDA, also the one of
// runtime/device/fake_cuda.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "hone/artifact/device_library_testing.h"
#include "hone/base/file_testing.h"
#include "hone/runtime/device/cuda_api.h"
#include "hone/runtime/device/device_testing.h"

namespace hone::artifact {
namespace {

using namespace testing;  // NOLINT: the model and what it computes
using runtime::testing::Buffer;

ArtifactSpec cuda_spec() { return device_spec(DeviceKind::kCuda, false, ""); }

class CudaBadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string message;
    device_ = runtime::testing::open_device(DeviceKind::kCuda, message);
    if (device_ == nullptr) GTEST_SKIP() << "no device: " << message;
  }
  [[nodiscard]] std::string name() const { return runtime::device_properties(*device_).name; }
  [[nodiscard]] int capability() const { return runtime::device_properties(*device_).capability; }

  runtime::testing::DevicePtr device_;
};

backend::Executable with_images(const std::vector<backend::DeviceCode>& images) {
  backend::Executable made = gpu_executable(DeviceKind::kCuda, "", {"scale"});
  made.code = backend::encode_device_code(images);
  return made;
}

TEST_F(CudaBadInput, a_driver_that_is_too_old_is_named) {
  const auto set_version = fake_function<void(int)>("fake_set_driver_version");
  if (set_version == nullptr) GTEST_SKIP() << "the driver is a real one";
  set_version(11000);
  EXPECT_EQ(error_of(cuda_spec()), "the driver is of CUDA 11.0, expected 11.4 or later");
  set_version(12040);
  EXPECT_EQ(error_of(cuda_spec()), "");
}

TEST_F(CudaBadInput, code_for_other_architectures_names_both) {
  ArtifactSpec spec = cuda_spec();
  using runtime::CodeFormat;
  spec.executables[0] = with_images(
      {{.format = CodeFormat::kCubin, .capability = 10 * (capability() / 10) + 9, .data = "x"},
       {.format = CodeFormat::kPtx, .capability = 990, .specific = true, .data = "y"}});
  EXPECT_EQ(error_of(spec), fmt::format("the code is for sm_{}, PTX of sm_990a, but {} is sm_{}",
                                        10 * (capability() / 10) + 9, name(), capability()));
}

TEST_F(CudaBadInput, damaged_code_is_named) {
  ArtifactSpec spec = cuda_spec();
  const std::string damaged("\177ELF is cut off\0\0", 18);
  spec.executables[0] = with_images(
      {{.format = runtime::CodeFormat::kCubin, .capability = capability(), .data = damaged}});
  const std::string error = error_of(spec);
  EXPECT_TRUE(error.starts_with(fmt::format(
      "the cubin of sm_{} cannot be loaded on {} (sm_{}): ", capability(), name(), capability())))
      << error;
  EXPECT_NE(error.find("damaged or for another architecture"), std::string::npos) << error;
}

TEST_F(CudaBadInput, a_model_that_is_too_large_leaves_no_memory_behind) {
  const int64_t memory = runtime::device_properties(*device_).memory_bytes;
  ArtifactSpec spec = cuda_spec();
  spec.arena_bytes = (memory / 64 + 1) * 64;
  EXPECT_EQ(error_of(spec), fmt::format("{} has no buffers of {} bytes: the largest has {}", name(),
                                        spec.arena_bytes, memory));
  for (int i = 0; i < 3; ++i) {
    spec.arena_bytes = memory / 64 * 64;  // the driver keeps a part
    const std::string error = error_of(spec);
    EXPECT_TRUE(error.starts_with(fmt::format("{} has no ", name()))) << error;
    EXPECT_NE(error.find(" MiB are used by this object"), std::string::npos) << error;
    spec.arena_bytes = memory / 2 / 64 * 64;  // twice would be too much
    EXPECT_EQ(error_of(spec), "");
  }
}

TEST_F(CudaBadInput, null_pointers_and_arrays_elsewhere_are_named) {
  const Library library(cuda_spec());
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  const Buffer x(*device_, 4096), y(*device_, 4096);
  std::vector<float> here(kLength);
  const void* in[] = {reinterpret_cast<void*>(x.get().handle)};
  void* out[] = {reinterpret_cast<void*>(y.get().handle)};
  const void* in_host[] = {here.data()};
  void* out_host[] = {here.data()};
  const void* no_in[] = {nullptr};
  void* no_out[] = {nullptr};
  const auto expect_error = [&](int result, const std::string& expected) {
    EXPECT_EQ(result, 1);
    EXPECT_EQ(library.last_error(model), expected);
  };
  expect_error(library.run_device(model, nullptr, out, nullptr),
               "the list of inputs is a null pointer");
  expect_error(library.run_device(model, in, nullptr, nullptr),
               "the list of outputs is a null pointer");
  expect_error(library.run_device(model, no_in, out, nullptr), "input 'x' is a null pointer");
  expect_error(library.run_device(model, in, no_out, nullptr), "output 'y' is a null pointer");
  const std::string of_host = "the pointer is to memory of the host, expected memory of " + name();
  expect_error(library.run_device(model, in_host, out, nullptr), "input 'x': " + of_host);
  expect_error(library.run_device(model, in, out_host, nullptr), "output 'y': " + of_host);
  const std::string of_device = "the pointer is to memory of a device, expected memory of the host";
  expect_error(library.run(model, in, out_host), "input 'x': " + of_device);
  expect_error(library.run(model, in_host, out), "output 'y': " + of_device);
  EXPECT_EQ(library.run_device(nullptr, in, out, nullptr), 1);
  EXPECT_EQ(library.run(model, in_host, out_host), 0) << library.last_error(model);
  EXPECT_EQ(library.run_device(model, in, out, nullptr), 0) << library.last_error(model);
  library.destroy(model);
  library.destroy(nullptr);
}

TEST_F(CudaBadInput, a_stream_of_another_device_is_named) {
  if (fake_function<void(int)>("fake_break") == nullptr) GTEST_SKIP() << "the driver is a real one";
  const Library library(cuda_spec());
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  const Buffer x(*device_, 4096), y(*device_, 4096);
  const std::vector<float> values = filter_input(1);
  ASSERT_TRUE(runtime::testing::put(*device_, x, values));
  const void* in[] = {reinterpret_cast<void*>(x.get().handle)};
  void* out[] = {reinterpret_cast<void*>(y.get().handle)};
  int none = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(library.run_device(model, in, out, &none), 0);
    const std::string error = library.last_error(model);
    EXPECT_TRUE(error.ends_with("(400): the caller's stream is none of this device's")) << error;
    // The model is as it was.
    ASSERT_EQ(library.run_device(model, in, out, nullptr), 0) << library.last_error(model);
    ASSERT_TRUE(runtime::device_use_stream(*device_, nullptr));
    EXPECT_EQ(runtime::testing::take<float>(*device_, y, kLength), device_output(values));
    runtime::device_use_own_stream(*device_);
  }
  library.destroy(model);
}

// After a fault of a kernel every call fails, until the process ends.
TEST_F(CudaBadInput, a_device_that_is_lost_is_named_at_each_call) {
  const auto break_with = fake_function<void(int)>("fake_break");
  if (break_with == nullptr) GTEST_SKIP() << "the driver is a real one";
  const Library library(cuda_spec());
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  const std::vector<float> x = filter_input(0);
  std::vector<float> y(kLength);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  break_with(runtime::cuda::kIllegalAddress);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(library.run(model, inputs, outputs), 0);
    const std::string error = library.last_error(model);
    EXPECT_TRUE(error.ends_with("(700); this process cannot use the device any more")) << error;
  }
  EXPECT_NE(error_of(cuda_spec()).find("(700)"), std::string::npos) << error_of(cuda_spec());
  break_with(runtime::cuda::kSuccess);  // else the rest of this process could not use it
  library.destroy(model);
}

// Each thread has a model, and its work a stream of its own.
TEST_F(CudaBadInput, several_models_run_in_streams_of_several_threads) {
  const Library library(cuda_spec());
  const auto use = [&](float seed) {
    std::string message;
    const auto device = runtime::testing::open_device(DeviceKind::kCuda, message);
    ASSERT_NE(device, nullptr) << message;
    hone_model* model = nullptr;
    ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
    const Buffer x(*device, 4096), y(*device, 4096);
    const void* in[] = {reinterpret_cast<void*>(x.get().handle)};
    void* out[] = {reinterpret_cast<void*>(y.get().handle)};
    void* stream = reinterpret_cast<void*>(uintptr_t{2});  // CU_STREAM_PER_THREAD
    for (int i = 0; i < 10; ++i) {
      const std::vector<float> values = filter_input(seed + static_cast<float>(i));
      ASSERT_TRUE(runtime::testing::put(*device, x, values));
      ASSERT_EQ(library.run_device(model, in, out, stream), 0) << library.last_error(model);
      ASSERT_TRUE(runtime::device_use_stream(*device, stream));
      EXPECT_EQ(runtime::testing::take<float>(*device, y, kLength), device_output(values));
      runtime::device_use_own_stream(*device);
    }
    library.destroy(model);
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(use, 100.0F * static_cast<float>(t));
  for (std::thread& thread : threads) thread.join();
}

// An object is for one thread at a time: of calls at the same time one runs, and no result is
// another one's.
class OneModel : public ::testing::TestWithParam<DeviceKind> {};

INSTANTIATE_TEST_SUITE_P(kinds, OneModel, ::testing::Values(DeviceKind::kOpenCl, DeviceKind::kCuda),
                         [](const auto& param) {
                           return std::string(param.param == DeviceKind::kCuda ? "cuda" : "opencl");
                         });

TEST_P(OneModel, in_several_threads_runs_or_refuses) {
  const std::string missing = no_device(GetParam());
  if (!missing.empty()) GTEST_SKIP() << "no device: " << missing;
  const Library library(device_spec(GetParam(), false, ""));
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  // A call that meets another is refused at once, so a thread may be refused any number of times
  // while the other runs: each goes on until it ran often enough.
  const auto use = [&](float seed) {
    const std::vector<float> x = filter_input(seed);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    int ran = 0;
    while (ran < 50 && std::chrono::steady_clock::now() < end) {
      std::vector<float> y(kLength, -1);
      const void* inputs[] = {x.data()};
      void* outputs[] = {y.data()};
      const bool done = library.run(model, inputs, outputs) == 0;
      ran += done ? 1 : 0;
      ASSERT_EQ(y, done ? device_output(x) : std::vector<float>(kLength, -1));
    }
    EXPECT_EQ(ran, 50) << "one of two that meet runs";
  };
  std::thread other([&] { use(100); });
  use(0);
  other.join();
  library.destroy(model);
}

}  // namespace
}  // namespace hone::artifact
