// Sums that differ in signs only: machine code has their parts once.
#include <gtest/gtest.h>

#include "hone/backend/cpu/inner_loop_testing.h"
#include "hone/backend/cpu/test_support.h"
#include "hone/ir/passes/share_sums.h"
#include "hone/ir/passes/transform_testing.h"

namespace hone::backend::cpu {
namespace {

int operations(const ir::Program& program, const char* device) {
  const InnerLoop loop = inner_loop_of(program, device);
  return loop.mix.fma + loop.mix.arithmetic;
}

TEST(share_sums_code, takes_fewer_operations) {
  for (const ir::KnownMatrix& matrix : {ir::kDataOf4, ir::kBackOf4}) {
    const ir::Program plain = ir::transform_program(matrix), shared = ir::share_sums(plain);
    EXPECT_EQ(compare_with_interpreter(shared, 3), "");
    // Four of the data's six rows are pairs: 16 operations become 12. For the four results back, 14
    // become 10. There are five columns of one or two vectors each.
    for (const auto& [device, vectors] :
         {std::pair("x86-64-avx512", 1), std::pair("x86-64-avx2", 2)}) {
      const int before = operations(plain, device), after = operations(shared, device);
      EXPECT_LE(after, before * 13 / 16) << device << " " << before;
      EXPECT_GE(after, 10 * 5 * vectors) << device;
    }
  }
}

}  // namespace
}  // namespace hone::backend::cpu
