#include "hone/base/allocation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "hone/base/memory_bound.h"

namespace hone {
namespace {

constexpr int64_t kBound = 1 << 20;
std::string told;  // by the new-handler

class Allocations : public testing::Test {
 protected:
  Allocations() {
    set_memory_bound({kBound, "the bound of a test"});
    told.clear();
    std::set_new_handler([] {
      told = out_of_memory_message();
      throw std::bad_alloc();
    });
  }
  ~Allocations() override {
    std::set_new_handler(nullptr);
    set_memory_bound(before_);
  }
  const MemoryBound before_ = memory_bound();
};

TEST_F(Allocations, memory_is_aligned) {
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{65}, kBound}) {
    const std::unique_ptr<void, decltype(&std::free)> memory(allocate_aligned(bytes), std::free);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % kDataAlignment, 0U);
    std::memset(memory.get(), 1, static_cast<size_t>(bytes));
  }
}

TEST_F(Allocations, more_than_the_bound_is_not_given) {
  EXPECT_THROW((void)allocate_aligned(kBound + 1), std::bad_alloc);
  EXPECT_EQ(told,
            "out of memory: 1048577 bytes more, expected at most 1048576 bytes in all, the bound "
            "of a test");
  std::set_new_handler(nullptr);
  EXPECT_THROW((void)allocate_aligned(kBound + 1), std::bad_alloc);
}

TEST_F(Allocations, the_innermost_purpose_of_the_thread_is_named) {
  const AllocatesFor outer("file 'a'");
  {
    const AllocatesFor inner("node 'b'");
    EXPECT_THROW(fail_allocation(0), std::bad_alloc);
    EXPECT_EQ(told,
              "out of memory for node 'b': expected at most 1048576 bytes in all, the bound of a "
              "test");
  }
  EXPECT_THROW(fail_allocation(7), std::bad_alloc);
  EXPECT_TRUE(told.starts_with("out of memory for file 'a': 7 bytes more, ")) << told;
  std::thread other = start_thread([] { EXPECT_THROW(fail_allocation(0), std::bad_alloc); });
  other.join();
  EXPECT_TRUE(told.starts_with("out of memory: expected")) << told;
}

TEST_F(Allocations, a_purpose_is_short_and_printable) {
  const AllocatesFor purpose("a\x1b[2J\n" + std::string(10000, 'x'));
  EXPECT_THROW(fail_allocation(1), std::bad_alloc);
  EXPECT_TRUE(told.starts_with("out of memory for a\\x1b[2J\\x0axxx")) << told;
  EXPECT_TRUE(
      told.ends_with("x: 1 bytes more, expected at most 1048576 bytes in all, the bound "
                     "of a test"))
      << told;
  EXPECT_LT(told.size(), 500U);
}

}  // namespace
}  // namespace hone
