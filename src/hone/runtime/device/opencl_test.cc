// Devices of OpenCL, on the CPU by PoCL.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>

#include "hone/runtime/device/device_testing.h"

namespace hone::runtime {
namespace {

using testing::Buffer;
using testing::DevicePtr;
using testing::open_pocl;
using testing::opencl_source;
using testing::put;
using testing::take;

constexpr const char* kSource = R"(
kernel void add(global char* a, ulong at_a, global char* b, ulong at_b, global char* c, ulong at_c,
                long first_tile) {
  const long i = (first_tile + get_group_id(0)) * get_local_size(0) + get_local_id(0);
  ((global float*)(c + at_c))[i] =
      ((global const float*)(a + at_a))[i] + SCALE * ((global const float*)(b + at_b))[i];
}
kernel void block_sum(global char* x, ulong at_x, global char* sums, ulong at_sums,
                      long first_tile) {
  local float part[64];
  const int t = get_local_id(0);
  const long block = first_tile + get_group_id(0);
  part[t] = ((global const float*)(x + at_x))[block * 64 + t];
  for (int width = 32; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < width) part[t] += part[t + width];
  }
  if (t == 0) ((global float*)(sums + at_sums))[block] = part[0];
}
)";

// The device and the kernels above.
class OpenClDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string message;
    device_ = open_pocl(message);
    ASSERT_NE(device_, nullptr) << message;
    ASSERT_TRUE(device_load(*device_, opencl_source(kSource, "-DSCALE=2.0f"), module_)) << error();
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    device_unload(*device_, module_);
    EXPECT_EQ(device_allocated(*device_), 0);
  }
  std::string error() const { return device_error(*device_); }
  DeviceFunction function(const char* name, int threads) {
    DeviceFunction found;
    EXPECT_TRUE(device_function(*device_, module_, name, threads, 0, found)) << error();
    return found;
  }

  DevicePtr device_;
  DeviceModule module_;
};

std::vector<float> numbers(size_t count, float from) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

