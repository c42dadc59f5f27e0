#include <gtest/gtest.h>

#include <functional>

#include "hone/compute/dag_testing.h"

namespace hone::compute {
namespace {

using ir::constant;
using ir::variable;

// Returns the error of causal attention whose row sums end elsewhere; "" if there is none.
std::string with_end(const std::function<ir::Expr(const Stage&)>& until,
                     const std::string& name = "total") {
  Dag dag = testing::attention(2, 24, 64, 4, 0);
  for (Stage& stage : dag.stages) {
    if (stage.name == name) stage.until = until(stage);
  }
  return std::string(verify(dag).message());
}

std::string refused(const std::string& stage, const std::string& end) {
  return "stage " + stage + ": its terms end at " + end +
         ", expected one reduce axis and an affine form that moves with the other axes";
}

TEST(verify, terms_may_end_where_other_axes_say) {
  const auto row = [](const Stage& stage) { return variable(stage.axes[0].var); };
  const auto head = [](const Stage& stage) { return variable(stage.axes[1].var); };
  EXPECT_EQ(with_end([&](const Stage&) { return ir::Expr(); }), "");
  EXPECT_EQ(with_end(row), "");
  EXPECT_EQ(with_end([&](const Stage& s) { return row(s) * constant(-3) + constant(70); }), "");
  EXPECT_EQ(with_end([&](const Stage& s) { return row(s) + head(s) * constant(2); }), "");
}

TEST(verify, ends_that_bounds_cannot_follow_are_refused) {
  const auto row = [](const Stage& stage) { return variable(stage.axes[0].var); };
  EXPECT_EQ(with_end([](const Stage&) { return constant(5); }), refused("total", "5"));
  EXPECT_EQ(with_end([&](const Stage& s) { return row(s) * row(s); }), refused("total", "m * m"));
  EXPECT_EQ(with_end([](const Stage& s) { return variable(s.reduce[0].var); }),
            refused("total", "r"));
  EXPECT_EQ(with_end([](const Stage&) { return variable(ir::make_var("other")); }),
            refused("total", "other"));
}

TEST(verify, only_a_reduction_over_one_axis_ends_early) {
  const auto row = [](const Stage& stage) { return variable(stage.axes[0].var); };
  EXPECT_EQ(with_end(row, "weights"), refused("weights", "m"));
  Dag dag = testing::conv2d({});
  dag.stages[0].until = variable(dag.stages[0].axes[1].var);
  EXPECT_EQ(verify(dag).message(), refused(dag.stages[0].name, "oh"));
}

}  // namespace
}  // namespace hone::compute
