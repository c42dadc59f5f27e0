// Devices of CUDA. Without a driver that has a device, these tests are skipped.
#include <gtest/gtest.h>

#include "hone/runtime/device/device_testing.h"

namespace hone::runtime {
namespace {

using testing::Buffer;
using testing::DevicePtr;
using testing::put;
using testing::take;

// c[i] = a[i] + b[i] for i = (first_tile + block) * threads + thread.
constexpr const char* kAdd = R"(
.version 6.0
.target sm_52
.address_size 64
.visible .entry add(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 first_tile)
{
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %a<10>;
  ld.param.u64 %a1, [pa];
  ld.param.u64 %a2, [pb];
  ld.param.u64 %a3, [pc];
  ld.param.u64 %a4, [first_tile];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  cvt.u64.u32 %a5, %r1;
  add.u64 %a4, %a4, %a5;
  cvt.u64.u32 %a5, %r2;
  mul.lo.u64 %a4, %a4, %a5;
  cvt.u64.u32 %a5, %r3;
  add.u64 %a4, %a4, %a5;
  shl.b64 %a4, %a4, 2;
  add.u64 %a6, %a1, %a4;
  add.u64 %a7, %a2, %a4;
  add.u64 %a8, %a3, %a4;
  ld.f32 %f1, [%a6];
  ld.f32 %f2, [%a7];
  add.f32 %f3, %f1, %f2;
  st.f32 [%a8], %f3;
  ret;
}
)";

CodeImage ptx(const std::string& text) {
  return {.format = CodeFormat::kPtx,
          .capability = 52,
          .data = text.c_str(),
          .bytes = static_cast<int64_t>(text.size())};
}

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string message;
    device_ = testing::open_device(DeviceKind::kCuda, message);
    if (device_ == nullptr) GTEST_SKIP() << "no device: " << message;
    ASSERT_TRUE(device_load(*device_, ptx(code_), module_)) << error();
    ASSERT_TRUE(device_function(*device_, module_, "add", 64, 0, add_)) << error();
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    device_release(*device_, add_);
    device_unload(*device_, module_);
  }
  std::string error() const { return device_error(*device_); }

  const std::string code_ = kAdd;
  DevicePtr device_;
  DeviceModule module_;
  DeviceFunction add_;
};

const std::vector<float> kOnes(256, 1), kTwos(256, 2);

TEST_F(CudaDevice, says_what_it_is) {
  const DeviceProperties& is = device_properties(*device_);
  EXPECT_EQ(is.kind, DeviceKind::kCuda);
  EXPECT_STREQ(is.platform, "CUDA");
  EXPECT_GE(is.capability, 50);
  EXPECT_EQ(is.warp_threads, 32);
  EXPECT_GE(is.max_block_threads, 1024);
  EXPECT_GE(is.block_shared_bytes, 48 << 10);
  EXPECT_GE(is.unit_registers, 32 << 10);
  EXPECT_GT(is.compute_units, 0);
}

TEST_F(CudaDevice, adds_at_offsets_of_one_buffer) {
  Buffer all(*device_, 3 * 1024);
  ASSERT_TRUE(all.made() && put(*device_, all, kOnes) && put(*device_, all, kTwos, 1024));
  ASSERT_TRUE(device_zero(*device_, all.get(), 2048, 1024)) << error();
  const DeviceArgument arguments[] = {all.at(), all.at(1024), all.at(2048)};
  ASSERT_TRUE(device_launch(*device_, add_, 2, arguments, 3, 1)) << error();
  const auto sums = take<float>(*device_, all, 256, 2048);
  ASSERT_EQ(sums.size(), 256U) << error();
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(sums[i], i / 64 == 1 || i / 64 == 2 ? 3 : 0) << i;
}