TEST_F(OpenClDevice, says_what_it_is) {
  const DeviceProperties& is = device_properties(*device_);
  EXPECT_EQ(is.kind, DeviceKind::kOpenCl);
  EXPECT_STREQ(is.platform, "Portable Computing Language");
  EXPECT_TRUE(is.is_cpu);
  EXPECT_NE(std::string(is.name), "");
  EXPECT_EQ(is.compute_units, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GE(is.max_block_threads, 256);
  EXPECT_GE(is.block_shared_bytes, 32 << 10);
  EXPECT_GT(is.memory_bytes, 1 << 28);
  EXPECT_LE(is.max_buffer_bytes, is.memory_bytes);
  char message[kDeviceErrorBytes];
  DeviceProperties listed;
  const int index = device_find(DeviceKind::kOpenCl, is.name, message);
  ASSERT_TRUE(device_describe(DeviceKind::kOpenCl, index, listed, message)) << message;
  EXPECT_STREQ(listed.name, is.name);
}

TEST_F(OpenClDevice, adds_at_offsets_of_one_buffer) {
  constexpr size_t kCount = 1024;
  constexpr int64_t kBytes = kCount * sizeof(float);
  const std::vector<float> a = numbers(kCount, 1), b = numbers(kCount, 100);
  Buffer all(*device_, 3 * kBytes + 64);
  ASSERT_TRUE(all.made()) << error();
  ASSERT_TRUE(put(*device_, all, a, 64) && put(*device_, all, b, 64 + kBytes)) << error();
  ASSERT_TRUE(device_zero(*device_, all.get(), 64 + 2 * kBytes, kBytes)) << error();
  DeviceFunction add = function("add", 128);
  EXPECT_EQ(add.num_parameters, 7);
  const DeviceArgument arguments[] = {all.at(64), all.at(64 + kBytes), all.at(64 + 2 * kBytes)};
  // The blocks 2, 3 and 4 of 8; a launch of none is one.
  ASSERT_TRUE(device_launch(*device_, add, 3, arguments, 3, 2)) << error();
  ASSERT_TRUE(device_launch(*device_, add, 0, arguments, 3)) << error();
  const auto c = take<float>(*device_, all, kCount, 64 + 2 * kBytes);
  ASSERT_EQ(c.size(), kCount) << error();
  for (size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(c[i], i / 128 >= 2 && i / 128 < 5 ? a[i] + 2 * b[i] : 0) << i;
  device_release(*device_, add);
}

TEST_F(OpenClDevice, sums_blocks_in_local_memory) {
  constexpr size_t kBlocks = 33;
  const std::vector<float> x = numbers(kBlocks * 64, -500);
  Buffer from(*device_, kBlocks * 64 * 4), to(*device_, kBlocks * 4);
  ASSERT_TRUE(from.made() && to.made() && put(*device_, from, x)) << error();
  DeviceFunction sum = function("block_sum", 64);
  const DeviceArgument arguments[] = {from.at(), to.at()};
  ASSERT_TRUE(device_launch(*device_, sum, kBlocks, arguments, 2)) << error();
  const auto sums = take<float>(*device_, to, kBlocks);
  ASSERT_EQ(sums.size(), kBlocks) << error();
  for (size_t i = 0; i < kBlocks; ++i)
    EXPECT_EQ(sums[i], std::accumulate(&x[i * 64], &x[i * 64] + 64, 0.0F)) << i;
  device_release(*device_, sum);
}

TEST_F(OpenClDevice, copies_and_zeroes_parts) {
  Buffer a(*device_, 64), b(*device_, 64);
  ASSERT_TRUE(put(*device_, a, numbers(16, 0))) << error();
  ASSERT_TRUE(device_zero(*device_, b.get(), 0, 64)) << error();
  ASSERT_TRUE(device_copy(*device_, b.get(), 8, a.get(), 16, 12)) << error();
  EXPECT_EQ(take<float>(*device_, b, 6), (std::vector<float>{0, 0, 4, 5, 6, 0}));
  EXPECT_FALSE(device_copy(*device_, b.get(), 56, a.get(), 0, 12));
  EXPECT_EQ(error(), "12 bytes at 56 exceed a buffer of 64 bytes");
  EXPECT_FALSE(device_zero(*device_, b.get(), -1, 4));
}

TEST_F(OpenClDevice, measures_time_between_events) {
  constexpr int64_t kBytes = int64_t{4} << 20;
  Buffer all(*device_, 3 * kBytes);
  ASSERT_TRUE(all.made() && device_zero(*device_, all.get(), 0, 3 * kBytes)) << error();
  DeviceFunction add = function("add", 256);
  const DeviceArgument arguments[] = {all.at(), all.at(kBytes), all.at(2 * kBytes)};
  const auto time_of = [&](int launches) {
    DeviceEvent before, after;
    double seconds = -1;
    bool ok = device_record(*device_, before);
    for (int i = 0; i < launches; ++i)
      ok = ok && device_launch(*device_, add, kBytes / 4 / 256, arguments, 3);
    ok = ok && device_record(*device_, after) && device_elapsed(*device_, before, after, seconds);
    EXPECT_TRUE(ok) << error();
    device_release(*device_, before);
    device_release(*device_, after);
    return seconds;
  };
  time_of(1);
  EXPECT_GT(time_of(20), 0);
  DeviceEvent never;
  double seconds = 0;
  EXPECT_FALSE(device_elapsed(*device_, never, never, seconds));
  device_release(*device_, add);
}

TEST_F(OpenClDevice, two_objects_run_at_once) {
  const auto sum_of = [](float from, float& result) {
    std::string message;
    DevicePtr own = open_pocl(message);
    DeviceModule module;
    DeviceFunction sum;
    if (own == nullptr || !device_load(*own, opencl_source(kSource, "-DSCALE=1.0f"), module) ||
        !device_function(*own, module, "block_sum", 64, 0, sum))
      return;
    {
      Buffer x(*own, 256), y(*own, 4);
      const DeviceArgument arguments[] = {x.at(), y.at()};
      bool ok = put(*own, x, numbers(64, from));
      for (int i = 0; i < 50; ++i) ok = ok && device_launch(*own, sum, 1, arguments, 2);
      if (ok) result = take<float>(*own, y, 1)[0];
    }
    device_release(*own, sum);
    device_unload(*own, module);
  };
  float first = 0, second = 0;
  std::thread other([&] { sum_of(1, second); });
  sum_of(0, first);
  other.join();
  EXPECT_EQ(first, 2016);
  EXPECT_EQ(second, 2080);
}

TEST_F(OpenClDevice, counts_its_memory) {
  DeviceBuffer a, b;
  ASSERT_TRUE(device_allocate(*device_, 1000, a) && device_allocate(*device_, 500, b)) << error();
  device_free(*device_, a);
  EXPECT_EQ(device_allocated(*device_), 500);
  EXPECT_EQ(device_peak(*device_), 1500);
  device_free(*device_, b);
  device_free(*device_, b);  // twice does nothing
  EXPECT_FALSE(device_allocate(*device_, int64_t{1} << 60, a));
  EXPECT_NE(error().find("has no buffers of 1152921504606846976 bytes"), std::string::npos)
      << error();
  EXPECT_EQ(a.handle, 0U);
}

TEST_F(OpenClDevice, a_failed_build_shows_what_the_compiler_says) {
  DeviceModule module;
  EXPECT_FALSE(
      device_load(*device_, opencl_source("kernel void f() { undeclared_thing = 1; }"), module));
  EXPECT_NE(error().find("cannot be built"), std::string::npos) << error();
  EXPECT_NE(error().find("undeclared_thing"), std::string::npos) << error();
  EXPECT_FALSE(device_load(*device_, {.format = CodeFormat::kCubin}, module));
  EXPECT_EQ(error(), "the code is for CUDA, the device is of OpenCL");
  EXPECT_EQ(module.handle, nullptr);
}

TEST_F(OpenClDevice, wrong_kernels_are_refused) {
  DeviceFunction found;
  EXPECT_FALSE(device_function(*device_, module_, "subtract", 64, 0, found));
  EXPECT_NE(error().find("there is no kernel subtract"), std::string::npos) << error();
  EXPECT_FALSE(device_function(*device_, module_, "add", 1 << 20, 0, found));
  EXPECT_NE(error().find("has blocks of 1048576 threads"), std::string::npos) << error();
  EXPECT_FALSE(device_function(*device_, module_, "add", 64, int64_t{1} << 40, found));
  EXPECT_NE(error().find("bytes of shared memory"), std::string::npos) << error();
  DeviceFunction add = function("add", 64);
  Buffer buffer(*device_, 64);
  const DeviceArgument one[] = {buffer.at()};
  EXPECT_FALSE(device_launch(*device_, add, 1, one, 1));
  EXPECT_NE(error().find("has 7 parameters, expected 3"), std::string::npos) << error();
  const DeviceArgument three[] = {buffer.at(), buffer.at(), buffer.at()};
  EXPECT_FALSE(device_launch(*device_, add, (int64_t{1} << 58) + 1, three, 3));
  EXPECT_EQ(error(), "288230376151711745 blocks of 64 threads are too many for a launch");
  device_release(*device_, add);
}

TEST_F(OpenClDevice, has_nothing_that_only_cuda_has) {
  DeviceGraph graph;
  EXPECT_FALSE(device_begin_graph(*device_));
  EXPECT_FALSE(device_end_graph(*device_, graph));
  EXPECT_FALSE(device_use_stream(*device_, nullptr));
  EXPECT_FALSE(device_check_pointer(*device_, this));
  EXPECT_EQ(error(), "a pointer to its memory needs a device of CUDA, this one is of OpenCL");
}

TEST(devices, that_are_not_there_are_named) {
  char message[kDeviceErrorBytes];
  EXPECT_EQ(device_open(DeviceKind::kOpenCl, 1000, message), nullptr);
  EXPECT_NE(std::string(message).find("OpenCL has no device 1000 here"), std::string::npos)
      << message;
  EXPECT_EQ(device_find(DeviceKind::kOpenCl, "no such name", message), -1);
  EXPECT_NE(std::string(message).find("is named 'no such name'"), std::string::npos) << message;
  EXPECT_EQ(device_open(DeviceKind::kNone, 0, message), nullptr);
  EXPECT_STREQ(message, "there is no kind of device with number 0");
  device_close(nullptr);
}

}  // namespace
}  // namespace hone::runtime
