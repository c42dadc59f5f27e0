#include "hone/compute/class_family.h"

#include <gtest/gtest.h>

namespace hone::compute {
namespace {

TEST(class_family, pointwise_work_behind_a_kernel_does_not_matter) {
  for (const char* name : {"conv2d", "conv2d+bias", "conv2d+bias+relu", "conv2d+bias+add+relu",
                           "conv2d+bias+swish", "conv2d+bias+clip"})
    EXPECT_EQ(class_family(name), "conv2d") << name;
  for (const char* name : {"matmul", "gemm+bias", "matmul+bias+add+scale+bias", "matmul+div+add"})
    EXPECT_EQ(class_family(name), "matmul") << name;
}

TEST(class_family, other_work_does) {
  EXPECT_NE(class_family("depthwise_conv2d+bias"), class_family("conv2d+bias"));
  EXPECT_EQ(class_family("softmax+matmul+add"), "softmax+matmul");
  EXPECT_EQ(class_family("max_pool"), "max_pool");
  EXPECT_EQ(class_family("cast+sub+mul"), "pointwise");
  EXPECT_EQ(class_family(""), "pointwise");
}

}  // namespace
}  // namespace hone::compute
