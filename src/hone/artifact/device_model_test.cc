// Models on devices: by OpenCL on PoCL, and by CUDA where there is a driver (also the one of
// runtime/device/fake_cuda.cc).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "hone/artifact/device_library_testing.h"
#include "hone/base/file_testing.h"
#include "hone/model.h"
#include "hone/runtime/device/device_testing.h"

namespace hone::artifact {
namespace {

using namespace testing;  // NOLINT: the model and what it computes

// Runs on host arrays and compares; the arrays lie at an address that is not aligned.
void expect_right(const Library& library, hone_model* model, float seed, bool host) {
  const std::vector<float> x = filter_input(seed);
  std::vector<float> y(kLength + 1), found(kLength + 1, -7.5F);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data() + 1, found.data() + 1};
  ASSERT_EQ(library.run(model, inputs, outputs), 0) << library.last_error(model);
  y.erase(y.begin());
  EXPECT_EQ(y, device_output(x));
  if (!host) return;
  const std::vector<float> positive = positives(x);
  int rank = 0;
  const int64_t* shape = nullptr;
  ASSERT_EQ(library.output_shape(model, 1, &rank, &shape), 0);
  EXPECT_EQ(rank, 1);
  ASSERT_EQ(shape[0], std::ssize(positive));
  const auto end = found.begin() + 1 + shape[0];
  EXPECT_EQ(std::vector<float>(found.begin() + 1, end), positive);
  EXPECT_EQ(std::count(end, found.end(), -7.5F), found.end() - end) << "the rest is the caller's";
}

class OnDevice : public ::testing::TestWithParam<std::pair<DeviceKind, bool>> {
 protected:
  void SetUp() override {
    const std::string missing = no_device(kind());
    if (missing.empty()) return;
    ASSERT_EQ(kind(), DeviceKind::kCuda) << missing;
    GTEST_SKIP() << "no device: " << missing;
  }
  static DeviceKind kind() { return GetParam().first; }
  static bool host() { return GetParam().second; }
  static ArtifactSpec spec() {
    return device_spec(kind(), host(), read_file(test_file(HONE_TEST_KERNELS)));
  }
};

const auto kind_name = [](const auto& param) {
  return std::string(param.param.first == DeviceKind::kCuda ? "cuda" : "opencl") +
         (param.param.second ? "_and_host" : "");
};

INSTANTIATE_TEST_SUITE_P(kinds, OnDevice,
                         ::testing::Values(std::pair(DeviceKind::kOpenCl, true),
                                           std::pair(DeviceKind::kOpenCl, false),
                                           std::pair(DeviceKind::kCuda, true),
                                           std::pair(DeviceKind::kCuda, false)),
                         kind_name);

TEST_P(OnDevice, runs_again_and_again) {
  const Library library(spec());
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 2), 0) << library.last_error(nullptr);
  EXPECT_STRNE(library.device(model), "");
  // Weights, the arena, and the arrays, each rounded up to 256 bytes.
  const int64_t arrays = host() ? 3 : 2;
  EXPECT_EQ(library.device_bytes(model), (4032 + 64) + (4160 + 4008) + arrays * 4096);
  EXPECT_EQ(library.num_threads(model), host() ? 2 : 1) << "only the host's steps need threads";
  const int before = graph_launches();
  for (int i = 0; i < 4; ++i) expect_right(library, model, static_cast<float>(i), host());
  // The second run records a graph. Between steps of the host there is one kernel at a time, which
  // needs none.
  const bool counted = kind() == DeviceKind::kCuda && before >= 0;
  EXPECT_EQ(counted ? graph_launches() - before : 0, counted && !host() ? 3 : 0);
  library.destroy(model);
}

