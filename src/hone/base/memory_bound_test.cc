#include "hone/base/memory_bound.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

class MemoryBounds : public testing::Test {
 protected:
  ~MemoryBounds() override { set_memory_bound(before_); }
  const MemoryBound before_ = memory_bound();
};

TEST_F(MemoryBounds, files_get_three_quarters_of_the_bound) {
  set_memory_bound({1 << 20, "the bound of a test"});
  EXPECT_EQ(most_input_bytes(), 768 << 10);
  EXPECT_EQ(memory_bound_text(), "expected at most 1048576 bytes in all, the bound of a test");
  EXPECT_TRUE(check_input_bytes("a.npy", 768 << 10).ok());
  const Status status = check_input_bytes("a.npy", (768 << 10) + 1);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(),
            "cannot read 'a.npy': it has 786433 bytes, expected at most 786432, as three quarters "
            "of the bound of a test");
}

TEST_F(MemoryBounds, a_bound_above_the_machine_changes_nothing) {
  const int64_t before = most_input_bytes();
  EXPECT_GT(before, 0);
  EXPECT_LE(before, memory_here().main);
  set_memory_bound({int64_t{1} << 60, "the bound of a test"});
  EXPECT_EQ(most_input_bytes(), before);
  EXPECT_EQ(input_bound_text(), "three quarters of the memory here");
}

TEST_F(MemoryBounds, an_unknown_bound_is_not_named) {
  set_memory_bound({});
  EXPECT_EQ(memory_bound_text(), "");
}

}  // namespace
}  // namespace hone
