// Products with the zeros around an input are left out where a loop of the sum runs past them.
#include "hone/base/rng.h"
#include "hone/compute/dag_testing.h"
#include "hone/schedule/random_schedule_testing.h"
#include "hone/schedule/schedule_testing.h"

namespace hone::schedule {
namespace {

using compute::testing::conv2d;
using compute::testing::ConvShape;

compute::Dag conv_in_zeros(ConvShape shape) {
  compute::Dag dag = conv2d(shape);
  dag.params[0].zeros = {0, shape.pad, shape.pad, 0, 0, shape.pad, shape.pad, 0};
  return dag;
}

// Elements of the data that a program reads.
int64_t elements_read(const compute::Dag& dag, const std::string& text) {
  const ir::TouchReport report = touches_of(dag, text);
  const ir::Touch* touch = report.find(dag.params[0].buffer, false);
  return touch != nullptr ? touch->distinct : 0;
}

constexpr ConvShape kShape{.h = 5, .w = 7, .ic = 4, .oc = 8, .border = 0};
constexpr int64_t kAll = 7 * 9 * 4, kInside = 5 * 7 * 4, kRows = 5 * 9 * 4;  // rows: all columns

TEST(known_zeros, are_not_read_where_a_loop_of_the_sum_can_leave_them_out) {
  const compute::Dag dag = conv_in_zeros(kShape);
  EXPECT_EQ(elements_read(conv2d(kShape), ""), kAll) << "nothing is known";
  EXPECT_EQ(elements_read(dag, ""), kInside);
  EXPECT_EQ(elements_read(dag, "cache_read(weight, conv2d)"), kInside) << "packed weights";
  EXPECT_EQ(elements_read(dag, "reorder(conv2d, [ic, kh, kw, oc])"), kInside) << "channels inside";
  EXPECT_EQ(elements_read(dag, "reorder(conv2d, [oc, ic, kh, kw])"), kRows)
      << "a test for each tap would cost more than its product";
  compute::Dag moving = dag;  // weights that are given at run time may be infinite
  moving.params[1].role = ir::Role::kInput;
  EXPECT_EQ(elements_read(moving, ""), kAll);
}

// A register tile of so many columns and rows, the taps and channels in loops around it.
std::string tile_of(int64_t columns, int64_t rows = 1, const std::string& sum = "kh, kw, ic") {
  const std::string head = fmt::format(
      "inline(bias)\nsplit(relu, ow, [{}])\nsplit(relu, oh, [{}])\n"
      "reorder(relu, [n, oh.0, ow.0, oh.1, ow.1, oc])\nvectorize(relu, oc)\nunroll(relu, oh.1)\n"
      "unroll(relu, ow.1)\ncompute_at(conv2d, relu, ow.0)\nscope(conv2d, register)\n",
      columns, rows);
  return head + "reorder(conv2d, [" + sum +
         ", n, oh, ow, oc])\nunroll(conv2d, n)\nunroll(conv2d, oh)\nunroll(conv2d, ow)\n"
         "vectorize(conv2d, oc)\n";
}

// The first and the last tap leave out those points of a register tile that read zeros, if these
// are the same ones in every tile.
TEST(known_zeros, are_not_read_by_points_of_a_tile_that_has_all_of_a_dimension) {
  const compute::Dag dag = conv_in_zeros(kShape);
  const std::string columns = tile_of(7), both = tile_of(7, 5);
  for (const std::string& tile : {columns, both, tile_of(7, 1, "ic, kh, kw")}) {
    EXPECT_EQ(elements_read(dag, tile), kInside) << tile;
    expect_same(dag, tile);
  }
  EXPECT_EQ(elements_read(dag, tile_of(4)), kRows) << "the first column lies in some tiles only";
  EXPECT_EQ(elements_read(dag, columns + "unroll(conv2d, ic)\nunroll(conv2d, kw)\n"), kAll)
      << "taps that are straight code are not told apart";
}

int64_t stores_to(const ir::Stmt& s, std::string_view buffer) {
  int64_t stores = s->kind == ir::StmtKind::kStore && s->buffer->name == buffer ? 1 : 0;
  for (const ir::Stmt& child : s->body) stores += stores_to(child, buffer);
  return stores;
}

TEST(known_zeros, lengthen_no_code_beyond_measure) {
  const auto copies = [](const compute::Dag& dag, const std::string& text) {
    const Result<ir::Program> program = lower(dag, *parse_steps(text));
    return stores_to(program->phases.back().body, "conv2d") - 1;  // one sets the sum to zero
  };
  EXPECT_EQ(copies(conv_in_zeros(kShape), tile_of(7)), 3);
  EXPECT_EQ(copies(conv_in_zeros(kShape), tile_of(7, 5)), 9);
  const compute::Dag large = conv_in_zeros({.h = 20, .w = 20, .ic = 4, .oc = 8, .border = 0});
  EXPECT_EQ(copies(large, tile_of(20, 5)), 3) << "columns only";
  EXPECT_EQ(copies(large, tile_of(20, 20)), 1) << "neither";
  // Two taps read zeros at either end: one copy for both would test each point.
  EXPECT_EQ(copies(conv_in_zeros({.w = 9, .ic = 4, .kernel = 5, .pad = 2}), tile_of(9)), 1);
}

TEST(known_zeros, in_tiles_of_any_shape_change_no_result) {
  const int64_t sizes[] = {1, 2, 3, 5, 7, 13};
  const std::string orders[] = {"kh, kw, ic", "kw, kh, ic", "ic, kh, kw", "kh, ic, kw"};
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    ConvShape shape{.h = sizes[rng.below(6)],
                    .w = sizes[rng.below(6)],
                    .ic = rng.between(1, 4),
                    .oc = rng.between(1, 9),
                    .kernel = rng.between(1, 4),
                    .stride = rng.between(1, 3),
                    .pad = rng.between(1, 3),
                    .border = rng.between(0, 1),
                    .kernel_w = rng.between(1, 4)};
    if (shape.h + 2 * shape.pad < shape.kernel || shape.w + 2 * shape.pad < shape.kernel_w)
      continue;
    compute::Dag dag = conv_in_zeros(shape);
    for (int64_t& zeros : dag.params[0].zeros) zeros = rng.between(0, zeros);
    const std::string tile =
        tile_of(rng.chance(0.7) ? 13 : rng.between(1, 9), rng.chance(0.5) ? 13 : rng.between(1, 3),
                orders[rng.below(4)]);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, tile));
    expect_same(dag, *parse_steps(tile), 1e-5, seed);
    if (::testing::Test::HasFailure()) return;
  }
}