TEST_P(OnDevice, is_loaded_as_any_model) {
  const Folder folder;
  const std::string path = folder.file("model.so");
  ASSERT_TRUE(write_shared_library(spec(), path).ok());
  Result<Model> model = Model::load(path, 1);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_NE(model->device(), "");
  EXPECT_GT(model->device_bytes(), 16'000);
  const std::vector<float> x = filter_input(1);
  Tensor input(DType::kF32, {1, kLength});
  std::ranges::copy(x, input.as<float>().begin());
  const Result<std::vector<Tensor>> outputs = model->run({&input, 1});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  EXPECT_TRUE(std::ranges::equal(outputs->at(0).as<float>(), device_output(x)));
  if (!host()) return;
  EXPECT_EQ(outputs->at(1).shape(), Shape{std::ssize(positives(x))});
}

TEST_P(OnDevice, several_models_run_at_once) {
  const Library library(spec());
  const auto use = [&](float seed) {
    hone_model* model = nullptr;
    ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
    for (int i = 0; i < 10; ++i) expect_right(library, model, seed + static_cast<float>(i), host());
    library.destroy(model);
  };
  std::thread other([&] { use(100); });
  use(0);
  other.join();
}

TEST_P(OnDevice, measures_its_steps) {
  const Library library(spec());
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  expect_right(library, model, 0, host());
  ASSERT_EQ(library.profile(model, 1), 0);
  expect_right(library, model, 1, host());
  for (int i = 0; i < (host() ? 4 : 3); ++i) EXPECT_GT(library.step_seconds(model, i), 0) << i;
  ASSERT_EQ(library.profile(model, 0), 0);
  expect_right(library, model, 2, host());
  library.destroy(model);
}

TEST_P(OnDevice, says_what_is_wrong_with_a_call) {
  const Library library(spec());
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  const std::vector<float> x = filter_input(0);
  std::vector<float> y(kLength);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data(), y.data()};
  const void* none[] = {nullptr};
  EXPECT_NE(library.run(model, none, outputs), 0);
  EXPECT_STREQ(library.last_error(model), "input 'x' is a null pointer");
  EXPECT_NE(library.run_device(model, inputs, outputs, nullptr), 0);
  const std::string error = library.last_error(model);
  if (kind() == DeviceKind::kOpenCl)
    EXPECT_EQ(error,
              "the model runs by OpenCL, whose memory has no pointers: call run, with "
              "arrays of the host");
  else
    EXPECT_EQ(error.find("input 'x': the pointer is to memory of the host"), 0U) << error;
  expect_right(library, model, 0, host());
  library.destroy(model);
  hone_model_options options = {};
  options.size = sizeof options;
  options.device = 999;
  EXPECT_NE(library.create_error(options).find("there is no device 999, but"), std::string::npos)
      << library.create_error(options);
  // A program that was compiled with version 2 of the header has a shorter struct.
  options.size = offsetof(hone_model_options, device);
  EXPECT_EQ(library.create_error(options), "");
}

TEST_P(OnDevice, a_child_of_a_fork_is_refused) {
  const Library library(spec());
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<float> x(kLength);
    std::vector<float> y(kLength);
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data(), y.data()};
    const bool refused =
        library.run(model, inputs, outputs) != 0 &&
        std::string(library.last_error(model)).find("before a fork()") != std::string::npos;
    library.destroy(model);
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_right(library, model, 0, host());
  library.destroy(model);
}

// The arrays are the caller's again, also after a run that failed.
TEST_P(OnDevice, a_failed_run_leaves_the_arrays_alone) {
  ArtifactSpec failing = spec();
  failing.steps.push_back({"fails", static_cast<int>(failing.kernel_symbols.size())});
  failing.kernel_symbols.emplace_back("test_fails");
  const Library library(failing);
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> x = filter_input(0);
    std::vector<float> y(kLength), found(kLength);
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data(), found.data()};
    EXPECT_NE(library.run(model, inputs, outputs), 0);
    EXPECT_STREQ(library.last_error(model), "a kernel failed with code 7");
  }
  library.destroy(model);
}

TEST_P(OnDevice, a_step_with_other_arguments_than_its_kernel_is_refused) {
  ArtifactSpec wrong = spec();
  wrong.steps[0].arguments.pop_back();
  const Library library(wrong);
  hone_model_options options = {};
  options.size = sizeof options;
  const std::string error = library.create_error(options);
  if (kind() == DeviceKind::kCuda && graph_launches() < 0 && error.empty())
    GTEST_SKIP() << "drivers of CUDA before 12.4 do not know a kernel's parameters";
  EXPECT_EQ(error, kind() == DeviceKind::kOpenCl
                       ? "a kernel has 7 parameters, expected 5 for its 2 arguments"
                       : "a kernel has 4 parameters, expected 3 for its 2 arguments");
}

