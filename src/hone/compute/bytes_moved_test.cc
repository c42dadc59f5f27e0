#include "hone/compute/bytes_moved.h"

#include <gtest/gtest.h>

#include "hone/compute/dag_testing.h"

namespace hone::compute {
namespace {

TEST(bytes_moved, every_operand_once) {
  EXPECT_EQ(bytes_moved(testing::gemm(3, 5, 7)), 4 * (3 * 7 + 7 * 5 + 3 * 5));
}

TEST(bytes_moved, a_border_that_is_not_written_does_not_count) {
  const Dag dag = testing::conv2d({.h = 7, .w = 7, .ic = 3, .oc = 8});
  EXPECT_EQ(bytes_moved(dag), 4 * (9 * 9 * 3 + 8 * 3 * 3 * 3 + 8 + 7 * 7 * 8));
}

TEST(bytes_moved, what_a_stride_jumps_over_does_not_count) {
  const Dag dag =
      testing::conv2d({.h = 8, .w = 8, .ic = 3, .oc = 8, .kernel = 1, .stride = 2, .pad = 0});
  EXPECT_EQ(bytes_moved(dag), 4 * (4 * 4 * 3 + 8 * 3 + 8 + 4 * 4 * 8));
}

TEST(bytes_moved, a_lookup_reads_what_it_looks_up) {
  DagBuilder b;
  const auto table = b.constant("table", {30'000, 16});
  const auto rows = b.input("rows", {4}, DType::kI64);
  const auto out = b.output("out", {4, 16});
  const auto i = make_axis("i", 4);
  const auto j = ir::make_var("j");
  const ir::Expr row = ir::load(rows, {ir::variable(i.var)});
  const ir::Stmt copy = ir::make_store(out, {ir::variable(i.var), ir::variable(j)},
                                       ir::load(table, {row, ir::variable(j)}));
  Stage stage;
  stage.name = stage.op = "gather";
  stage.axes = {i};
  stage.outputs = {Output{.buffer = out, .write = {}}};
  stage.body = {ir::make_for(j, ir::constant(0), ir::constant(16), ir::ForKind::kSerial, {copy})};
  stage.extern_reads = {table, rows};
  b.add(stage);
  const Dag dag = testing::finish(std::move(b));
  EXPECT_EQ(bytes_moved(dag), 4 * 16 * 4 + 4 * 8 + 4 * 16 * 4);
}

}  // namespace
}  // namespace hone::compute
