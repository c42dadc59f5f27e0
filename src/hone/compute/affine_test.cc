#include "hone/compute/affine.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"

namespace hone::compute {
namespace {

TEST(affine, a_read_moves_with_the_axes_that_its_element_depends_on) {
  const Dag dag = testing::gemm(4, 6, 8);  // axes m, n; summed over k
  const std::vector<Access> all = reads(dag.stages[0]);
  ASSERT_EQ(all.size(), 2U);
  const auto along = [](const Access& read) {
    return std::tuple(moves(read, 0), moves(read, 1), moves(read, 2));
  };
  EXPECT_EQ(all[0].buffer->name, "data");
  EXPECT_EQ(along(all[0]), std::tuple(true, false, true));
  EXPECT_EQ(along(all[1]), std::tuple(false, true, true));
}

}  // namespace
}  // namespace hone::compute