class OnDeviceAlone : public OnDevice {};

INSTANTIATE_TEST_SUITE_P(kinds, OnDeviceAlone,
                         ::testing::Values(std::pair(DeviceKind::kOpenCl, false),
                                           std::pair(DeviceKind::kCuda, false)),
                         kind_name);

// Runs chosen steps in this process, as tuners do.
TEST_P(OnDeviceAlone, runs_chosen_steps) {
  ArtifactSpec spec = device_spec(kind(), false, "");
  spec.steps.push_back(spec.steps[1]);  // another way to do the second step
  const Result<std::string> plan = encode_plan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::vector<uint64_t> words(plan->size() / 8);
  std::memcpy(words.data(), plan->data(), plan->size());
  alignas(64) static char weights[8192];
  std::memcpy(weights, scale_weights().data(), kLength * 4);
  std::memcpy(weights + weight_offsets(spec)[1], kWeights, sizeof kWeights);
  const hone_kernel none[3] = {};
  char message[runtime::kErrorBytes];
  const runtime::ModelImage image = {words.data(), plan->size(), none, weights,
                                     &runtime::hone_device_runner};
  const std::unique_ptr<runtime::Model, void (*)(runtime::Model*)> model(
      runtime::model_create(image, {.num_threads = 1}, message), runtime::model_destroy);
  ASSERT_NE(model, nullptr) << message;
  const int32_t steps[] = {0, 3, 2};
  ASSERT_TRUE(runtime::model_choose(*model, steps, 3));
  runtime::model_profile(*model, true);
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> x = filter_input(static_cast<float>(i));
    std::vector<float> y(kLength);
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data()};
    ASSERT_EQ(runtime::model_run(*model, inputs, outputs), 0) << runtime::model_last_error(*model);
    EXPECT_EQ(y, device_output(x));
    for (int step = 0; step < 3; ++step)
      EXPECT_GT(runtime::model_step_seconds(*model, step), 0) << step;
    if (i == 1) runtime::model_profile(*model, false);
  }
}

// Memory of the device, filled and read by the device layer, for the C interface.
class CudaArrays : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string message;
    device_ = runtime::testing::open_device(DeviceKind::kCuda, message);
    if (device_ == nullptr) GTEST_SKIP() << "no device: " << message;
  }
  runtime::testing::DevicePtr device_;
};

TEST_F(CudaArrays, are_used_where_they_are) {
  using runtime::testing::Buffer;
  const Library library(
      device_spec(DeviceKind::kCuda, false, read_file(test_file(HONE_TEST_KERNELS))));
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  Buffer x(*device_, 4096), y(*device_, 4096), others(*device_, 2 * 4096 + 64);
  const auto run_at = [&](const Buffer& from, int64_t from_at, const Buffer& to, int64_t to_at,
                          float seed) {
    const std::vector<float> values = filter_input(seed);
    ASSERT_TRUE(runtime::testing::put(*device_, from, values, from_at));
    const void* inputs[] = {reinterpret_cast<const char*>(from.get().handle) + from_at};
    void* outputs[] = {reinterpret_cast<char*>(to.get().handle) + to_at};
    ASSERT_EQ(library.run_device(model, inputs, outputs, nullptr), 0) << library.last_error(model);
    // The run is in the default stream; the read waits for it.
    ASSERT_TRUE(runtime::device_use_stream(*device_, nullptr));
    EXPECT_EQ(runtime::testing::take<float>(*device_, to, kLength, to_at), device_output(values));
    runtime::device_use_own_stream(*device_);
  };
  for (int i = 0; i < 3; ++i) run_at(x, 0, y, 0, static_cast<float>(i));  // a graph
  for (int i = 0; i < 3; ++i) run_at(others, 4, others, 4096 + 12, 7);    // not aligned
  expect_right(library, model, 3, false);                                 // its own stream
  run_at(x, 0, others, 4096, 4);
  library.destroy(model);
}

