#include "hone/compute/affine.h"

#include <gtest/gtest.h>

#include <tuple>

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

// A quotient may stand anywhere in an index, also below a negation.
TEST(affine, indices_with_quotients_have_rows_for_small_values) {
  const Dag dag = testing::gemm(4, 6, 8);
  Stage stage = dag.stages[0];
  const ir::Expr m = ir::variable(stage.axes[0].var);
  const ir::Expr index = ir::make(ir::Op::kNeg, {ir::floordiv(m * 4, 16)}) + 3;
  stage.outputs[0].value = ir::load(dag.params[0].buffer, {index, ir::constant(0)});
  const std::vector<Access> all = reads(stage);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_FALSE(all[0].exact);
  EXPECT_EQ(all[0].index[0], (AffineRow{3, {0, 0, 0}}));
}

}  // namespace
}  // namespace hone::compute
