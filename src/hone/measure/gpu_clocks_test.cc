#include "hone/measure/gpu_clocks.h"

#include <gtest/gtest.h>

namespace hone::measure {
namespace {

constexpr const char* kAddress = "0000:3b:00.0";

TEST(gpu_clocks, heat_is_waited_for_and_a_power_limit_is_not) {
  const auto clocks = open_gpu_clocks(kAddress, HONE_FAKE_NVML);
  ASSERT_NE(clocks, nullptr);
  EXPECT_EQ(clocks->mhz(), 1980);
  EXPECT_TRUE(clocks->is_throttled());
  EXPECT_FALSE(clocks->wait(0)) << "it is still hot at the second look";
  EXPECT_TRUE(clocks->wait(60));
  EXPECT_FALSE(clocks->is_throttled());
}

TEST(gpu_clocks, without_the_library_or_the_device_nothing_is_known) {
  EXPECT_EQ(open_gpu_clocks("0000:3c:00.0", HONE_FAKE_NVML), nullptr);
  EXPECT_EQ(open_gpu_clocks("", HONE_FAKE_NVML), nullptr);
  EXPECT_EQ(open_gpu_clocks(kAddress, "/nonexistent/libnvidia-ml.so.1"), nullptr);
  EXPECT_EQ(open_gpu_clocks(kAddress, "libm.so.6"), nullptr);  // it has no such functions
}

}  // namespace
}  // namespace hone::measure