// Each thread has its own stream of that handle.
TEST_F(CudaArrays, runs_in_streams_of_one_handle_follow_each_other) {
  using runtime::testing::Buffer;
  const Library library(device_spec(DeviceKind::kCuda, false, ""));
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  void* stream = reinterpret_cast<void*>(uintptr_t{2});  // CU_STREAM_PER_THREAD
  Buffer x(*device_, 4096), y(*device_, 4096), others(*device_, 2 * 4096);
  const std::vector<float> first = filter_input(1), second = filter_input(2);
  ASSERT_TRUE(runtime::testing::put(*device_, x, first));
  ASSERT_TRUE(runtime::testing::put(*device_, others, second));
  const auto run = [&](uint64_t from, uint64_t to) {
    const void* inputs[] = {reinterpret_cast<void*>(from)};
    void* outputs[] = {reinterpret_cast<void*>(to)};
    EXPECT_EQ(library.run_device(model, inputs, outputs, stream), 0) << library.last_error(model);
  };
  run(x.get().handle, y.get().handle);
  std::thread([&] {
    run(others.get().handle, others.get().handle + 4096);
    EXPECT_TRUE(runtime::device_use_stream(*device_, stream));
    EXPECT_TRUE(runtime::device_synchronize(*device_));
    runtime::device_use_own_stream(*device_);
  }).join();
  EXPECT_EQ(runtime::testing::take<float>(*device_, y, kLength), device_output(first));
  EXPECT_EQ(runtime::testing::take<float>(*device_, others, kLength, 4096), device_output(second));
  library.destroy(model);
}

TEST_F(CudaArrays, that_were_freed_are_refused) {
  using runtime::testing::Buffer;
  const Library library(device_spec(DeviceKind::kCuda, false, ""));
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  const Buffer y(*device_, 4096);
  auto x = std::make_unique<Buffer>(*device_, 4096);
  ASSERT_TRUE(runtime::testing::put(*device_, *x, filter_input(0)));
  const void* inputs[] = {reinterpret_cast<void*>(x->get().handle)};
  void* outputs[] = {reinterpret_cast<void*>(y.get().handle)};
  ASSERT_EQ(library.run_device(model, inputs, outputs, nullptr), 0) << library.last_error(model);
  ASSERT_TRUE(runtime::device_use_stream(*device_, nullptr));
  ASSERT_TRUE(runtime::device_synchronize(*device_));
  runtime::device_use_own_stream(*device_);
  x.reset();
  EXPECT_NE(library.run_device(model, inputs, outputs, nullptr), 0);
  EXPECT_EQ(std::string(library.last_error(model)).find("input 'x': the pointer is to"), 0U);
  library.destroy(model);
}

// A run with a step of the host is done when the call returns, also the copies to arrays that are
// not aligned, and also if all shapes are known.
TEST_F(CudaArrays, hold_the_results_of_a_run_with_a_step_of_the_host) {
  using runtime::testing::Buffer;
  ArtifactSpec spec = device_spec(DeviceKind::kCuda, true, read_file(test_file(HONE_TEST_KERNELS)));
  for (const bool varying : {true, false}) {
    if (!varying) {
      spec.outputs.pop_back();
      spec.steps.pop_back();
    }
    const Library library(spec);
    hone_model* model = nullptr;
    ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
    Buffer x(*device_, 4096), y(*device_, 4096), found(*device_, 4096);
    const std::vector<float> values = filter_input(6);
    ASSERT_TRUE(runtime::testing::put(*device_, x, values));
    const void* inputs[] = {reinterpret_cast<void*>(x.get().handle)};
    void* outputs[] = {reinterpret_cast<char*>(y.get().handle) + 4,
                       reinterpret_cast<char*>(found.get().handle) + 4};
    ASSERT_EQ(library.run_device(model, inputs, outputs, nullptr), 0) << library.last_error(model);
    // This stream does not wait for the default one.
    EXPECT_EQ(runtime::testing::take<float>(*device_, y, kLength, 4), device_output(values));
    const std::vector<float> positive = positives(values);
    if (varying) {
      EXPECT_EQ(runtime::testing::take<float>(*device_, found, positive.size(), 4), positive);
    }
    library.destroy(model);
  }
}