TEST_F(CudaDevice, a_graph_runs_what_was_recorded) {
  Buffer all(*device_, 2 * 1024);
  ASSERT_TRUE(put(*device_, all, kOnes) && put(*device_, all, kTwos, 1024)) << error();
  const DeviceArgument arguments[] = {all.at(), all.at(1024), all.at(1024)};
  DeviceGraph graph;
  ASSERT_TRUE(device_begin_graph(*device_)) << error();
  ASSERT_TRUE(device_launch(*device_, add_, 4, arguments, 3)) << error();
  ASSERT_TRUE(device_launch(*device_, add_, 4, arguments, 3)) << error();
  ASSERT_TRUE(device_end_graph(*device_, graph)) << error();
  EXPECT_EQ(take<float>(*device_, all, 1, 1024)[0], 2) << "recording runs nothing";
  ASSERT_TRUE(device_launch_graph(*device_, graph)) << error();
  ASSERT_TRUE(device_launch_graph(*device_, graph)) << error();
  EXPECT_EQ(take<float>(*device_, all, 256, 1024), std::vector<float>(256, 6));
  device_release(*device_, graph);
}

TEST_F(CudaDevice, measures_time_between_events) {
  Buffer all(*device_, 3 * 1024);
  ASSERT_TRUE(all.made() && device_zero(*device_, all.get(), 0, 3 * 1024));
  const DeviceArgument arguments[] = {all.at(), all.at(1024), all.at(2048)};
  DeviceEvent before, after;
  ASSERT_TRUE(device_record(*device_, before)) << error();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(device_launch(*device_, add_, 4, arguments, 3)) << error();
  ASSERT_TRUE(device_record(*device_, after)) << error();
  double seconds = -1;
  ASSERT_TRUE(device_elapsed(*device_, before, after, seconds)) << error();
  EXPECT_GT(seconds, 0);
  device_release(*device_, before);
  device_release(*device_, after);
}

TEST_F(CudaDevice, tells_its_pointers_from_others) {
  Buffer buffer(*device_, 64);
  EXPECT_TRUE(device_check_pointer(*device_, reinterpret_cast<void*>(buffer.get().handle)));
  float here = 0;
  EXPECT_FALSE(device_check_pointer(*device_, &here));
  EXPECT_NE(error().find("the pointer is to memory of the host"), std::string::npos) << error();
}

TEST_F(CudaDevice, wrong_code_is_refused) {
  DeviceModule module;
  const std::string text = "this is not PTX";
  EXPECT_FALSE(device_load(*device_, ptx(text), module));
  EXPECT_NE(error().find("the PTX of sm_52 cannot be loaded"), std::string::npos) << error();
  EXPECT_FALSE(device_load(*device_, {.format = CodeFormat::kOpenClSource}, module));
  DeviceFunction found;
  EXPECT_FALSE(device_function(*device_, module_, "subtract", 64, 0, found));
  EXPECT_EQ(error(), "there is no kernel subtract in this code");
  EXPECT_FALSE(device_function(*device_, module_, "add", 4096, 0, found));
  EXPECT_NE(error().find("has blocks of 4096 threads"), std::string::npos) << error();
}

TEST_F(CudaDevice, a_wrong_number_of_arguments_is_refused) {
  if (add_.num_parameters < 0) GTEST_SKIP() << "the driver does not know the parameters";
  EXPECT_EQ(add_.num_parameters, 4);
  Buffer buffer(*device_, 1024);
  const DeviceArgument two[] = {buffer.at(), buffer.at()};
  EXPECT_FALSE(device_launch(*device_, add_, 1, two, 2));
  EXPECT_EQ(error(), "a kernel has 4 parameters, expected 3 for its 2 arguments");
}

TEST_F(CudaDevice, says_when_memory_is_short) {
  DeviceBuffer buffer;
  EXPECT_FALSE(device_allocate(*device_, device_properties(*device_).memory_bytes, buffer));
  EXPECT_NE(error().find("bytes left: "), std::string::npos) << error();
  EXPECT_EQ(device_allocated(*device_), 0);
}

TEST(cuda, without_a_driver_the_message_says_so) {
  char message[kDeviceErrorBytes];
  const int count = device_count(DeviceKind::kCuda, message);
  if (count > 0) GTEST_SKIP() << "there is a device";
  EXPECT_NE(std::string(message).find("CUDA"), std::string::npos) << message;
  EXPECT_EQ(device_open(DeviceKind::kCuda, 0, message), nullptr);
  EXPECT_NE(std::string(message), "");
}

}  // namespace
}  // namespace hone::runtime
