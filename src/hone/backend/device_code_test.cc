#include "hone/backend/device_code.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "hone/base/rng.h"

namespace hone::backend {
namespace {

using runtime::CodeFormat;
using runtime::CodeImage;
using runtime::DeviceKind;
using runtime::DeviceProperties;

DeviceProperties cuda_device(int capability) {
  DeviceProperties device;
  device.kind = DeviceKind::kCuda;
  device.capability = capability;
  std::snprintf(device.name, sizeof device.name, "a GPU");
  return device;
}

std::string cubins() {
  return encode_device_code(std::vector<DeviceCode>{
      {.format = CodeFormat::kPtx, .capability = 80, .data = "ptx80"},
      {.format = CodeFormat::kCubin, .capability = 80, .data = "cubin80"},
      {.format = CodeFormat::kCubin, .capability = 86, .data = "cubin86"},
      {.format = CodeFormat::kCubin, .capability = 90, .specific = true, .data = "cubin90a"},
      {.format = CodeFormat::kCubin, .capability = 90, .data = "cubin90"}});
}

// What the device takes, or the message.
std::string chosen(const std::string& container, const DeviceProperties& device) {
  CodeImage image;
  char message[256];
  if (!runtime::code_choose(container.data(), device, image, message)) return message;
  return {static_cast<const char*>(image.data), static_cast<size_t>(image.bytes)};
}

TEST(device_code, a_device_takes_the_newest_code_that_it_runs) {
  const std::string container = cubins();
  EXPECT_EQ(chosen(container, cuda_device(80)), "cubin80");
  EXPECT_EQ(chosen(container, cuda_device(86)), "cubin86");
  EXPECT_EQ(chosen(container, cuda_device(89)), "cubin86");
  EXPECT_EQ(chosen(container, cuda_device(90)), "cubin90a");
  EXPECT_EQ(chosen(container, cuda_device(100)), "ptx80") << "no cubin runs on a later generation";
  EXPECT_EQ(chosen(container, cuda_device(75)),
            "the code is for PTX of sm_80, sm_80, sm_86, sm_90a, sm_90, but a GPU is sm_75");
}

TEST(device_code, opencl_prefers_the_binary_of_its_driver) {
  const std::string container = encode_device_code(std::vector<DeviceCode>{
      {.format = CodeFormat::kOpenClSource, .options = "-DX=1", .data = "kernel void f() {}"},
      {.format = CodeFormat::kOpenClBinary, .device = "some device 1.2", .data = "binary"}});
  DeviceProperties device;
  device.kind = DeviceKind::kOpenCl;
  std::snprintf(device.name, sizeof device.name, "some device");
  std::snprintf(device.driver, sizeof device.driver, "1.2");
  EXPECT_EQ(chosen(container, device), "binary");
  std::snprintf(device.driver, sizeof device.driver, "1.3");
  EXPECT_EQ(chosen(container, device), "kernel void f() {}");
  EXPECT_STREQ(runtime::code_image(container.data(), 0).options, "-DX=1");
  EXPECT_EQ(chosen(container, cuda_device(80)),
            "the code is for OpenCL C, OpenCL on some device 1.2, but a GPU is sm_80");
}

TEST(device_code, data_are_aligned_and_end_in_a_zero) {
  const std::string container = cubins();
  for (uint32_t i = 0; i < 5; ++i) {
    const CodeImage image = runtime::code_image(container.data(), i);
    const char* data = static_cast<const char*>(image.data);
    EXPECT_EQ((data - container.data()) % 64, 0);
    EXPECT_EQ(std::strlen(data), static_cast<size_t>(image.bytes));
  }
  EXPECT_EQ(runtime::code_check(encode_device_code({}).data(), sizeof(runtime::CodeHeader)),
            nullptr);
}

TEST(device_code, damage_is_refused) {
  std::string container = cubins();
  const auto check = [](const std::string& bytes) {
    return runtime::code_check(bytes.data(), bytes.size());
  };
  EXPECT_EQ(check(container), nullptr);
  EXPECT_STREQ(check(container.substr(0, 10)), "the code for devices is cut off");
  EXPECT_STREQ(check(container.substr(0, container.size() - 1)), "the code for devices is cut off");
  EXPECT_STREQ(check("X" + container.substr(1)), "this is no code for devices");
  constexpr uint64_t kSeed = 11;
  Rng rng(kSeed);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<uint64_t> words(container.size() / 8);
    std::memcpy(words.data(), container.data(), container.size());
    words[rng.below(words.size())] = rng.below(2) == 0 ? rng.next() : rng.below(1024);
    if (runtime::code_check(words.data(), container.size()) != nullptr) {
      ++refused;
      continue;
    }
    char message[256];
    CodeImage image;
    (void)runtime::code_choose(words.data(), cuda_device(90), image, message);
  }
  EXPECT_GT(refused, 500) << "seed " << kSeed;
}

}  // namespace
}  // namespace hone::backend