TEST_F(CudaArrays, run_in_the_stream_of_a_caller_with_steps_of_the_host) {
  using runtime::testing::Buffer;
  const Library library(
      device_spec(DeviceKind::kCuda, true, read_file(test_file(HONE_TEST_KERNELS))));
  hone_model* model = nullptr;
  ASSERT_EQ(library.create(&model, 1), 0) << library.last_error(nullptr);
  Buffer x(*device_, 4096), y(*device_, 4096), found(*device_, 4096);
  const std::vector<float> values = filter_input(5);
  ASSERT_TRUE(runtime::testing::put(*device_, x, values));
  const void* inputs[] = {reinterpret_cast<void*>(x.get().handle)};
  void* outputs[] = {reinterpret_cast<void*>(y.get().handle),
                     reinterpret_cast<void*>(found.get().handle)};
  ASSERT_EQ(library.run_device(model, inputs, outputs, nullptr), 0) << library.last_error(model);
  EXPECT_EQ(runtime::testing::take<float>(*device_, y, kLength), device_output(values));
  const std::vector<float> positive = positives(values);
  EXPECT_EQ(runtime::testing::take<float>(*device_, found, positive.size()), positive);
  int rank = 0;
  const int64_t* shape = nullptr;
  ASSERT_EQ(library.output_shape(model, 1, &rank, &shape), 0);
  EXPECT_EQ(shape[0], std::ssize(positive));
  library.destroy(model);
}

TEST(device_models, say_that_there_is_no_driver) {
  const std::string missing = no_device(DeviceKind::kCuda);
  if (missing.empty()) GTEST_SKIP() << "there is a device";
  const Library library(device_spec(DeviceKind::kCuda, false, ""));
  hone_model_options options = {};
  options.size = sizeof options;
  for (options.device = 0; options.device < 3; ++options.device)
    EXPECT_EQ(library.create_error(options), missing);
}

TEST(device_models, that_cannot_start_say_why) {
  const std::string kernels = read_file(test_file(HONE_TEST_KERNELS));
  ArtifactSpec spec = device_spec(DeviceKind::kOpenCl, false, kernels);
  spec.device_name = "no such device";
  EXPECT_NE(error_of(spec).find("is named 'no such device'"), std::string::npos) << error_of(spec);
  spec = device_spec(DeviceKind::kOpenCl, false, kernels);
  spec.executables[0] =
      gpu_executable(DeviceKind::kOpenCl, "kernel void scale() { x; }", {"scale"});
  EXPECT_NE(error_of(spec).find("use of undeclared identifier"), std::string::npos)
      << error_of(spec);
  spec.executables[0] = gpu_executable(DeviceKind::kCuda, ptx_scale(), {"scale"});
  EXPECT_EQ(error_of(spec).find("the code is for PTX of sm_52, which"), 0U) << error_of(spec);
  spec = device_spec(DeviceKind::kOpenCl, false, kernels);
  spec.executables[1].entries[0].threads = 1 << 20;
  EXPECT_NE(error_of(spec).find("kernel pad has blocks of 1048576 threads"), std::string::npos)
      << error_of(spec);
  spec = device_spec(DeviceKind::kOpenCl, false, kernels);
  spec.arena_bytes = int64_t{1} << 45;
  EXPECT_NE(error_of(spec).find("no buffers of 35184372088832 bytes"), std::string::npos)
      << error_of(spec);
}

TEST(device_models, for_the_host_are_linked_without_devices) {
  const Library host(filter_spec(read_file(test_file(HONE_TEST_KERNELS))));
  const Library device(
      device_spec(DeviceKind::kOpenCl, false, read_file(test_file(HONE_TEST_KERNELS))));
  EXPECT_EQ(host.bytes().find("libOpenCL.so.1"), std::string::npos);
  EXPECT_NE(device.bytes().find("libOpenCL.so.1"), std::string::npos);
  hone_model* model = nullptr;
  ASSERT_EQ(host.create(&model, 1), 0);
  EXPECT_STREQ(host.device(model), "");
  EXPECT_EQ(host.device_bytes(model), 0);
  const std::vector<float> x = filter_input(0);
  std::vector<float> y(kLength);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data(), y.data()};
  EXPECT_NE(host.run_device(model, inputs, outputs, nullptr), 0);
  EXPECT_STREQ(host.last_error(model),
               "the model runs on the CPU and has no memory of a device: call run");
  host.destroy(model);
}

}  // namespace
}  // namespace hone::artifact