// Seven taps over eight columns in tiles of two: a tile whose columns both read zeros is left out,
// so that of three columns of zeros at either end one is read.
TEST(known_zeros, are_left_out_by_tiles_that_lie_in_them_as_a_whole) {
  const compute::Dag dag =
      conv_in_zeros({.h = 5, .w = 8, .ic = 4, .oc = 8, .kernel = 7, .pad = 3, .border = 0});
  const std::string tile =
      "inline(bias)\nsplit(relu, ow, [2])\nreorder(relu, [n, oh, ow.0, ow.1, oc])\n"
      "vectorize(relu, oc)\nunroll(relu, ow.1)\ncompute_at(conv2d, relu, ow.0)\n"
      "scope(conv2d, register)\nreorder(conv2d, [kh, kw, ic, n, oh, ow, oc])\n"
      "unroll(conv2d, n)\nunroll(conv2d, oh)\nunroll(conv2d, ow)\nvectorize(conv2d, oc)\n";
  EXPECT_EQ(elements_read(dag, tile), 5 * (8 + 2) * 4);
  expect_same(dag, tile);
}

// A reduce axis of one point has no loop that could leave anything out.
TEST(known_zeros, around_a_window_of_one_point_are_read) {
  const compute::Dag point = conv_in_zeros({.h = 5, .w = 7, .kernel = 1, .pad = 1});
  EXPECT_EQ(elements_read(point, ""), 7 * 9 * 3);
  expect_same(point, "");
  expect_same(conv_in_zeros({.h = 5, .w = 7, .pad = 1, .kernel_w = 1}), "");
  expect_same(conv_in_zeros(kShape), "rfactor(conv2d, kh, 1)");
}

TEST(known_zeros, change_no_result) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    ConvShape shape{.h = rng.between(3, 7),
                    .w = rng.between(3, 7),
                    .ic = rng.between(1, 5),
                    .oc = rng.between(1, 9),
                    .kernel = rng.between(1, 3),
                    .stride = rng.between(1, 2),
                    .pad = rng.between(0, 2),
                    .border = 0,
                    .kernel_w = rng.between(1, 3)};
    compute::Dag dag = conv_in_zeros(shape);
    for (int64_t& zeros : dag.params[0].zeros) zeros = rng.between(0, zeros);
    const Steps steps = random_steps(dag, rng, 25);
    if (!lower(dag, steps).ok()) continue;
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, to_string(steps)));
    expect_same(dag, steps, 1e-5, seed);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace hone::schedule
